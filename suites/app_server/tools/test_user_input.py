"""Questions of the model to the user: item/tool/requestUserInput, in plan mode.

Source: docs/contract/real-0.92.md, section 4 (reached with `[features] collaboration_modes = true` and a plan-mode turn), and
the bundle's ToolRequestUserInputParams and ToolRequestUserInputResponse.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_replay.plugin import AppServer
from suites.app_server.dialect import HANGS, has_events, these
from suites.app_server.expected import all_of, event, events, text
from suites.app_server.turns import asked, ended, last_words, open_thread, run, start, wait_usage

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
#: Whether the server asks for another answer than the options, if the model does not say.
OTHER = {"0.0.0": False, "0.169.0": True}
#: A second question, as a version accepts it: since 0.169.0 every question needs options.
SECOND: dict[str, dict[str, Any]] = {
    "0.0.0": SIZE,
    "0.169.0": {
        **SIZE,
        "options": [{"label": "big", "description": "It is big."}, {"label": "small", "description": "It is small."}],
    },
}


def script(told: str, *questions: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a script: the model asks the user a question, expects the given output, and sends a message."""
    arguments = {"questions": list(questions)}
    item = {"type": "function_call", "name": "request_user_input", "call_id": "call_1", "arguments": arguments}
    return [{"items": [item]}, {"items": [text("Done")], "expect": {"outputs": {"call_1": told}}}]


def answers(**given: list[str]) -> dict[str, Any]:
    """Return the client's reply."""
    return {"answers": {name: {"answers": words} for name, words in given.items()}}


@pytest.mark.since("0.169.0", "until then a question needs no options, and isOther is false")
def test_question_with_options(app_server: AppServer) -> None:
    """The server's request has the questions, with isOther if a free answer is possible; the model gets the answers as JSON."""
    reply = answers(colour=["red"])
    server = app_server(script(json.dumps(reply, separators=(",", ":")), COLOUR))
    thread = open_thread(server, experimental=True)
    turn = start(server, thread, **PLAN)["id"]
    request = server.server_request(REQUEST)
    server.reply(request, reply)
    assert ended(server, thread)["status"] == "completed"
    assert request["params"] == {
        "threadId": thread,
        "turnId": turn,
        "itemId": "call_1",
        "questions": [{**COLOUR, "isOther": True, "isSecret": False}],
        "isBlocking": True,
        "autoResolutionMs": None,
    }
    assert last_words(server) == ["Done"]


@pytest.mark.since("0.169.0", "until then a question needs no options")
def test_question_without_options(app_server: AppServer) -> None:
    """If a question has no options, the client does not get the question; the model gets the reason."""
    server = app_server(script("request_user_input requires non-empty options for every question", SIZE))
    thread = open_thread(server, experimental=True)
    assert run(server, thread, **PLAN)["status"] == "completed"
    assert asked(server) == []


def test_question(app_server: AppServer) -> None:
    """The server sends an event, then the request with the questions; the model gets the client's answers as JSON.

    The case has one question, because the server writes several questions in no fixed order.

    Source: REAL-79.
    """
    second, other = app_server.by_version(SECOND), app_server.by_version(OTHER)
    reply = answers(colour=["red", "or \N{LATIN SMALL LETTER E WITH ACUTE}carlate"])
    server = app_server(script(json.dumps(reply, ensure_ascii=False, separators=(",", ":")), COLOUR, second), config=CONFIG)
    thread = open_thread(server, experimental=True)
    turn = start(server, thread, **PLAN)["id"]
    request = server.server_request(REQUEST)
    server.reply(request, reply)
    assert ended(server, thread)["status"] == "completed"
    asked_for = [{**COLOUR, "isOther": other}, {**second, "isOther": other}]
    of = {"call_id": "call_1", "turn_id": turn}
    if has_events(server):
        assert event(thread, turn, "request_user_input", **of, questions=asked_for) in events(server, turn)
    wanted = [asked_for[0], {"options": None, **asked_for[1]}]
    params = {"threadId": thread, "turnId": turn, "itemId": "call_1", "questions": wanted}
    assert request == these(server, {"method": REQUEST, "id": 0, "params": params})
    assert last_words(server) == ["Done"]


@pytest.mark.parametrize("reply", [{"answers": {}}, {"nonsense": 1}, None], ids=["none", "invalid", "null"])
def test_no_answers(app_server: AppServer, reply: Any) -> None:
    """After a reply without answers, or an invalid reply, the model gets an empty list of answers."""
    server = app_server(script('{"answers":{}}', COLOUR), config=CONFIG, bad_input=reply != {"answers": {}})
    thread = open_thread(server, experimental=True)
    start(server, thread, **PLAN)
    server.reply(server.server_request(REQUEST), reply)
    assert ended(server, thread)["status"] == "completed"
    assert last_words(server) == ["Done"]


def test_error_reply_hangs_the_turn(app_server: AppServer) -> None:
    """If the client answers a question with a JSON-RPC error, the turn hangs until turn/interrupt.

    (REAL-57) Since 0.169.0 the model gets an empty list of answers, and the turn continues.
    """
    hangs = app_server.by_version(HANGS)
    server = app_server(script("", COLOUR)[:1] if hangs else script('{"answers":{}}', COLOUR), config=CONFIG)
    thread = open_thread(server, experimental=True)
    turn = start(server, thread, **PLAN)["id"]
    if hangs:
        wait_usage(server)
    request = server.server_request(REQUEST)
    server.send({"id": request["id"], "error": {"code": -32601, "message": "There are no dialogs."}})
    if hangs:
        server.request("account/read", {})
        assert all_of(server, "turn/completed") == []
        server.request("turn/interrupt", {"threadId": thread, "turnId": turn})
    assert ended(server, thread)["status"] == ("interrupted" if hangs else "completed")
    assert last_words(server) == ([] if hangs else ["Done"])


def test_only_in_plan_mode(app_server: AppServer) -> None:
    """In a turn without plan mode the client gets no question; the model gets the reason. (REAL-79)"""
    mode = app_server.by_version({"0.0.0": "Custom", "0.169.0": "Default"})
    server = app_server(script(f"request_user_input is unavailable in {mode} mode", COLOUR), config=CONFIG)
    thread = open_thread(server)
    assert run(server, thread)["status"] == "completed"
    assert asked(server) == []
    assert last_words(server) == ["Done"]


def test_warning(app_server: AppServer) -> None:
    """When a thread starts, an event with an empty turn id warns about a feature under development.

    In 0.169.0, collaboration modes are no longer under development: the server sends no warning.
    """
    server = app_server(config={"features": {"collaboration_modes": True}})
    thread = open_thread(server)
    if not has_events(server):
        server.request("account/read", {})
        assert [params["message"] for params in all_of(server, "warning") if "collaboration_modes" in params["message"]] == []
        return
    report = server.notification("codex/event/warning")
    words = report["msg"].pop("message")
    assert report == {"id": "", "msg": {"type": "warning"}, "conversationId": thread}
    assert words.startswith("Under-development features enabled: collaboration_modes. ")
    assert "`suppress_unstable_features_warning = true`" in words
