"""The trace of a test that uses the fixture `fake_codex`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codex_replay.plugin.reporting.trace_frames import request_frame, rpc_frames, wire_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from codex_replay.report.data import Frame


def fake_codex_frames(wire: Iterable[dict[str, Any]], asked: Iterable[Any]) -> Iterator[Frame]:
    """Yield the recorded lines between a client and its fake codex, and after them the bodies of the requests to the model."""
    yield from rpc_frames(wire_lines(wire, 0))
    for conn, body in enumerate(asked, 1):
        yield request_frame(None, conn, "POST", "/responses", (), body)
