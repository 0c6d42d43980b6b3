"""Conversations of the v1 API, as the proxy uses it: newConversation, a listener, sendUserTurn, sendUserMessage.

Source: docs/contract/real-0.92.md, section 4; the proxy's payloads come from docs/contract/payloads.md, sections 1 to 3.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from codex_replay.plugin import AppServer, Server
from suites.app_server.expected import all_of, answer, begin, end, events, prompt, text

pytestmark = pytest.mark.until("0.107.0", "v1 ended with 0.107")

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


def new_conversation(server: Server, **params: Any) -> str:
    """Do the handshake and start a conversation; return its id."""
    server.initialize()
    conversation: str = server.request("newConversation", {"cwd": server.work, **params})["conversationId"]
    return conversation


def listen(server: Server, conversation: str) -> str:
    """Add a listener to the conversation; return the id of the subscription."""
    subscription: str = server.request("addConversationListener", {"conversationId": conversation})["subscriptionId"]
    return subscription


def items(words: str) -> list[dict[str, Any]]:
    """Return the user's text as v1 items."""
    return [{"type": "text", "data": {"text": words}}]


def user_turn(server: Server, conversation: str, words: str) -> dict[str, Any]:
    """Return the params of sendUserTurn."""
    return {
        "conversationId": conversation,
        "items": items(words),
        "cwd": server.work,
        "approvalPolicy": "never",
        "sandboxPolicy": {"type": "read-only"},
        "model": "gpt-5.2",
        "summary": "auto",
    }


def test_new_conversation(app_server: AppServer) -> None:
    """newConversation returns the conversation's id, model and file; without a listener, the server sends nothing else."""
    server = app_server()
    server.initialize()
    result = server.request("newConversation", {"cwd": server.work, "model": "gpt-5.2"})
    assert list(result) == ["conversationId", "model", "reasoningEffort", "rolloutPath"]
    assert UUID.fullmatch(result["conversationId"])
    assert result["model"] == "gpt-5.2"
    assert result["rolloutPath"].endswith(f"-{result['conversationId']}.jsonl")
    server.request("account/read", {})
    assert len(server.messages()) == 3


def test_listener(app_server: AppServer) -> None:
    """addConversationListener returns an id; removeConversationListener returns `{}`; a second removal is refused."""
    server = app_server()
    conversation = new_conversation(server)
    subscription = listen(server, conversation)
    assert UUID.fullmatch(subscription)
    assert server.request("removeConversationListener", {"subscriptionId": subscription}) == {}
    assert server.request_error("removeConversationListener", {"subscriptionId": subscription}) == {
        "code": -32600,
        "message": f"subscription not found: {subscription}",
    }


def test_user_turn(app_server: AppServer) -> None:
    """The server answers `sendUserTurn` with `{}`; the turn has the frames of v2 without turn/started and thread/started.

    Source: REAL-44, REAL-48, REAL-49.
    """
    server = app_server([{"items": [text("Hello", "Hel", "lo")]}])
    conversation = new_conversation(server)
    listen(server, conversation)
    assert server.request("sendUserTurn", user_turn(server, conversation, "Say hello.")) == {}
    server.notification("turn/completed")
    assert server.close() == 0
    seen = events(server, "0")
    item = seen[2][1]["item"]["id"]
    assert seen == [
        *begin(conversation, "0", v1=True),
        *prompt(conversation, "0", item, "Say hello."),
        *answer(conversation, "0", "msg_1", "Hel", "lo"),
        *end(conversation, "0", "Hello"),
    ]
    for absent in ("thread/started", "turn/started", "turn/diff/updated", "turn/plan/updated"):
        assert all_of(server, absent) == []
    assert all_of(server, "thread/tokenUsage/updated") != []


def test_user_message(app_server: AppServer) -> None:
    """`sendUserMessage` runs a turn with the conversation's settings; the turn has the same frames. (REAL-49)"""
    server = app_server([{"items": [text("Hello")]}])
    conversation = new_conversation(server)
    listen(server, conversation)
    assert server.request("sendUserMessage", {"conversationId": conversation, "items": items("Say hello.")}) == {}
    server.notification("turn/completed")
    assert server.close() == 0
    seen = events(server, "0")
    item = seen[2][1]["item"]["id"]
    assert seen == [
        *begin(conversation, "0", v1=True),
        *prompt(conversation, "0", item, "Say hello."),
        *answer(conversation, "0", "msg_1", "Hello"),
        *end(conversation, "0", "Hello"),
    ]


