"""WebSocket messages out of bytes in whatever pieces, against a library of its own (wsproto) and within limits."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping, TextMessage
from wsproto.extensions import PerMessageDeflate as OtherDeflate

from codex_fakes.backend.websocket.handshake import offer_accepted
from codex_replay.core.wire.websocket import Decoder, Encoder, Message, Steps, compression

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
    assert (found[-1].code, found[-1].data[2:]) == (1011, b"no")


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


def test_a_bomb_is_not_inflated_beyond_its_limit() -> None:
    packed = zlib.compressobj(wbits=-15)
    data = packed.compress(bytes(300 << 20)) + packed.flush(zlib.Z_SYNC_FLUSH)
    decoder = Decoder(False, compression(PLAIN)[1], limit=1 << 20)
    head = b"\xc1\x7f" + len(data[:-4]).to_bytes(8, "big")
    (found,) = decoder.feed(head + data[:-4])
    assert (found.kind, found.why) == ("lost", "it is too long")


def test_a_long_message_is_decompressed_in_pieces_and_one_that_is_too_long_is_known_before_its_end() -> None:
    packed = zlib.compressobj(wbits=-15)
    data = (packed.compress(bytes(20 << 20)) + packed.flush(zlib.Z_SYNC_FLUSH))[:-4]
    decoder = Decoder(False, compression(PLAIN)[1], limit=8 << 20, burst=1 << 20)
    assert decoder.feed(b"\x41\x7f" + len(data).to_bytes(8, "big") + data) == []
    sizes, lost = [], []
    while decoder.held:
        sizes.append(decoder.size)
        lost.append(decoder.lost)
        assert decoder.feed(b"") == []
    assert sizes == [*(count << 20 for count in range(1, 9)), *[0] * 12]
    assert lost == [*[""] * 8, *["it is too long"] * 12]
    (found,) = decoder.feed(b"\x80\x00")
    assert (found.kind, found.why, decoder.lost) == ("lost", "it is too long", "")


def test_a_frame_of_a_huge_length_is_known_before_it_comes() -> None:
    decoder = Decoder(True, limit=1000)
    assert decoder.feed(b"\x81\xff" + (1 << 62).to_bytes(8, "big") + bytes(4)) == []
    assert decoder.lost == "it is too long"
    decoder = Decoder(True, limit=1000)
    decoder.feed(b"\x89\xff" + (1 << 62).to_bytes(8, "big"))
    assert decoder.broken == "control frame too long"


def test_text_that_is_not_utf_8_is_known_before_the_end_of_its_message() -> None:
    decoder = Decoder(False)
    decoder.feed(b"\x01\x02\xc3\xa9\x00\x01\xc3")
    assert decoder.broken is None
    decoder.feed(b"\x00\x01a")
    assert "not UTF-8" in (decoder.broken or "")


def test_a_message_that_ends_the_compression_loses_the_messages_after_it() -> None:
    packed = zlib.compressobj(wbits=-15)
    data = packed.compress(b"one") + packed.flush(zlib.Z_FINISH) + b"\0"
    decoder = Decoder(False, compression(PLAIN)[1])
    frame = b"\xc1" + bytes([len(data)]) + data
    assert [(m.kind, m.data, m.why) for m in decoder.feed(frame * 2)] == [
        ("text", b"one", ""),
        ("lost", b"", "a message before it ended the compression"),
    ]
    fresh = Decoder(False, compression(FRESH)[1])
    assert [m.data for m in fresh.feed(frame * 2)] == [b"one", b"one"]


def test_the_work_that_came_first_is_done_first_with_one_step_in_a_round() -> None:
    calls: list[Callable[[], None]] = []
    done: list[str] = []
    steps = Steps(calls.append)

    def work(name: str, count: int) -> Callable[[], bool]:
        left = iter(range(count - 1, -1, -1))
        return lambda: (done.append(name), next(left) > 0)[1]

    steps.add(work("a", 2))
    steps.add(work("b", 1))
    while calls:
        assert len(calls) == 1
        calls.pop()()
    assert done == ["a", "a", "b"]
    steps.add(lambda: bool(1 // 0))
    steps.add(work("c", 1))
    with pytest.raises(ZeroDivisionError):
        calls.pop()()
    calls.pop()()
    assert done == ["a", "a", "b", "c"]


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
