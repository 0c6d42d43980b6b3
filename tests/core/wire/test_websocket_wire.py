"""WebSocket messages out of bytes in whatever pieces, against a library of its own (wsproto) and within limits."""

from __future__ import annotations

import random
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping, TextMessage
from wsproto.extensions import PerMessageDeflate as OtherDeflate

from codex_replay.core.wire.websocket import Decoder, Encoder, Message, compression, is_upgrade, offer_accepted

PLAIN = [("Sec-WebSocket-Extensions", "permessage-deflate")]
FRESH = [("sec-websocket-extensions", "permessage-deflate; server_no_context_takeover; client_no_context_takeover")]
TEXTS = [b'{"type":"response.create"}', "é€😀".encode() * 50, b"", b"x" * 70_000, b'{"type":"response.create"}']


def fed(decoder: Decoder, data: bytes, cuts: list[int] | None = None) -> list[Message]:
    edges = [0, *sorted({cut % (len(data) + 1) for cut in cuts or []}), len(data)]
    return [message for a, b in pairwise(edges) for message in decoder.feed(data[a:b])]


@pytest.mark.parametrize("headers", [[], PLAIN, FRESH], ids=["plain", "context takeover", "no context takeover"])
@pytest.mark.parametrize("masked", [True, False], ids=["client", "server"])
@given(cuts=st.lists(st.integers(0, 200_000), max_size=6))
def test_what_is_encoded_is_decoded_in_whatever_pieces(headers: list[tuple[str, str]], masked: bool, cuts: list[int]) -> None:
    mine = compression(headers)[0 if masked else 1]
    theirs = compression(headers)
    encoder = Encoder(masked, theirs[1] if masked else theirs[0])
    data = b"".join(encoder.message("text", text) for text in TEXTS)
    data += encoder.message("binary", b"\xff\x00", compressed=False) + encoder.message("ping", b"p") + encoder.close(1011, b"no")
    found = fed(Decoder(masked, mine), data, cuts)
    assert [message.data for message in found[:5]] == TEXTS
    assert {message.compressed for message in found[:5]} == {bool(headers)}
    assert [(message.kind, message.compressed) for message in found[5:]] == [("binary", False), ("ping", False), ("close", False)]
    assert (found[-1].code, found[-1].reason) == (1011, b"no")


def test_another_library_reads_what_we_write_and_the_other_way() -> None:
    answer, ours = offer_accepted([("sec-websocket-extensions", "permessage-deflate; client_max_window_bits")]) or ("", None)
    assert answer == "permessage-deflate"
    other = OtherDeflate()
    other.finalize(answer)
    client = Connection(ConnectionType.CLIENT, extensions=[other])
    decoder, encoder = Decoder(True, ours), Encoder(False, ours)
    for text in TEXTS:
        sent = client.send(TextMessage(text.decode()))
        assert [(m.kind, m.data, m.compressed) for m in decoder.feed(sent)] == [("text", text, True)]
        client.receive_data(encoder.message("text", text))
        assert "".join(event.data for event in client.events() if isinstance(event, TextMessage)).encode() == text
    client.receive_data(encoder.message("ping", b"a") + encoder.message("binary", b"b", fragments=(0, 1)) + encoder.close(1000))
    kinds = [type(event) for event in client.events()]
    assert kinds == [Ping, BytesMessage, BytesMessage, CloseConnection]


def test_fragments_are_kept_and_a_ping_may_stand_between_them() -> None:
    encoder = Encoder(False)
    parts = encoder.message("text", b"abcdef", fragments=(1, 0, 5))
    found = Decoder(False).feed(parts[:3] + encoder.message("ping", b"") + parts[3:])
    assert [(m.kind, m.data, m.fragments) for m in found] == [("ping", b"", ()), ("text", b"abcdef", (1, 0, 5))]


@pytest.mark.parametrize("headers", [[], PLAIN, FRESH])
def test_a_message_that_is_too_long_is_lost_and_the_next_one_is_read(headers: list[tuple[str, str]]) -> None:
    """Long on the wire, or only when it is decompressed: the memory of neither is kept."""
    noise = random.Random(1).randbytes(3000).hex().encode()
    for long in (b"a" * 100_000, noise):
        theirs, mine = compression(headers), compression(headers)
        encoder, decoder = Encoder(False, theirs[0]), Decoder(False, mine[1], limit=4000)
        found = fed(decoder, b"".join(encoder.message("text", text) for text in (b"one", long, b"one")), [50, 2000, 4000])
        assert [m.kind for m in found] == ["text", "lost", "text"]
        assert (found[1].why, found[2].data, decoder.broken) == ("it is too long", b"one", None)


