"""Examples of the two specifications, and small functions that read payloads.

Source: docs/contract/payloads.md, docs/contract/handoff.md.

All values are written by hand from the specifications and share no code with the proxies under test.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_replay.plugin.proxy.fixture import Exchange

AS_SPECIFIED, WORKS, SPEAKS_V2 = "as-specified", "works-on-0.92", "speaks-v2"
CALLS = ["newConversation", "sendUserTurn", "sendUserMessage"]
ENDPOINTS = ["chat", "responses"]
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}
#: An environment in which no variable has its default value, so that one process serves all cases that use it.
OTHER_THAN_DEFAULT: dict[str, str] = {
    "PROXY_CODEX_WORKDIR": "/tmp/other-work",
    "PROXY_APPROVAL_POLICY": "on-request",
    "PROXY_SANDBOX_MODE": "workspace-write",
    "PROXY_INCLUDE_APPLY_PATCH_TOOL": "true",
    "PROXY_IGNORE_CLIENT_SYSTEM_PROMPT": "false",
    "PROXY_RESPONSES_OMIT_TOOL_MANIFEST": "true",
}
#: For cases in which the model writes its calls as `<tool_call>` and the proxy must find them there (docs/proxy.md, tool_calls).
IN_TEXT = pytest.mark.needs("text-tools", "tool_call")
#: The alias of the specification, the effort that the alias implies, and the model in the example of newConversation.
ALIAS, IMPLIED, EFFECTIVE = "gpt-5.2-codev-l", "low", "gpt-5.2"

#: A schema with unsorted keys, all keywords that a summary must handle, and non-ASCII characters.
TREE: dict[str, Any] = {
    "type": "object",
    "required": ["path", "depth"],
    "properties": {
        "path": {"type": "string", "description": "Where to begin — «root»"},
        "depth": {"type": "integer", "minimum": 1},
        "kind": {"enum": ["file", "folder"]},
        "also": {"type": "array", "items": {"type": "string"}},
    },
    "additionalProperties": False,
}
NOTE: dict[str, Any] = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}

#: The two ways to send a request without tools.
NO_TOOLS: dict[str, dict[str, Any]] = {"no-tools": {}, "empty-list": {"tools": []}}
#: A turn that is in the middle of its one message for 15 s: so long a client can hang up before any message is complete.
ENDLESS: dict[str, Any] = {
    "items": [{"type": "text", "text": "word word " * 300, "deltas": ["word word "] * 300}],
    "delay_ms": 50,
    "times": "always",
}
#: An output schema.
SUM: dict[str, Any] = {
    "type": "object",
    "required": ["sum"],
    "properties": {"sum": {"type": "number", "description": "é"}},
    "additionalProperties": False,
}


def tool(
    endpoint: str, name: str = "getFileTree", schema: Any = None, description: str | None = "List files", **more: Any
) -> Any:
    """Return a function tool in the form that an endpoint requires."""
    body: dict[str, Any] = {"name": name}
    if description is not None:
        body["description"] = description
    body["parameters"] = TREE if schema is None else schema
    body |= more
    return {"type": "function", "function": body} if endpoint == "chat" else {"type": "function", **body}


#: 128 tools, the largest number that OpenAI accepts in a request: their names, descriptions and schemas.
MANY: list[tuple[str, str, Any]] = [
    ("getFileTree", "List files", TREE),
    ("saveNote", "Save it", NOTE),
    *((f"tool-{number}", f"Tool {number}", NOTE) for number in range(126)),
]


def many_tools(endpoint: str) -> list[Any]:
    """Return the tools of `MANY` in the form that an endpoint requires."""
    return [tool(endpoint, name, schema, text) for name, text, schema in MANY]


def asking(endpoint: str, prompt: str) -> dict[str, Any]:
    """Return the body of a request to an endpoint, with only a prompt."""
    return {"messages": [{"role": "user", "content": prompt}]} if endpoint == "chat" else {"input": prompt}


def format_of(endpoint: str) -> dict[str, Any]:
    """Return the part of a request that demands structured output, in the form that an endpoint requires."""
    named = {"name": "sum", "schema": SUM, "strict": True}
    if endpoint == "chat":
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    return {"text": {"format": {"type": "json_schema", **named}}}


def native(name: str = "getFileTree", call_id: str = "call_9", path: str | None = "a") -> dict[str, Any]:
    """Return a native tool call as an item of the model; without a path, the call has no arguments."""
    return {"type": "function_call", "name": name, "arguments": {"path": path} if path else {}, "call_id": call_id}


def each_way(text: list[Any], natively: list[Any], *others: Any) -> pytest.MarkDecorator:
    """Return a case for each kind of tool call: calls in the text, and native calls.

    A proxy may declare that it supports only one kind of tool call.
    """
    marks = [IN_TEXT, pytest.mark.model(*text)]
    # With the newConversation of the specification the real 0.92 has no native tools.
    natives = [pytest.mark.needs("native-tools"), pytest.mark.model(*natively), pytest.mark.proxy_profile(WORKS)]
    cases = [pytest.param("call-in-text", marks=marks), pytest.param("native-call", marks=natives)]
    return pytest.mark.parametrize("way", [*others, *cases])


def texts(params: dict[str, Any]) -> str:
    """Return the text of all text items of a payload, joined by newlines."""
    found = [item["data"]["text"] for item in params["items"] if item.get("type") == "text"]
    return "\n".join(found)


def prompt_texts(endpoint: str, prompt: str) -> tuple[str, ...]:
    """Return the allowed texts for a prompt: `[user]` and the prompt; for responses, also the prompt alone (HAND-22)."""
    return (f"[user] {prompt}",) if endpoint == "chat" else (prompt, f"[user] {prompt}")


def conversation_id(done: Exchange) -> Any:
    """Return the conversation id in the response to newConversation."""
    asked = done.calls("newConversation")[0]["id"]
    answers = [f.value for f in done.frames if f.sender == "server" and f.kind == "response" and f.value["id"] == asked]
    return answers[0]["result"]["conversationId"]


def same(first: Any, second: Any) -> bool:
    """Return True if two values give the same JSON text, including the order of keys."""
    return json.dumps(first) == json.dumps(second)


def is_unset(params: dict[str, Any], name: str) -> bool:
    """Return True if a field is null or omitted: "Values are omitted when undefined", and the examples show nulls."""
    return params.get(name) is None


def twins(params: dict[str, Any], first: str, second: str) -> Any:
    """Return the value of a field that has two spellings; both must have the same value, or both must be absent."""
    assert (first in params) == (second in params), f"expected both {first} and {second}, or neither; got only one"
    assert same(params.get(first), params.get(second)), f"expected {first} and {second} to have the same value"
    return params.get(first)
