"""The bodies of answers as they pass: an event stream is logged event by event, any other body at its end."""

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
#: Bytes: a compressed body that decodes to more than the first is decoded off the loop, beyond the second (unless told
#: otherwise) it is left out. A body in one piece (a request, or a compressed body) is left out if it is longer than the third
#: as sent.
AT_ONCE, MAX_DECODED, MAX_SENT = 1 << 20, 16 << 20, 64 << 20
MAX_HEAD = 1 << 20  # bytes: after a longer head the connection is passed on, but not recorded
_EVENT_END = re.compile(rb"\n\r?\n|\r\r")


def decodes_to_more(raw: bytes, encoding: str | None, limit: int) -> bool:
    """Return True if the decoded body is longer than the limit; decoding stops at the limit."""
    if (encoding or "").lower() in content_encoding.IDENTITY:
        return False
    if limit == AT_ONCE and len(raw) > AT_ONCE:
        return True
    try:
        content_encoding.decode(raw, encoding, limit)
    except content_encoding.TooLarge:
        return True
    except content_encoding.BadEncoding:
        return False
    return False


class Watch(Protocol):
    """The interface of a connection that a body needs."""

    @property
    def log(self) -> Log | Deferred:
        """The recording."""

    @property
    def limit(self) -> int:
        """The bytes that a decoded body, or an event, may have in the cassette."""

    @property
    def later(self) -> bool:
        """True if secrets are redacted at the end of the recording, and not frame by frame."""

    @property
    def redact(self) -> Redact:
        """The redactor of bytes."""

    def emit(self, sender: str, kind: str, build: Callable[[], Any], *, long: bool = False, **marks: Any) -> None:
        """Log one frame."""

    def left_out(self, size: int, encoding: str | None) -> dict[str, Any]:
        """Return the cassette entry for a body that is too long."""

    def body(self, raw: bytes, encoding: str) -> dict[str, Any]:
        """Return the cassette entry for the body of an answer."""


class EventBody:
    """An event stream: a frame for each block, with the places where HTTP chunks ended in it."""

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
        """Take a piece of the body."""
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
        """Return the bytes after an event that is too long; the event itself is not kept."""
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
        """An HTTP chunk ends here: now it is known how its events share it."""
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
            self._watch.emit("server", "sse", _event(block, redact), cuts=cuts, joined=joined)
        self._ready = []
        self._ends = [(at, when) for at, when in self._ends if at > self._logged]


def _event(block: Block, redact: Redact | None) -> Callable[[], Any]:
    return lambda: http_frames.sse_payload(block, redact)


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
        self._size += len(data)
        if self._size > MAX_SENT:
            self._pieces.clear()  # only its length will be recorded
        else:
            self._pieces.append(data)
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
        if size > MAX_SENT:
            self._watch.emit("server", "chunk", lambda: self._watch.left_out(size, self._packed))
            return
        long = decodes_to_more(raw, self._packed, AT_ONCE)
        self._watch.emit("server", "chunk", lambda: self._watch.body(raw, self._packed), long=long, cuts=cuts)
