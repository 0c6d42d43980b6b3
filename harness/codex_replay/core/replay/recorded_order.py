"""The conditions that each server frame of a recording waits for, for a version without a table of causes.

fake-codex loads this module only for a recording of a version without a table."""

from __future__ import annotations

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.replay.causality import NO_LANE
from codex_replay.core.wire.jsonrpc import kind, request_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from codex_replay.core.replay.causality import Lane


class RecordedOrder:
    """The causes: each server frame waits for every client frame before it.

    `RecordedOrder` has the same methods as `Causality`. A track with `RecordedOrder` blocks all lanes together, so a frame
    names only the client frames that are new since the last server frame.
    """

    def __init__(self) -> None:
        self._requests: dict[Any, list[int]] = {}  # client request id -> frames, oldest first
        self._new: list[int] = []

    def opener(self, lane: Lane) -> int | None:
        """Return None, because no frame waits for the request that opened its thread."""
        return None

    def client(self, frame: Frame) -> None:
        """Record that all later server frames wait for a client frame."""
        self._new.append(frame.n)
        if kind(frame.value) == "request":
            self._requests.setdefault(request_key(frame.value["id"]), []).append(frame.n)

    def server(self, frame: Frame) -> tuple[Lane, tuple[int, ...]]:
        """Return the lane of a server frame (the lane names the request that the frame answers), and the client frames before
        it."""
        waits, self._new = tuple(self._new), []
        waiting = self._requests.get(request_key(frame.value["id"])) if kind(frame.value) in ("response", "error") else None
        return (("response", waiting.pop(0)) if waiting else NO_LANE), waits
