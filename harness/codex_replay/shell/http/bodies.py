"""Record the bodies of responses while they are passed on.

Each event of an event stream is recorded immediately; any other body is recorded at its end.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Protocol

from codex_replay.core.cassette import http_frames
from codex_replay.core.wire import content_encoding
from codex_replay.core.wire.sse import Block, Decoder
from codex_replay.shell.cassettes.record_log import Log
from codex_replay.shell.http.deferred import Deferred

Redact = Callable[[bytes], bytes]
PAUSE = 0.02  # seconds: in a body without chunks, a longer wait counts as the end of a chunk
PART = 8 << 20  # bytes: a body that is not an event stream is logged in parts of this size
#: Bytes: a body or an event that is longer than the first, as sent or decoded, is decoded and redacted off the loop. A compressed
#: body that decodes to more than the second (unless told otherwise) is left out, and a body in one piece (a request, or a
#: compressed body) that is longer than the third as sent.
AT_ONCE, MAX_DECODED, MAX_SENT = 1 << 20, 16 << 20, 64 << 20
MAX_HEAD = 1 << 20  # bytes: after a longer head the connection is passed on, but not recorded
_EVENT_END = re.compile(rb"\n\r?\n|\r\r")


def decodes_to_more(raw: bytes, encoding: str | None, limit: int) -> bool:
    """Return True if the decoded form of a compressed body is longer than the limit.

    The body is decoded only up to the limit.
    """
    if (encoding or "").lower() in content_encoding.IDENTITY:
        return False
    try:
        content_encoding.decode(raw, encoding, limit)
    except content_encoding.TooLarge:
        return True
    except content_encoding.BadEncoding:
        return False
    return False


def takes_long(raw: bytes, encoding: str | None) -> bool:
    """Return True if a body takes long to decode and to redact."""
    return len(raw) > AT_ONCE or decodes_to_more(raw, encoding, AT_ONCE)


class Watch(Protocol):
    """The interface of `watch.Watch` that a body uses."""

    @property
    def log(self) -> Log | Deferred:
        """The recording."""

    @property
    def limit(self) -> int:
        """The maximum size in bytes of a decoded body, or of an event, in the cassette."""

    @property
    def later(self) -> bool:
        """Return True if the writer of the frames redacts them later, so that they must not be redacted now."""

    @property
    def redact(self) -> Redact:
        """The redactor of bytes."""

    def emit(self, sender: str, kind: str, build: Callable[[], Any], *, size: int = 0, long: bool = False, **marks: Any) -> None:
        """Log one frame."""

    def left_out(self, size: int, encoding: str | None) -> dict[str, Any]:
        """Return the cassette entry for a body that is too long."""

    def body(self, raw: bytes, encoding: str) -> dict[str, Any]:
        """Return the cassette entry for the body of an answer."""


class EventBody:
    """Record a response body that is an event stream.

    Each block of the stream becomes a frame, with the offsets in the block at which HTTP chunks ended.
    """

    def __init__(self, watch: Watch, chunked: bool) -> None:
        self._watch = watch
        self._chunked = chunked
        self._decoder = Decoder()
        self._ready: list[Block] = []
        self._logged = self._fed = 0  # offsets in the body
        self._waits = 0  # bytes of an event that is not whole
        self._tail: bytes | None = None  # the last bytes of an event that is left out; None while none is
        self._ends: list[tuple[int, float]] = []
        self._last = 0.0

    def feed(self, data: bytes) -> None:
        """Take a chunk of the event stream."""
        now = self._watch.log.now()
        if not self._chunked and self._fed > self._logged and now - self._last > PAUSE:
            self._ends.append((self._fed, self._last))
        self._last = now
        self._fed += len(data)
        if self._tail is not None:
            data = self._left_out(data)
        ready = self._decoder.feed(data)
        self._ready += ready
        self._waits = self._waits + len(data) - sum(len(block.raw) for block in ready)
        if self._waits > self._watch.limit and self._tail is None:
            self._flush()
            self._decoder, self._tail = Decoder(), data[-3:]
        if not self._chunked:
            self._flush()

    def _left_out(self, data: bytes) -> bytes:
        """Drop an event that is too long, and return the bytes after it."""
        assert self._tail is not None
        joined = self._tail + data
        found = _EVENT_END.search(joined)
        if found is None:
            self._waits += len(data)
            self._tail = joined[-3:]
            return b""
        rest = joined[found.end() :]
        size = self._waits + len(data) - len(rest)
        self._waits, self._tail = 0, None
        self._omit(size)
        return rest

    def _omit(self, size: int) -> None:
        self._logged += size
        self._watch.emit("server", "chunk", lambda: self._watch.left_out(size, None))

    def chunk_end(self) -> None:
        """Record the end of an HTTP chunk, so that the cassette shows which events came in one chunk."""
        self._ends.append((self._fed, self._watch.log.now()))
        self._flush()

    def close(self) -> None:
        """Log the remaining data: an incomplete event, or events of a chunk that did not end."""
        if self._tail is not None:
            self._omit(self._waits)
        self._ready += self._decoder.close()
        self._flush()

    def _flush(self) -> None:
        redact = None if self._watch.later else self._watch.redact
        for block in self._ready:
            start, end = self._logged, self._logged + len(block.raw)
            self._logged = end
            cuts = [[at - start, round(when, 6)] for at, when in self._ends if start < at < end]
            joined = self._chunked and end < self._fed and all(at != end for at, _ in self._ends)
            size = len(block.raw)
            build = _event(block, redact)
            self._watch.emit("server", "sse", build, size=size, long=size > AT_ONCE, cuts=cuts, joined=joined)
        self._ready = []
        self._ends = [(at, when) for at, when in self._ends if at > self._logged]


def _event(block: Block, redact: Redact | None) -> Callable[[], Any]:
    return lambda: http_frames.sse_payload(block, redact)


class WholeBody:
    """Record a response body that is not an event stream.

    The body becomes one frame at its end, or several frames if it is long.
    """

    def __init__(self, watch: Watch, chunked: bool, packed: str) -> None:
        self._watch = watch
        self._chunked = chunked
        self._packed = packed
        self._pieces: list[bytes] = []
        self._size = 0
        self._cuts: list[list[float]] = []

    def feed(self, data: bytes) -> None:
        """Add a piece of the body to the recording."""
        self._size += len(data)
        if self._size > MAX_SENT:
            self._pieces.clear()  # only its length will be recorded
        else:
            self._pieces.append(data)
        if self._size >= PART and self._packed == "identity":
            self._flush()

    def chunk_end(self) -> None:
        """Record that an HTTP chunk ends at the current place of the body."""
        self._cuts.append([self._size, round(self._watch.log.now(), 6)])

    def close(self) -> None:
        """Log the body, unless it is empty."""
        if self._size:
            self._flush()

    def _flush(self) -> None:
        raw, size = b"".join(self._pieces), self._size
        cuts = [cut for cut in self._cuts if cut[0] < size]
        self._pieces, self._size, self._cuts = [], 0, []
        if size > MAX_SENT:
            self._watch.emit("server", "chunk", lambda: self._watch.left_out(size, self._packed))
            return
        long = takes_long(raw, self._packed)
        self._watch.emit("server", "chunk", lambda: self._watch.body(raw, self._packed), size=size, long=long, cuts=cuts)
