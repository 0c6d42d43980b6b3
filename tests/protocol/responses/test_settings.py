"""What a whole reply repeats of its request and obeys; and that the reply to Codex has none of it."""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.protocol.responses.items import reply
from codex_replay.protocol.responses.settings import read_key
from codex_replay.protocol.responses.steps import Send
from codex_replay.protocol.script.script import parse
from tests.protocol.responses.test_responses import ITEMS, problems

TOOL = {"type": "function", "name": "add", "parameters": {"type": "object", "properties": {}}}
FORMAT = {"type": "json_schema", "name": "answer", "schema": {"type": "object"}, "strict": True}
ASKED: dict[str, Any] = {
    "background": False,
    "instructions": "Be brief.",
    "max_output_tokens": 4000,
    "max_tool_calls": 3,
    "metadata": {"trace": "7"},
    "parallel_tool_calls": False,
    "previous_response_id": "resp_0",
    "prompt_cache_key": "key",
    "prompt_cache_retention": "24h",
    "safety_identifier": "person",
    "store": False,
    "temperature": 0.5,
    "tool_choice": "required",
    "top_logprobs": 2,
    "top_p": 0.25,
    "truncation": "auto",
    "user": "me",
    "service_tier": "flex",
}


def events(*items: Any, body: Any = None, whole: bool = True) -> list[dict[str, Any]]:
    (turn,) = parse([{"items": list(items)}]).turns
    given = {"model": "gpt-5.2", "input": "x", **(body or {})}
    return [dict(step.event) for step in reply(turn, given, "1", whole) if isinstance(step, Send)]


@pytest.mark.parametrize("items", ITEMS.values(), ids=ITEMS.keys())
@pytest.mark.parametrize("body", [{}, {**ASKED, "tools": [TOOL], "text": {"format": FORMAT}}], ids=["defaults", "all settings"])
def test_every_whole_reply_is_valid(items: list[Any], body: dict[str, Any]) -> None:
    assert problems(events(*items, body=body)) == []


@pytest.mark.parametrize("key", ASKED)
def test_a_setting_comes_back_in_every_response(key: str) -> None:
    responses = [event["response"] for event in events("Hi", body={key: ASKED[key]}) if "response" in event]
    assert [response[key] for response in responses] == [ASKED[key]] * 3
    default = events("Hi")[0]["response"][key]
    assert default != ASKED[key] or key == "background"
    assert events("Hi", body={key: None})[0]["response"][key] == default


def test_settings_with_a_form_of_their_own() -> None:
    body = {"tools": [TOOL], "text": {"format": FORMAT}, "conversation": "conv_1", "reasoning": {"effort": "low"}}
    response = events("Hi", body={**body, "service_tier": "auto"})[0]["response"]
    assert response["tools"] == [{**TOOL, "description": None, "strict": True}]
    assert response["text"] == {"format": FORMAT, "verbosity": "medium"}
    assert response["conversation"] == {"id": "conv_1"}
    assert response["reasoning"] == {"effort": "low", "summary": None}
    assert response["service_tier"] == "default"
    assert response["store"] is True


def test_only_a_completed_response_has_a_time_of_completion() -> None:
    assert [event["response"]["completed_at"] is None for event in events("Hi") if "response" in event] == [True, True, False]
    assert events("Hi", {"type": "failed", "code": "server_error"})[-1]["response"]["completed_at"] is None


def test_the_last_item_of_an_incomplete_response_is_incomplete() -> None:
    call = {"type": "function_call", "name": "add", "arguments": '{"a":'}
    found = events("first", call, {"type": "incomplete", "reason": "content_filter"})
    assert [item["status"] for item in found[-1]["response"]["output"]] == ["completed", "incomplete"]
    assert problems(found) == []


