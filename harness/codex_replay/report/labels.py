"""Make readable labels for frames: a method, the result of a request, an HTTP request or status, an SSE event."""

from __future__ import annotations

from codex_replay.core.cassette import ws_frames
from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.jsonrpc import kind


class Labels:
    """Make the labels for the frames of one run, in order.

    Requests are remembered, so that the label of a reply can name the method of its request.
    """

    def __init__(self) -> None:
        self._methods: dict[tuple[str, str], str] = {}

    def label(self, frame: Frame) -> str:
        """Return a short description of the frame."""
        return http_label(frame) if frame.seam == "http" else self._rpc_label(frame)

    def _rpc_label(self, frame: Frame) -> str:
        value = frame.value
        sort = kind(value)
        if sort == "request":
            self._methods[(frame.sender, repr(value["id"]))] = str(value["method"])
            return f"{value['method']} #{value['id']}"
        if sort == "notification":
            return str(value["method"])
        if sort in ("response", "error"):
            other = "server" if frame.sender == "client" else "client"
            asked = self._methods.get((other, repr(value["id"])), "an unknown request")
            return f"{'result' if sort == 'response' else 'ERROR'} #{value['id']} of {asked}"
        return "no message"


def http_label(frame: Frame) -> str:
    """Return a short description of an HTTP frame."""
    payload = frame.payload if type(frame.payload) is dict else {}
    if frame.kind == "request":
        return f"{payload.get('method')} {payload.get('path')}"
    if frame.kind == "response":
        return f"HTTP {payload.get('status')}"
    if frame.kind == "sse":
        return f"event {payload.get('event')}"
    if frame.kind == "ws":
        return f"ws {ws_frames.name_of(payload)}"
    return frame.kind
