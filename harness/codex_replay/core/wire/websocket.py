"""Convert WebSocket messages from and to bytes, without I/O: RFC 6455 with permessage-deflate (RFC 7692).

The package `websockets` splits messages into frames. The code here joins frames to messages, notes unusual properties of a
message (fragments, compression), and limits the size of messages. If a message is too long or cannot be decompressed, only
its size is kept, and the reader continues with the next message.

Source: RFC 6455, RFC 7692. fake-codex does not load this module at start-up, because `websockets` takes 30 ms to import.
"""

from __future__ import annotations

import zlib
from codecs import getincrementaldecoder
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, NamedTuple

from websockets.exceptions import InvalidHandshake, PayloadTooBig, ProtocolError
from websockets.extensions.base import Extension
from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory, PerMessageDeflate
from websockets.frames import Close, Frame, Opcode
from websockets.headers import parse_extension
from websockets.streams import StreamReader
from websockets.typing import ExtensionName

Headers = Sequence[Sequence[str]]
_KINDS = {Opcode.TEXT: "text", Opcode.BINARY: "binary", Opcode.CLOSE: "close", Opcode.PING: "ping", Opcode.PONG: "pong"}
_CONTROL = (Opcode.CLOSE, Opcode.PING, Opcode.PONG)
_OPCODES = {kind: opcode for opcode, kind in _KINDS.items()}
#: Bytes that are inflated and dropped of a message that is too long, so that the next one can be read; then no more is read.
_DRAINED = 256 << 20
#: A message is decompressed in pieces of so many bytes, from slices of so many bytes.
_PIECE, _SLICE = 1 << 20, 1 << 16
#: Frames that a reader with a burst reads at a time.
_FRAMES = 2000
_FLUSHED = b"\x00\x00\xff\xff"  # how a compressed message ends; it is not sent (RFC 7692, section 7.2.1)


class Message(NamedTuple):
    """One message or control frame: `kind` is "text", "binary", "ping", "pong", "close" or "lost".

    If the message had several frames, `fragments` are the sizes of the frames. A "lost" message was too long, or its compression
    is invalid; `why` is the reason, and `size` is the number of bytes as sent.
    """

    kind: str
    data: bytes = b""
    compressed: bool = False
    fragments: tuple[int, ...] = ()
    size: int = 0
    why: str = ""

    @property
    def code(self) -> int | None:
        """The code of a close frame, or None if the frame has no code or is invalid."""
        return int.from_bytes(self.data[:2], "big") if self.kind == "close" and len(self.data) >= 2 else None


def compression(headers: Headers) -> tuple[PerMessageDeflate | None, PerMessageDeflate | None]:
    """Return the compression of the client's messages and the compression of the server's messages, from the headers of a 101
    response.

    Each of the two returned objects may be used in only one `Decoder` or `Encoder`. Raises ValueError for another
    extension.
    """
    given = ", ".join(value for name, value in headers if name.lower() == "sec-websocket-extensions")
    if not given:
        return None, None
    try:
        (name, parameters), *more = parse_extension(given)
        if name != "permessage-deflate" or more:
            raise ValueError(f"the extension {given!r} is not known")
        offer = ClientPerMessageDeflateFactory(client_max_window_bits=True)
        mine = offer.process_response_params(parameters, [])
    except InvalidHandshake as error:
        raise ValueError(f"the extension {given!r} cannot be used ({error})") from None
    # One object decodes what the other side says: each direction needs its own.
    theirs = PerMessageDeflate(
        mine.local_no_context_takeover,
        mine.remote_no_context_takeover,
        mine.local_max_window_bits,
        mine.remote_max_window_bits,
    )
    return theirs, mine


class _Inflate(Extension):
    """Decompress frames in pieces, and note which messages were lost; a lost message raises no exception.

    The decoder of the package `websockets` is not used: it decompresses a frame in one go, and after a message that is too long,
    it cannot read the next message.
    """

    name = ExtensionName("permessage-deflate")

    def __init__(self, inner: PerMessageDeflate | None) -> None:
        self._inner = inner
        self._decoder: Any = None
        self.compressed = False
        self.why = ""
        self._dead = ""

    def decode(self, frame: Frame, *, max_size: int | None = None) -> Frame:
        """Take the mark of compression from a frame that `Frame.parse` reads. `chunks` decompresses the frame later."""
        if frame.opcode in _CONTROL:
            return frame
        self.why = ""
        if frame.opcode is Opcode.CONT:
            return frame
        inner, self.compressed = self._inner, frame.rsv1
        if inner is None or not frame.rsv1:
            return frame
        self._dead = "" if inner.remote_no_context_takeover else self._dead
        if self._decoder is None or inner.remote_no_context_takeover:
            self._decoder = zlib.decompressobj(wbits=-inner.remote_max_window_bits)
        return Frame(frame.opcode, frame.data, frame.fin, False, frame.rsv2, frame.rsv3)

    def chunks(self, frame: Frame) -> Iterator[bytes | bytearray | memoryview]:
        """Yield the content of a data frame in pieces of at most `_PIECE` bytes.

        If the content cannot be decompressed, `why` is the reason, and the pieces end.
        """
        data = frame.data
        if not self.compressed:
            for at in range(0, len(data), _PIECE):
                yield data[at : at + _PIECE]
            return
        # zlib copies the input that is left after each piece: it gets little at a time.
        for at in range(0, len(data), _SLICE):
            yield from self._inflated(bytes(data[at : at + _SLICE]))
        if frame.fin:
            yield from self._inflated(_FLUSHED)
            if not self._dead and self._decoder.eof:
                self._dead = "a message before it ended the compression"

    def _inflated(self, data: bytes) -> Iterator[bytes]:
        while not self._dead:
            try:
                found: bytes = self._decoder.decompress(data, _PIECE)
            except zlib.error as error:
                self.why = self._dead = f"its compression is broken ({error})"
                return
            if found:
                yield found
            if len(found) < _PIECE:
                return
            data = self._decoder.unconsumed_tail
        self.why = self.why or self._dead

    def give_up(self) -> None:
        """Lose the compressed messages that need the content of the current message, because it is not decompressed."""
        self._dead = "a message before it was too long"


