"""Lines of a cassette: every byte comes back, and a bad line is refused in a sentence."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_replay.core.cassette.frames import (
    BadLine,
    Footer,
    Frame,
    Header,
    encode_footer,
    encode_frame,
    encode_header,
    is_canonical,
    parse_line,
)
from codex_replay.core.wire.json_text import dumps

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=12,
)
HEADER = Header("0.92.0", "sha256:00", "a/case", {"rpc": "authored"})


LINES = st.one_of(
    VALUES.map(lambda value: dumps(value) + b"\n"),
    VALUES.map(lambda value: json.dumps(value).encode() + b"\n"),
    VALUES.map(lambda value: json.dumps(value, indent=1).replace("\n", "\r").encode() + b"\r\n"),
    st.binary(max_size=40).map(lambda data: data.replace(b"\n", b"") + b"\n"),
    st.binary(max_size=40).map(lambda data: data.replace(b"\n", b"")),
)


@given(LINES, st.sampled_from(["client", "server"]), st.floats(0, 1e6), st.booleans())
def test_an_rpc_line_keeps_its_very_bytes(raw: bytes, sender: str, t: float, cut: bool) -> None:
    frame = Frame(3, t, "rpc", sender, "msg", raw, extra={"truncated": True} if cut else None)
    line = encode_frame(frame)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    back = parse_line(line)
    assert isinstance(back, Frame)
    assert (back.n, back.seam, back.sender, back.kind, back.raw, back.whole) == (3, "rpc", sender, "msg", raw, not cut)
    assert back.t == pytest.approx(t, abs=1e-6)
    assert encode_frame(back) == line
    assert ("msg" in json.loads(line)) is is_canonical(raw, frame.value)


#: What an http frame of a kind must have besides headers.
REQUIRED: dict[str, dict[str, Any]] = {"request": {"method": "GET", "path": "/"}, "response": {"status": 200}}


@given(VALUES, st.sampled_from(["request", "response", "sse", "chunk", "close"]), st.integers(1, 99))
def test_an_http_payload_comes_back(value: Any, kind: str, conn: int) -> None:
    payload = "end" if kind == "close" else {**REQUIRED.get(kind, {}), "headers": [["a", "b"]], "body": value}
    line = encode_frame(Frame(1, 0.5, "http", "server", kind, b"", payload, conn))
    back = parse_line(line)
    assert isinstance(back, Frame)
    assert (back.kind, back.payload, back.conn, back.value) == (kind, payload, conn, payload)
    assert encode_frame(back) == line


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        (b'{"id":1}\n', "msg"),
        ('{"a":"é✓"}\n'.encode(), "msg"),
        (b'{"id": 1}\n', "text"),
        (b'{"id":1}\r\n', "text"),
        (b'{"id":1}', "text"),
        (b'{"a":1.0e5}\n', "text"),
        (b'{"a":"\\u00e9"}\n', "text"),
        (b'{"a":1,"a":2}\n', "text"),
        (b"garbage\n", "text"),
        (b"\n", "text"),
        (b"null\n", "text"),
        (b"\xff\n", "base64"),
    ],
)
def test_the_structured_form_is_used_only_where_it_is_exact(raw: bytes, key: str) -> None:
    line = encode_frame(Frame(1, 0.0, "rpc", "client", "msg", raw))
    fields = json.loads(line)
    assert key in fields
    assert len({"msg", "text", "base64"} & fields.keys()) == 1
    assert list(fields)[:4] == ["n", "t", "seam", "from"]


@pytest.mark.parametrize("raw", [b'{"id":1,"error":{"message":"no"}}\n', b'{"id": 1, "error": {"message": "no"}}\n'])
def test_a_line_has_what_came_although_a_case_changed_the_decoded_message(raw: bytes) -> None:
    frame = Frame(1, 0.0, "rpc", "server", raw=raw)
    untouched = encode_frame(frame)
    frame.value["error"]["message"] = "changed"
    assert encode_frame(frame) == untouched


def test_a_message_that_contains_the_format_s_own_words_is_not_misread() -> None:
    raw = dumps({"x": '{"n":1,"msg":', ',"msg":': {"seam": "http"}, "cassette": 1, "end": True}) + b"\n"
    back = parse_line(encode_frame(Frame(1, 0.0, "rpc", "client", "msg", raw)))
    assert isinstance(back, Frame)
    assert back.raw == raw


def test_header_and_footer_come_back_with_keys_of_the_future() -> None:
    header = parse_line(encode_header(Header("0.92.0", "b", "c", {"rpc": "recorded"}, {"imported": "tee"})))
    assert isinstance(header, Header)
    assert (header.codex, header.bundle, header.case, header.origin, header.extra) == (
        "0.92.0",
        "b",
        "c",
        {"rpc": "recorded"},
        {"imported": "tee"},
    )
    footer = parse_line(encode_footer(Footer(7, {"why": "done"})))
    assert isinstance(footer, Footer)
    assert (footer.frames, footer.extra) == (7, {"why": "done"})


BAD_LINES = {
    "not JSON": b"hello\n",
    "an array": b"[]\n",
    "an empty object": b"{}\n",
    "another format": b'{"cassette":2,"codex":"x","bundle":"x","case":"x","origin":{}}\n',
    "a header without a case": b'{"cassette":1,"codex":"x","bundle":"x","origin":{}}\n',
    "a footer that does not count": b'{"end":true}\n',
    "no time": b'{"n":1,"seam":"rpc","from":"client","msg":{}}\n',
    "a number as text": b'{"n":"1","t":0,"seam":"rpc","from":"client","text":""}\n',
    "an unknown seam": b'{"n":1,"t":0,"seam":"tcp","from":"client","text":""}\n',
    "an unknown side": b'{"n":1,"t":0,"seam":"rpc","from":"me","text":""}\n',
    "no content": b'{"n":1,"t":0,"seam":"rpc","from":"client"}\n',
    "broken base64": b'{"n":1,"t":0,"seam":"rpc","from":"client","base64":"a"}\n',
    "http without a connection": b'{"n":1,"t":0,"seam":"http","from":"client","close":"end"}\n',
    "http without content": b'{"n":1,"t":0,"seam":"http","conn":1,"from":"client"}\n',
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_line_is_told(name: str) -> None:
    with pytest.raises(BadLine) as caught:
        parse_line(BAD_LINES[name])
    assert len(str(caught.value)) > 10


@given(st.binary(max_size=80))
def test_no_bytes_crash_the_parser(data: bytes) -> None:
    with contextlib.suppress(BadLine):
        parse_line(data)


@given(
    st.dictionaries(
        st.sampled_from(["n", "t", "seam", "from", "msg", "text", "base64", "conn", "end", "frames", "cassette", "close"]), VALUES
    )
)
def test_no_object_crashes_the_parser(fields: dict[str, Any]) -> None:
    with contextlib.suppress(BadLine):
        parse_line(dumps(fields) + b"\n")


@pytest.mark.parametrize("kind", ["request", "response", "sse", "chunk"])
def test_what_an_http_frame_carries_may_have_a_member_called_msg(kind: str) -> None:
    payload = {"data": {"type": "object", "msg": {"a": '"seam":"rpc"'}}, "msg": 1, "headers": [], **REQUIRED.get(kind, {})}
    frame = parse_line(encode_frame(Frame(1, 0.0, "http", "client", kind, b"", payload, 1)))
    assert isinstance(frame, Frame)
    assert frame.payload == payload


def test_a_view_may_have_a_member_called_msg() -> None:
    raw = b'{"params": {"id": "0", "msg": {"type": "task_started"}}}\n'
    frame = parse_line(encode_frame(Frame(1, 0.0, "rpc", "server", "msg", raw)))
    assert isinstance(frame, Frame)
    assert frame.raw == raw


@pytest.mark.parametrize(
    ("member", "value", "sentence"),
    [
        ("codex", 17, "'codex' in the header must be a string"),
        ("bundle", None, "'bundle' in the header must be a string"),
        ("case", [], "'case' in the header must be a string"),
        ("origin", "recorded", "'origin' in the header must be an object"),
    ],
)
def test_a_header_with_a_member_of_another_type_is_refused(member: str, value: object, sentence: str) -> None:
    header = {"cassette": 1, "codex": "0.92.0", "bundle": "unknown", "case": "a/b", "origin": {}, member: value}
    with pytest.raises(BadLine, match=sentence):
        parse_line(json.dumps(header).encode())


@pytest.mark.parametrize(
    "line",
    [
        b'{"n":1,"t":0.0,"seam":"http","conn":1,"from":"client","request":5}',
        b'{"n":1,"t":0.0,"seam":"http","conn":1,"from":"client","request":{"headers":[["a"]]}}',
        b'{"n":1,"t":0.0,"seam":"http","conn":1,"from":"server","response":{"headers":[[1,"b"]]}}',
        b'{"n":1,"t":0.0,"seam":"http","conn":1,"from":"server","close":{}}',
        b'{"n":1,"t":0.0,"seam":"http","conn":1,"from":"server","response":{"status":200}}',
        b'{"n":1,"t":0.0,"seam":"http","conn":1,"from":"server","response":{"status":"200","headers":[]}}',
        b'{"n":1,"t":0.0,"seam":"http","conn":1,"from":"client","request":{"method":"GET","headers":[]}}',
        b'{"n":1,"t":0.0,"seam":"http","conn":1,"from":"server","chunk":{"base64":5}}',
        b'{"n":1,"t":0.0,"seam":"http","conn":1,"from":"server","chunk":{"body":{"\\ud800":1}}}',
        b'{"n":1,"t":0.0,"seam":"rpc","from":"client","text":"x","more":"\\udc00"}',
        b'{"n":1,"t":0.0,"seam":"http","conn":1,"from":"server","chunk":{"body":1e999}}',
        b'{"n":1,"t":0.0,"seam":"http","conn":1,"from":"server","chunk":{"body":' + b"9" * 400 + b".5}}",
        b'{"n":1,"t":0.0,"more":1e999,"seam":"rpc","from":"client","msg":{}}',
        b'{"end":true,"frames":1,"exit":1e999}',
        b'{"n":1,"t":0.0,"more":"\\udc00","seam":"rpc","from":"client","msg":{}}',
        b'{"n":1,"t":0.0,"seam":"http","conn":1,"from":"server","chunk":{"text":"x"},"cuts":5}',
        b'{"n":1,"t":0.0,"seam":"http","conn":1,"from":"server","chunk":{"text":"x"},"cuts":[[1]]}',
        b'{"n":1,"t":1' + b"0" * 400 + b',"seam":"rpc","from":"client","text":"x"}',
        b'{"n":1' + b"0" * 400 + b',"t":0.0,"seam":"rpc","from":"client","text":"x"}',
        b'{"n":1,"t":0.0,"seam":"rpc","from":"client", "msg":"\\ud800"}',
        b'{"cassette":1,"codex":"x","bundle":"x","case":"\\ud800","origin":{}}',
    ],
)
def test_fields_of_another_type_are_no_frame(line: bytes) -> None:
    with pytest.raises(BadLine):
        parse_line(line + b"\n")
