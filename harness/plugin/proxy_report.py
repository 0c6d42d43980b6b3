"""Both seams of a case on one timeline, for people."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from harness.core.brief import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.plugin.proxy_http import Exchange

_MOST_FRAMES = 60


def tell(exchanges: Sequence[Exchange], stderr: Sequence[str] = ()) -> str:
    """Return the requests (one at least), the frames that passed meanwhile and the answers, by time (ms since the first)."""
    start = exchanges[0].started
    lines: list[tuple[float, str]] = []
    for one in exchanges:
        sent = one.sent.decode("utf-8", "replace") if isinstance(one.sent, bytes) else json.dumps(one.sent, ensure_ascii=False)
        lines.append((one.started, f"HTTP     > {one.method} {one.path}  {shortened(sent, 1200)}"))
        said = one.body.decode("utf-8", "replace")
        lines.append((one.ended, f"HTTP     < {one.status or 'no answer'} {one.problem} {shortened(said, 1500)}"))
        hidden = len(one.frames) - _MOST_FRAMES
        for frame in one.frames[:_MOST_FRAMES]:
            arrow = ">" if frame.sender == "client" else "<"
            lines.append((frame.t, f"{frame.child[-8:]:>8} {arrow} {shortened(frame.raw, 1500 if arrow == '>' else 200)}"))
        if hidden > 0:
            lines.append((one.ended, f"         ... {hidden} frames more"))
    lines.sort(key=lambda line: line[0])
    told = [f"{(t - start) * 1000:8.1f} {text}" for t, text in lines]
    return "\n".join([*told, *(["stderr of the proxy:", *stderr] if stderr else [])])
