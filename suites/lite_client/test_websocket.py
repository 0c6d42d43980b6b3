"""Checks of clients that speak WebSocket (LITE_TRANSPORT=websocket).

Source: docs/lite-client.md, "WebSocket"; docs/websocket.md.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_replay.plugin.base.ledger import Request
from codex_replay.plugin.lite_client.fixture import LiteClient, Run
from suites.lite_client.expected import ADD, CHATGPT, always, call, outputs, then, user_texts

pytestmark = pytest.mark.lite_websocket

SOURCE = "docs/lite-client.md"
OVER = {"LITE_TRANSPORT": "websocket"}


def script(*turns: object, **settings: Any) -> dict[str, Any]:
    """Return a script with a WebSocket."""
    return {"websocket": {"mode": "on", **settings}, "turns": list(turns)}


def values(request: Request) -> dict[str, str]:
    """Return the fields of a body as JSON, without those that differ between two requests; 1 is not true."""
    own = ("type", "prompt_cache_key")
    return {name: json.dumps(value, sort_keys=True) for name, value in request.body.items() if name not in own}


def methods(run: Run) -> list[str]:
    """Return the method of each request to the model: GET means a handshake, WEBSOCKET means a message."""
    return [request.method for request in run.turns]


@pytest.mark.spec("websocket-used", source=SOURCE, says="a message response.create on LITE_BASE_URL/responses, upgraded")
def test_a_prompt_is_a_message(lite_client: LiteClient) -> None:
    """The client sends the prompt as a WebSocket message after one handshake, and not over HTTP."""
    run = lite_client("Hello there", script=script("Hi."), env=OVER)
    assert run.text() == "Hi."
    assert methods(run) == ["GET", "WEBSOCKET"]
    assert user_texts(run.turns[1]) == ["Hello there"]


@pytest.mark.spec("websocket-handshake-headers", source=SOURCE, says="the handshake has the headers of a request")
def test_the_handshake_has_the_headers(lite_client: LiteClient) -> None:
    """The handshake of the client has the login, the originator, the user agent and the session id."""
    run = lite_client(script=script("Hi."), auth=CHATGPT, env=OVER)
    assert run.text() == "Hi."
    handshake = run.turns[0]
    assert handshake.header("authorization") == "Bearer access-1"
    assert handshake.header("chatgpt-account-id") == "account-1"
    assert handshake.header("session_id"), "expected the header session_id in the handshake, got none"
    request = lite_client(script=["Hi."], auth=CHATGPT).turns[0]
    for name in ("originator", "user-agent"):
        assert handshake.header(name), f"expected the header {name} in the handshake, got none"
        assert handshake.header(name) == request.header(name), f"the header {name} must be that of a request over HTTP"


@pytest.mark.spec("websocket-message-fields", source=SOURCE, says="the message is the body of a request over HTTP, with a type")
def test_the_message_is_the_body(lite_client: LiteClient) -> None:
    """The client's messages have the values of its request bodies over HTTP; `prompt_cache_key` is the session_id."""
    given = {"LITE_MODEL": "gpt-5.2", "LITE_INSTRUCTIONS": "Speak like a pirate."}
    turns = then({**call(), "id": "fc_1"})
    run = lite_client(script=script(*turns), tools=ADD, env={**given, **OVER})
    assert run.text() == "done"
    assert [each.body["prompt_cache_key"] for each in run.turns[1:]] == [run.turns[0].header("session_id")] * 2
    over_http = lite_client(script=turns, tools=ADD, env=given)
    assert over_http.text() == "done"
    for message, request in zip(run.turns[1:], over_http.turns, strict=True):
        assert values(message) == values(request)


@pytest.mark.spec("websocket-follow-up", source=SOURCE, says="the output of a call is sent in full or as an increment")
def test_a_tool_call_is_answered(lite_client: LiteClient) -> None:
    """After a call, the client sends a message with the call and its output on the same connection."""
    run = lite_client(script=script(*then(call())), tools=ADD, env=OVER)
    assert run.text() == "done"
    assert methods(run) == ["GET", "WEBSOCKET", "WEBSOCKET"]
    assert outputs(run.turns[2]) == {"call_1": "5"}
    assert user_texts(run.turns[2]) == ["Hello"]


@pytest.mark.spec("websocket-fallback", source=SOURCE, says="426: use HTTP")
def test_a_backend_without_websocket_is_asked_over_http(lite_client: LiteClient) -> None:
    """After 426 the client sends the same request, and all later requests, over HTTP."""
    run = lite_client(script=script(*then(call()), handshakes="http_426"), tools=ADD, env=OVER)
    assert run.text() == "done"
    assert methods(run)[-2:] == ["POST", "POST"]
    assert "WEBSOCKET" not in methods(run)


@pytest.mark.spec("websocket-refresh", source=SOURCE, says="a 401 at the handshake: refresh, and connect again")
def test_an_expired_login_is_refreshed(lite_client: LiteClient) -> None:
    """If the backend refuses the handshake with 401, the client refreshes its tokens and repeats the handshake."""
    auth = {"access_token": "access-1", "refresh_token": "refresh-1", "account_id": "account-1", "access": "expired"}
    run = lite_client(script={**script("Hi."), "auth": {"mode": "chatgpt", **auth}}, auth=CHATGPT, env=OVER)
    assert run.text() == "Hi."
    assert len(run.refreshes) == 1
    assert run.turns[-1].method == "WEBSOCKET"


@pytest.mark.parametrize("status", [400, 429, 500])
@pytest.mark.spec("websocket-error-message", source=SOURCE, says="stderr: the status of an error message, or its error.message")
def test_an_error_message_is_a_failure(lite_client: LiteClient, status: int) -> None:
    """If the backend sends an error message, the client fails and reports the status or the text of the error."""
    error = {"code": "no_luck", "message": "No luck today."}
    stderr = lite_client(script=script(*always(status=status, error=error)), env=OVER).failure()
    assert str(status) in stderr or "No luck today." in stderr


@pytest.mark.parametrize("fault", ["cut", "reset", "ws_close_1000", "ws_close_1011", "ws_binary", "missing_completed"])
@pytest.mark.spec("websocket-broken", source=SOURCE, says="a WebSocket that ends before response.completed is a failure")
def test_a_response_that_breaks_off(lite_client: LiteClient, fault: str) -> None:
    """If the connection ends before `response.completed`, the client fails, even if text has arrived."""
    lite_client(script=script(*always(items=["half a text"], fault=fault)), env={**OVER, "LITE_TIMEOUT": "0.5"}).failure()


@pytest.mark.parametrize("fault", ["ws_bad_json", "unknown_event"])
@pytest.mark.spec("websocket-ignored", source=SOURCE, says="an invalid message is ignored, or is a failure")
def test_a_message_that_cannot_be_understood(lite_client: LiteClient, fault: str) -> None:
    """The client ignores an invalid message, as Codex does, or fails; it never shows a part of the text as the answer."""
    run = lite_client(script=script(*always(items=["The whole text."], fault=fault)), env=OVER)
    if run.status == 0:
        assert run.text() == "The whole text."
    else:
        run.failure()
