"""Convert WebSocket messages from and to bytes, without I/O: RFC 6455 with permessage-deflate (RFC 7692).

The package `websockets` splits messages into frames. The code here joins frames to messages, notes unusual properties of a
message (fragments, compression), and limits the size of messages. If a message is too long or cannot be decompressed, only
its size is kept, and the reader continues with the next message.

Source: RFC 6455, RFC 7692. fake-codex does not load this module at start-up, because `websockets` takes 30 ms to import.
"""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterable, Sequence
from typing import Any, NamedTuple

from websockets.exceptions import InvalidHandshake, PayloadTooBig, ProtocolError
from websockets.extensions.base import Extension
from websockets.extensions.permessage_deflate import (
    ClientPerMessageDeflateFactory,
    PerMessageDeflate,
    ServerPerMessageDeflateFactory,
)
from websockets.frames import Close, Frame, Opcode
from websockets.headers import build_extension, parse_extension
from websockets.streams import StreamReader
from websockets.typing import ExtensionName
from websockets.utils import accept_key

__all__ = ["Decoder", "Encoder", "Message", "accept_key", "compression", "offer_accepted"]

Headers = Sequence[Sequence[str]]
_KINDS = {Opcode.TEXT: "text", Opcode.BINARY: "binary", Opcode.CLOSE: "close", Opcode.PING: "ping", Opcode.PONG: "pong"}
_OPCODES = {kind: opcode for opcode, kind in _KINDS.items()}
#: Bytes that are inflated and dropped of a message that is too long, so that the next one can be read; then no more is read.
_DRAINED = 256 << 20
_PIECE = 1 << 20
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

    @property
    def reason(self) -> bytes:
        """The reason of a close frame, as sent."""
        return self.data[2:]


def _values(headers: Headers, name: str) -> str:
    return ", ".join(value for key, value in headers if key.lower() == name)


def compression(headers: Headers) -> tuple[PerMessageDeflate | None, PerMessageDeflate | None]:
    """Return the compression of the client's messages and the compression of the server's messages, from the headers of a 101
    response.

    Each of the two returned objects may be used in only one `Decoder` or `Encoder`. Raises ValueError for another
    extension.
    """
    given = _values(headers, "sec-websocket-extensions")
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


def offer_accepted(headers: Headers) -> tuple[str, PerMessageDeflate] | None:
    """Return the header value that accepts a client's offer of permessage-deflate, and the compression for the server's side.

    Return None if the client makes no offer.
    """
    given = _values(headers, "sec-websocket-extensions")
    if not given:
        return None
    try:
        offers = parse_extension(given)
    except InvalidHandshake:
        return None
    for name, parameters in offers:
        if name != "permessage-deflate":
            continue
        try:
            answer, found = ServerPerMessageDeflateFactory().process_request_params(parameters, [])
        except InvalidHandshake:
            continue
        return build_extension([(name, answer)]), found
    return None


