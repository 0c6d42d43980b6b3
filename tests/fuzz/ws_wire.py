"""What the WebSocket targets share: a handshake, whole or cut short, and the frames of one side, good and bad."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from codex_replay.core.wire.websocket import Encoder, compression
from tests.fuzz.mutate import damaged

HEAD = (
    "GET {target} HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
    "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-version: 13\r\n"
)
OFFER = "sec-websocket-extensions: permessage-deflate; client_max_window_bits\r\n"
PIECES = (b"\x81", b"\x01", b"\x80", b"\x00", b"\x88", b"\x89", b"\xc1", b"\xff", b"\xfe\xff\xff", b"\x7f" + b"\xff" * 8)
CODES = (None, 0, 999, 1000, 1001, 1004, 1005, 1006, 1015, 2999, 3000, 5000, 65535)
#: First bytes of a frame: whole and open messages, control frames (also in parts), reserved bits and opcodes.
FIRST = (0x81, 0x01, 0x80, 0x00, 0x82, 0x88, 0x08, 0x89, 0x09, 0x8A, 0xC1, 0x41, 0xA1, 0x91, 0xF1, 0x83, 0x8B, 0x8F, 0xC9)
#: Sizes that a frame may claim: of more than follows, more than any limit, with the bit that must be 0.
SIZES = (125, 126, 65536, (16 << 20) + 1, 70_000_000, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
NO_UTF8 = (b"\xff", b"caf\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf", b"\x80")


def handshake(random: Random, target: str, packed: bool) -> bytes:
    """Return the head of an upgrade; one of twenty is cut short."""
    head = (HEAD.format(target=target) + (OFFER if packed else "") + "\r\n").encode()
    return head[: random.randrange(len(head))] if random.random() < 0.05 else head


def frames(random: Random, text: Callable[[Random], bytes], *, masked: bool, packed: bool, long: int = 1_000_000) -> bytes:
    """Return one to eleven frames or messages of the client (`masked`) or of the server.

    `text` makes the content of a message; `long` is how many bytes the longest has, which packs well.
    """
    deflate = compression([("sec-websocket-extensions", "permessage-deflate")])[1 if masked else 0] if packed else None
    encoder = Encoder(masked, deflate)
    data = b"".join(_frame(random, encoder, text, masked, long) for _ in range(random.randint(1, 11)))
    return damaged(random, data, PIECES) if random.random() < 0.4 else data


def _frame(random: Random, encoder: Encoder, text: Callable[[Random], bytes], masked: bool, long: int) -> bytes:
    how = random.random()
    if how < 0.5:
        data = text(random)
        cuts = [random.randrange(len(data) + 1) for _ in range(random.choice((0, 0, 2, 5)))]
        return encoder.message("text", data, compressed=random.random() < 0.7, fragments=cuts)
    if how < 0.56:  # a control frame between two fragments
        data = text(random)
        cut = random.randrange(len(data) + 1)
        ping = _raw(random.choice((0x89, 0x8A)), b"between", masked)
        return _raw(0x01, data[:cut], masked) + ping + _raw(0x80, data[cut:], masked)
    if how < 0.66:
        return encoder.message(random.choice(("ping", "pong")), random.randbytes(random.choice((0, 5, 125))))
    if how < 0.72:
        return encoder.message("binary", random.randbytes(50))
    if how < 0.77:
        return encoder.broken_deflate(random.randbytes(random.randint(0, 40)))
    if how < 0.81:
        return encoder.message("text", b"\0" * random.choice((100, long)))
    if how < 0.85:
        return encoder.message(
            "text", b'{"id":1,"method":"' + random.choice(NO_UTF8) + b'"}', fragments=random.choice(((), (19,)))
        )
    if how < 0.89:
        return encoder.close(random.choice(CODES), random.randbytes(random.choice((0, 10))))
    if how < 0.97:
        data = random.randbytes(random.choice((0, 1, 2, 125, 126, 300)))
        says = random.choice(SIZES) if random.random() < 0.4 else None
        return _raw(random.choice(FIRST), data, masked if random.random() < 0.8 else not masked, says)
    return random.randbytes(random.randint(1, 20))


def _raw(first: int, data: bytes, masked: bool, says: int | None = None) -> bytes:
    """Return a frame that begins with the byte `first` and claims the size `says`; its mask is 0."""
    size, bit = len(data) if says is None else says, 128 * masked
    if size < 126:
        length = bytes([bit | size])
    else:
        length = bytes([bit | (126 if size < 1 << 16 else 127)]) + size.to_bytes(2 if size < 1 << 16 else 8, "big")
    return bytes([first]) + length + bytes(4 * masked) + data
