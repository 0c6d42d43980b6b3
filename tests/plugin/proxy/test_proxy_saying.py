"""What a proxy's author is told when something is missing or is not what it must be: what, where, and what came instead."""

from __future__ import annotations

import ast
import json
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
    with pytest.raises(AssertionError, match="must be a JSON object, not"):
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
