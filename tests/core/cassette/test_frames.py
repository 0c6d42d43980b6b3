"""JSON text, framing, cassette lines and cassette files: round trips, and every way in which a file can be bad."""

from __future__ import annotations

import contextlib
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
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
from codex_replay.core.wire.json_text import NotJson, ascii_dumps, compact, dumps, loads
from codex_replay.core.wire.ndjson import LineSplitter
from codex_replay.shell.cassettes.file import CassetteError, CassetteReader, CassetteWriter

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


# ------------------------------------------------------------------------------------------------------------ jsontext


@given(VALUES)
def test_json_comes_back_and_is_what_json_says(value: Any) -> None:
    data = dumps(value)
    assert loads(data) == value
    assert json.loads(data) == value
    assert b"\n" not in data


@given(VALUES | st.text(st.characters(categories=["Cs", "L", "P"])))
def test_ascii_json_is_what_json_writes_even_of_half_a_surrogate_pair(value: Any) -> None:
    assert ascii_dumps(value) == json.dumps(value, separators=(",", ":")).encode()


@given(VALUES | st.text(st.characters(categories=["Cs", "L", "P"])) | st.lists(st.floats()))
def test_compact_json_is_what_json_writes_even_of_no_number(value: Any) -> None:
    assert compact(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize("value", [math.nan, -math.inf, object(), {1}])
def test_what_json_does_not_have_has_no_ascii_form(value: Any) -> None:
    with pytest.raises(ValueError, match=r"JSON"):
        ascii_dumps(value)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" ",
        b"{",
        b"nul",
        b"NaN",
        b"-Infinity",
        b"{}x",
        b"{} {}",
        b"\xff",
        b"\xef\xbb\xbf{}",
        b'"\xed\xa0\x80"',
        b"'a'",
        b"01",
        b'"\n"',
    ],
)
def test_what_is_no_json_is_refused_with_a_reason(data: bytes) -> None:
    with pytest.raises(NotJson) as caught:
        loads(data)
    assert str(caught.value)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"{", "expecting property name enclosed in double quotes at character 1"),
        (b'{"a" 1}', "expecting ':' delimiter at character 5"),
        (b"[1 2]", "expecting ',' delimiter at character 3"),
        (b'["abc', "unterminated string starting at character 1"),
        (b'"a\nb"', "invalid control character at character 2"),
        (b'"\\x"', "invalid \\escape at character 1"),
        (b'"\\u12"', "invalid \\uXXXX escape at character 2"),
        (b"[" + b"9" * 5000 + b"]", "a number has more digits than Python reads (4300)"),
    ],
)
def test_the_reason_reads_well_whatever_the_reader_below_says(data: bytes, why: str) -> None:
    with pytest.raises(NotJson) as caught:
        loads(data)
    assert str(caught.value) == why


def test_deep_nesting_is_refused_not_a_crash() -> None:
    with pytest.raises(NotJson):
        loads(b"[" * 200_000)


@pytest.mark.parametrize("value", [math.nan, math.inf, "\ud800", object(), {1, 2}])
def test_what_has_no_json_form_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        dumps(value)


def test_white_space_around_a_value_is_fine() -> None:
    assert loads(b' \t\r\n {"a": 1}\r\n') == {"a": 1}


# -------------------------------------------------------------------------------------------------------------- ndjson


STREAM = b'{"a":1}\n\n  \r\n\xff\xfe\nlong ' + b"x" * 50 + b"\r\nno end"


@pytest.mark.parametrize("cut", range(len(STREAM) + 1))
def test_lines_are_the_same_wherever_the_stream_is_cut(cut: int) -> None:
    whole = LineSplitter()
    expected = [*whole.feed(STREAM), whole.close()]
    splitter = LineSplitter()
    assert [*splitter.feed(STREAM[:cut]), *splitter.feed(STREAM[cut:]), splitter.close()] == expected
    assert b"".join(expected) == STREAM


def test_lines_byte_by_byte() -> None:
    splitter = LineSplitter()
    lines = [line for i in range(len(STREAM)) for line in splitter.feed(STREAM[i : i + 1])]
    assert b"".join(lines) + splitter.close() == STREAM
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    assert splitter.close() == b""


# -------------------------------------------------------------------------------------------------------------- frames


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