class _Inflate(Extension):
    """Decompress the frames that `Frame.parse` reads, and note which messages were lost; a lost message raises no exception.

    The decoder of the package `websockets` is not used: after a message that is too long, it cannot read the next message.
    """

    name = ExtensionName("permessage-deflate")

    def __init__(self, inner: PerMessageDeflate | None, limit: int) -> None:
        self._inner = inner
        self._limit = limit
        self._decoder: Any = None
        self.compressed = False
        self.size = 0
        self.why = ""
        self._dead = ""

    def decode(self, frame: Frame, *, max_size: int | None = None) -> Frame:
        self.size = len(frame.data)
        self.why = ""
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY):
            self.compressed = frame.rsv1
        inner = self._inner
        if inner is None or frame.opcode in (Opcode.CLOSE, Opcode.PING, Opcode.PONG) or not self.compressed:
            return frame
        if frame.rsv1 and frame.opcode is Opcode.CONT:
            raise ProtocolError("reserved bits must be 0")
        fresh = inner.remote_no_context_takeover and frame.opcode is not Opcode.CONT
        self._dead = "" if fresh else self._dead
        if self._decoder is None or fresh:
            self._decoder = zlib.decompressobj(wbits=-inner.remote_max_window_bits)
        data = b"" if self._dead else self._inflated(bytes(frame.data) + (_FLUSHED if frame.fin else b""))
        self.why = self.why or self._dead
        return Frame(frame.opcode, data, frame.fin, False, frame.rsv2, frame.rsv3)

    def _inflated(self, data: bytes) -> bytes:
        """Return the decompressed content of a message, or b"" for a message that is too long.

        A message that is too long is decompressed completely, because the compression of the next message depends on it.
        """
        decoder = self._decoder
        try:
            found: bytes = decoder.decompress(data, self._limit + 1)
            if len(found) <= self._limit:
                return found
            self.why, read = "it is too long", 0
            while more := len(decoder.decompress(decoder.unconsumed_tail, _PIECE)):
                read += more
                if read > _DRAINED:
                    self._dead = "a message before it was too long"
                    break
        except zlib.error as error:
            self.why = self._dead = f"its compression is broken ({error})"
        return b""

    def skipped(self, head: int, size: int) -> None:
        """Record that a frame was dropped without being decoded.

        `head` is the first byte of the frame, and `size` is its length in bytes.
        """
        if head & 15 != Opcode.CONT:
            self.compressed = bool(head & 64)
        self.size, self.why = size, "it is too long"
        if self.compressed:
            self._dead = "a message before it was too long"

    def encode(self, frame: Frame) -> Frame:
        raise NotImplementedError


