"""Input during a turn goes to the running turn, although the response to the input has another turn id.

Source: docs/contract/real-0.92.md, section 4: turn/start during a turn returns a new id, but the input steers the old turn; a
turn and a message with the same items, pipelined, give one or two model calls, at random.
"""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin import AppServer, Server
from suites.app_server.dialect import V1, these, turn_id
from suites.app_server.expected import all_of, text
from suites.app_server.turns import (
    asked_upstream,
    conversation,
    ended,
    items_of,
    last_words,
    methods,
    open_thread,
    release,
    run,
    send_words,
    start,
    texts,
    v1_items,
    wait_message,
)

#: Whether an input that steers a turn has a turn id of its own; otherwise the response has the id of the running turn, and the
#: input is an item of that turn.
OWN_ID = {"0.0.0": True, "0.169.0": False}
GATED = {"items": [text("One"), {"type": "gate", "name": "later"}]}
SECOND = {"items": [text("Two", id="msg_2")]}
BOTH = [("user", "first"), ("assistant", "One"), ("user", "second")]


def steer(server: Server) -> str:
    """Send a second input to a running turn, wait for the end of the turn, and return the id of the thread."""
    thread = open_thread(server)
    start(server, thread, "first")
    wait_message(server)
    steered = start(server, thread, "second")
    if server.by_version(OWN_ID):
        server.notification("turn/started", turn=steered)
    release(server, "later")
    ended(server, thread)
    return thread


def test_turn_start_in_a_turn(app_server: AppServer) -> None:
    """During a turn, turn/start returns a new turn id, but the text goes to the running turn.

    The new id never gets a turn/completed.

    (REAL-77)

    Since 0.169.0 the server returns the id of the running turn, and sends no second turn/started.
    """
    server = app_server([GATED, SECOND])
    thread = open_thread(server)
    first = start(server, thread, "first")["id"]
    wait_message(server)
    assert first == turn_id(server)
    steered = start(server, thread, "second")
    own = server.by_version(OWN_ID)
    assert steered == these(server, {"id": "1" if own else first, "items": [], "status": "inProgress", "error": None})
    if own:
        server.notification("turn/started", turn=steered)
    release(server, "later")
    assert ended(server, thread) == these(server, {"id": first, "items": [], "status": "completed", "error": None})
    assert server.close() == 0
    assert [params["turn"]["id"] for params in all_of(server, "turn/started")] == ([first, "1"] if own else [first])
    assert methods(server).count("turn/completed") == 1
    assert {params["turnId"] for params in all_of(server, "item/started")} == {first}
    assert last_words(server) == ["Two"]
    assert [texts(given) for given in asked_upstream(server)] in ([], [BOTH[:1], BOTH])


@pytest.mark.since("0.169.0", "earlier versions were not examined")
def test_turn_steer(app_server: AppServer) -> None:
    """turn/steer returns the id of the running turn; the text becomes another userMessage; the turn ends once."""
    server = app_server([GATED, SECOND])
    thread = open_thread(server)
    turn = start(server, thread, "first")["id"]
    wait_message(server)
    asked: dict[str, Any] = {"threadId": thread, "input": [{"type": "text", "text": "second"}]}
    assert server.request("turn/steer", {**asked, "expectedTurnId": turn}) == {"turnId": turn}
    release(server, "later")
    done = ended(server, thread)
    assert server.close() == 0
    assert (done["id"], done["status"], done["error"]) == (turn, "completed", None)
    assert [item["text"] for item in done["items"]] == ["Two"]
    assert methods(server).count("turn/completed") == 1
    assert [item["content"][0]["text"] for item in items_of(server, "userMessage")] == ["first", "second"]
    assert [item["text"] for item in items_of(server, "agentMessage")] == ["One", "Two"]
    assert [texts(given) for given in asked_upstream(server)] in ([], [BOTH[:1], BOTH])


