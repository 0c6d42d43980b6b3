"""JSON as text, and lines of a stream: what comes back, what is refused, and why."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_replay.core.wire.json_text import NotJson, ascii_dumps, compact, dumps, loads
from codex_replay.core.wire.ndjson import LineSplitter
from tests.core.cassette.test_frames import VALUES


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