class Decoder:
    """A reader of the messages of one direction; `masked` is True for the direction of the client.

    A message of more than `limit` decompressed bytes becomes a "lost" message. A message with a frame of more than `limit`
    bytes also becomes a "lost" message; such a frame is not buffered. While such a message is incomplete, `lost` is already the
    reason. If the peer violates the protocol, `broken` is a sentence with the error, and the decoder reads nothing more;
    otherwise `broken` is None. `pending` is True while a message is incomplete.

    If `burst` is not 0, `feed` stops after `burst` decompressed bytes, also within a message, and after many frames. `held` is
    then True, and the next `feed` continues.
    """

    def __init__(self, masked: bool, deflate: PerMessageDeflate | None = None, limit: int = 64 << 20, *, burst: int = 0) -> None:
        self.broken: str | None = None
        self.held = False
        self._burst = burst
        self._done = self._count = 0  # decompressed bytes, and frames, since the last stop
        self.pending = False
        self._masked = masked
        self._limit = limit
        self._inflate = _Inflate(deflate)
        self._stream = StreamReader()
        self._ready: list[Message] = []
        self._head = -1  # the first byte of the frame that is open
        self._opcode: Opcode | None = None  # of the message that is open
        self._data = bytearray()  # a list of short fragments would need much more memory
        self._utf8 = getincrementaldecoder("utf-8")()
        self._sizes: list[int] = []
        self._size = self._sent = 0
        self.lost = ""
        self._frames = self._parse()

    @property
    def size(self) -> int:
        """The number of bytes in memory: of incomplete frames, and of an incomplete message."""
        return len(self._stream.buffer) + (0 if self.lost or self._opcode is None else self._size)

    def feed(self, data: bytes) -> list[Message]:
        """Take bytes; return the complete messages and control frames, in order."""
        if self.broken is not None:
            return []
        self._stream.feed_data(data)
        try:
            next(self._frames)
        except StopIteration:  # the protocol is broken
            self._stream, self._data = StreamReader(), bytearray()
        self.pending = bool(self._stream.buffer) or self._opcode is not None
        ready, self._ready = self._ready, []
        return ready

    def close(self) -> None:
        """Release the memory of the decoder immediately.

        If `close` is not called, Python releases the memory late, because the parser refers to itself.
        """
        self._frames.close()
        self.held = False
        self._inflate = _Inflate(None)
        self._stream, self._data = StreamReader(), bytearray()
        self.broken = self.broken or "it is closed"

    def _parse(self) -> Generator[None, None, None]:
        try:
            while True:
                yield from self._rest()
                self._head = -1
                self._count += 1
                try:
                    frame = yield from Frame.parse(
                        self._read, mask=self._masked, max_size=self._limit, extensions=[self._inflate]
                    )
                except PayloadTooBig as error:
                    yield from self._drop(error.size or 0)
                else:
                    yield from self._take(frame)
                    del frame
        except ProtocolError as error:
            self.broken = str(error)

    def _rest(self) -> Generator[None, None, None]:
        """Stop after a burst, until the next `feed`."""
        if self._burst and (self._done >= self._burst or self._count >= _FRAMES):
            self._done = self._count = 0
            self.held = True
            yield
            self.held = False

    def _read(self, size: int) -> Generator[None, None, bytes | bytearray]:
        data = yield from self._stream.read_exact(size)
        if self._head < 0:
            self._head = data[0]
        return data

    def _drop(self, size: int) -> Generator[None, None, None]:
        """Drop a frame that is too long, after its header."""
        opcode = Opcode(self._head & 15)
        if self._head & 8:
            raise ProtocolError("control frame too long")
        self._begin(opcode)
        if opcode is not Opcode.CONT:
            self._inflate.compressed = bool(self._head & 64)
        if self._inflate.compressed:
            self._inflate.give_up()
        self._lose("it is too long")
        self._sent += size
        left = size + 4 * self._masked
        while left:
            left -= len((yield from self._stream.read_exact(min(left, _SLICE))))
        if self._head & 128:
            self._whole()

    def _begin(self, opcode: Opcode) -> None:
        """Check that a data frame may come now, and begin a new message unless the frame continues one."""
        if (opcode is Opcode.CONT) == (self._opcode is None):
            raise ProtocolError("a continuation without its beginning" if opcode is Opcode.CONT else "a message within a message")
        if opcode is not Opcode.CONT:
            self._opcode, self.lost = opcode, ""
            self._sizes, self._size, self._sent = [], 0, 0
            self._utf8.reset()

    def _lose(self, why: str) -> None:
        if not self.lost:
            self.lost, self._data = why, bytearray()

    def _take(self, frame: Frame) -> Generator[None, None, None]:
        kind = frame.opcode
        if kind in _CONTROL:
            data = bytes(frame.data)
            try:
                if kind is Opcode.CLOSE:
                    Close.parse(data)
            except (UnicodeDecodeError, ProtocolError) as error:
                why = error if isinstance(error, ProtocolError) else "the reason is not UTF-8"
                raise ProtocolError(f"its close frame is not valid ({why})") from None
            self._ready.append(Message(_KINDS[kind], data))
            return
        self._begin(kind)
        before = self._size
        self._sent += len(frame.data)
        for piece in self._inflate.chunks(frame):
            yield from self._rest()
            self._add(piece)
            if self._inflate.compressed and self._size > self._limit + _DRAINED:
                self._inflate.give_up()
        if self._inflate.why:
            self._lose(self._inflate.why)
        if len(self._sizes) < 10_000:  # of more the places are not worth their memory
            self._sizes.append(self._size - before)
        if frame.fin:
            self._whole()

    def _add(self, piece: bytes | bytearray | memoryview) -> None:
        """Add a part of the content to the message that is open."""
        self._done += len(piece)
        self._size += len(piece)
        if self._size > self._limit:
            self._lose("it is too long")
        if self.lost:
            return
        if self._opcode is Opcode.TEXT:
            self._check_text(piece)
        self._data += piece

    def _check_text(self, piece: bytes | bytearray | memoryview, *, final: bool = False) -> None:
        try:
            self._utf8.decode(piece, final)
        except UnicodeDecodeError as error:
            raise ProtocolError(f"a text message is not UTF-8 ({error.reason})") from None

    def _whole(self) -> None:
        assert self._opcode is not None
        kind, why = _KINDS[self._opcode], self.lost
        fragments = tuple(self._sizes) if len(self._sizes) > 1 else ()
        if kind == "text" and not why:
            self._check_text(b"", final=True)
        self._opcode, self.lost = None, ""
        if why:
            self._ready.append(Message("lost", b"", self._inflate.compressed, fragments, self._sent, why))
            return
        data, self._data = bytes(self._data), bytearray()
        self._ready.append(Message(kind, data, self._inflate.compressed, fragments, self._sent))