def test_turn_then_message(app_server: AppServer) -> None:
    """In two turns of one conversation the turn ids count up, and the conversation id stays the same. (REAL-78)"""
    server = app_server([{"items": [text("One")]}, {"items": [text("Two", id="msg_2")]}])
    conversation = new_conversation(server)
    listen(server, conversation)
    server.request("sendUserTurn", user_turn(server, conversation, "one"))
    server.notification("turn/completed")
    server.request("sendUserMessage", {"conversationId": conversation, "items": items("two")})
    server.notification("turn/completed")
    assert [params["turn"]["id"] for params in all_of(server, "turn/completed")] == ["0", "1"]
    assert [params["msg"]["last_agent_message"] for params in all_of(server, "codex/event/task_complete")] == ["One", "Two"]
    assert {params["conversationId"] for params in all_of(server, "codex/event/task_complete")} == {conversation}


def test_no_listener_no_events(app_server: AppServer) -> None:
    """After removeConversationListener a turn sends no events: the next frame is the response to the next request."""
    server = app_server([{"items": [text("One")]}, {"items": [text("Two", id="msg_2")]}])
    conversation = new_conversation(server)
    subscription = listen(server, conversation)
    server.request("sendUserMessage", {"conversationId": conversation, "items": items("one")})
    server.notification("turn/completed")
    server.request("removeConversationListener", {"subscriptionId": subscription})
    assert server.request("sendUserMessage", {"conversationId": conversation, "items": items("two")}) == {}
    server.wait_upstream(2)
    server.request("account/read", {})
    assert server.close() == 0
    assert [params["msg"]["last_agent_message"] for params in all_of(server, "codex/event/task_complete")] == ["One"]
    assert len(all_of(server, "codex/event/task_started")) == 1
    assert [message["id"] for message in server.messages()[-2:]] == [5, 6]


def test_items_need_data(app_server: AppServer) -> None:
    """v1 items are `{type, data: {text}}`; an item in v2's form is refused. (REAL-42)"""
    server = app_server(bad_input=True)
    conversation = new_conversation(server)
    given = {"conversationId": conversation, "items": [{"type": "text", "text": "x"}]}
    assert server.request_error("sendUserMessage", given) == {"code": -32600, "message": "Invalid request: missing field `data`"}


def test_the_payloads_of_the_proxy(app_server: AppServer) -> None:
    """The server accepts every field of the payloads that the proxy sends, and ignores unknown fields without an error.

    Source: REAL-45, HAND-32, HAND-42.
    """
    server = app_server([{"items": [text("Hello")]}, {"items": [text("Bye", id="msg_2")]}], bad_input=True)
    conversation = new_conversation(
        server,
        model="gpt-5.2",
        approvalPolicy="never",
        sandbox="read-only",
        developerInstructions="Tool calling instructions: ...",
        baseInstructions=None,
        compactPrompt=None,
        config=None,
        includeApplyPatchTool=False,
    )
    listen(server, conversation)
    tools = {"definitions": [{"type": "function", "function": {"name": "getFileTree", "parameters": {}}}]}
    turn = {"effort": "low", "choiceCount": 1, "choice_count": 1, "tools": tools, "outputSchema": None, "output_schema": None}
    assert server.request("sendUserTurn", {**user_turn(server, conversation, "[user] Hi"), **turn}) == {}
    server.notification("turn/completed")
    message = {
        "includeUsage": False,
        "include_usage": False,
        "stream": True,
        "temperature": None,
        "topP": None,
        "top_p": None,
        "maxOutputTokens": 65000,
        "max_output_tokens": 65000,
        "tools": tools,
        "responseFormat": None,
        "response_format": None,
        "reasoning": {"effort": "low"},
        "finalOutputJsonSchema": None,
        "final_output_json_schema": None,
    }
    assert server.request("sendUserMessage", {"conversationId": conversation, "items": items("[user] Hi"), **message}) == {}
    ended = server.notification("turn/completed")["turn"]
    assert ended == {"id": "1", "items": [], "status": "completed", "error": None}
