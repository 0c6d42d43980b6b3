"""The SSE reader and writer: whole, byte by byte, cut anywhere, with trailing data."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_replay.core.wire.sse import BOM, Block, Decoder, encode

STREAMS = {
    "one": b"event: a\ndata: 1\n\n",
    "crlf": b"event: a\r\ndata: 1\r\n\r\n",
    "cr": b"event: a\rdata: 1\r\r",
    "mixed": b"event: a\rdata: 1\r\n\ndata: 2\n\r\n",
    "comment": b": hello\n\ndata: 1\n: inside\n\n",
    "many lines": b"data: a\ndata:\ndata: b\n\n",
    "no space": b"data:a\nevent:x\n\n",
    "field alone": b"data\n\n",
    "unknown field": b"foo: bar\ndata: 1\nid: 7\nretry: 10\n\n",
    "blank lines": b"\n\ndata: 1\n\n\n",
    "tail": b"data: 1\n\ndata: half",
    "tail line": b"data: 1\n\ndata: half\n",
    "utf-8": "data: ✓ é\n\n".encode(),
    "bom": BOM + b"data: 1\n\ndata: 2\n\n",
    "not utf-8": b"data: \xff\xfe\n\n",
    "empty": b"",
    "ends in cr": b"data: 1\n\r",
}


def decode(pieces: list[bytes]) -> list[Block]:
    decoder = Decoder()
    return [block for piece in pieces for block in decoder.feed(piece)] + decoder.close()


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS.keys())
def test_whole_and_byte_by_byte_give_the_same_blocks_and_keep_every_byte(stream: bytes) -> None:
    whole = decode([stream])
    assert decode([stream[i : i + 1] for i in range(len(stream))]) == whole
    assert b"".join(block.raw for block in whole) == stream


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS.keys())
@pytest.mark.parametrize("trailing", [b"data: next\n\n", b"\n", b"x", b":\n\n"])
def test_trailing_data_changes_no_earlier_block(stream: bytes, trailing: bytes) -> None:
    alone = [block for block in Decoder().feed(stream) if block.complete]
    followed = decode([stream + trailing])
    assert followed[: len(alone)] == alone


@given(
    st.lists(st.sampled_from([b"data: x", b"event: e", b":c", b"\n", b"\r", b"\r\n", b"\xff", BOM]), max_size=12),
    st.data(),
)
def test_any_cut_of_any_stream_gives_the_same_blocks(parts: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert decode(pieces) == decode([stream])
    assert b"".join(block.raw for block in decode(pieces)) == stream


def test_fields_are_read_as_the_standard_says() -> None:
    (block,) = decode([b"foo: bar\ndata: a\ndata\ndata:  b\nid: 7\nretry: 10\nevent: e\n: note\n\n"])
    assert (block.event, block.data, block.id, block.retry) == (b"e", b"a\n\n b", b"7", b"10")
    assert block.comments == (b"note",)
    assert block.dispatched


def test_comments_and_tails_are_not_dispatched() -> None:
    only_comment, tail = decode([b": x\n\ndata: half\n"])
    assert not only_comment.dispatched
    assert only_comment.complete
    assert tail.data == b"half"
    assert not tail.dispatched


@given(st.binary(max_size=60), st.sampled_from([b"\n", b"\r\n"]))
def test_what_is_encoded_is_decoded(data: bytes, newline: bytes) -> None:
    if b"\r" in data:
        with pytest.raises(ValueError, match="must not contain CR"):
            encode(data)
        return
    (block,) = decode([encode(data, b"response.created", newline=newline)])
    assert (block.event, block.data) == (b"response.created", data)


def test_a_comment_is_a_comment() -> None:
    (block,) = decode([b": ping\n\n"])
    assert (block.data, block.comments) == (None, (b"ping",))


def test_a_long_event_in_small_pieces_is_not_searched_again_and_again() -> None:
    class Counting(bytearray):
        seen = 0

        def find(self, *args: object) -> int:  # type: ignore[override]
            start = args[1] if len(args) > 1 else 0
            Counting.seen += max(0, len(self) - int(start))  # type: ignore[call-overload]
            return bytearray.find(self, *args)  # type: ignore[arg-type]

    decoder = Decoder()
    decoder._buffer = Counting()
    piece = b"x" * 1000
    decoder.feed(b"data: ")
    for _ in range(500):
        decoder.feed(piece)
    (block,) = decoder.feed(b"\n\n")
    assert len(block.data or b"") == 500_000
    assert Counting.seen < 5_000_000
