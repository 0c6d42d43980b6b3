"""The statements of the 0.92 schemas about tools, one case per statement.

Source: docs/contract/schema-tools.md; each expectation is written out from the document. If a statement is ambiguous, each
reading has a separate case.
"""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin.schema.fixtures import BundleFiles

PRIMARY = "codex_app_server_protocol.schemas.json"

SEND_USER_TURN = {
    "approvalPolicy",
    "conversationId",
    "cwd",
    "effort",
    "items",
    "model",
    "outputSchema",
    "sandboxPolicy",
    "summary",
}
SEND_USER_MESSAGE = {"conversationId", "items"}
DYNAMIC_TOOL_SPEC = {
    "type": "object",
    "required": ["description", "inputSchema", "name"],
    "properties": {"description": {"type": "string"}, "inputSchema": True, "name": {"type": "string"}},
}
DYNAMIC_TOOL_CALL_RESPONSE = {
    "type": "object",
    "required": ["output", "success"],
    "properties": {"output": {"type": "string"}, "success": {"type": "boolean"}},
}


@pytest.fixture
def definitions(bundle_files: BundleFiles) -> dict[str, Any]:
    """Return the definitions of the primary schema file; the definitions of v2 are below the key "v2"."""
    found: dict[str, Any] = bundle_files.json(PRIMARY)["definitions"]
    return found


