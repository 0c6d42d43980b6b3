"""The exact and the structured forms of http payloads."""

from __future__ import annotations

import gzip
import json
import zlib

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from codex_replay.core.cassette import http_frames
from codex_replay.core.cassette.frames import Frame, encode_frame, parse_line
from codex_replay.core.redact.redactor import Redactor
from codex_replay.core.wire import content_encoding

BODIES = [
    b'{"a":1}',
    b'{"a": 1}',
    b'{"a":1}\n',
    '{"é":"ü"}'.encode(),
    b'{"e":"\\u00e9"}',
    b'{"lone":"\\ud800"}',
    b"[1.0,1e5,-0]",
    b"null",
    b"3",
    b"plain",
    b"\xff\xfe",
    b"a=b&c=d",
    b'{"a":1,"a":2}',
]
EVENTS = [
    b'event: response.created\ndata: {"type":"response.created"}\n\n',
    b'data: {"type":"x"}\n\n',
    b'data:{"type":"x"}\n\n',
    b'event: a\r\ndata: {"b":1}\r\n\r\n',
    b": comment\n\n",
    b"data: [DONE]\n\n",
    b'data: {"two":\ndata: 1}\n\n',
    b"id: 7\nevent: a\ndata: {}\n\n",
    b'event: bad\ndata: {"open\n\n',
    b"event: \xff\ndata: \xff\n\n",
    b"\n",
    b"retry: 5\n\n",
]


def stored(kind: str, payload: object, **extra: object) -> Frame:
    """A frame after it went through its line in a cassette."""
    line = encode_frame(Frame(1, 0.5, "http", "server", kind, b"", payload, 1, extra=extra))
    frame = parse_line(line)
    assert isinstance(frame, Frame)
    assert encode_frame(frame) == line
    return frame


@pytest.mark.parametrize("body", BODIES)
def test_a_bodys_bytes_come_back(body: bytes) -> None:
    assert http_frames.body_bytes(stored("chunk", http_frames.body_fields(body)).payload) == body


@given(st.binary(max_size=60))
def test_any_bodys_bytes_come_back(body: bytes) -> None:
    assert http_frames.body_bytes(stored("chunk", http_frames.body_fields(body)).payload) == body


def test_the_structured_form_stands_only_where_it_is_the_very_bytes() -> None:
    assert http_frames.body_fields(b'{"a":1}') == {"body": {"a": 1}}
    assert http_frames.body_fields(b'{"a": 1}') == {"text": '{"a": 1}', "view": {"a": 1}}
    assert http_frames.body_fields(b'{"l":"\\ud800"}') == {"text": '{"l":"\\ud800"}'}
    assert http_frames.body_fields(b"\xff") == {"base64": "/w=="}


@pytest.mark.parametrize("raw", EVENTS)
def test_an_events_bytes_come_back(raw: bytes) -> None:
    (block,) = http_frames.sse_blocks(raw)
    assert http_frames.sse_bytes(stored("sse", http_frames.sse_payload(block)).payload) == raw


@given(st.lists(st.one_of(st.sampled_from(EVENTS), st.binary(max_size=12)), max_size=8))
def test_any_streams_bytes_come_back(parts: list[bytes]) -> None:
    raw = b"".join(parts)
    payloads = [stored("sse", http_frames.sse_payload(block)).payload for block in http_frames.sse_blocks(raw)]
    assert b"".join(http_frames.sse_bytes(payload) for payload in payloads) == raw


def test_an_event_tells_its_name_and_its_value_in_either_form() -> None:
    for raw in (EVENTS[0], EVENTS[3]):
        payload = http_frames.sse_payload(http_frames.sse_blocks(raw)[0])
        assert payload["event"] == raw[7:].split(b"\r")[0].split(b"\n")[0].decode()
        assert http_frames.sse_value(payload) == json.loads(raw.splitlines()[1][6:])
    assert "data" in http_frames.sse_payload(http_frames.sse_blocks(EVENTS[0])[0])
    assert "text" in http_frames.sse_payload(http_frames.sse_blocks(EVENTS[3])[0])


