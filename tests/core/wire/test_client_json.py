"""JSON of a client that nobody trusts: what is read, and what is refused before it can end or stall a server."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codex_replay.core.wire.client_json import MAX_DEPTH, MAX_ESCAPES, MAX_TOKENS, check_size, read
from codex_replay.core.wire.json_text import NotJson, loads

REFUSED = {
    "deep arrays": (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "nested deeper"),
    "deep objects": (b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1), "nested deeper"),
    "deeper than the reader": (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
    "never closed": (b"[" * 100_000, "nested too deeply"),
    "many values": (b"[" + b"0," * MAX_TOKENS + b"0]", "tokens"),
    "many containers": (b"[" + b"{}," * MAX_TOKENS + b"{}]", "tokens"),
    "many escapes": (b'"' + b"\\n" * (MAX_ESCAPES + 1) + b'"', "escapes"),
    "many escaped backslashes": (b'"' + b"\\\\" * (MAX_ESCAPES + 1) + b'"', "escapes"),
    "a lone surrogate": (b'{"a":"\\ud800"}', "surrogate"),
    "a lone surrogate in a key": (b'{"\\uDFFF":1}', "surrogate"),
    "two low halves": (b'"\\udc00\\udc00"', "surrogate"),
    "a float out of range": (b"[1e999]", "too large"),
    "an integer of many digits": (b"9" * (sys.get_int_max_str_digits() + 1), "digits"),
    "NaN": (b'{"model":NaN}', "NaN"),
    "UTF-16": ('{"a":1}'.encode("utf-16"), "UTF-8"),
    "nothing": (b"", "no JSON value"),
    "a byte-order mark": (b"\xef\xbb\xbf{}", "it begins with a byte-order mark"),
}


@pytest.mark.parametrize(("data", "why"), REFUSED.values(), ids=REFUSED)
def test_what_could_end_or_stall_a_server_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(NotJson, match=why):
        read(data)


@pytest.mark.parametrize(
    "data",
    [
        b"[" * MAX_DEPTH + b"]" * MAX_DEPTH,
        b'"' + b"[{," * MAX_TOKENS + b'"',  # tokens inside a string are none
        b'"' + b'\\"' * MAX_TOKENS + b'"',
        b'"' + b"\\\\" * MAX_ESCAPES + b'"',
        b'{"a":"\\ud83d\\ude00","b":1e-999,"c":[1.5,-0,null,true]}',
        '{"é":"\u2028"}'.encode(),
    ],
    ids=range(6),
)
def test_all_else_is_read_as_it_is(data: bytes) -> None:
    assert read(data) == loads(data) == json.loads(data)


NUMBERS = st.one_of(
    st.integers().map(str),
    st.floats().map(json.dumps),
    st.sampled_from(
        ["-0", "-0.0", "1e999", "-1e999", "1e-999", str(2**64), str(-(2**63) - 1), "9" * 400, "01", "1.", ".5", "+1"]
    ),
)
PARTS = [
    "a",
    "type",
    "",
    "é",
    "\U0001f600",
    "\\n",
    "\\u00e9",
    "\\ud83d\\ude00",
    "\\ud800",
    "\\udc00",
    "\\x",
    "\x01",
    "\x7f",
    "\ufeff",
]
STRINGS = st.lists(st.sampled_from(PARTS), max_size=3).map(lambda parts: f'"{"".join(parts)}"')
TEXTS = st.recursive(
    NUMBERS | STRINGS | st.sampled_from(["true", "false", "null", "nul"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.lists(st.tuples(STRINGS, inner), max_size=3).map(lambda pairs: "{" + ",".join(map(":".join, pairs)) + "}")
    ),
).map(str.encode)
DAMAGE = st.tuples(
    st.integers(0, 100), st.integers(0, 2), st.sampled_from([b"", b",", b"}", b'"', b"\xff", b"\xed\xa0\x80", b"\x00"])
)


def value_or_refusal(data: bytes) -> str:
    try:
        return repr(read(data))
    except NotJson as error:
        return f"{type(error).__name__}: {error}"


@given(TEXTS, st.none() | DAMAGE)
@example(b'{"a":1e999,"a":1}', None)
@example(b'{"a":"\\ud800","a":1}', None)
@example(b'{"a":' * MAX_DEPTH + b"1" + b"}" * MAX_DEPTH, None)
@example(b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1), None)
@example(b"9" * sys.get_int_max_str_digits(), None)
def test_a_long_text_is_read_like_a_short_one(data: bytes, damage: tuple[int, int, bytes] | None) -> None:
    """White space changes no value, but a long text has another reader."""
    if damage is not None:
        at, size, junk = damage
        data = data[:at] + junk + data[at + size :]
    assert value_or_refusal(b" " * 4096 + data).partition(" at ")[0] == value_or_refusal(data).partition(" at ")[0]


def test_an_alias_counts_at_each_use() -> None:
    value: list[object] = ["x"] * 10
    for _ in range(8):
        value = [value] * 10
    with pytest.raises(NotJson, match="values"):
        check_size(value)
