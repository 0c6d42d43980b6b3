"""Tools that the client declares and runs: the call, the possible replies, and the output for the model.

Source: docs/contract/real-0.92.md, section 4, "Turns, tools and approvals"; docs/contract/schema-tools.md. On a live server the
script's `expect` also checks the output for the model.
"""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin import AppServer, Server
from suites.app_server.dialect import AT_ONCE, HANGS, V1, has_events, in_events, these, tool_output, tool_spec, turn_id
from suites.app_server.expected import all_of, event, events, text
from suites.app_server.turns import (
    asked,
    conversation,
    ended,
    items_of,
    last_words,
    msgs,
    open_thread,
    run,
    run_v1,
    start,
    wait_usage,
)

REQUEST = "item/tool/call"
SCHEMA = {"type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]}
CLOCK = {"name": "get_time", "description": "Tells the time.", "inputSchema": SCHEMA}


def call(arguments: Any = None, name: str = "get_time", call_id: str = "call_1") -> dict[str, Any]:
    """Return a script's item: the model calls the tool."""
    given = {"zone": "UTC"} if arguments is None else arguments
    return {"type": "function_call", "name": name, "call_id": call_id, "arguments": given}


def script(told: str, item: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Return a script: the model calls the tool, expects the given output, and sends a message."""
    return [{"items": [item or call()]}, {"items": [text("Done")], "expect": {"outputs": {"call_1": told}}}]


def test_call(app_server: AppServer) -> None:
    """For a call, the server sends an event with camelCase keys, then a request; the model gets the client's output unchanged.

    Source: REAL-47, REAL-62, REAL-63, REAL-64, SCHEMA-11, SCHEMA-13.
    """
    declared = {"type": "function", "name": "get_time", "description": "Tells the time.", "strict": False, "parameters": SCHEMA}
    server = app_server(script("12:00 \N{EURO SIGN}\n"))
    thread = open_thread(server, dynamicTools=[tool_spec(server, CLOCK)])
    start(server, thread)
    request = server.server_request(REQUEST)
    server.reply(request, tool_output(server, "12:00 \N{EURO SIGN}\n"))
    assert ended(server, thread)["status"] == "completed"
    of = {"callId": "call_1", "turnId": turn_id(server), "tool": "get_time", "arguments": {"zone": "UTC"}}
    if has_events(server):
        assert event(thread, turn_id(server), "dynamic_tool_call_request", **of) in events(server, turn_id(server))
    assert request == these(server, {"method": REQUEST, "id": 0, "params": {"threadId": thread, **of}})
    assert last_words(server) == ["Done"]
    types = {params["item"]["type"] for params in all_of(server, "item/started")}
    assert types == {"userMessage", "agentMessage", *([] if has_events(server) else ["dynamicToolCall"])}
    if server.upstream is not None:
        body = next(entry["body"] for entry in server.upstream.ledger() if entry["method"] == "POST")
        assert these(server, declared) in body["tools"][-1:] if has_events(server) else these(server, declared) in body["tools"]


#: name -> (the client's reply, the output for the model)
REPLIES: dict[str, tuple[Any, str]] = {
    "success": ({"output": "12:00", "success": True}, "12:00"),
    "failure": ({"output": "There is no clock.", "success": False}, "There is no clock."),
    "empty": ({"output": "", "success": True}, ""),
    "further-key": ({"output": "12:00", "success": True, "more": 1}, "12:00"),
    "invalid": ({"text": "12:00"}, "dynamic tool response was invalid"),
    "no-success": ({"output": "12:00"}, "dynamic tool response was invalid"),
    "null": (None, "dynamic tool response was invalid"),
}


def contents(reply: dict[str, Any]) -> dict[str, Any]:
    """Return a client's reply in the form of later versions, which have a list of contents in place of `output`."""
    return {"contentItems": [{"type": "inputText", "text": reply["output"]}], **{k: v for k, v in reply.items() if k != "output"}}


@pytest.mark.parametrize("row", REPLIES)
def test_reply(app_server: AppServer, row: str) -> None:
    """The turn continues after every reply; the model gets an error text for an invalid reply. (REAL-63, REAL-65)"""
    reply, report = REPLIES[row]
    if row in ("success", "failure", "empty", "further-key"):
        reply = app_server.by_version({"0.0.0": reply, "0.116.0": contents(reply)})
    server = app_server(script(report), bad_input=row not in ("success", "failure", "empty"))
    thread = open_thread(server, dynamicTools=[tool_spec(server, CLOCK)])
    start(server, thread)
    server.reply(server.server_request(REQUEST), reply)
    assert ended(server, thread)["status"] == "completed"
    assert asked(server) == [REQUEST]
    assert last_words(server) == ["Done"]


def test_error_reply_hangs_the_turn(app_server: AppServer) -> None:
    """If the client answers a tool call with a JSON-RPC error, the turn hangs until turn/interrupt.

    (REAL-57) Since 0.169.0 the call fails, and the turn continues.
    """
    hangs = app_server.by_version(HANGS)
    server = app_server([{"items": [call()]}] if hangs else script("dynamic tool request failed"))
    thread = open_thread(server, dynamicTools=[tool_spec(server, CLOCK)])
    start(server, thread)
    if hangs:
        wait_usage(server)
    request = server.server_request(REQUEST)
    server.send({"id": request["id"], "error": {"code": -32601, "message": "There is no such tool."}})
    if hangs:
        server.request("account/read", {})
        assert all_of(server, "turn/completed") == []
        server.request("turn/interrupt", {"threadId": thread, "turnId": turn_id(server)})
    assert ended(server, thread)["status"] == ("interrupted" if hangs else "completed")
    assert [item["status"] for item in items_of(server, "dynamicToolCall")] == ([] if hangs else ["failed"])
    assert last_words(server) == ([] if hangs else ["Done"])


#: name -> (the model's call, the output for the model)
BAD_CALLS = {
    "unknown-tool": (call(name="get_weather"), "unsupported call: get_weather"),
    "bad-arguments": (call("{zone: UTC}"), "failed to parse function arguments: key must be a string at line 1 column 2"),
}


@pytest.mark.parametrize("row", BAD_CALLS)
def test_bad_call(app_server: AppServer, row: str) -> None:
    """The server does not send an invalid call to the client; only the model gets an error. (REAL-66, REAL-67)"""
    item, report = BAD_CALLS[row]
    server = app_server(script(report, item))
    thread = open_thread(server, dynamicTools=[tool_spec(server, CLOCK)])
    assert run(server, thread)["status"] == "completed"
    assert asked(server) == []
    assert msgs(server, "dynamic_tool_call_request") == in_events(server, [])
    assert last_words(server) == ["Done"]


def test_arguments_are_not_held_to_the_schema(app_server: AppServer) -> None:
    """The server passes on the model's arguments without a check against the declared schema."""
    server = app_server(script("12:00", call({"time zone": 5, "more": [None, {"a": "\N{LINE SEPARATOR}"}]})))
    thread = open_thread(server, dynamicTools=[tool_spec(server, CLOCK)])
    start(server, thread)
    request = server.server_request(REQUEST)
    assert request["params"]["arguments"] == {"time zone": 5, "more": [None, {"a": "\N{LINE SEPARATOR}"}]}
    server.reply(request, tool_output(server, "12:00"))
    assert ended(server, thread)["status"] == "completed"


def serve(server: Server, calls: int, at_once: bool) -> list[str]:
    """Answer a number of calls, each with its own call id as the output; return the call ids in order."""
    order, waiting = [], []
    for _ in range(calls):
        request = server.server_request(REQUEST)
        order.append(request["params"]["callId"])
        if has_events(server):  # the next call waits for the reply
            assert [msg["callId"] for msg in msgs(server, "dynamic_tool_call_request")] == order
        waiting.append(request)
        while waiting and (not at_once or len(order) == calls):
            request = waiting.pop(0)
            server.reply(request, tool_output(server, f"for {request['params']['callId']}"))
    return order


def test_parallel(app_server: AppServer) -> None:
    """If one answer has two calls, the server sends them one at a time, in any order; the model gets the outputs in call order.

    Since 0.169.0, the server sends both calls without waiting for the client's reply to the first call.

    Source: REAL-69, REAL-70.
    """
    calls = [call(call_id="call_1"), call({"zone": "CET"}, call_id="call_2")]
    outputs: list[dict[str, Any]] = [
        {"type": "function_call_output", "call_id": f"call_{n}", "output": f"for call_{n}"} for n in (1, 2)
    ]
    report = {"outputs": {output["call_id"]: output["output"] for output in outputs}}
    server = app_server([{"items": calls}, {"items": [text("Done")], "expect": report}], racy="either call may come first")
    thread = open_thread(server, dynamicTools=[tool_spec(server, CLOCK)])
    start(server, thread)
    assert sorted(serve(server, 2, server.by_version(AT_ONCE))) == ["call_1", "call_2"]
    assert ended(server, thread)["status"] == "completed"
    if server.upstream is not None:
        last = [entry["body"]["input"] for entry in server.upstream.ledger() if entry["method"] == "POST"][-1]
        given = [item for item in last if item["type"] == "function_call_output"]
        assert given == these(server, outputs)


#: Whether a resumed thread still has its dynamic tools.
KEEPS_TOOLS = {"0.0.0": False, "0.169.0": True}


def test_resume_forgets_the_tools(app_server: AppServer) -> None:
    """A resumed thread has lost its dynamic tools: the model no longer gets the tools, and a call of a tool is unsupported.

    Since 0.169.0 a resumed thread still has its dynamic tools: the client gets the call.
    """
    keeps = app_server.by_version(KEEPS_TOOLS)
    output = "12:00" if keeps else "unsupported call: get_time"
    turns: list[dict[str, Any]] = [{"items": [text("Hello")]}, {"items": [call()]}]
    turns.append({"items": [text("Pity.", id="msg_2")], "expect": {"outputs": {"call_1": output}}})
    server = app_server(turns)
    thread = open_thread(server, dynamicTools=[tool_spec(server, CLOCK)])
    run(server, thread)
    server.request("thread/archive", {"threadId": thread})
    server.request("thread/unarchive", {"threadId": thread})
    server.request("thread/resume", {"threadId": thread})
    start(server, thread)
    if keeps:
        server.reply(server.server_request(REQUEST), tool_output(server, output))
    assert ended(server, thread)["status"] == "completed"
    assert asked(server) == [REQUEST] * keeps
    assert last_words(server) == ["Hello", "Pity."]


NO_SCHEMA = "dynamic tool input schema is not supported for get_time: "
#: name -> (the invalid members of a declared tool, the message of the error)
BAD_TOOLS: dict[str, tuple[dict[str, Any], str]] = {
    "no-description": ({"description": ...}, "Invalid request: missing field `description`"),
    "no-input-schema": ({"inputSchema": ...}, "Invalid request: missing field `inputSchema`"),
    "no-name": ({"name": ...}, "Invalid request: missing field `name`"),
    "null-description": ({"description": None}, "Invalid request: invalid type: null, expected a string"),
    "number-as-name": ({"name": 5}, "Invalid request: invalid type: integer `5`, expected a string"),
    "number-as-schema": ({"inputSchema": 5}, f"{NO_SCHEMA}invalid type: integer `5`, expected internally tagged enum JsonSchema"),
    "list-as-schema": ({"inputSchema": []}, f"{NO_SCHEMA}missing field `type`"),
    "unknown-type": (
        {"inputSchema": {"type": "text"}},
        f"{NO_SCHEMA}unknown variant `text`, expected one of `boolean`, `string`, `integer`, `number`, `array`, `object`",
    ),
    "number-as-properties": ({"inputSchema": {"properties": 5}}, f"{NO_SCHEMA}invalid type: integer `5`, expected a map"),
    "number-as-property": (
        {"inputSchema": {"type": "object", "properties": {"zone": 5}}},
        f"{NO_SCHEMA}invalid type: integer `5`, expected internally tagged enum JsonSchema",
    ),
    "null-as-schema": ({"inputSchema": None}, f"{NO_SCHEMA}invalid type: null, expected internally tagged enum JsonSchema"),
    "text-as-schema": (
        {"inputSchema": "any"},
        f'{NO_SCHEMA}invalid type: string "any", expected internally tagged enum JsonSchema',
    ),
}


#: name -> the message of 0.169.0, if it has another one.
STRUCTS = {
    "number-as-schema": f"{NO_SCHEMA}invalid type: number, expected struct JsonSchema",
    "list-as-schema": f"{NO_SCHEMA}invalid length 0, expected struct JsonSchema with 15 elements",
    "number-as-properties": f"{NO_SCHEMA}invalid type: number, expected a map",
    "number-as-property": f"{NO_SCHEMA}invalid type: number, expected struct JsonSchema",
    "null-as-schema": f"{NO_SCHEMA}invalid type: null, expected struct JsonSchema",
    "text-as-schema": f'{NO_SCHEMA}invalid type: string "any", expected struct JsonSchema',
}
#: The rows that a version accepts.
ACCEPTED: dict[str, tuple[str, ...]] = {"0.0.0": (), "0.169.0": ("unknown-type",)}


@pytest.mark.parametrize("row", BAD_TOOLS)
def test_bad_tool(app_server: AppServer, row: str) -> None:
    """If a declared tool has a missing or invalid member, the server refuses thread/start, and no thread starts.

    Source: SCHEMA-07, SCHEMA-08, SCHEMA-18. The bundle allows any value as a schema; the server does not. Since 0.169.0 a schema
    may have a type that the server does not know.
    """
    wrong, message = BAD_TOOLS[row]
    tool = {name: value for name, value in {**CLOCK, **wrong}.items() if value is not ...}
    server = app_server(bad_input=True)
    server.initialize(experimental=True)
    asked_for = {"cwd": server.work, "dynamicTools": [tool_spec(server, tool)]}
    if row in server.by_version(ACCEPTED):
        thread = server.request("thread/start", asked_for)["thread"]["id"]
        assert server.request("thread/loaded/list", {})["data"] == [thread]
        return
    error = server.request_error("thread/start", asked_for)
    if server.by_version({"0.0.0": False, "0.169.0": True}):
        message = STRUCTS.get(row, message)
    assert error == {"code": -32600, "message": message}
    assert server.request("thread/loaded/list", {})["data"] == []


@pytest.mark.parametrize("schema", [{}, True], ids=["empty", "true"])
def test_least_tool(app_server: AppServer, schema: Any) -> None:
    """A tool may have an empty description, an empty schema, or the schema `true`. (SCHEMA-07, SCHEMA-08)"""
    server = app_server()
    server.initialize(experimental=True)
    tool = tool_spec(server, {"name": "get_time", "description": "", "inputSchema": schema})
    thread = server.request("thread/start", {"cwd": server.work, "dynamicTools": [tool]})["thread"]["id"]
    assert server.request("thread/loaded/list", {})["data"] == [thread]


@V1
def test_v1_ignores_dynamic_tools(app_server: AppServer) -> None:
    """newConversation ignores dynamicTools without an error; a call of such a tool is unsupported. (REAL-46, SCHEMA-17)"""
    server = app_server(script("unsupported call: get_time"), bad_input=True)
    talk = conversation(server, dynamicTools=[CLOCK])
    assert run_v1(server, talk)["status"] == "completed"
    assert asked(server) == []
    assert last_words(server) == ["Done"]