@pytest.mark.since("0.169.0", "earlier versions were not examined")
def test_steering_another_turn(app_server: AppServer) -> None:
    """The server refuses turn/steer on an idle thread, and if it names a turn that is not running."""
    server = app_server([GATED])
    thread = open_thread(server)
    asked: dict[str, Any] = {"threadId": thread, "input": [{"type": "text", "text": "second"}], "expectedTurnId": "7"}
    assert server.request_error("turn/steer", asked)["message"] == "no active turn to steer"
    turn = start(server, thread, "first")["id"]
    wait_message(server)
    assert server.request_error("turn/steer", asked)["message"] == f"expected active turn id `7` but found `{turn}`"
    release(server, "later")
    assert ended(server, thread)["status"] == "completed"
    assert [item["content"][0]["text"] for item in items_of(server, "userMessage")] == ["first"]


def test_the_steering_words_are_no_item(app_server: AppServer) -> None:
    """The server sends an item for the input that started a turn, but not for the input that steers the turn. (REAL-77)

    Since 0.169.0 both inputs are items.
    """
    server = app_server([GATED, SECOND])
    steer(server)
    message = [item["content"][0]["text"] for item in items_of(server, "userMessage")]
    assert message == (["first"] if server.by_version(OWN_ID) else ["first", "second"])
    assert [item["text"] for item in items_of(server, "agentMessage")] == ["One", "Two"]


def test_the_turn_after(app_server: AppServer) -> None:
    """The steering input uses up a turn id: the next turn has the id after it. (REAL-78)

    Since 0.169.0 the steering input gets no turn id of its own: the next input starts the second turn.
    """
    server = app_server([GATED, SECOND, {"items": [text("Three", id="msg_3")]}])
    thread = steer(server)
    third = run(server, thread, "third")["id"]
    assert third == ("2" if server.by_version(OWN_ID) else turn_id(server, 1))
    assert last_words(server) == ["Two", "Three"]


@V1
def test_v1_message_in_a_turn(app_server: AppServer) -> None:
    """v1: sendUserMessage during a turn is answered immediately and steers that turn, which ends once. (REAL-77)"""
    server = app_server([GATED, SECOND])
    talk = conversation(server)
    send_words(server, talk, "first")
    wait_message(server)
    send_words(server, talk, "second")
    release(server, "later")
    assert ended(server, talk)["id"] == "0"
    assert server.close() == 0
    seen = methods(server)
    assert (seen.count("codex/event/task_started"), seen.count("turn/completed")) == (1, 1)
    assert last_words(server) == ["Two"]
    assert [texts(given) for given in asked_upstream(server)] in ([], [BOTH[:1], BOTH])


@V1
def test_v1_turn_and_message_at_once(app_server: AppServer) -> None:
    """If a v1 client sends sendUserTurn and sendUserMessage with the same text at once, the server calls the model once or twice.

    Source: REAL-80.
    """
    reply: dict[str, Any] = {"items": [text("Hello")], "times": "always"}
    server = app_server([reply], racy="the message steers the turn before its first call of the model, or after it")
    talk = conversation(server)
    turn = {
        "conversationId": talk,
        "items": v1_items("Hi"),
        "cwd": server.work,
        "approvalPolicy": "never",
        "sandboxPolicy": {"type": "read-only"},
        "model": "gpt-5.2",
        "summary": "auto",
    }
    first = server.post("sendUserTurn", turn)
    second = server.post("sendUserMessage", {"conversationId": talk, "items": v1_items("Hi")})
    assert [server.reply_to(first)["result"], server.reply_to(second)["result"]] == [{}, {}]
    ended(server, talk)
    assert server.close() == 0
    assert 1 <= len(items_of(server, "agentMessage")) <= 2
    assert set(last_words(server)) == {"Hello"}
    if server.upstream is not None:
        calls = asked_upstream(server)
        assert 1 <= len(calls) <= 2
        assert [words for role, words in texts(calls[-1]) if role == "user"] == ["Hi", "Hi"]
