"""Interrupts: during the model's message, during a command, during an approval; with a wrong turn id; on an idle thread.

Source: docs/contract/real-0.92.md, section 4, "Turns, tools and approvals".
"""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin import AppServer, Server
from suites.app_server.dialect import V1, has_events, in_events, these, turn_id
from suites.app_server.expected import all_of, event, shell_call, text, turn_notification
from suites.app_server.turns import (
    ABANDONED,
    ASKS,
    FREE,
    UNHEARD,
    another_thread,
    asked,
    asked_upstream,
    conversation,
    ended,
    items_of,
    last_words,
    msgs,
    open_thread,
    run,
    send_words,
    start,
    texts,
    wait_item,
    wait_usage,
)

#: The model sends "Hello", and then nothing more. (The sixth event would be the rest of the text.)
CUT_SHORT = {"items": [text("Hello world", "Hello", " world")], "fault": {"name": "idle", "after": 5}}
ABORTED = "<turn_aborted>\nThe user interrupted the previous turn on purpose."


def since(server: Server, request: Any) -> list[Any]:
    """Return every frame that the server sent since a request, without the frames about token usage and rate limits."""
    frames = [(frame.sender, frame.value) for frame in server.timeline]
    at = next(n for n, (sender, value) in enumerate(frames) if sender == "client" and value.get("id") == request)
    message = [value for sender, value in frames[at:] if sender == "server"]
    return [value for value in message if not value.get("method", "").startswith(("account/", "thread/"))]


def heard(server: Server) -> None:
    """Wait for the first piece of the model's message, and its event if the version sends events."""
    if has_events(server):
        server.notification("codex/event/agent_message_delta")
    elif not all_of(server, "item/agentMessage/delta"):
        server.notification("item/agentMessage/delta")


def interrupted(server: Server, thread: str, request: Any, result: dict[str, Any]) -> list[Any]:
    """Return the last frames of an interrupted turn in their order: turn_aborted, the response, turn/completed."""
    aborted = event(thread, turn_id(server), "turn_aborted", reason="interrupted")
    completed = turn_notification("completed", thread, turn_id(server), "interrupted")
    return [
        {"method": aborted[0], "params": aborted[1]},
        {"id": request, "result": result},
        {"method": completed[0], "params": completed[1]},
    ]


#: Whether any turn id interrupts, and an idle thread never answers; otherwise both are refused.
ANY = {"0.0.0": True, "0.169.0": False}
IDLE = {"code": -32600, "message": "no active turn to interrupt"}


@pytest.mark.parametrize("turn", ["0", "7", "no turn"], ids=["right-turn", "wrong-turn", "no-turn"])
def test_in_the_midst_of_words(app_server: AppServer, turn: str) -> None:
    """After turn/interrupt, the server sends turn_aborted, the response `{}` and turn/completed.

    The agentMessage item that is open at an interrupt never completes. turn/interrupt works with any turn id.

    Since 0.169.0 the server refuses turn/interrupt with the id of another turn, and the running turn continues.

    Source: REAL-73, REAL-74, REAL-75.
    """
    server = app_server([CUT_SHORT])
    thread = open_thread(server)
    start(server, thread)
    assert server.notification("item/agentMessage/delta")["delta"] == "Hello"
    heard(server)
    if turn != "0" and not server.by_version(ANY):
        error = server.request_error("turn/interrupt", {"threadId": thread, "turnId": turn})
        assert error == {"code": -32600, "message": f"expected active turn id {turn} but found {turn_id(server)}"}
        assert all_of(server, "turn/completed") == []
        turn = "0"
    request = server.post("turn/interrupt", {"threadId": thread, "turnId": turn_id(server) if turn == "0" else turn})
    server.reply_to(request)
    ended(server, thread)
    assert server.close() == 0
    assert since(server, request) == these(server, interrupted(server, thread, request, {}))
    assert items_of(server, "agentMessage") == []
    assert last_words(server) == []


