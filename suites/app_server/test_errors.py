"""The exact errors for refused requests: unknown methods, missing and wrong params, and threads that do not exist.

Source: docs/contract/real-0.92.md, section 4, "Bad input". Every error here has the code -32600.
"""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin import AppServer
from suites.app_server.dialect import V1

NOBODY = "00000000-0000-7000-8000-000000000000"
NO_UUID = "invalid character: expected an optional prefix of `urn:uuid:` followed by [0-9a-fA-F-], found `x` at 1"

#: The 55 client methods of 0.92, in the order in which the server names them.
# fmt: off
METHODS = [
    "initialize", "thread/start", "thread/resume", "thread/fork", "thread/archive", "thread/unarchive", "thread/rollback",
    "thread/list", "thread/loaded/list", "thread/read", "skills/list", "app/list", "skills/config/write", "turn/start",
    "turn/interrupt", "review/start", "model/list", "collaborationMode/list", "mcpServer/oauth/login",
    "config/mcpServer/reload", "mcpServerStatus/list", "account/login/start", "account/login/cancel", "account/logout",
    "account/rateLimits/read", "feedback/upload", "command/exec", "config/read", "config/value/write", "config/batchWrite",
    "configRequirements/read", "account/read", "newConversation", "getConversationSummary", "listConversations",
    "resumeConversation", "forkConversation", "archiveConversation", "sendUserMessage", "sendUserTurn",
    "interruptConversation", "addConversationListener", "removeConversationListener", "gitDiffToRemote", "loginApiKey",
    "loginChatGpt", "cancelLoginChatGpt", "logoutChatGpt", "getAuthStatus", "getUserSavedConfig", "setDefaultModel",
    "getUserAgent", "userInfo", "fuzzyFileSearch", "execOneOffCommand",
]
# fmt: on


@pytest.mark.since("0.108.0", "until then the 55 methods are named")
def test_unknown_method_of_v2(app_server: AppServer) -> None:
    """The error for an unknown method lists each known method once, and no method of v1."""
    server = app_server(bad_input=True)
    server.initialize()
    error = server.request_error("bogus/method", {})
    begin, _, names = error["message"].partition(", expected one of ")
    assert (error["code"], begin) == (-32600, "Invalid request: unknown variant `bogus/method`")
    known = [name.strip("`") for name in names.split(", ")]
    assert len(set(known)) == len(known)
    wanted = {"initialize", "thread/start", "thread/resume", "thread/fork", "thread/list", "thread/read", "turn/start"}
    assert wanted | {"turn/interrupt", "turn/steer", "model/list", "account/read", "config/read"} <= set(known)
    assert not {"newConversation", "sendUserMessage", "sendUserTurn", "addConversationListener", "userInfo"} & set(known)


@V1
def test_unknown_method(app_server: AppServer) -> None:
    """The error for an unknown method lists the 55 known methods. (REAL-81, REAL-88)"""
    server = app_server(bad_input=True)
    server.initialize()
    names = ", ".join(f"`{method}`" for method in METHODS)
    assert len(METHODS) == 55
    assert server.request_error("bogus/method", {}) == {
        "code": -32600,
        "message": f"Invalid request: unknown variant `bogus/method`, expected one of {names}",
    }


#: name -> (method, params or None for none, the error's message)
REFUSALS: dict[str, tuple[str, Any, str]] = {
    "missing-params": ("thread/start", None, "Invalid request: missing field `params`"),
    "wrong-type": ("thread/start", {"cwd": 5}, "Invalid request: invalid type: integer `5`, expected a string"),
    "missing-field": ("turn/start", {}, "Invalid request: missing field `threadId`"),
    "thread-not-found": ("turn/start", {"threadId": NOBODY, "input": []}, f"thread not found: {NOBODY}"),
    "invalid-thread-id": ("turn/start", {"threadId": "x", "input": []}, f"invalid thread id: {NO_UUID}"),
    "interrupt-thread-not-found": (
        "turn/interrupt",
        {"threadId": NOBODY, "turnId": "0"},
        f"thread not found: {NOBODY}",
    ),
    "interrupt-invalid-thread-id": (
        "turn/interrupt",
        {"threadId": "x", "turnId": "0"},
        f"invalid thread id: {NO_UUID}",
    ),
    "conversation-not-found": (
        "sendUserMessage",
        {"conversationId": NOBODY, "items": []},
        f"conversation not found: {NOBODY}",
    ),
    "invalid-conversation-id": ("sendUserMessage", {"conversationId": "x", "items": []}, f"Invalid request: {NO_UUID}"),
    "listener-thread-not-found": ("addConversationListener", {"conversationId": NOBODY}, f"thread not found: {NOBODY}"),
    "subscription-not-found": ("removeConversationListener", {"subscriptionId": NOBODY}, f"subscription not found: {NOBODY}"),
}


OF_V1 = ("conversation-not-found", "invalid-conversation-id", "listener-thread-not-found", "subscription-not-found")


@pytest.mark.parametrize("row", [pytest.param(row, marks=V1 if row in OF_V1 else ()) for row in REFUSALS])
def test_refused(app_server: AppServer, row: str) -> None:
    """Each request gets the error message of its row, and the connection stays usable. (REAL-81, REAL-89, REAL-90, REAL-91)"""
    method, params, message = REFUSALS[row]
    server = app_server(bad_input=True)
    server.initialize()
    error = server.request_error(method) if params is None else server.request_error(method, params)
    assert error == {"code": -32600, "message": message}
    assert server.request("account/read", {})["account"] is None


@pytest.mark.parametrize("initialized", [False, True], ids=["before-initialize", "after-initialize"])
def test_params_are_judged_before_the_state(app_server: AppServer, initialized: bool) -> None:
    """Invalid params are refused before and after the handshake, and in `initialize` itself. (REAL-85, REAL-89)"""
    server = app_server(bad_input=True)
    if initialized:
        server.initialize()
    assert server.request_error("thread/start")["message"] == "Invalid request: missing field `params`"
    assert server.request_error("initialize", {})["message"] == "Invalid request: missing field `clientInfo`"
    assert server.request_error("bogus/method", {})["message"].startswith("Invalid request: unknown variant `bogus/method`")