@pytest.mark.parametrize(
    ("limit", "text", "arguments"),
    [(1, "aaaa", None), (2, "aaaaaaaa", None), (3, "aaaaaaaa", '{"x"'), (5, "aaaaaaaa", '{"x":"yy"}')],
)
def test_the_limit_of_output_cuts_the_reply(limit: int, text: str, arguments: str | None) -> None:
    call = {"type": "function_call", "name": "f", "arguments": {"x": "yy"}}
    found = events({"type": "text", "text": "a" * 8, "deltas": ["a" * 8]}, call, body={"max_output_tokens": limit})
    assert problems(found) == []
    response = found[-1]["response"]
    assert response["output"][0]["content"][0]["text"] == text
    assert [item["arguments"] for item in response["output"][1:]] == ([] if arguments is None else [arguments])
    assert response["status"] == ("completed" if limit == 5 else "incomplete")
    assert response["incomplete_details"] == (None if limit == 5 else {"reason": "max_output_tokens"})
    if limit < 5:
        assert response["output"][-1]["status"] == "incomplete"
        assert response["usage"]["output_tokens"] == limit


def test_reasoning_is_cut_away_whole() -> None:
    found = events({"type": "reasoning", "summary": "long thought"}, "Hi", body={"max_output_tokens": 2})
    assert (found[-1]["response"]["status"], found[-1]["response"]["output"]) == ("incomplete", [])


def test_encrypted_reasoning_is_there_if_it_was_asked_for() -> None:
    asked = {"include": ["reasoning.encrypted_content"]}
    thought = {"type": "reasoning", "summary": "a", "encrypted_content": "gAAA"}
    assert events(thought, body=asked)[-1]["response"]["output"][0]["encrypted_content"] == "gAAA"
    assert events({"type": "reasoning", "summary": "a"}, body=asked)[-1]["response"]["output"][0]["encrypted_content"]
    assert "encrypted_content" not in events(thought)[-1]["response"]["output"][0]


def test_a_call_is_done_with_its_name() -> None:
    done = [event for event in events({"type": "function_call", "name": "add"}) if event["type"].endswith("arguments.done")]
    assert done[0]["name"] == "add"


def test_an_event_of_a_script_is_numbered_in_its_place() -> None:
    event = {"type": "response.queued", "response": events("Hi")[0]["response"]}
    found = events({"type": "event", "event": event}, {"type": "event", "event": {**event, "sequence_number": 40}}, "Hi")
    assert [each["sequence_number"] for each in found] == [0, 1, 2, 40, *range(3, len(found) - 1)]
    assert "sequence_number" not in events({"type": "event", "event": event}, whole=False)[2]


def test_codex_gets_what_its_recordings_have() -> None:
    response = events("Hi", body={**ASKED, "tools": [TOOL]}, whole=False)[-1]["response"]
    assert response.keys().isdisjoint({"completed_at", "user", "background", "service_tier"})
    assert (response["tools"], response["instructions"], response["metadata"]) == ([], None, {})
    limited = events("a" * 100, {"type": "function_call", "name": "f"}, body={"max_output_tokens": 1}, whole=False)
    assert limited[-1]["type"] == "response.completed"
    assert "name" not in next(event for event in limited if event["type"].endswith("arguments.done"))


@pytest.mark.parametrize("key", ["text", "reasoning", "tools", "include", "max_output_tokens", "metadata", "conversation"])
@pytest.mark.parametrize("value", ["x", 7, True, [1], {"a": 1}, -1])
def test_a_setting_of_a_wrong_type_breaks_nothing(key: str, value: object) -> None:
    assert events("Hi", body={key: value})[-1]["type"] in ("response.completed", "response.incomplete")


def test_what_a_reply_depends_on_is_in_its_key() -> None:
    plain = {"model": "m"}
    assert read_key(plain) == read_key({**plain, "input": "other", "stream": True})
    words = "a b"
    shared, apart = {"a": words, "b": words}, {"a": words, "b": "".join(["a", " b"])}
    assert read_key({"metadata": shared}) == read_key({"metadata": apart})
    others = [*ASKED, "model", "conversation", "include", "reasoning", "text", "tools"]
    assert len({read_key({**plain, key: "other"}) for key in others}) == len(others)
