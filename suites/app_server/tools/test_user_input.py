"""Questions of the model to the user: item/tool/requestUserInput, in plan mode.

Source: docs/contract/real-0.92.md, section 4 (reached with `[features] collaboration_modes = true` and a plan-mode turn), and
the bundle's ToolRequestUserInputParams and ToolRequestUserInputResponse.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_replay.plugin import AppServer
from suites.app_server.expected import all_of, event, events, text
from suites.app_server.turns import asked, ended, last_words, open_thread, run, start

REQUEST = "item/tool/requestUserInput"
CONFIG = {"features": {"collaboration_modes": True}, "suppress_unstable_features_warning": True}
SETTINGS = {"model": "gpt-5.2-codex", "reasoning_effort": None, "developer_instructions": None}
PLAN: dict[str, Any] = {"collaborationMode": {"mode": "plan", "settings": SETTINGS}}
COLOUR = {
    "id": "colour",
    "header": "Colour",
    "question": "Which colour?",
    "options": [{"label": "red", "description": "It is warm."}, {"label": "blue", "description": "It is cold."}],
}
SIZE = {"id": "size", "header": "Size", "question": "Which size?"}


def script(told: str, *questions: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a script: the model asks, expects this output, and sends a message."""
    arguments = {"questions": list(questions)}
    item = {"type": "function_call", "name": "request_user_input", "call_id": "call_1", "arguments": arguments}
    return [{"items": [item]}, {"items": [text("Done")], "expect": {"outputs": {"call_1": told}}}]


def answers(**given: list[str]) -> dict[str, Any]:
    """Return the client's reply."""
    return {"answers": {name: {"answers": words} for name, words in given.items()}}


def test_question(app_server: AppServer) -> None:
    """The event comes first, then the request with the questions; the model gets the client's answers as JSON.

    The case has one question, because the server writes several questions in no fixed order.

    Source: REAL-79.
    """
    reply = answers(colour=["red", "or \N{LATIN SMALL LETTER E WITH ACUTE}carlate"])
    server = app_server(script(json.dumps(reply, ensure_ascii=False, separators=(",", ":")), COLOUR, SIZE), config=CONFIG)
    thread = open_thread(server)
    turn = start(server, thread, **PLAN)["id"]
    request = server.server_request(REQUEST)
    server.reply(request, reply)
    assert ended(server, thread)["status"] == "completed"
    asked_for = [{**COLOUR, "isOther": False}, {**SIZE, "isOther": False}]
    of = {"call_id": "call_1", "turn_id": turn}
    assert event(thread, turn, "request_user_input", **of, questions=asked_for) in events(server, turn)
    wanted = [asked_for[0], {**asked_for[1], "options": None}]
    params = {"threadId": thread, "turnId": turn, "itemId": "call_1", "questions": wanted}
    assert request == {"method": REQUEST, "id": 0, "params": params}
    assert last_words(server) == ["Done"]


@pytest.mark.parametrize("reply", [{"answers": {}}, {"nonsense": 1}, None], ids=["none", "invalid", "null"])
def test_no_answers(app_server: AppServer, reply: Any) -> None:
    """After a reply without answers, or an invalid reply, the model gets an empty list of answers."""
    server = app_server(script('{"answers":{}}', COLOUR), config=CONFIG, bad_input=reply != {"answers": {}})
    thread = open_thread(server)
    start(server, thread, **PLAN)
    server.reply(server.server_request(REQUEST), reply)
    assert ended(server, thread)["status"] == "completed"
    assert last_words(server) == ["Done"]


def test_error_reply_hangs_the_turn(app_server: AppServer) -> None:
    """If the client replies with a JSON-RPC error, the turn hangs until turn/interrupt. (REAL-57)"""
    server = app_server(script("", COLOUR)[:1], config=CONFIG)
    thread = open_thread(server)
    turn = start(server, thread, **PLAN)["id"]
    server.notification("thread/tokenUsage/updated")
    request = server.server_request(REQUEST)
    server.send({"id": request["id"], "error": {"code": -32601, "message": "There are no dialogs."}})
    server.request("account/read", {})
    assert all_of(server, "turn/completed") == []
    server.request("turn/interrupt", {"threadId": thread, "turnId": turn})
    assert ended(server, thread)["status"] == "interrupted"


def test_only_in_plan_mode(app_server: AppServer) -> None:
    """In a turn without plan mode the client gets no question; the model gets the reason. (REAL-79)"""
    server = app_server(script("request_user_input is unavailable in Custom mode", COLOUR), config=CONFIG)
    thread = open_thread(server)
    assert run(server, thread)["status"] == "completed"
    assert asked(server) == []
    assert last_words(server) == ["Done"]


def test_warning(app_server: AppServer) -> None:
    """When a thread starts, an event with an empty turn id warns about a feature under development."""
    server = app_server(config={"features": {"collaboration_modes": True}})
    thread = open_thread(server)
    report = server.notification("codex/event/warning")
    words = report["msg"].pop("message")
    assert report == {"id": "", "msg": {"type": "warning"}, "conversationId": thread}
    assert words.startswith("Under-development features enabled: collaboration_modes. ")
    assert "`suppress_unstable_features_warning = true`" in words
