"""Check how the client declares tools. Source: docs/contract/lite.md, "Tool Specs"."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_replay.plugin.lite_client.fixture import LiteClient
from suites.lite_protocol import CUSTOM_TOOL, FUNCTION_TOOL, WEB_SEARCH_TOOL


def must_be(found: Any, wanted: Any) -> None:
    """Compare two values, including the types of numbers; the order of the members of an object does not matter."""
    assert json.dumps(found, sort_keys=True) == json.dumps(wanted, sort_keys=True)


def declared(lite_client: LiteClient, *tools: dict[str, Any]) -> Any:
    """Run the client with the given tools, and return the tools in its request."""
    run = lite_client(script=["Hi"], tools={"tools": list(tools), "results": []})
    run.text()
    return run.turns[0].body["tools"]


@pytest.mark.spec("tool-function", "LITE-34", "LITE-45")
def test_function_tool(lite_client: LiteClient) -> None:
    """The client declares a function in the flat form of the specification, with exactly its fields."""
    must_be(declared(lite_client, FUNCTION_TOOL), [FUNCTION_TOOL])


@pytest.mark.spec("tool-web-search", "LITE-46")
def test_web_search_tool(lite_client: LiteClient) -> None:
    """The client declares web search with its type and `external_web_access`."""
    must_be(declared(lite_client, WEB_SEARCH_TOOL), [WEB_SEARCH_TOOL])


@pytest.mark.spec("tool-custom", "LITE-47")
def test_custom_tool(lite_client: LiteClient) -> None:
    """The client declares a freeform tool with its format."""
    assert declared(lite_client, CUSTOM_TOOL) == [CUSTOM_TOOL]


@pytest.mark.spec("tool-all", "LITE-34", "LITE-45", "LITE-46", "LITE-47")
def test_all_kinds_in_their_order(lite_client: LiteClient) -> None:
    """The client declares tools of all kinds in the order of the given file."""
    tools = [WEB_SEARCH_TOOL, CUSTOM_TOOL, FUNCTION_TOOL]
    must_be(declared(lite_client, *tools), tools)


@pytest.mark.spec("tool-again", "LITE-34")
def test_a_follow_up_declares_the_same_tools(lite_client: LiteClient) -> None:
    """Every request declares the tools, because the backend does not store them."""
    call = {"type": "function_call", "name": "add", "arguments": {"a": 1, "b": 1}}
    tools = {"tools": [FUNCTION_TOOL, CUSTOM_TOOL], "results": [{"name": "add", "output": "2"}]}
    run = lite_client(script=[{"items": [call]}, {"items": ["2"]}], tools=tools)
    run.text()
    assert [request.body["tools"] for request in run.turns] == [[FUNCTION_TOOL, CUSTOM_TOOL]] * 2


@pytest.mark.spec("tool-none", "LITE-34", "LITE-66")
def test_no_tools(lite_client: LiteClient) -> None:
    """Without tools, the client's request declares no tools, and the client prints the model's text."""
    run = lite_client("Call the tool add with 2 and 3.", script=["I cannot call a tool."])
    assert run.text() == "I cannot call a tool."
    assert run.turns[0].body.get("tools", []) == []


@pytest.mark.spec("tool-invalid-schema", "LITE-63")
def test_an_invalid_schema_is_the_backends_business(lite_client: LiteClient) -> None:
    """The client sends a tool with an invalid schema unchanged; the backend ignores the tool and answers."""
    tool = {**FUNCTION_TOOL, "parameters": {"type": "nonsense", "properties": 7}}
    assert declared(lite_client, tool) == [tool]
