"""The decoder of content-encodings: whole bodies, cut ones, several streams in a row, and errors that must not be hidden."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from codex_replay.core.wire import content_encoding
from codex_replay.core.wire.content_encoding import BadEncoding, decode, decode_partial, detect, encode

PLAIN = b'{"text":"' + b"abcdefgh" * 40 + b'"}'
ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": lambda data: zstandard.ZstdCompressor().compress(data),
    "br": brotli.compress,
}


@given(st.binary(max_size=200), st.sampled_from(["", "identity", *ENCODERS]))
def test_decode_restores_what_encode_wrote(plain: bytes, encoding: str) -> None:
    assert decode(encode(plain, encoding), encoding) == plain


@pytest.mark.parametrize("encoding", ENCODERS)
def test_the_libraries_bodies_decode_in_any_case_and_with_spaces(encoding: str) -> None:
    raw = ENCODERS[encoding](PLAIN)
    assert decode(raw, f" {encoding.upper()} ") == decode_partial(raw, encoding) == PLAIN
    if encoding != "br":  # one stream, without magic bytes
        assert decode(raw + raw, encoding) == PLAIN * 2
        assert detect(raw) == encoding.removeprefix("x-")


@pytest.mark.parametrize("encoding", ENCODERS)
def test_a_cut_body_decodes_in_part_and_is_not_whole(encoding: str) -> None:
    raw = ENCODERS[encoding](PLAIN)[:-3]
    part = decode_partial(raw, encoding)
    assert part is not None
    assert PLAIN.startswith(part)
    with pytest.raises(BadEncoding, match=f"does not decode as {encoding}: it ends before"):
        decode(raw, encoding)


@pytest.mark.parametrize("encoding", ENCODERS)
def test_bytes_that_break_the_encoding_do_not_decode(encoding: str) -> None:
    raw = ENCODERS[encoding](PLAIN) + b"no stream"
    assert decode_partial(raw, encoding) is None
    with pytest.raises(BadEncoding, match=f"does not decode as {encoding}: "):
        decode(raw, encoding)


def test_an_unknown_encoding_is_named() -> None:
    assert decode_partial(b"x", "compress") is None
    for act in (decode, encode):
        with pytest.raises(BadEncoding, match='content-encoding "compress" is not supported'):
            act(b"x", "compress")


def test_gzip_may_be_padded_with_zeros() -> None:
    assert decode(gzip.compress(PLAIN) + b"\0\0", "gzip") == PLAIN


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_only_the_libraries_errors_are_taken_for_a_broken_body(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def out_of_memory(*_: object, **__: object) -> None:
        raise MemoryError("no memory")

    monkeypatch.setattr(zlib, "decompressobj", out_of_memory)
    monkeypatch.setattr(zstandard, "ZstdDecompressor", out_of_memory)
    with pytest.raises(MemoryError):
        content_encoding.decode_partial(ENCODERS[encoding](PLAIN), encoding)


BOMB = 40_000_000


@pytest.mark.parametrize(
    "encoding", ["gzip", "deflate", "zstd", "br", "gzip, gzip", "zstd, gzip", "gzip, identity, deflate", "br, gzip"]
)
def test_a_bomb_is_not_decoded_beyond_the_limit(encoding: str) -> None:
    raw = encode(b"\0" * BOMB, encoding)
    assert len(raw) < BOMB / 100
    tracemalloc.start()
    try:
        with pytest.raises(content_encoding.TooLarge, match="longer than 1000000 bytes"):
            decode(raw, encoding, 1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 25_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("encoding", ["gzip, gzip", "zstd, gzip", "deflate,zstd", "gzip, identity", "br, gzip"])
def test_one_encoding_in_another(encoding: str) -> None:
    raw = encode(PLAIN, encoding)
    assert decode(raw, encoding, len(PLAIN)) == PLAIN
    assert decode_partial(raw, encoding) == PLAIN
    with pytest.raises(BadEncoding, match="longer than"):
        decode(raw, encoding, len(PLAIN) - 1)


def test_many_layers_and_many_streams_are_refused() -> None:
    with pytest.raises(BadEncoding, match="at most 4"):
        decode(b"", ", ".join(["gzip"] * 5))
    with pytest.raises(BadEncoding, match="more than 10000 streams"):
        decode(encode(b"", "gzip") * 10_001, "gzip")


def test_a_zstd_frame_with_a_huge_window_is_refused() -> None:
    import zstandard

    settings = zstandard.ZstdCompressionParameters.from_level(3, window_log=27, write_content_size=0)
    raw = zstandard.ZstdCompressor(compression_params=settings).compressobj()
    with pytest.raises(BadEncoding, match="zstd"):
        decode(raw.compress(PLAIN) + raw.flush(), "zstd")
