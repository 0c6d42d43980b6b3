"""The event sequence of every item kind: valid, faithful, and the two judges of it able to fail."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_replay.protocol.responses.events import event_schemas
from codex_replay.protocol.responses.items import reply
from codex_replay.protocol.responses.steps import Gate, Raw, Send, Wait
from codex_replay.protocol.responses.stream import StreamChecker
from codex_replay.protocol.script.script import parse

PATCH = "*** Begin Patch\n*** Add File: a.txt\n+hi\n*** End Patch\n"
CITATION = {"type": "url_citation", "start_index": 0, "end_index": 2, "title": "t", "url": "https://example.com"}
ITEMS: dict[str, list[Any]] = {
    "text": ["Hello ✓"],
    "empty text": [""],
    "long text": ["x" * 1000],
    "cited text": [{"type": "text", "text": "see", "annotations": [CITATION], "phase": "final_answer"}],
    "own deltas": [{"type": "text", "text": "Hello", "deltas": ["Hel", "lo"]}],
    "refusal": [{"type": "refusal", "refusal": "I will not."}],
    "function call": [{"type": "function_call", "name": "add", "arguments": {"a": 1, "b": "é"}}],
    "odd arguments": [{"type": "function_call", "name": "add", "arguments": "{not json", "call_id": "call_x"}],
    "custom tool call": [{"type": "custom_tool_call", "name": "apply_patch", "input": PATCH}],
    "parallel calls": [{"type": "function_call", "name": "add", "arguments": {}}] * 3,
    "web search": [{"type": "web_search_call", "query": "cats"}, "Found."],
    "page opened": [{"type": "web_search_call", "action": {"type": "open_page", "url": "https://example.com"}}],
    "reasoning": [{"type": "reasoning", "summary": ["one", "two"], "content": "raw", "encrypted_content": "gAAA"}, "ok"],
    "failed": ["half", {"type": "failed", "code": "server_error"}],
    "failed as codex": [{"type": "failed", "code": "context_length_exceeded"}],
    "incomplete": ["half", {"type": "incomplete", "reason": "max_output_tokens"}],
    "error": [{"type": "error", "code": "server_error"}],
    "nothing": [],
}


def stream(*items: Any, **turn: Any) -> list[dict[str, Any]]:
    (parsed,) = parse([{"items": list(items), **turn}]).turns
    steps = reply(parsed, {"model": "gpt-5.2-codex"}, "1")
    return [dict(step.event) for step in steps if isinstance(step, Send)]


def problems(events: list[dict[str, Any]]) -> list[str]:
    checker = StreamChecker()
    found = [sentence for event in events for sentence in event_schemas().problems(event)]
    found += [sentence for event in events for sentence in checker.feed(event)]
    return found + checker.close()


@pytest.mark.parametrize("items", ITEMS.values(), ids=ITEMS.keys())
def test_every_kind_gives_a_valid_and_whole_stream(items: list[Any]) -> None:
    assert problems(stream(*items)) == []


@given(st.lists(st.sampled_from([items for items in ITEMS.values() if len(items) < 3]), max_size=4), st.integers(1, 7))
def test_any_mixture_gives_a_valid_and_whole_stream(groups: list[list[Any]], delta: int) -> None:
    items = [item for group in groups for item in group]
    ends = [i for i, item in enumerate(items) if isinstance(item, dict) and item["type"] in ("failed", "incomplete", "error")]
    assert problems(stream(*(items[: ends[0] + 1] if ends else items), delta=delta)) == []


def test_the_same_script_gives_the_same_events() -> None:
    everything = [item for name, items in ITEMS.items() if "fail" not in name for item in items][:14]
    assert stream(*everything) == stream(*everything)


def test_the_completed_response_has_the_whole_output_and_usage() -> None:
    last = stream("Hi", {"type": "function_call", "name": "f"}, usage={"input_tokens": 7, "cached_tokens": 3})[-1]
    assert [item["type"] for item in last["response"]["output"]] == ["message", "function_call"]
    assert last["response"]["usage"]["input_tokens"] == 7
    assert last["response"]["usage"]["input_tokens_details"]["cached_tokens"] == 3
    assert stream("Hi", usage=None)[-1]["response"]["usage"] is None


def test_controls_stand_where_the_script_has_them() -> None:
    items = [{"type": "wait", "ms": 5}, "a", {"type": "gate", "name": "g"}, {"type": "raw", "data": "x"}, {"type": "comment"}]
    steps = reply(parse([{"items": items}]).turns[0], {}, "1")
    assert [step for step in steps if not isinstance(step, Send)] == [Wait(5), Gate("g"), Raw(b"x"), Raw(b": \n\n")]


def test_end_false_leaves_the_stream_open() -> None:
    assert "without any of" in problems(stream("a", end=False))[0]


# the judges can fail: each breakage is one that a backend could have


def swap(events: list[dict[str, Any]], a: int, b: int) -> None:
    events[a], events[b] = events[b], events[a]
    for i, event in enumerate(events):
        event["sequence_number"] = i


def at(events: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next(event for event in events if event["type"] == kind)


def drop(events: list[dict[str, Any]], kind: str) -> None:
    events.remove(at(events, kind))
    for i, event in enumerate(events):
        event["sequence_number"] = i


BREAKAGES: dict[str, tuple[Any, str]] = {
    "a number left out": (lambda e: e[3].update(sequence_number=9), "sequence_number is 9, expected 3"),
    "no created": (lambda e: drop(e, "response.created"), "Expected response.created"),
    "no in_progress": (lambda e: drop(e, "response.in_progress"), "Expected response.in_progress"),
    "delta before its item": (lambda e: swap(e, 2, 4), "which was not yet added"),
    "delta before its part": (lambda e: swap(e, 3, 4), "a part that was not yet added"),
    "no item added": (lambda e: drop(e, "response.output_item.added"), "was not yet added"),
    "no item done": (lambda e: drop(e, "response.output_item.done"), "never done"),
    "a delta lost": (lambda e: drop(e, "response.output_text.delta"), "differs from the joined deltas"),
    "a delta twice": (lambda e: e.insert(5, dict(e[4])), "differs from the joined deltas"),
    "other text in the end": (
        lambda e: at(e, "response.output_item.done")["item"]["content"][0].update(text="?"),
        "joined deltas",
    ),
    "another id in the end": (lambda e: at(e, "response.output_item.done")["item"].update(id="?"), "when it was added"),
    "empty output": (lambda e: e[-1]["response"].update(output=[]), "differs from the items that were done"),
    "a wrong total": (lambda e: e[-1]["response"]["usage"].update(total_tokens=1), "usage.total_tokens"),
    "a wrong status": (lambda e: e[-1]["response"].update(status="failed"), "status is 'failed'"),
    "no end": (lambda e: e.pop(), "without any of"),
    "more after the end": (lambda e: e.append({**e[4], "sequence_number": len(e)}), "which ends the stream"),
    "an unknown type": (lambda e: e[4].update(type="response.output_text.bit"), "is not an event type"),
    "no type": (lambda e: e[4].pop("type"), 'no "type"'),
    "an unknown key": (lambda e: e[4].update(token=1), "token"),
    "a wrong type": (lambda e: e[4].update(delta=1), "response.output_text.delta.delta"),
    "a key missing": (lambda e: e[4].pop("output_index"), "output_index"),
    "a wrong item": (lambda e: at(e, "response.output_item.added")["item"].update(type="massage"), ".item"),
    "a wrong index": (lambda e: at(e, "response.output_item.added").update(output_index=1), "expected 0"),
}


@pytest.mark.parametrize(("breakage", "sentence"), BREAKAGES.values(), ids=BREAKAGES.keys())
def test_each_breakage_is_named(breakage: Any, sentence: str) -> None:
    events = copy.deepcopy(stream("Hello there, this is a text of several deltas."))
    assert problems(events) == []
    breakage(events)
    assert any(sentence in problem for problem in problems(events)), problems(events)


@pytest.mark.parametrize("kind", ["searching", "completed"])
def test_a_web_search_without_a_stage_or_an_action_is_named(kind: str) -> None:
    events = copy.deepcopy(stream({"type": "web_search_call", "query": "cats"}))
    drop(events, f"response.web_search_call.{kind}")
    del at(events, "response.output_item.done")["item"]["action"]
    said = " ".join(problems(events))
    assert "must go through in_progress, searching and completed" in said
    assert "without its action" in said


def test_an_event_that_is_no_object_is_named() -> None:
    assert event_schemas().problems([1]) == ["The data of the event is not a JSON object."]


def test_a_fault_is_said_shortly_and_with_its_place() -> None:
    event = copy.deepcopy(stream("Hello")[-1])
    event["response"]["output"][0]["content"][0]["texts"] = "x"
    (sentence,) = event_schemas().problems(event)
    assert sentence.startswith("response.completed.response.output[0].content[0]: ")
    assert len(sentence) < 400
    assert json.dumps(event)