def test_the_next_turn(app_server: AppServer) -> None:
    """An interrupt uses up a turn id. The next request to the model reports the interrupt, without the interrupted text.

    Source: REAL-73, REAL-78.
    """
    server = app_server([CUT_SHORT, {"items": [text("Again", id="msg_2")]}])
    thread = open_thread(server)
    start(server, thread, "one")
    heard(server)
    server.request("turn/interrupt", {"threadId": thread, "turnId": turn_id(server)})
    ended(server, thread)
    second = run(server, thread, "two")["id"]
    assert second == ("2" if has_events(server) else turn_id(server, 1))
    assert last_words(server) == ["Again"]
    for given in asked_upstream(server)[1:]:
        (first, aborted, second) = texts(given)
        assert (first, second) == (("user", "one"), ("user", "two"))
        assert aborted[1].startswith(ABORTED)


def test_a_pending_approval(app_server: AppServer) -> None:
    """An interrupt during an approval: the command does not run, and a later decision has no effect. (REAL-73)"""
    script = [{"items": [shell_call("printf marker")]}, UNHEARD, {"items": [text("Again", id="msg_2")]}]
    server = app_server(script, racy=ABANDONED)
    thread = open_thread(server, **ASKS)
    start(server, thread)
    wait_usage(server)
    request = server.server_request("item/commandExecution/requestApproval")
    assert server.request("turn/interrupt", {"threadId": thread, "turnId": turn_id(server)}) == {}
    assert ended(server, thread)["status"] == "interrupted"
    server.reply(request, {"decision": "accept"})
    assert run(server, thread)["status"] == "completed"
    assert all_of(server, "item/commandExecution/outputDelta") == []
    assert [item["status"] for item in items_of(server, "commandExecution")] in ([], ["failed"])
    assert last_words(server) == ["Again"]


def test_a_running_command(app_server: AppServer) -> None:
    """An interrupt ends a running command, and the command's item never completes. (REAL-73)"""
    server = app_server([{"items": [shell_call("echo begun; exec sleep 60")]}])
    thread = open_thread(server, **FREE)
    start(server, thread)
    if has_events(server):
        server.notification("thread/tokenUsage/updated")
        server.notification("item/commandExecution/outputDelta", delta="begun\n")
    else:
        wait_item(server, "commandExecution", "started")
    request = server.post("turn/interrupt", {"threadId": thread, "turnId": turn_id(server)})
    server.reply_to(request)
    ended(server, thread)
    assert server.close() == 0
    assert since(server, request) == these(server, interrupted(server, thread, request, {}))
    assert items_of(server, "commandExecution") == []


def test_an_idle_thread(app_server: AppServer) -> None:
    """On an idle thread turn/interrupt never gets a response; it uses up a turn id, and the thread still works.

    Since 0.169.0 turn/interrupt is refused on an idle thread, before the first turn and after it.

    Source: REAL-76, REAL-78.
    """
    server = app_server([{"items": [text("Hello")]}])
    thread = open_thread(server)
    if not server.by_version(ANY):
        assert server.request_error("turn/interrupt", {"threadId": thread, "turnId": "0"}) == IDLE
        done = run(server, thread)
        assert done["status"] == "completed"
        assert server.request_error("turn/interrupt", {"threadId": thread, "turnId": done["id"]}) == IDLE
        assert last_words(server) == ["Hello"]
        return
    request = server.post("turn/interrupt", {"threadId": thread, "turnId": "0"})
    server.request("account/read", {})
    assert run(server, thread) == {"id": "1", "items": [], "status": "completed", "error": None}
    assert server.close() == 0
    assert [message for message in server.messages() if message.get("id") == request] == []
    assert last_words(server) == ["Hello"]


