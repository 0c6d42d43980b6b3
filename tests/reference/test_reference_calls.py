"""The reference proxy finds the calls in a text."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_replay.reference.proxy.answering.tool_calls import ToolCallParser
from tests.reference.proxy_driver import call

T = ("t", '{"a":1}')
VECTORS: dict[str, tuple[str, list[Any]]] = {
    "no call": ("hello", ["hello"]),
    "one call": (call(), [T]),
    "text around it": (f"a {call()} b", ["a ", T, " b"]),
    "two calls, space between": (f"{call()}\n{call('u')}\n", [T, ("u", '{"a":1}')]),
    "two calls, nothing between": (call() * 2, [T, T]),
    "in an array": (
        '<tool_call>[{"name":"t","arguments":"{}"},{"name":"u","arguments":{"b":1.0}}]</tool_call>x',
        [("t", "{}"), ("u", '{"b":1.0}'), "x"],
    ),
    "a fence inside": ('<tool_call>\n```json\n{"name":"t"}\n```\n</tool_call> after', [("t", "{}"), " after"]),
    "a trailing >": ('<tool_call>{"name":"t","arguments":"{}"}></tool_call>z', [("t", "{}"), "z"]),
    "a > after the tag": (call() + ">z", [T, "z"]),
    "a brace too many": ('<tool_call>{"name":"t","arguments":"{}"}}</tool_call>z', [("t", "{}"), "z"]),
    "closing tag repeated": (call() + "</tool_call>\n</tool_call> z", [T, " z"]),
    "opening tag repeated": ("<tool_call>" + call(), [T]),
    "closing tag missing at the end": ('<tool_call>{"name":"t","arguments":"{}"}', [("t", "{}")]),
    "closing tag missing before text": ('<tool_call>{"name":"t","arguments":"{}"}\nmore', [("t", "{}"), "\nmore"]),
    "closing tag missing before a call": (
        '<tool_call>{"name":"t","arguments":"{}"}' + call("u"),
        [("t", "{}"), ("u", '{"a":1}')],
    ),
    "closing tag in a string": (call("t", '{"s":"</tool_call>"}'), [("t", '{"s":"</tool_call>"}')]),
    "arguments as an object": ('<tool_call>{"arguments":{"k":1,"k":2.0},"name":"t"}</tool_call>', [("t", '{"k":1,"k":2.0}')]),
    "arguments empty": ('<tool_call>{"name":"t","arguments":""}</tool_call>', [("t", "{}")]),
    "arguments null": ('<tool_call>{"name":"t","arguments":null}</tool_call>', [("t", "{}")]),
    "arguments not escaped": ('<tool_call>{"name":"t","arguments":"{"a":"b"}"}</tool_call>', [("t", '{"a":"b"}')]),
    "a name twice": ('<tool_call>{"name":"a","name":"b","arguments":"{}"}</tool_call>', [("b", "{}")]),
    "arguments under another name": (
        '<tool_call>{"name":"t","args":{}}</tool_call>',
        ['<tool_call>{"name":"t","args":{}}</tool_call>'],
    ),
    "odd characters": (call("t", '{"s":"\u2028\u2029\U0001f600"}'), [("t", '{"s":"\u2028\u2029\U0001f600"}')]),
    "half a surrogate pair": ('<tool_call>{"name":"t","arguments":"\\ud800"}</tool_call>', [("t", "\ud800")]),
    "real line ends in a string": ('<tool_call>{"name":"t","arguments":"{\n}"}</tool_call>', [("t", "{\n}")]),
    "cut off in the object": ('a <tool_call>{"name":"t","argum', ["a "]),
    "cut off in the tag": ("a <tool_ca", ["a "]),
    "cut off after the tag": ("a <tool_call>", ["a "]),
    "cut off in the closing tag": ('<tool_call>{"name":"t"}</tool_', [("t", "{}")]),
    "a < at the end": ("1 <", ["1 <"]),
    "a < after a call": (call() + " <", [T, " <"]),
    "in a code block": (f"```\n{call()}\n```\n{call('u')}", [f"```\n{call()}\n```\n", ("u", '{"a":1}')]),
    "in a block of tildes": (f"~~~xml\n{call()}\n~~~", [f"~~~xml\n{call()}\n~~~"]),
    "in a code span": (f"say `{call()}` ok", [f"say `{call()}` ok"]),
    "a lone back-tick before": (f"a ` b {call()}", ["a ` b ", T]),
    "the tag in prose": ("The <tool_call> tag", ["The <tool_call> tag"]),
    "not JSON": ("<tool_call>{bad}</tool_call> rest", ["<tool_call>{bad}</tool_call> rest"]),
    "a brace missing": ('<tool_call>{"name":"t"</tool_call> b ' + call(), ['<tool_call>{"name":"t"</tool_call> b ', T]),
    "a quote missing": ('<tool_call>{"name":"t</tool_call> b ' + call(), ['<tool_call>{"name":"t</tool_call> b ', T]),
    "white space alone": (" \n", [" \n"]),
    "white space before a call": (" \n" + call(), [T]),
    "a code block after a call without an end": ('<tool_call>{"name":"t"}\n```py\nx\n```', [("t", "{}"), "\n```py\nx\n```"]),
}


def parsed(text: str, cuts: list[int] | None = None, parser: Any = ToolCallParser) -> list[Any]:
    reader = parser()
    edges = [0, *sorted(cut % (len(text) + 1) for cut in cuts or []), len(text)]
    out: list[Any] = []
    pieces = [piece for a, b in pairwise(edges) for piece in reader.feed(text[a:b])]
    for piece in [*pieces, *reader.close()]:
        if isinstance(piece, str) and out and isinstance(out[-1], str):
            out[-1] += piece
        else:
            out.append(piece if isinstance(piece, str) else tuple(piece))
    return out


@pytest.mark.parametrize("case", VECTORS)
def test_calls_are_found_however_the_text_is_cut(case: str) -> None:
    text, wanted = VECTORS[case]
    assert parsed(text) == wanted
    assert parsed(text, list(range(len(text)))) == wanted
    for cut in range(len(text)):
        assert parsed(text, [cut]) == wanted, cut


@given(
    st.lists(st.sampled_from([*(text for text, _ in VECTORS.values()), "`", "\n", "</tool_call>", "```", "<", '"']), max_size=5),
    st.lists(st.integers(0, 999), max_size=6),
)
def test_the_cuts_never_matter(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    assert parsed(text, cuts) == parsed(text)


@given(st.text(alphabet="a <>`\n~"), st.lists(st.integers(0, 99), max_size=4))
def test_text_without_a_tag_is_never_changed(text: str, cuts: list[int]) -> None:
    assert "".join(parsed(text, cuts)) == text


def test_a_megabyte_of_arguments_in_small_pieces() -> None:
    arguments = json.dumps({"x": 'line "quoted"\n' * 80_000})
    reader = ToolCallParser()
    text = call("t", arguments)
    found = [piece for at in range(0, len(text), 64) for piece in reader.feed(text[at : at + 64])]
    assert [*found, *reader.close()] == [("t", arguments)]


class Naive:
    """What a parser does that looks for the tags in the whole text, at the end."""

    def __init__(self) -> None:
        self.said = ""

    def feed(self, text: str) -> list[Any]:
        self.said += text
        return []

    def close(self) -> list[Any]:
        parts = re.split(r"<tool_call>(.*?)</tool_call>", self.said)
        found = [json.loads(part) if at % 2 else part for at, part in enumerate(parts) if part]
        return [part if isinstance(part, str) else (part["name"], part["arguments"]) for part in found]


def test_a_naive_parser_fails_most_of_the_hard_vectors() -> None:
    failed = set()
    for case, (text, wanted) in VECTORS.items():
        try:
            ok = parsed(text, parser=Naive) == wanted
        except (ValueError, KeyError, TypeError):
            ok = False
        failed |= set() if ok else {case}
    assert {"no call", "one call", "text around it"}.isdisjoint(failed)
    assert len(failed) > 25
