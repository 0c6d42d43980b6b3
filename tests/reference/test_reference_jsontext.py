"""The JSON of the references is that of `json`: the same values, the same text, the same complaints."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_replay.reference import json_text

TEXTS: list[str | bytes] = [
    *(
        '{"a": [1, -2.5e3, true, false, null, "é\\u00e9\\ud83d"]}',
        " \t\r\n[ ]\n",
        "0",
        '"x"',
        "1e999",
        "-Infinity",
        "12345678901234567890",
    ),
    *(b'{"\xc3\xa9": "\xf0\x9f\x98\x80"}\r', b"\xef\xbb\xbf[1]", "[1]".encode("utf-16"), b' {"a": 1, "a": 2} '),
]
NO_TEXTS: list[str | bytes] = [
    "",
    " ",
    "{",
    "[1,]",
    "[1] 2",
    "nul",
    '"\n"',
    "\u2028[]",
    "{'a': 1}",
    b"\xff\xfe\xfd",
    b'"\xff"',
    "\ufeff[]",
    "01",
]


@pytest.mark.parametrize("text", TEXTS)
def test_it_reads_as_json_does(text: str | bytes) -> None:
    assert json_text.loads(text) == json.loads(text)
    assert repr(json_text.loads(text)) == repr(json.loads(text))


@pytest.mark.parametrize("text", NO_TEXTS)
def test_it_complains_as_json_does(text: str | bytes) -> None:
    complaints = []
    for loads in (json.loads, json_text.loads):
        try:
            complaints.append(repr(loads(text)))
        except ValueError as error:
            complaints.append(f"{type(error).__name__}: {error}")
    assert complaints[0] == complaints[1]
    assert "Error" in complaints[0]


@pytest.mark.parametrize("value", [{"a": [1, 2.5, True, None, "é\U0001f600\ud83d\u2028\n"]}, [], {}, "x", 1e300, {1: {"b": ()}}])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_it_writes_as_json_does(value: Any, ascii_only: bool) -> None:
    assert json_text.dumps(value, ensure_ascii=ascii_only) == json.dumps(value, ensure_ascii=ascii_only)


def test_it_refuses_what_has_no_json_form() -> None:
    with pytest.raises(TypeError):
        json_text.dumps({"a": object()})