# ----------------------------------------------------------------------------------------------------- cassette files


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LINES, max_size=6))
def test_a_written_cassette_is_read_back(tmp_path: Path, lines: list[bytes]) -> None:
    path = tmp_path / "c.ndjson"
    with CassetteWriter(path, HEADER) as writer:
        for line in lines:
            writer.write(Frame(0, 0.0, "rpc", "client", "msg", line))
    with CassetteReader(path) as reader:
        assert [frame.raw for frame in reader] == lines
        assert reader.footer is not None
        assert (reader.footer.frames, reader.truncated) == (len(lines), None)
        assert reader.read() is None


def _write(path: Path, frames: int = 3) -> bytes:
    with CassetteWriter(path, HEADER) as writer:
        for number in range(frames):
            writer.write(Frame(0, number / 10, "rpc", "client", "msg", b'{"id":%d}\n' % number))
    return path.read_bytes()


def test_a_cassette_cut_anywhere_is_read_to_its_last_whole_frame(tmp_path: Path) -> None:
    path = tmp_path / "c.ndjson"
    data = _write(path)
    header = data.index(b"\n") + 1
    for cut in range(header, len(data)):
        path.write_bytes(data[:cut])
        with CassetteReader(path) as reader:
            read = [frame.n for frame in reader]
            whole = data[:cut].count(b"\n") - 1
            # A last line may be whole but for its newline.
            assert read in (list(range(1, whole + 1)), list(range(1, whole + 2)))
            if cut < len(data) - 1:
                assert reader.truncated is not None
                assert str(path) in reader.truncated


def test_an_abandoned_cassette_counts_as_truncated(tmp_path: Path) -> None:
    path = tmp_path / "c.ndjson"
    writer = CassetteWriter(path, HEADER)
    writer.write(Frame(0, 0.0, "rpc", "client", "msg", b"{}\n"))
    writer.abandon()
    with CassetteReader(path) as reader:
        assert len(list(reader)) == 1
        assert reader.truncated


BAD_FILES = {
    "empty": b"",
    "not JSON": b"hello\nworld\n",
    "another format": BAD_LINES["another format"],
    "no header": b'{"n":1,"t":0.0,"seam":"rpc","from":"client","msg":{}}\n',
    "binary": bytes(range(256)),
    "cut in the header": b'{"cassette":1,"codex":"0.9',
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_file_that_is_no_cassette_is_refused_in_a_sentence(tmp_path: Path, name: str) -> None:
    path = tmp_path / "c.ndjson"
    path.write_bytes(BAD_FILES[name])
    with pytest.raises(CassetteError) as caught:
        CassetteReader(path)
    assert str(path) in str(caught.value)
    assert str(caught.value).endswith(".")


def test_a_missing_file_and_a_folder_are_refused_in_a_sentence(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.ndjson", tmp_path):
        with pytest.raises(CassetteError, match=r"cannot be opened|is a folder"):
            CassetteReader(path)
    with pytest.raises(CassetteError, match="cannot be written"):
        CassetteWriter(tmp_path / "no" / "where", HEADER)


BAD_MESSAGES = [b'{"n":3,"t":0.2,"seam":"rpc","from":"server","msg":%s}\n' % said for said in (b"nonsense", b"null", b'{"a":1')]


@pytest.mark.parametrize("bad", [b"garbage\n", b"{}\n", encode_header(HEADER), *BAD_MESSAGES])
def test_a_broken_line_in_the_middle_is_told_with_its_number(tmp_path: Path, bad: bytes) -> None:
    path = tmp_path / "c.ndjson"
    lines = _write(path).splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], bad, *lines[2:]]))
    with CassetteReader(path) as reader, pytest.raises(CassetteError, match="line 3"):
        list(reader)


@pytest.mark.parametrize("raw", [b"nonsense\n", b'{"a":1\n', b"null\n", b"\xff\n", b"\n"])
def test_what_a_server_said_that_is_no_message_is_no_broken_line(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "c.ndjson"
    with CassetteWriter(path, HEADER) as writer:
        writer.write(Frame(0, 0.0, "rpc", "server", "msg", raw))
    with CassetteReader(path) as reader:
        assert [frame.raw for frame in reader] == [raw]


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
