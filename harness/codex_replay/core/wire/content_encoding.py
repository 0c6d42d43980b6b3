"""Decode and encode HTTP bodies by content-encoding: identity, gzip, deflate (a zlib stream), zstd and br, also nested.

A body is decoded in pieces up to a limit, because a few bytes can decode to gigabytes.

Source: RFC 9110, section 8.4.1, RFC 8878 for zstd and RFC 7932 for br. The libraries are imported when a body needs them, because
fake-codex loads this module at start-up."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

IDENTITY = ("", "identity")
_MAGIC = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}


#: How long a decoded body may be, in bytes, where the caller sets no limit.
MAX_DECODED = 64 * 1024 * 1024
MAX_LAYERS = 4
MAX_STREAMS = 10_000  # an event stream that is flushed at each event has one an event


class BadEncoding(ValueError):
    """An unknown content-encoding, or a body that cannot be decoded. The message of the exception is a sentence."""


class TooLarge(BadEncoding):
    """The decoded form of a body is longer than the limit. Decoding of a body stops at the limit."""


def decode(raw: bytes, encoding: str | None, limit: int = MAX_DECODED) -> bytes:
    """Return a whole body decoded from its content-encoding (None means identity).

    Raises `BadEncoding` for a body that cannot be decoded, and `TooLarge` for a decoded body over `limit`.
    """
    plain, whole = _decode(raw, encoding, limit)
    if not whole:
        raise BadEncoding(f"The body does not decode as {_name(encoding)}: it ends before its last block.")
    return plain


def decode_partial(raw: bytes, encoding: str | None) -> bytes | None:
    """Return the decodable part of a body that may be incomplete.

    Return None for an unknown encoding, for invalid bytes, and if the decoded body is longer than `MAX_DECODED` bytes.
    """
    try:
        return _decode(raw, encoding, MAX_DECODED)[0]
    except BadEncoding:
        return None


def encode(plain: bytes, encoding: str | None) -> bytes:
    """Return a body in a content-encoding; raises `BadEncoding` for an unknown encoding."""
    for name in _name(encoding).replace(" ", "").split(","):
        plain = _apply(plain, name)
    return plain


def _apply(plain: bytes, name: str) -> bytes:
    if name in IDENTITY:
        return plain
    if name == "zstd":
        import zstandard

        return zstandard.ZstdCompressor().compress(plain)
    if name == "br":
        import brotli

        return bytes(brotli.compress(plain, quality=5))
    import zlib

    compressor = zlib.compressobj(wbits=_wbits(name))
    return compressor.compress(plain) + compressor.flush()


def detect(raw: bytes) -> str:
    """Return the content-encoding that the first bytes of a body show; return "" if they show none.

    The encoding br cannot be detected.
    """
    found = next((name for name, magic in _MAGIC.items() if raw.startswith(magic)), "")
    return found or ("deflate" if _is_zlib(raw) else "")


def starts_as(raw: bytes, encoding: str) -> bool:
    """Return False if the first bytes of a body show that the body does not have this encoding.

    An encoding without fixed first bytes is always possible.
    """
    return raw.startswith(_MAGIC.get(encoding, b""))


def _name(encoding: str | None) -> str:
    return (encoding or "").strip().lower()


def _wbits(name: str) -> int:
    if name in ("gzip", "x-gzip"):
        return 31
    if name == "deflate":
        return 15
    raise BadEncoding(f'The content-encoding "{name}" is not supported. Send identity, gzip, deflate, zstd or br.')


def _decode(raw: bytes, encoding: str | None, limit: int) -> tuple[bytes, bool]:
    """Return the decoded bytes, and True if the last compressed stream is complete.

    If the body was encoded several times, the last encoding is decoded first.
    """
    names = [name for name in _name(encoding).replace(" ", "").split(",") if name not in IDENTITY]
    if len(names) > MAX_LAYERS:
        raise BadEncoding(f"The body has {len(names)} nested content-encodings. Send at most {MAX_LAYERS}.")
    whole = True
    for name in reversed(names):
        raw, complete = _undo(raw, name, limit)
        whole = whole and complete
    return raw, whole


def _undo(raw: bytes, name: str, limit: int) -> tuple[bytes, bool]:
    begin: Callable[[], Any]
    error: type[Exception]
    if name == "zstd":
        import zstandard

        # RFC 9659 bounds the window of a body in HTTP; 128 bytes are at most 32 blocks of 128 KB each.
        begin, error = (lambda: zstandard.ZstdDecompressor(max_window_size=1 << 23).decompressobj()), zstandard.ZstdError
        size = 128
    elif name == "br":
        import brotli

        begin, error, size = _Brotli, brotli.error, 4096
    else:
        import zlib

        wbits = _wbits(name)
        begin, error = (lambda: zlib.decompressobj(wbits)), zlib.error
        size = 4096
    try:
        return _streams(raw, begin, size, name, limit)
    except error as problem:
        raise BadEncoding(f"The body does not decode as {name}: {problem}.") from problem


class _Brotli:
    """A decompressor of a br (Brotli) stream.

    The decompressor returns the decoded bytes in pieces, because a few bytes can decode to very many. After the end of the
    br stream, further bytes are an error.
    """

    unused_data = b""

    def __init__(self) -> None:
        import brotli

        self._stream = brotli.Decompressor()
        self.eof = False

    def chunks(self, data: memoryview) -> Iterator[bytes]:
        """Decompress the next bytes."""
        given: memoryview | bytes = data
        while given or not (self.eof or self._stream.can_accept_more_data()):
            yield self._stream.process(given, output_buffer_limit=1 << 16)
            given, self.eof = b"", self._stream.is_finished()


def _streams(raw: bytes, begin: Callable[[], Any], size: int, name: str, limit: int) -> tuple[bytes, bool]:
    """Decompress several streams in a row, because a server may end a stream after each event.

    `size` is the number of input bytes per step. If the decoded text exceeds `limit`, decoding stops after the current
    step.
    """
    plain: list[bytes] = []
    view = memoryview(raw)
    at = streams = length = 0
    whole = not raw
    while at < len(raw):
        one = begin()
        streams += 1
        if streams > MAX_STREAMS:
            raise BadEncoding(f"The body does not decode as {name}: it has more than {MAX_STREAMS} streams.")
        while at < len(raw) and not one.eof:
            data = view[at : at + size]
            for piece in one.chunks(data) if isinstance(one, _Brotli) else (one.decompress(data),):
                plain.append(piece)
                length += len(piece)
                if length > limit:
                    raise TooLarge(f"The body is longer than {limit} bytes after decoding {name}.")
            at += size
        at = min(at, len(raw)) - len(one.unused_data)
        whole = one.eof
        while raw[at : at + 1] == b"\0":  # gzip allows padding with zeros after a stream
            at += 1
    return b"".join(plain), whole


def _is_zlib(raw: bytes) -> bool:
    """Return True if the bytes begin as a zlib stream (RFC 1950, section 2.2).

    If the window size is unusual, the stream must also be complete, because the two bytes may be the beginning of a plain
    text.
    """
    if raw[:1] == b"" or raw[0] & 15 != 8 or raw[0] >> 4 > 7 or int.from_bytes(raw[:2]) % 31:
        return False
    if raw[0] == 0x78:
        return True
    import zlib

    try:
        zlib.decompress(raw)
    except zlib.error:
        return False
    return True
