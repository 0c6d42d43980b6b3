"""The tool definitions in sendUserTurn and sendUserMessage. Source: docs/contract/payloads.md, Tool schema payloads."""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin.proxy.fixture import Proxy
from suites.proxy.expected import AS_SPECIFIED, CALLS, ENDPOINTS, MANY, NOTE, TREE, many_tools, tool
from suites.proxy.saying import must_be, must_be_same

pytestmark = [pytest.mark.proxy_profile(AS_SPECIFIED), pytest.mark.model("Hi.")]

LARGE: dict[str, Any] = {
    "type": "object",
    "properties": {f"p{i}": {"type": "string", "description": "long " * 40} for i in range(400)},
}
PAYLOADS = pytest.mark.parametrize("method", CALLS[1:])


@PAYLOADS
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("tools-form", "PAY-14", "PAY-62", "PAY-81", "PAY-95")
def test_form(proxy: Proxy, endpoint: str, method: str) -> None:
    """The tool definitions are function objects in the nested form, in the order of the request, for both endpoints."""
    definitions = proxy.post(endpoint, {"tools": many_tools(endpoint)}).params(method)["tools"]["definitions"]
    must_be("The number of tools.definitions", len(definitions), len(MANY))
    must_be("`type` of tools.definitions", [each["type"] for each in definitions], ["function"] * len(MANY))
    for at, member in enumerate(("name", "description", "parameters")):
        found = [each["function"][member] for each in definitions]
        must_be(f"function.{member} of tools.definitions", found, [each[at] for each in MANY])


@PAYLOADS
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("tools-verbatim", "PAY-15")
def test_verbatim(proxy: Proxy, endpoint: str, method: str) -> None:
    """A tool definition has the client's schema unchanged, including the order of keys and all characters."""
    definitions = proxy.post(endpoint, {"tools": [tool(endpoint)]}).params(method)["tools"]["definitions"]
    must_be_same(f"{method}.tools.definitions[0].function.parameters", definitions[0]["function"]["parameters"], TREE)


@PAYLOADS
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("tools-large", "PAY-15", "PAY-54")
def test_large(proxy: Proxy, endpoint: str, method: str) -> None:
    """The proxy does not shorten a tool schema of 90 KB."""
    definitions = proxy.post(endpoint, {"tools": [tool(endpoint, schema=LARGE)]}).params(method)["tools"]["definitions"]
    must_be_same(f"{method}.tools.definitions[0].function.parameters", definitions[0]["function"]["parameters"], LARGE)


@PAYLOADS
@pytest.mark.spec("tools-verbatim-object", "PAY-15")
def test_an_object_of_chat_is_passed_as_it_is(proxy: Proxy, method: str) -> None:
    """If the client sends a tool in the nested form of chat, the definition keeps all its keys, including `strict`."""
    given = tool("chat", strict=True)
    definitions = proxy.chat({"tools": [given]}).params(method)["tools"]["definitions"]
    must_be_same(f"{method}.tools.definitions", definitions, [given])


@PAYLOADS
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("tools-bare", "PAY-96")
def test_without_description(proxy: Proxy, endpoint: str, method: str) -> None:
    """If a tool has no description, the payload has no description either."""
    given = tool(endpoint, description=None)
    definitions = proxy.post(endpoint, {"tools": [given]}).params(method)["tools"]["definitions"]
    report = definitions[0]["function"].get("description")
    assert not report, f"{method}.tools.definitions[0].function.description must be omitted or empty, not {report!r}"


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("tools-same", "PAY-62", "PAY-81")
def test_turn_and_message_say_the_same(proxy: Proxy, endpoint: str) -> None:
    """sendUserTurn and sendUserMessage have the same definitions."""
    done = proxy.post(endpoint, {"tools": [tool(endpoint), tool(endpoint, "saveNote", NOTE)]})
    must_be_same("sendUserMessage.tools", done.params("sendUserMessage")["tools"], done.params("sendUserTurn")["tools"])


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("tools-choice", "HAND-20")
def test_tool_choice_and_parallel_calls_are_accepted(proxy: Proxy, endpoint: str) -> None:
    """The proxy accepts requests with every form of tool_choice and parallel_tool_calls."""
    forced: Any = {"type": "function", "name": "getFileTree"}
    if endpoint == "chat":
        forced = {"type": "function", "function": {"name": "getFileTree"}}
    for choice in ("auto", "none", "required", forced):
        body = {"tools": [tool(endpoint)], "tool_choice": choice, "parallel_tool_calls": choice == "auto"}
        must_be(f"The number of calls for tool_choice {choice!r}", len(proxy.post(endpoint, body).calls(*CALLS)), 3)
