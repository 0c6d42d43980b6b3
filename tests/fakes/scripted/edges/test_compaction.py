"""Compaction in the scripted fake, and the estimate of tokens that it and a rollback report.

Each statement was watched on the real binary.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.scripted.edges.test_edges import NO_RETRY, RAW, call, counts
from tests.fakes.scripted.test_scripted import Started, assistant, of, start, texts, user

__all__ = ["start"]  # the fixture

Start = Callable[..., Started]
FULL = {"items": ["big"], "usage": {"input_tokens": 260000, "output_tokens": 100}}


def tokens(item: Any) -> int:
    return (len(json.dumps(item, separators=(",", ":"), ensure_ascii=False).encode()) + 3) // 4


@pytest.mark.parametrize(("settings", "instructions"), [({}, 7589), ({"model": "o3"}, 24008), ({"baseInstructions": "ab cd"}, 5)])
def test_a_rollback_estimates_the_tokens_that_are_left(start: Start, settings: Any, instructions: int) -> None:
    thought = {"type": "reasoning", "summary": ["r"], "encrypted_content": "E" * 4000}
    fake = start([{"items": [thought, "one"]}, "two"])
    thread = fake.thread(**settings, **RAW)
    fake.turn(thread, "a")
    fake.turn(thread, "b")
    fake.client.request("thread/rollback", {"threadId": thread, "numTurns": 1})
    seen = [frame.value for frame in fake.client.timeline if of(frame.value, "rawResponseItem/completed")]
    opening = [m["params"]["item"] for m in seen if m["params"]["turnId"] == "auto-compact-0"]
    assert len(opening) == 3
    items = sum(map(tokens, [*opening, user("a"), assistant("one")]))
    [*_, last] = counts([frame.value for frame in fake.client.timeline])
    assert last["last_token_usage"]["total_tokens"] == (instructions + 3) // 4 + items + (4000 * 3 // 4 - 650 + 3) // 4


def test_a_full_context_is_compacted_before_the_next_turn(start: Start) -> None:
    fake = start([FULL, "The summary.", "after"])
    thread = fake.thread()
    fake.turn(thread, "a")
    messages = fake.turn(thread, "b")
    order = [m["method"] for m in messages if "method" in m]
    wanted = [
        "turn/started",
        "codex/event/context_compacted",
        "thread/compacted",
        "codex/event/warning",
        "codex/event/task_started",
    ]
    assert [name for name in order if name in wanted] == wanted
    assert texts(messages) == ["after"]
    _, asked, later = [entry["body"] for entry in fake.ledger()]
    assert asked["tools"] == []
    assert asked["parallel_tool_calls"] is False
    assert asked["input"][-1]["content"][0]["text"].startswith("You are performing a CONTEXT CHECKPOINT COMPACTION.")
    place, first, summary, second = later["input"]
    assert (first, second) == (user("a"), user("b"))
    assert place["content"][0]["text"].startswith("<environment_context>")
    assert summary["content"][0]["text"].endswith("to assist with your own analysis:\nThe summary.")
    usage = [info["last_token_usage"]["total_tokens"] for info in counts(messages)]
    assert usage[0] == 260100
    assert usage[2] == usage[3]
    assert usage[2] < 10_000


def test_a_full_context_is_compacted_between_two_requests(start: Start) -> None:
    fake = start([{**FULL, "items": [call("update_plan", {"plan": []})]}, "The summary.", "after"])
    messages = fake.turn(fake.thread(), "a")
    assert [of(m, "thread/compacted") for m in messages].count(True) == 1
    assert [item["type"] for item in fake.ledger()[-1]["body"]["input"]] == ["message"] * 3
    assert texts(messages) == ["after"]


def test_a_compaction_that_fails_leaves_the_history_and_fails_the_turn_at_its_end(start: Start) -> None:
    fake = start([FULL, {"status": 400, "body": "no"}, "after"])
    thread = fake.thread(config=NO_RETRY)
    fake.turn(thread, "a")
    messages = fake.turn(thread, "b")
    assert texts(messages) == ["after"]
    assert messages[-1]["params"]["turn"]["status"] == "failed"
    assert fake.ledger()[-1]["body"]["input"][1:] == [user("a"), assistant("big"), user("b")]


def test_a_compaction_that_does_not_fit_drops_the_oldest_item(start: Start) -> None:
    too_long = {"items": [{"type": "failed", "code": "context_length_exceeded", "message": "m"}]}
    fake = start([FULL, too_long, "The summary.", "after"])
    thread = fake.thread(config=NO_RETRY)
    fake.turn(thread, "a")
    said = [m["params"]["msg"]["message"] for m in fake.turn(thread, "b") if of(m, "codex/event/background_event")]
    assert said == ["Trimmed 1 older thread item(s) before compacting so the prompt fits the model context window."]


@pytest.mark.parametrize(
    ("settings", "used", "compacted"),
    [
        ({"model_auto_compact_token_limit": 4000}, 3995, False),
        ({"model_auto_compact_token_limit": 4000}, 4000, True),
        ({"model_context_window": 1000}, 899, False),
        ({"model_context_window": 1000}, 900, True),
        ({"model": "mystery"}, 900_000, False),
    ],
)
def test_the_limit_of_a_compaction_is_nine_tenths_of_the_window(start: Start, settings: Any, used: int, compacted: bool) -> None:
    fake = start([{"items": ["x"], "usage": {"input_tokens": used, "output_tokens": 0}}, "y", "z"])
    thread = fake.thread(config=settings)
    fake.turn(thread, "a")
    assert any(of(m, "thread/compacted") for m in fake.turn(thread, "b")) is compacted


def test_a_full_context_counts_what_was_added(start: Start) -> None:
    too_long = {"items": [{"type": "failed", "code": "context_length_exceeded", "message": "m"}]}
    fake = start([{"items": ["x"], "usage": {"input_tokens": 1000, "output_tokens": 5}}, too_long])
    thread = fake.thread(config=NO_RETRY)
    fake.turn(thread, "a")
    info = counts(fake.turn(thread, "b"))[-1]
    assert (info["total_token_usage"]["total_tokens"], info["last_token_usage"]["total_tokens"]) == (258400, 257395)


def test_the_window_of_the_first_reply_stays(start: Start) -> None:
    fake = start(["x", "y"])
    thread = fake.thread()
    fake.turn(thread, "a")
    assert counts(fake.turn(thread, "b", model="o3"))[-1]["model_context_window"] == 258400
