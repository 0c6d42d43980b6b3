"""Encode and decode server-sent events as bytes.

The decoder is a plain state machine without input or output: it takes bytes and returns blocks. The joined `raw` bytes of
all blocks are exactly the input, with all comments and unusual line ends. A recorder can therefore store a stream, and a
player can send the same bytes. A line may end with LF, CRLF or CR. The two bytes of a CRLF may come in two calls. Events
are interpreted by the rules of the HTML standard, section 9.2 (server-sent events).
"""

from __future__ import annotations

from codex_replay.core.value import Value

BOM = b"\xef\xbb\xbf"


class Block(Value):
    """One block of an event stream: the lines between two blank lines.

    A block is an event, only comments, or (at the end of a stream) an incomplete event.

    `event` is the event's name, or "" if the block names no event (a browser then uses the name "message"). `data` are the
    joined data lines, or None without data lines. An event without data lines is not passed to the user of the stream. `id`
    and `retry` have the values of the event's fields `id` and `retry`, or None. `comments` are the comments without their
    colon. `raw` are the exact bytes of the block, including the blank line at the end. `complete` is False for a block at
    the end of the stream that lacks the blank line.
    """

    raw: bytes
    event: bytes = b""
    data: bytes | None = None
    id: bytes | None = None
    retry: bytes | None = None
    comments: tuple[bytes, ...] = ()
    complete: bool = True

    @property
    def dispatched(self) -> bool:
        """True if a client that follows the standard passes the block to its user as an event."""
        return self.complete and self.data is not None


def encode(data: bytes, event: bytes = b"", *, newline: bytes = b"\n") -> bytes:
    """Return the bytes of one event: `event:`, a `data:` line for each line of `data`, and a blank line.

    `data` is split only at LF, as the standard requires. A CR in `data` raises ValueError, because a reader would treat the
    CR as a line end. `newline` is the line end of the event: LF, which all known servers use, or CRLF.
    """
    if b"\r" in data or b"\n" in event or b"\r" in event:
        raise ValueError("the data of an SSE event must not contain CR, and its name must not contain a line end")
    lines = []
    if event:
        lines.append(b"event: " + event)
    lines += [b"data: " + line for line in data.split(b"\n")]
    lines += [b"", b""]
    return newline.join(lines)


class Decoder:
    """Convert a byte stream to `Block`s.

    The bytes of the stream may come in chunks of any size. A CR at the end of a chunk is buffered until the next byte shows
    whether a LF follows.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._line_start = 0  # where the line being read begins
        self._scanned = 0  # how far we have looked for its end: a long line must not be searched again and again
        self._lines: list[bytes] = []
        self._first = True

    def feed(self, data: bytes) -> list[Block]:
        """Take the next bytes of the stream. Return the blocks of the stream that are now complete."""
        self._buffer += data
        return self._take(final=False)

    def close(self) -> list[Block]:
        """End the stream; return the rest: an incomplete last block has `complete` False."""
        blocks = self._take(final=True)
        if self._buffer:
            tail = bytes(self._buffer[self._line_start :])
            blocks.append(self._block(bytes(self._buffer), [*self._lines, tail], complete=False))
            self._buffer.clear()
            self._lines = []
            self._line_start = self._scanned = 0
        return blocks

    def _take(self, *, final: bool) -> list[Block]:
        blocks = []
        while (found := self._next_line(final)) is not None:
            line, end = found
            self._line_start = self._scanned = end
            at_start = self._first and not self._lines
            if line and not (at_start and line == BOM):
                self._lines.append(line)
                continue
            blocks.append(self._block(bytes(self._buffer[:end]), self._lines))
            del self._buffer[:end]
            self._lines = []
            self._line_start = self._scanned = 0
        return blocks

    def _next_line(self, final: bool) -> tuple[bytes, int] | None:
        buffer = self._buffer
        lf = buffer.find(b"\n", self._scanned)
        cr = buffer.find(b"\r", self._scanned, lf if lf >= 0 else len(buffer))
        if cr >= 0:
            if cr + 1 == len(buffer) and not final:
                self._scanned = cr
                return None
            end = cr + 2 if buffer[cr + 1 : cr + 2] == b"\n" else cr + 1
            return bytes(buffer[self._line_start : cr]), end
        if lf >= 0:
            return bytes(buffer[self._line_start : lf]), lf + 1
        self._scanned = len(buffer)
        return None

    def _block(self, raw: bytes, lines: list[bytes], *, complete: bool = True) -> Block:
        if self._first and lines:
            lines = [lines[0].removeprefix(BOM), *lines[1:]]
        self._first = False
        event = b""
        id_ = retry = None
        data: list[bytes] = []
        comments = []
        for line in lines:
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if not name:
                if line:
                    comments.append(value)
            elif name == b"data":
                data.append(value)
            elif name == b"event":
                event = value
            elif name == b"id":
                id_ = value
            elif name == b"retry":
                retry = value
        return Block(raw, event, b"\n".join(data) if data else None, id_, retry, tuple(comments), complete)