class Steps:
    """Do the long work of many connections in turn: one step in each round of an event loop, whose `call_soon` is given.

    The work that was added first is finished first, so that the memory of only one work grows at a time.
    """

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._queue: deque[Callable[[], bool]] = deque()

    def add(self, step: Callable[[], bool]) -> None:
        """Call the function `step` in later rounds of the loop, as long as it returns True."""
        self._queue.append(step)
        if len(self._queue) == 1:
            self._call_soon(self._run)

    def _run(self) -> None:
        more = False
        try:
            more = self._queue[0]()
        finally:
            if not more:
                self._queue.popleft()
            if self._queue:
                self._call_soon(self._run)


class Encoder:
    """A writer of the WebSocket frames of one direction.

    `masked` is True for the direction of the client; `deflate` is the compression that client and server agreed on.
    """

    def __init__(self, masked: bool, deflate: PerMessageDeflate | None = None) -> None:
        self._masked = masked
        self.deflate = deflate

    def message(self, kind: str, data: bytes, *, compressed: bool = True, fragments: Sequence[int] = ()) -> bytes:
        """Return the bytes of a WebSocket message or control frame.

        With `compressed`, the message is compressed if possible. `fragments` are the sizes of the frames into which the
        message is split.
        """
        used: list[Any] = [self.deflate] if compressed and self.deflate is not None else []
        opcode = _OPCODES[kind]
        if not fragments:
            return Frame(opcode, data).serialize(mask=self._masked, extensions=used)
        out, at = [], 0
        for number, size in enumerate(fragments):
            last = number == len(fragments) - 1
            piece = data[at:] if last else data[at : at + size]
            at += size
            out.append(Frame(opcode if not number else Opcode.CONT, piece, last).serialize(mask=self._masked, extensions=used))
        return b"".join(out)

    def close(self, code: int | None = 1000, reason: bytes = b"") -> bytes:
        """Return a close frame."""
        return self.message("close", b"" if code is None else code.to_bytes(2, "big") + reason[:123])

    def broken_deflate(self, data: bytes = b"\xff\xff\xff\xff\xff") -> bytes:
        """Return a text message that is marked as compressed but is not compressed, which a receiver must report as an error."""
        sent = self.message("text", data, compressed=False)
        return bytes([sent[0] | 64]) + sent[1:]