def test_many_fragments_of_one_message_are_bounded_too() -> None:
    encoder, decoder = Encoder(True), Decoder(True, limit=1000)
    (found,) = decoder.feed(encoder.message("text", b"a" * 5000, fragments=(500,) * 10))
    assert (found.kind, found.size) == ("lost", 5000)


def test_broken_compression_loses_its_message_and_those_after_it_but_not_the_connection() -> None:
    mine = compression(PLAIN)
    encoder, decoder = Encoder(False, compression(PLAIN)[0]), Decoder(False, mine[1])
    data = encoder.message("text", b"one") + encoder.broken_deflate() + encoder.message("text", b"two") + encoder.close(1000)
    found = decoder.feed(data)
    assert [m.kind for m in found] == ["text", "lost", "lost", "close"]
    assert "compression is broken" in found[1].why
    assert decoder.broken is None


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x83\x80\0\0\0\0", "invalid opcode"),
        (b"\x81\x00", "incorrect masking"),
        (b"\xc1\x80\0\0\0\0", "reserved bits"),
        (b"\x80\x80\0\0\0\0", "continuation without"),
        (b"\x01\x80\0\0\0\0\x81\x80\0\0\0\0", "message within a message"),
        (b"\x09\x80\0\0\0\0", "fragmented control frame"),
        (b"\x81\x81\0\0\0\0\xff", "not UTF-8"),
        (b"\x88\x81\0\0\0\0\x01", "close frame is not valid"),
    ],
)
def test_a_broken_protocol_is_said_and_nothing_more_is_read(data: bytes, why: str) -> None:
    decoder = Decoder(True)
    assert decoder.feed(data + Encoder(True).message("text", b"after")) == []
    assert why in (decoder.broken or "")
    assert decoder.feed(b"\x81\x80\0\0\0\0") == []


def test_extensions_that_are_not_known_are_refused() -> None:
    for value in ("x-webkit-deflate-frame", "permessage-deflate, bbf", "permessage-deflate; odd=1", ";;"):
        with pytest.raises(ValueError, match="extension"):
            compression([("sec-websocket-extensions", value)])
    assert offer_accepted([("sec-websocket-extensions", "bbf")]) is None
    assert offer_accepted([("sec-websocket-extensions", ";;")]) is None
    assert is_upgrade([("Upgrade", "WebSocket")])
    assert not is_upgrade([("Upgrade", "h2c")])


def test_a_bomb_is_not_inflated_beyond_its_limit() -> None:
    packed = zlib.compressobj(wbits=-15)
    data = packed.compress(bytes(300 << 20)) + packed.flush(zlib.Z_SYNC_FLUSH)
    decoder = Decoder(False, compression(PLAIN)[1], limit=1 << 20)
    head = b"\xc1\x7f" + len(data[:-4]).to_bytes(8, "big")
    (found,) = decoder.feed(head + data[:-4])
    assert (found.kind, found.why) == ("lost", "it is too long")


def test_a_reader_with_a_burst_stops_after_much_and_goes_on_later() -> None:
    encoder, decoder = Encoder(True), Decoder(True, burst=1000)
    data = b"".join(encoder.message("text", text * 600) for text in (b"a", b"b", b"c", b"d"))
    assert [message.data[:1] for message in decoder.feed(data[:-1])] == [b"a", b"b"]
    assert decoder.held
    assert [message.data[:1] for message in decoder.feed(data[-1:])] == [b"c", b"d"]
    assert decoder.held
    assert decoder.feed(b"") == []
    assert not decoder.held


def test_a_reader_with_a_burst_stops_after_many_frames_of_a_message() -> None:
    decoder = Decoder(True, burst=1 << 20)
    decoder.feed(b"\x01\x80\0\0\0\0" + b"\x00\x80\0\0\0\0" * 5000)
    rounds = 0
    while decoder.held:
        assert decoder.feed(b"") == []
        rounds += 1
    assert rounds >= 2
    assert [message.data for message in decoder.feed(b"\x80\x80\0\0\0\0")] == [b""]
