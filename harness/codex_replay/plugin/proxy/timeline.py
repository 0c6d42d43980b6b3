"""Merge the HTTP and JSON-RPC messages of a case into one timeline: a readable text, or the frames of its trace."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING

from codex_replay.core.text.truncate import shortened
from codex_replay.plugin.reporting.trace_frames import answer_frames, request_frame, rpc_frames

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from codex_replay.plugin.proxy.http import Exchange
    from codex_replay.plugin.proxy.wire import WireFrame
    from codex_replay.report.data import Frame

_MOST_FRAMES = 60


def _frames(exchanges: Sequence[Exchange]) -> list[list[WireFrame]]:
    """Return the JSON-RPC frames of each exchange, each frame once: requests at the same time see the same frames."""
    seen: set[WireFrame] = set()
    found = []
    for one in exchanges:
        found.append([frame for frame in one.frames if frame not in seen])
        seen.update(one.frames)
    return found


def report_on(exchanges: Sequence[Exchange], stderr: Sequence[str] = ()) -> str:
    """Return a readable timeline of the requests, the frames and the answers; times are milliseconds since the first request."""
    start = exchanges[0].started
    lines: list[tuple[float, str]] = []
    for one, own in zip(exchanges, _frames(exchanges), strict=True):
        sent = one.sent.decode("utf-8", "replace") if isinstance(one.sent, bytes) else json.dumps(one.sent, ensure_ascii=False)
        lines.append((one.started, f"HTTP     > {one.method} {one.path}  {shortened(sent, 1200)}"))
        message = one.body.decode("utf-8", "replace")
        lines.append((one.ended, f"HTTP     < {one.status or 'no answer'} {one.problem} {shortened(message, 1500)}"))
        hidden = len(own) - _MOST_FRAMES
        for frame in own[:_MOST_FRAMES]:
            arrow = ">" if frame.sender == "client" else "<"
            lines.append((frame.t, f"{frame.child[-8:]:>8} {arrow} {shortened(frame.raw, 1500 if arrow == '>' else 200)}"))
        if hidden > 0:
            lines.append((one.ended, f"         ... {hidden} frames more"))
    lines.sort(key=lambda line: line[0])
    report = [f"{(t - start) * 1000:8.1f} {text}" for t, text in lines]
    return "\n".join([*report, *(["stderr of the proxy during this case:", *stderr] if stderr else [])])


def proxy_frames(exchanges: Sequence[Exchange]) -> Iterator[Frame]:
    """Yield the HTTP and JSON-RPC frames of a proxy in order of time, for its trace."""
    if not exchanges:
        return
    start = exchanges[0].started
    children: dict[str, int] = {}
    # (time, frames, how many of them are at that time): a whole answer (None), or the next line of the JSON-RPC seam.
    parts: list[tuple[float, Iterator[Frame], int | None]] = []
    for conn, (one, own) in enumerate(zip(exchanges, _frames(exchanges), strict=True), 1):
        parts.append((one.started, iter((request_frame(one.started - start, conn, one.method, one.path, (), one.sent),)), None))
        parts.append((one.ended, answer_frames(one.ended - start, conn, one.status, one.headers, one.body), None))
        for frame in own:
            children.setdefault(frame.child, len(children) + 1)
        rpc = rpc_frames((frame.t - start, children[frame.child], frame.sender, frame.raw) for frame in own)
        times = [frame.t for frame in own]
        if times == sorted(times):
            parts += ((t, rpc, 1) for t in times)
        else:  # lines that were read late: labels need the order of reading, the trace the order of time
            parts += ((t, iter((frame,)), 1) for t, frame in zip(times, rpc, strict=True))
    parts.sort(key=lambda entry: entry[0])
    for _, frames, count in parts:
        yield from islice(frames, count)
