"""The handshake: initialize, the requests before it, and the envelope of every response.

Source: docs/contract/real-0.92.md, section 4, "JSON-RPC surface" and "Bad input".
"""

from __future__ import annotations

import re

import pytest

from codex_replay.plugin import AppServer
from suites.app_server.dialect import after_opening, has_events, these

REFUSED = -32600
#: The members of the result of `initialize`.
RESULT = {"0.0.0": ["userAgent"], "0.169.0": ["userAgent", "codexHome", "platformFamily", "platformOs"]}


def test_initialize(app_server: AppServer) -> None:
    """The result of `initialize` has only `userAgent` (not `user_agent`), and the frame has no `jsonrpc` key.

    The user agent has the form `<client>/0.92.0 (<os>; <arch>) <term> (<client>; <version>)`.

    Source: REAL-35, REAL-41.
    """
    server = app_server()
    reply = server.call("initialize", {"clientInfo": {"name": "an-editor", "title": "An Editor", "version": "9.8.7"}})
    assert list(reply) == ["id", "result"]
    assert list(reply["result"]) == server.by_version(RESULT)
    agent = reply["result"]["userAgent"]
    assert re.fullmatch(r"an-editor/\d+\.\d+\.\d+\S* \([^;]+; [^)]+\) .* \(an-editor; 9\.8\.7\)", agent), agent


def test_initialized_is_not_required(app_server: AppServer) -> None:
    """The server serves a client that never sends `initialized`. (REAL-87)"""
    server = app_server()
    server.request("initialize", {"clientInfo": {"name": "codex-replay", "version": "1.0.0"}})
    assert server.request("account/read", {}) == these(server, {"account": None, "requiresOpenaiAuth": False})
    assert len(after_opening(server)) == 2


def test_initialized_is_not_answered(app_server: AppServer) -> None:
    """`initialized` is a notification: the next frame of the server is the response to the next request. (REAL-87)"""
    server = app_server()
    server.initialize()
    server.request("account/read", {})
    assert [message["id"] for message in after_opening(server)] == [0, 1]


def test_before_initialize(app_server: AppServer) -> None:
    """Before `initialize` every other request is refused with `Not initialized`; the connection stays usable. (REAL-85)"""
    server = app_server()
    assert server.request_error("account/read", {}) == {"code": REFUSED, "message": "Not initialized"}
    assert server.request_error("thread/start", {}) == {"code": REFUSED, "message": "Not initialized"}
    if has_events(server):  # and v1
        assert server.request_error("newConversation", {}) == {"code": REFUSED, "message": "Not initialized"}
    server.initialize()
    assert server.request("account/read", {})["account"] is None


def test_initialize_twice(app_server: AppServer) -> None:
    """A second `initialize` is refused with `Already initialized`; the connection stays usable. (REAL-86)"""
    server = app_server()
    server.initialize()
    info = {"clientInfo": {"name": "another", "version": "1"}}
    assert server.request_error("initialize", info) == {"code": REFUSED, "message": "Already initialized"}
    assert server.request("account/read", {})["account"] is None


def test_the_shape_of_answers(app_server: AppServer) -> None:
    """No frame of the server has a `jsonrpc` key, even if the client sends one; an error is `{"error": {code, message}, "id"}`.

    Source: REAL-35, REAL-37.
    """
    server = app_server()
    server.send({"jsonrpc": "2.0", "id": 1, "method": "account/read", "params": {}})
    refused = server.reply_to(1)
    assert list(refused) == ["error", "id"]
    assert list(refused["error"]) == ["code", "message"]
    server.send({"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {"clientInfo": {"name": "c", "version": "1"}}})
    assert list(server.reply_to(2)) == ["id", "result"]
    server.send({"jsonrpc": "2.0", "method": "initialized"})
    server.send({"jsonrpc": "2.0", "id": 3, "method": "account/read", "params": {}})
    assert list(server.reply_to(3)) == ["id", "result"]


@pytest.mark.parametrize("given", ["a", "", 0, -5, 2**63 - 1], ids=["string", "empty", "zero", "negative", "largest"])
def test_ids_come_back_as_they_were(app_server: AppServer, given: object) -> None:
    """An id is a string or a 64-bit integer; results and errors repeat it unchanged. (REAL-84)"""
    server = app_server()
    server.initialize()
    assert server.call("account/read", {}, id=given)["result"]["account"] is None
    assert server.call("initialize", {"clientInfo": {"name": "c", "version": "1"}}, id=given)["error"]["code"] == REFUSED


def test_one_id_twice(app_server: AppServer) -> None:
    """Two open requests may have the same id; the server answers both. (REAL-84)"""
    server = app_server()
    server.initialize()
    server.send(b'{"id":7,"method":"account/read","params":{}}\n{"id":7,"method":"account/read","params":{}}\n')
    assert server.reply_to(7) == server.reply_to(7)


def test_every_line_ends_in_one_newline(app_server: AppServer) -> None:
    """The server writes one compact JSON object per line and ends each line with a bare newline. (REAL-35)"""
    server = app_server()
    server.initialize()
    server.request_error("initialize", {"clientInfo": {"name": "c", "version": "1"}})
    for line in server.raw():
        assert line.startswith(b"{")
        assert line.endswith(b"}\n")
        assert b'": ' not in line


def test_end_of_input(app_server: AppServer) -> None:
    """The server ends with status 0 when its stdin ends, before and after the handshake. (REAL-92)"""
    assert app_server().close() == 0
    server = app_server()
    server.initialize()
    assert server.close() == 0
