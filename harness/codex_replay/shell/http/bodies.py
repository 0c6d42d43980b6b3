"""The bodies of answers as they pass: an event stream is logged event by event, any other body at its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harness.core import httpframes
from harness.core.sse import Block, Decoder

if TYPE_CHECKING:
    from harness.shell.http_watch import Watch

Redact = Callable[[bytes], bytes]
PAUSE = 0.02  # seconds: where a body has no chunks of its own, a longer wait counts as the end of one
PART = 8 << 20  # bytes: a body that is no event stream is logged in parts of this size


class EventBody:
    """An event stream: a frame for each block, with the places where HTTP chunks ended in it."""

    def __init__(self, watch: Watch, chunked: bool) -> None:
        self._watch = watch
        self._chunked = chunked
        self._decoder = Decoder()
        self._ready: list[Block] = []
        self._logged = self._fed = 0  # offsets in the body
        self._ends: list[tuple[int, float]] = []
        self._last = 0.0

    def feed(self, data: bytes) -> None:
        """Take a piece of the body."""
        now = self._watch.log.now()
        if not self._chunked and self._fed > self._logged and now - self._last > PAUSE:
            self._ends.append((self._fed, self._last))
        self._last = now
        self._fed += len(data)
        self._ready += self._decoder.feed(data)
        if not self._chunked:
            self._flush()

    def chunk_end(self) -> None:
        """An HTTP chunk ends here: now it is known how its events share it."""
        self._ends.append((self._fed, self._watch.log.now()))
        self._flush()

    def close(self) -> None:
        """Log what is left: half an event, or events of a chunk that did not end."""
        self._ready += self._decoder.close()
        self._flush()

    def _flush(self) -> None:
        redact = None if self._watch.later else self._watch.redact
        for block in self._ready:
            start, end = self._logged, self._logged + len(block.raw)
            self._logged = end
            cuts = [[at - start, round(when, 6)] for at, when in self._ends if start < at < end]
            joined = self._chunked and end < self._fed and all(at != end for at, _ in self._ends)
            self._watch.emit("server", "sse", _event(block, redact), cuts=cuts, joined=joined)
        self._ready = []
        self._ends = [(at, when) for at, when in self._ends if at > self._logged]


def _event(block: Block, redact: Redact | None) -> Callable[[], Any]:
    return lambda: httpframes.sse_payload(block, redact)


class WholeBody:
    """Any other body: one frame at its end, or several of a long one."""

    def __init__(self, watch: Watch, chunked: bool, packed: str) -> None:
        self._watch = watch
        self._chunked = chunked
        self._packed = packed
        self._pieces: list[bytes] = []
        self._size = 0
        self._cuts: list[list[float]] = []

    def feed(self, data: bytes) -> None:
        """Take a piece of the body."""
        self._pieces.append(data)
        self._size += len(data)
        if self._size >= PART and self._packed == "identity":
            self._flush()

    def chunk_end(self) -> None:
        """Note where an HTTP chunk ends."""
        self._cuts.append([self._size, round(self._watch.log.now(), 6)])

    def close(self) -> None:
        """Log the body, if there is one."""
        if self._size:
            self._flush()

    def _flush(self) -> None:
        raw, size = b"".join(self._pieces), self._size
        cuts = [cut for cut in self._cuts if cut[0] < size]
        self._pieces, self._size, self._cuts = [], 0, []
        self._watch.emit("server", "chunk", lambda: self._watch.body(raw, self._packed), cuts=cuts)