def bare(node: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without the keywords that do not constrain values."""
    return {key: value for key, value in node.items() if key not in ("$schema", "title", "description", "definitions")}


# -- "Request params (still no per-request tool manifest)" -------------------------------------------------------------


def test_properties_of_send_user_turn(bundle_files: BundleFiles, definitions: dict[str, Any]) -> None:
    """`SendUserTurnParams.properties` is exactly the set that the document lists. (SCHEMA-03)"""
    assert set(definitions["SendUserTurnParams"]["properties"]) == SEND_USER_TURN
    assert set(bundle_files.json("v1/SendUserTurnParams.json")["properties"]) == SEND_USER_TURN


def test_properties_of_send_user_message(bundle_files: BundleFiles, definitions: dict[str, Any]) -> None:
    """`SendUserMessageParams.properties` is exactly `conversationId`, `items`. (SCHEMA-04)"""
    assert set(definitions["SendUserMessageParams"]["properties"]) == SEND_USER_MESSAGE
    assert set(bundle_files.json("v1/SendUserMessageParams.json")["properties"]) == SEND_USER_MESSAGE


def test_no_tools_on_the_v1_requests(definitions: dict[str, Any]) -> None:
    """There is no `tools` field on the v1 request types. (SCHEMA-05)"""
    for name in ("SendUserTurnParams", "SendUserMessageParams", "NewConversationParams"):
        assert "tools" not in definitions[name]["properties"]
        assert "dynamicTools" not in definitions[name]["properties"]


# -- "v2 thread start params (dynamic tools added)" --------------------------------------------------------------------


def test_dynamic_tools_on_thread_start(bundle_files: BundleFiles, definitions: dict[str, Any]) -> None:
    """`v2.ThreadStartParams` has `dynamicTools`, an array of `DynamicToolSpec`. (SCHEMA-06)"""
    for node, prefix in (
        (definitions["v2"]["ThreadStartParams"], "#/definitions/v2/"),
        (bundle_files.json("v2/ThreadStartParams.json"), "#/definitions/"),
    ):
        tools = node["properties"]["dynamicTools"]
        assert "array" in tools["type"]
        assert tools["items"] == {"$ref": prefix + "DynamicToolSpec"}


def test_dynamic_tool_spec(bundle_files: BundleFiles, definitions: dict[str, Any]) -> None:
    """`DynamicToolSpec` equals the text of the document, in both files that have it. (SCHEMA-07)"""
    assert bare(bundle_files.json("v2/ThreadStartParams.json")["definitions"]["DynamicToolSpec"]) == DYNAMIC_TOOL_SPEC
    assert bare(definitions["v2"]["DynamicToolSpec"]) == DYNAMIC_TOOL_SPEC


def test_dynamic_tools_only_on_thread_start(definitions: dict[str, Any]) -> None:
    """No other type of the bundle has a property `dynamicTools`. (SCHEMA-06)"""
    types = {**definitions, **definitions["v2"]}
    assert [name for name, node in types.items() if "dynamicTools" in node.get("properties", {})] == ["ThreadStartParams"]


# -- "Dynamic tool call events (server -> client)" ---------------------------------------------------------------------


def tool_call_events(union: Any) -> list[dict[str, Any]]:
    """Return the members of EventMsg for the dynamic tool call request."""
    named = [b for b in union["oneOf"] if b["properties"].get("type", {}).get("enum") == ["dynamic_tool_call_request"]]
    return [bare(branch) for branch in named]


def assert_tool_call_event(branch: dict[str, Any]) -> None:
    """Check the event: `tool`, `callId` and `turnId` are strings, `arguments` has any type, and all are required."""
    properties = dict(branch["properties"])
    assert properties.pop("type")["enum"] == ["dynamic_tool_call_request"]
    assert properties == {
        "tool": {"type": "string"},
        "arguments": True,
        "callId": {"type": "string"},
        "turnId": {"type": "string"},
    }
    assert set(branch["required"]) == {"type", "tool", "arguments", "callId", "turnId"}


def test_dynamic_tool_call_request_in_event_msg(bundle_files: BundleFiles) -> None:
    """`EventMsg.json` has the event, once. (SCHEMA-09, SCHEMA-10)"""
    (branch,) = tool_call_events(bundle_files.json("EventMsg.json"))
    assert_tool_call_event(branch)


def test_dynamic_tool_call_request_in_server_notification(bundle_files: BundleFiles) -> None:
    """`ServerNotification.json` contains the event once, in its copy of the definition EventMsg.

    Source: SCHEMA-09, SCHEMA-10.
    """
    (branch,) = tool_call_events(bundle_files.json("ServerNotification.json")["definitions"]["EventMsg"])
    assert_tool_call_event(branch)


def test_dynamic_tool_call_request_is_no_method_of_server_notification(bundle_files: BundleFiles) -> None:
    """No notification in `ServerNotification.json` has the name of this event.

    Source: SCHEMA-10, REAL-38.
    """
    for branch in bundle_files.json("ServerNotification.json")["oneOf"]:
        assert "dynamic" not in branch["properties"]["method"]["enum"][0]


def test_dynamic_tool_call_request_is_in_server_notification_through_one_method(bundle_files: BundleFiles) -> None:
    """The only listed notification whose params contain EventMsg is `sessionConfigured` of v1 (in `initialMessages`).

    Source: SCHEMA-10.
    """
    document = bundle_files.json("ServerNotification.json")
    reaching = [
        branch["properties"]["method"]["enum"][0]
        for branch in document["oneOf"]
        if "EventMsg" in reached(branch, document["definitions"], set())
    ]
    assert reaching == ["sessionConfigured"]


def reached(node: Any, definitions: dict[str, Any], seen: set[str]) -> set[str]:
    """Return the names of all definitions that `node` refers to, directly or not."""
    if isinstance(node, dict):
        name = node.get("$ref", "").rsplit("/", 1)[-1]
        if name and name not in seen:
            seen.add(name)
            reached(definitions[name], definitions, seen)
        for each in node.values():
            reached(each, definitions, seen)
    elif isinstance(node, list):
        for each in node:
            reached(each, definitions, seen)
    return seen


# -- "Dynamic tool call response (client -> server)" -------------------------------------------------------------------


def test_dynamic_tool_call_response(bundle_files: BundleFiles, definitions: dict[str, Any]) -> None:
    """`DynamicToolCallResponse` equals the text of the document. (SCHEMA-12)"""
    assert bare(bundle_files.json("DynamicToolCallResponse.json")) == DYNAMIC_TOOL_CALL_RESPONSE
    assert bare(definitions["DynamicToolCallResponse"]) == DYNAMIC_TOOL_CALL_RESPONSE


# -- "Tool capability toggles (v2)" ------------------------------------------------------------------------------------


def test_tools_v2(definitions: dict[str, Any]) -> None:
    """`v2.ToolsV2` has only the two built-in toggles, both boolean or null. (SCHEMA-14)"""
    properties = {name: node["type"] for name, node in definitions["v2"]["ToolsV2"]["properties"].items()}
    assert properties == {"view_image": ["boolean", "null"], "web_search": ["boolean", "null"]}


# -- "Implication" -----------------------------------------------------------------------------------------------------


def test_tools_are_declared_at_thread_start_and_routed_by_a_server_request(bundle_files: BundleFiles) -> None:
    """In addition to the event there is the request `item/tool/call` with the thread's id; the client answers it. (SCHEMA-16)"""
    document = bundle_files.json("ServerRequest.json")
    (branch,) = [b for b in document["oneOf"] if b["properties"]["method"]["enum"] == ["item/tool/call"]]
    assert branch["properties"]["params"] == {"$ref": "#/definitions/DynamicToolCallParams"}
    params = document["definitions"]["DynamicToolCallParams"]
    assert set(params["required"]) == {"threadId", "turnId", "callId", "tool", "arguments"}


def test_no_per_turn_tools_in_v2_either(definitions: dict[str, Any]) -> None:
    """`turn/start` has no tool manifest: tools are declared once, at the start of the thread. (SCHEMA-15)"""
    properties = definitions["v2"]["TurnStartParams"]["properties"]
    assert not [name for name in properties if "tool" in name.lower()]
