"""Input that comes during a turn: the input steers that turn, although its response has another turn id.

Source: docs/contract/real-0.92.md, section 4: turn/start during a turn returns a new id, but the input steers the old turn; a
turn and a message with the same items, pipelined, give one or two model calls, at random.
"""

from __future__ import annotations

from typing import Any

from codex_replay.plugin import AppServer, Server
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
)

GATED = {"items": [text("One"), {"type": "gate", "name": "later"}]}
SECOND = {"items": [text("Two", id="msg_2")]}
BOTH = [("user", "first"), ("assistant", "One"), ("user", "second")]


def steer(server: Server) -> str:
    """Steer a running turn with a second input; wait for the end of the turn, and return its thread."""
    thread = open_thread(server)
    start(server, thread, "first")
    server.notification("codex/event/agent_message")
    start(server, thread, "second")
    release(server, "later")
    ended(server, thread)
    return thread


def test_turn_start_in_a_turn(app_server: AppServer) -> None:
    """turn/start returns a new turn id and sends turn/started; the text steers the old turn; only that turn ends. (REAL-77)"""
    server = app_server([GATED, SECOND])
    thread = open_thread(server)
    assert start(server, thread, "first")["id"] == "0"
    server.notification("codex/event/agent_message")
    steered = start(server, thread, "second")
    assert steered == {"id": "1", "items": [], "status": "inProgress", "error": None}
    server.notification("turn/started", turn=steered)
    release(server, "later")
    assert ended(server, thread) == {"id": "0", "items": [], "status": "completed", "error": None}
    assert server.close() == 0
    assert [params["turn"]["id"] for params in all_of(server, "turn/started")] == ["0", "1"]
    assert methods(server).count("turn/completed") == 1
    assert {params["turnId"] for params in all_of(server, "item/started")} == {"0"}
    assert last_words(server) == ["Two"]
    assert [texts(given) for given in asked_upstream(server)] in ([], [BOTH[:1], BOTH])


def test_the_steering_words_are_no_item(app_server: AppServer) -> None:
    """The input that steers a turn is not repeated as an item; the input that started the turn is. (REAL-77)"""
    server = app_server([GATED, SECOND])
    steer(server)
    message = [item["content"][0]["text"] for item in items_of(server, "userMessage")]
    assert message == ["first"]
    assert [item["text"] for item in items_of(server, "agentMessage")] == ["One", "Two"]


def test_the_turn_after(app_server: AppServer) -> None:
    """The steering input uses up a turn id: the next turn has the id after it. (REAL-78)"""
    server = app_server([GATED, SECOND, {"items": [text("Three", id="msg_3")]}])
    thread = steer(server)
    assert run(server, thread, "third")["id"] == "2"
    assert last_words(server) == ["Two", "Three"]


def test_v1_message_in_a_turn(app_server: AppServer) -> None:
    """v1: sendUserMessage during a turn is answered at once and steers that turn, which ends once. (REAL-77)"""
    server = app_server([GATED, SECOND])
    talk = conversation(server)
    send_words(server, talk, "first")
    server.notification("codex/event/agent_message")
    send_words(server, talk, "second")
    release(server, "later")
    assert ended(server, talk)["id"] == "0"
    assert server.close() == 0
    seen = methods(server)
    assert (seen.count("codex/event/task_started"), seen.count("turn/completed")) == (1, 1)
    assert last_words(server) == ["Two"]
    assert [texts(given) for given in asked_upstream(server)] in ([], [BOTH[:1], BOTH])


def test_v1_turn_and_message_at_once(app_server: AppServer) -> None:
    """v1: sendUserTurn and sendUserMessage with the same text in one write, as a proxy does: one or two model requests.

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