PACK = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": lambda data: zstandard.ZstdCompressor().compress(data),
    "br": brotli.compress,
}


@pytest.mark.parametrize("encoding", PACK)
def test_a_compressed_body_is_kept_with_its_view(encoding: str) -> None:
    raw = PACK[encoding](b'{"harmless":true}')
    payload = http_frames.body_fields(raw, encoding, Redactor().redact)
    assert http_frames.body_bytes(payload) == raw
    assert http_frames.body_value(payload) == {"harmless": True}


@pytest.mark.parametrize("encoding", PACK)
def test_a_secret_under_compression_is_found(encoding: str) -> None:
    secret = "sk-proj-" + "Zx9" * 14
    plain = json.dumps({"api_key": secret}, separators=(",", ":")).encode()
    payload = http_frames.body_fields(PACK[encoding](plain), encoding, Redactor().redact)
    assert secret not in str(payload)
    again = content_encoding.decode(http_frames.body_bytes(payload), encoding)
    assert again is not None
    assert json.loads(again).keys() == {"api_key"}


def test_a_body_that_cannot_be_looked_into_is_left_out() -> None:
    payload = http_frames.body_fields(b"\x0b\x02\x80", "compress", Redactor().redact)
    assert payload == {"omitted": 3}
    with pytest.raises(ValueError, match="not in the recording"):
        http_frames.body_bytes(payload)


def test_a_secret_in_bytes_that_are_no_text_is_found() -> None:
    secret = b"sk-proj-" + b"Zx9" * 14
    payload = http_frames.body_fields(b"\xff api_key=" + secret, None, Redactor().redact)
    assert secret not in http_frames.body_bytes(payload)
    assert http_frames.body_bytes(payload).startswith(b"\xff api_key=")


def test_heads_are_written_as_they_came() -> None:
    headers = [["Content-Type", "text/plain"], ["x-Odd-CASE", "a  b"], ["content-type", "again"]]
    payload = http_frames.request_payload("POST", "/v1/x?y=1", headers, b"body", "1.1")
    assert http_frames.request_bytes(payload) == (
        b"POST /v1/x?y=1 HTTP/1.1\r\nContent-Type: text/plain\r\nx-Odd-CASE: a  b\r\ncontent-type: again\r\n\r\nbody"
    )
    assert http_frames.response_payload(200, [], "OK") == {"status": 200, "headers": []}
    odd = http_frames.response_payload(299, [["a", "b"]], "Fine", "1.0")
    assert http_frames.response_head(odd) == b"HTTP/1.0 299 Fine\r\na: b\r\n\r\n"


def test_pieces_are_put_together_from_cuts_and_joins() -> None:
    def event(text: str, t: float, **extra: object) -> Frame:
        return Frame(1, t, "http", "server", "sse", b"", {"text": text}, 1, extra=extra)

    frames = [event("one\n\n", 1.0), event("two\n\n", 2.0, joined=True), event("three\n\n", 3.0, cuts=[[2, 2.5]])]
    assert http_frames.body_chunks(frames) == [(1.0, b"one\n\n"), (2.5, b"two\n\nth"), (3.0, b"ree\n\n")]
    assert http_frames.body_chunks([]) == []


def test_a_header_of_an_edited_file_adds_no_other_header() -> None:
    payload = {"status": 200, "reason": "OK\r\nx: 1", "headers": [["a", "b\r\nset-cookie: c\0"]]}
    assert http_frames.response_head(payload) == b"HTTP/1.1 200 OK??x: 1\r\na: b??set-cookie: c?\r\n\r\n"


def test_a_head_of_characters_that_no_head_has_is_bytes_nevertheless() -> None:
    """`replay --backend` of such a file ended with a traceback."""
    payload = {"method": "GET", "path": "/\u202e", "headers": [["x", "\u2192\u00e9"]]}
    assert http_frames.request_bytes(payload) == b"GET /? HTTP/1.1\r\nx: ?\xe9\r\n\r\n"
