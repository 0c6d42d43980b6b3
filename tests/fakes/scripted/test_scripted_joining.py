"""A message that comes while a turn is pending, running or over: the scripted fake joins it as the real server does (REAL-80)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codex_replay.core.wire.json_text import dumps
from tests.fakes.scripted.test_scripted import Started

SLOW = {"turns": [{"items": ["Hello."], "first_delay_ms": 150, "times": "always"}]}


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[Any], Started]]:
    made: list[Started] = []

    def make(script: Any) -> Started:
        made.append(Started(tmp_path / str(len(made)), script))
        return made[-1]

    yield make
    for started in made:
        started.client.stop()


def said_by_the_user(entry: dict[str, Any]) -> list[str]:
    parts = [part["text"] for item in entry["body"]["input"] if item.get("role") == "user" for part in item["content"]]
    return [text for text in parts if not text.startswith("<")]


def both(started: Started, comes: str) -> tuple[int, list[list[str]]]:
    """Submit a turn, and a message once the model is `asked` or the turn is `over`.

    Return the number of turns, and what the user says in each request.
    """
    client = started.client
    thread = started.thread()
    client.post("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "one"}]})
    if comes == "over":
        client.notification("turn/completed", threadId=thread)
    while not started.ledger_file.read_bytes():
        time.sleep(0.01)
    client.request("sendUserMessage", {"conversationId": thread, "items": [{"type": "text", "data": {"text": "two"}}]})
    client.notification("turn/completed", threadId=thread)
    client.request("thread/read", {"threadId": thread})  # what came before it has been read
    turns = [f for f in client.timeline if isinstance(f.value, dict) and f.value.get("method") == "turn/completed"]
    return len(turns), [said_by_the_user(entry) for entry in started.ledger()]


def test_a_message_that_is_there_already_is_joined_into_the_first_request(start: Callable[[Any], Started]) -> None:
    started = start(SLOW)
    thread = started.thread()
    # One write: the process finds both lines when it looks for the first time.
    lines = (
        b'{"id": 50, "method": "turn/start", "params": {"threadId": "%s", "input": [{"type": "text", "text": "one"}]}}\n'
        b'{"id": 51, "method": "sendUserMessage", "params": {"conversationId": "%s", "items": '
        b'[{"type": "text", "data": {"text": "two"}}]}}\n'
    ) % (thread.encode(), thread.encode())
    started.client.process.write(lines)
    started.client.notification("turn/completed", threadId=thread)
    assert [said_by_the_user(entry) for entry in started.ledger()] == [["one", "two"]]


def test_a_message_that_comes_while_the_model_thinks_is_a_second_request_of_the_turn(start: Callable[[Any], Started]) -> None:
    assert both(start([{"items": ["Hello."], "first_delay_ms": 2000}, "Hello."]), "asked") == (1, [["one"], ["one", "two"]])


def test_a_gate_is_open_to_a_message_that_came_before_it(start: Callable[[Any], Started]) -> None:
    gate = {"type": "gate", "name": "the gate"}
    started = start([{"items": [gate, "Hello."], "times": "always"}])
    client, thread = started.client, started.thread()
    given = [{"threadId": thread, "input": [{"type": "text", "text": text}]} for text in ("one", "two")]
    # In one write, so that the second comes before the model is asked.
    client.process.write(
        b"".join(dumps({"id": n, "method": "turn/start", "params": each}) + b"\n" for n, each in enumerate(given, 50))
    )
    client.notification("turn/completed", threadId=thread)
    assert said_by_the_user(started.ledger()[0])[0] == "one"


def test_each_gate_needs_a_message_of_its_own(start: Callable[[Any], Started]) -> None:
    gates = [{"type": "gate", "name": name} for name in ("one", "two")]
    started = start([{"items": [gates[0], "Hello.", gates[1], "Again."]}, {"items": ["The end."]}])
    client, thread = started.client, started.thread()
    client.post("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "one"}]})
    time.sleep(0.3)
    client.post("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "two"}]})
    client.notification("item/agentMessage/delta", threadId=thread)
    time.sleep(0.3)
    client.request("thread/read", {"threadId": thread})
    methods = [f.value.get("method") for f in client.timeline if isinstance(f.value, dict)]
    assert "turn/completed" not in methods
    client.post("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "three"}]})
    client.notification("turn/completed", threadId=thread)


def test_a_message_that_comes_after_the_turn_is_a_turn(start: Callable[[Any], Started]) -> None:
    assert both(start(SLOW), "over") == (2, [["one"], ["one", "two"]])


def test_a_message_that_no_request_has_taken_is_lost_with_its_turn(start: Callable[[Any], Started]) -> None:
    bad = {"status": 400, "error": {"message": "bad"}, "first_delay_ms": 150}
    started = start({"turns": [bad, {"items": ["Hello."], "times": "always"}]})
    client, thread = started.client, started.thread()
    client.post("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "one"}]})
    client.request("sendUserMessage", {"conversationId": thread, "items": [{"type": "text", "data": {"text": "two"}}]})
    client.notification("turn/completed", threadId=thread)
    started.turn(thread, "three")
    first, second = ([text for text in said_by_the_user(entry) if text != "one"] for entry in started.ledger())
    assert second == [*first, "three"]  # a message that came before the first request is not lost