class Decoder:
    """A reader of the messages of one direction; `masked` is True for the direction of the client.

    A message of more than `limit` decompressed bytes becomes a "lost" message. A message with a frame of more than `limit`
    bytes also becomes a "lost" message; such a frame is not buffered. If the peer violates the protocol, `broken` is a
    sentence with the error, and the decoder reads nothing more; otherwise `broken` is None. `pending` is True while a
    message is incomplete.

    If `burst` is not 0, `feed` stops after messages of `burst` bytes, after a lost message, and after many frames. `held` is
    then True, and the next `feed` continues.
    """

    def __init__(self, masked: bool, deflate: PerMessageDeflate | None = None, limit: int = 64 << 20, *, burst: int = 0) -> None:
        self.broken: str | None = None
        self.held = False
        self._burst = burst
        self._done = self._count = 0  # bytes of whole messages, and frames, since the last stop
        self.pending = False
        self._masked = masked
        self._limit = limit
        self._inflate = _Inflate(deflate, limit)
        self._stream = StreamReader()
        self._ready: list[Message] = []
        self._head = -1  # the first byte of the frame that is open
        self._opcode: Opcode | None = None  # of the message that is open
        self._parts: list[bytes] = []
        self._sizes: list[int] = []
        self._size = self._sent = 0
        self._why = ""
        self._compressed = False
        self._frames = self._parse()

    def feed(self, data: bytes) -> list[Message]:
        """Take bytes; return the complete messages and control frames, in order."""
        if self.broken is not None:
            return []
        self._stream.feed_data(data)
        try:
            next(self._frames)
        except StopIteration:  # the protocol is broken
            self._stream = StreamReader()
        self.pending = bool(self._stream.buffer) or self._opcode is not None
        ready, self._ready = self._ready, []
        return ready

    def close(self) -> None:
        """Release the memory of the decoder immediately.

        If `close` is not called, Python releases the memory late, because the parser refers to itself.
        """
        self._frames.close()
        self._inflate = _Inflate(None, 0)
        self._stream = StreamReader()
        self.broken = self.broken or "it is closed"
        self._parts.clear()

    def _parse(self) -> Generator[None, None, None]:
        while True:
            if self._burst and (self._done >= self._burst or self._count >= _FRAMES):
                self._done = self._count = 0
                self.held = True
                yield
                self.held = False
            self._head = -1
            self._count += 1
            try:
                frame = yield from Frame.parse(self._read, mask=self._masked, max_size=self._limit, extensions=[self._inflate])
                self._take(frame)
            except PayloadTooBig as error:
                # The header is read, its mask and payload are not; of control frames none is valid and as long.
                size = error.size or 0
                yield from self._skip(size + 4 * self._masked)
                self._inflate.skipped(self._head, size)
                self._take(Frame(Opcode(self._head & 15), b"", bool(self._head & 128)))
            except ProtocolError as error:
                self.broken = str(error)
                return

    def _read(self, size: int) -> Generator[None, None, bytes | bytearray]:
        data = yield from self._stream.read_exact(size)
        if self._head < 0:
            self._head = data[0]
        return data

    def _skip(self, size: int) -> Generator[None, None, None]:
        buffer = self._stream.buffer
        while True:
            gone = min(size, len(buffer))
            del buffer[:gone]
            size -= gone
            if not size:
                return
            yield

    def _take(self, frame: Frame) -> None:
        kind, data = frame.opcode, bytes(frame.data)
        if kind in (Opcode.CLOSE, Opcode.PING, Opcode.PONG):
            if kind is Opcode.CLOSE:
                try:
                    Close.parse(data)
                except (ProtocolError, UnicodeDecodeError) as error:
                    raise ProtocolError(f"its close frame is not valid ({error})") from None
            self._ready.append(Message(_KINDS[kind], data))
            return
        if (kind is Opcode.CONT) == (self._opcode is None):
            raise ProtocolError("a continuation without its beginning" if kind is Opcode.CONT else "a message within a message")
        if kind is not Opcode.CONT:
            self._opcode, self._compressed, self._why = kind, self._inflate.compressed, ""
            self._parts, self._sizes, self._size, self._sent = [], [], 0, 0
        self._size += len(data)
        self._sent += self._inflate.size
        self._why = self._why or self._inflate.why or ("it is too long" if self._size > self._limit else "")
        if self._why:
            self._parts.clear()
        else:
            self._parts.append(data)
        if len(self._sizes) < 10_000:  # of more the places are not worth their memory
            self._sizes.append(len(data))
        if frame.fin:
            self._whole()

    def _whole(self) -> None:
        assert self._opcode is not None
        kind, data = _KINDS[self._opcode], b"".join(self._parts)
        fragments = tuple(self._sizes) if len(self._sizes) > 1 else ()
        self._opcode, self._parts = None, []
        self._done += self._burst if self._why else len(data)
        if self._why:
            self._ready.append(Message("lost", b"", self._compressed, fragments, self._sent, self._why))
            return
        if kind == "text":
            try:
                data.decode()
            except UnicodeDecodeError as error:
                raise ProtocolError(f"a text message is not UTF-8 ({error.reason})") from None
        self._ready.append(Message(kind, data, self._compressed, fragments, self._sent))


class _Raw(Extension):
    """Mark a frame as compressed, and leave the bytes of the frame unchanged."""

    name = ExtensionName("permessage-deflate")

    def encode(self, frame: Frame) -> Frame:
        return Frame(frame.opcode, frame.data, frame.fin, rsv1=frame.opcode is not Opcode.CONT)

    def decode(self, frame: Frame, *, max_size: int | None = None) -> Frame:
        raise NotImplementedError


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
        """Return a text message that is marked as compressed but is not compressed.

        A receiver must report an error for a message that is only marked as compressed.
        """
        return Frame(Opcode.TEXT, data).serialize(mask=self._masked, extensions=[_Raw()])


def is_upgrade(headers: Iterable[Sequence[str]]) -> bool:
    """Return True if the headers of a request ask for a WebSocket, or the headers of a 101 answer accept one."""
    return any(name.lower() == "upgrade" and "websocket" in value.lower() for name, value in headers)
