"""What a proxy's author is told when something is missing or is not what it must be: what, where, and what came instead."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from codex_replay.plugin.proxy.answer import placed
from codex_replay.plugin.proxy.http import Exchange
from codex_replay.shell.rpc.client import SubjectFailure
from suites.proxy.answers import must_say, read
from suites.proxy.saying import must_be, must_be_one_of, only, with_env

VALUE: dict[str, Any] = {"choices": [{"message": {"content": "Hi."}}], "n": None}
JSON = [("Content-Type", "application/json")]
STREAM = [("Content-Type", "text/event-stream; charset=utf-8")]


def chat(value: Any) -> Exchange:
    return Exchange("POST", "/v1/chat/completions", None, 200, headers=JSON, body=json.dumps(value).encode())


def stream(*values: Any) -> Exchange:
    body = "".join(f"data: {json.dumps(value)}\n\n" for value in values).encode()
    return Exchange("POST", "/v1/responses", None, 200, headers=STREAM, body=body)


def test_a_value_with_its_places_is_the_value() -> None:
    assert placed(VALUE, "x") == VALUE
    assert json.dumps(placed(VALUE, "x")) == json.dumps(VALUE)
    assert placed(VALUE, "x")["choices"][0]["message"].get("role") is None
    assert placed(VALUE, "x")["choices"][:1] == VALUE["choices"]


@pytest.mark.parametrize(
    ("look", "sentence"),
    [
        (lambda found: found["usage"], "the answer has no 'usage'. The value there is {'choices': "),
        (lambda found: found["choices"][1], "the answer.choices has no [1]. The value there is [{'message'"),
        (lambda found: found["choices"]["message"], "the answer.choices has no ['message']"),
        (
            lambda found: found["choices"][0]["message"]["role"],
            "the answer.choices[0].message has no 'role'. The value there is {'content': 'Hi.'}.",
        ),
    ],
)
def test_what_is_not_there_is_told_by_its_place(look: Any, sentence: str) -> None:
    with pytest.raises(SubjectFailure) as failed:
        look(chat(VALUE).json)
    assert sentence in str(failed.value)


def test_what_an_event_does_not_have_is_told_by_its_number() -> None:
    with pytest.raises(
        SubjectFailure, match=r"the data of event 2 has no 'delta'\. The value there is {'type': 'response.output_text.delta'}"
    ):
        read(stream({"type": "response.created"}, {"type": "response.output_text.delta"}))


def test_values_that_must_be() -> None:
    must_be("x", 1, 1)
    must_be_one_of("x", 1, (1, 2))
    assert only("item", [5]) == 5
    assert with_env({}) == ""
    assert with_env({"PROXY_A": "b", "PROXY_C": "d"}) == "With PROXY_A=b, PROXY_C=d, "
    with pytest.raises(AssertionError, match=r"^object must be 'chat', but it is None\.$"):
        must_be("object", None, "chat")
    with pytest.raises(AssertionError, match=r"^n must be 1 or 2, but it is 3\.$"):
        must_be_one_of("n", 3, (1, 2))
    with pytest.raises(AssertionError, match=r"^There must be one call, but there are 0 among \['text'\]\.$"):
        only("call", [], ["text"])
    with pytest.raises(AssertionError, match=r"^There must be one call, but there are 2: \['a', 'b'\]\.$"):
        only("call", ["a", "b"])


@pytest.mark.parametrize("value", [[], "x", None, 5])
def test_an_answer_that_is_no_object(value: Any) -> None:
    with pytest.raises(AssertionError, match="must be a JSON object, not"):
        read(chat(value))
    with pytest.raises(AssertionError, match=re.escape(f"must be a JSON object, but it is {json.dumps(value)!r}")):
        read(stream(value))


def test_a_text_is_told_from_where_it_differs() -> None:
    answer = {"choices": [{"message": {"content": "Hello there"}, "finish_reason": "stop"}]}
    must_say(chat(answer), "Hello there")
    with pytest.raises(AssertionError, match="From character 6 on, expected 'you', got 'there'; expected 9 characters, got 11"):
        must_say(chat(answer), "Hello you")


def test_no_check_of_the_suite_fails_without_a_sentence() -> None:
    """A bare assert shows a proxy's author two values and no place; a pattern that does not fit shows a mistake of ours."""
    found = []
    for path in sorted((Path(__file__).parents[3] / "suites" / "proxy").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Assert | ast.Assign):
                continue
            bare = isinstance(node, ast.Assert) and node.msg is None
            if bare or (isinstance(node, ast.Assign) and any(isinstance(target, ast.List) for target in node.targets)):
                found.append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")
    assert found == []


@pytest.mark.parametrize("where", ["id", "name", "arguments"])
def test_a_part_of_a_streamed_call_that_is_no_text_is_named(where: str) -> None:
    part = {"index": 0, "id": 7} if where == "id" else {"index": 0, "function": {where: 7}}
    body = f"data: {json.dumps({'choices': [{'delta': {'tool_calls': [part]}}]})}\n\n".encode()
    name = where if where == "id" else f"function.{where}"
    with pytest.raises(AssertionError, match=f"^{name} of a tool call in the stream must be a text, but it is 7"):
        read(Exchange("POST", "/v1/chat/completions", None, 200, headers=STREAM, body=body))


def test_a_body_that_its_length_cuts_off_is_named() -> None:
    body = json.dumps({"a": "\u20ac"}, ensure_ascii=False).encode()[:-2]
    done = Exchange("POST", "/v1/responses", None, 200, headers=[*JSON, ("Content-Length", str(len(body)))], body=body)
    with pytest.raises(SubjectFailure, match=f"is not JSON after the {len(body)} bytes of its Content-Length"):
        _ = done.json
    with pytest.raises(SubjectFailure, match="is not JSON: "):
        _ = Exchange("POST", "/v1/responses", None, 200, headers=JSON, body=b"{").json


def test_an_answer_without_parts_of_the_text_says_where_they_may_be() -> None:
    answer = {"choices": [{"message": {"content": "one three"}, "finish_reason": "stop"}]}
    with pytest.raises(
        AssertionError, match=r"Parts of the text are lost: a read of the app-server's output may end inside a line"
    ):
        must_say(chat(answer), "one two three")
    with pytest.raises(AssertionError, match=r"got 9.$"):
        must_say(chat(answer), "three one")


def test_an_answer_with_cut_characters_says_what_to_decode() -> None:
    answer = {"choices": [{"message": {"content": "a\ufffd"}, "finish_reason": "stop"}]}
    with pytest.raises(AssertionError, match=r"Decode whole lines, not the bytes of each read.$"):
        must_say(chat(answer), "a\u2028")
    with pytest.raises(AssertionError, match=r"got 2.$"):
        must_say(chat(answer), "a\ufffd.")