@V1
def test_v1(app_server: AppServer) -> None:
    """v1: interruptConversation interrupts the turn; its response has the reason. (REAL-73)"""
    server = app_server([CUT_SHORT])
    talk = conversation(server)
    send_words(server, talk)
    heard(server)
    request = server.post("interruptConversation", {"conversationId": talk})
    server.reply_to(request)
    ended(server, talk)
    assert server.close() == 0
    assert since(server, request) == interrupted(server, talk, request, {"abortReason": "interrupted"})


@V1
def test_v1_a_pending_approval(app_server: AppServer) -> None:
    """v1: interruptConversation interrupts a turn that has an open approval. (REAL-73)"""
    server = app_server([{"items": [shell_call("printf marker")]}, UNHEARD], racy=ABANDONED)
    talk = conversation(server, **ASKS)
    send_words(server, talk)
    server.notification("thread/tokenUsage/updated")
    server.server_request("execCommandApproval")
    assert server.request("interruptConversation", {"conversationId": talk}) == {"abortReason": "interrupted"}
    assert ended(server, talk)["status"] == "interrupted"
    assert asked(server) == ["execCommandApproval"]
    assert msgs(server, "turn_aborted") == in_events(server, [{"reason": "interrupted"}])
    assert all_of(server, "item/commandExecution/outputDelta") == []


def test_one_of_two_threads(app_server: AppServer) -> None:
    """An interrupt affects only its own thread: the turn of the other thread continues. (REAL-73)"""
    cut = {**CUT_SHORT, "match": "first"}
    server = app_server([cut, {"items": [text("Hello", id="msg_2")], "match": "second"}])
    first = open_thread(server)
    second = another_thread(server)
    start(server, first, "first")
    heard(server)
    assert run(server, second, "second")["status"] == "completed"
    server.request("turn/interrupt", {"threadId": first, "turnId": turn_id(server)})
    assert ended(server, first)["status"] == "interrupted"
    ends = [(params["threadId"], params["turn"]["status"]) for params in all_of(server, "turn/completed")]
    assert ends == [(second, "completed"), (first, "interrupted")]


def test_replaced_by_a_review(app_server: AppServer) -> None:
    """If a review starts during a turn, the server aborts the turn with the reason `replaced`, and both turns complete."""
    server = app_server([CUT_SHORT, {"items": [text("It is fine.", id="msg_2")]}])
    thread = open_thread(server)
    first = start(server, thread)["id"]
    heard(server)
    asked_for = {"threadId": thread, "target": {"type": "custom", "instructions": "Look."}, "delivery": "inline"}
    review = server.request("review/start", asked_for)["turn"]["id"]
    assert review == "1" or not has_events(server)
    replaced = ended(server, thread)
    assert (replaced["id"], replaced["status"]) == (first, "interrupted")
    done = {"id": review, "items": [], "status": "completed", "error": None}
    assert ended(server, thread) == these(server, done)
    assert msgs(server, "turn_aborted") == in_events(server, [{"reason": "replaced"}])
    assert [item["review"] for item in items_of(server, "exitedReviewMode")] == ["It is fine."]


def test_an_interrupted_review(app_server: AppServer) -> None:
    """After an interrupt, a review leaves review mode with a message and without an output."""
    server = app_server([CUT_SHORT])
    thread = open_thread(server)
    asked_for = {"threadId": thread, "target": {"type": "custom", "instructions": "Look."}}
    server.request("review/start", asked_for)
    server.notification("item/started", item=these(server, {"type": "agentMessage", "id": "msg_1", "text": ""}))
    assert server.request("turn/interrupt", {"threadId": thread, "turnId": turn_id(server)}) == {}
    assert ended(server, thread)["status"] == "interrupted"
    assert msgs(server, "exited_review_mode") == in_events(server, [{"review_output": None}])
    assert items_of(server, "exitedReviewMode")[0]["review"] == "Reviewer failed to output a response."
    words = "Review was interrupted. Please re-run /review and wait for it to complete."
    assert items_of(server, "agentMessage")[-1]["text"] == words
