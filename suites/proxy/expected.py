"""Words of the two specifications, and small helpers to read payloads by.

Source: docs/contract/payloads.md, docs/contract/handoff.md.

Everything here is written out from the text, so that no builder is between the specification and what a proxy is held to.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_replay.plugin.proxy.fixture import Exchange

AS_SPECIFIED, WORKS = "as-specified", "works-on-0.92"
CALLS = ["newConversation", "sendUserTurn", "sendUserMessage"]
ENDPOINTS = ["chat", "responses"]
#: For cases in which a model writes its calls as text, and a proxy has to find them there (docs/proxy.md, capabilities).
IN_TEXT = pytest.mark.needs("text-tools")
#: The alias that the specification names, the effort that it implies, and the model that its newConversation shows.
ALIAS, IMPLIED, EFFECTIVE = "gpt-5.2-codev-l", "low", "gpt-5.2"

#: Keys in an order that sorting would change, all the keywords that a summary has to cope with, and more than ASCII.
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

#: The two ways in which a request has no tools.
NO_TOOLS: dict[str, dict[str, Any]] = {"no-tools": {}, "empty-list": {"tools": []}}
#: A schema of the answer.
SUM: dict[str, Any] = {
    "type": "object",
    "required": ["sum"],
    "properties": {"sum": {"type": "number", "description": "é"}},
    "additionalProperties": False,
}


def tool(
    endpoint: str, name: str = "getFileTree", schema: Any = None, description: str | None = "List files", **more: Any
) -> Any:
    """A function tool as a client of that endpoint writes it."""
    body: dict[str, Any] = {"name": name}
    if description is not None:
        body["description"] = description
    body["parameters"] = TREE if schema is None else schema
    body |= more
    return {"type": "function", "function": body} if endpoint == "chat" else {"type": "function", **body}


def format_of(endpoint: str) -> dict[str, Any]:
    """A request for output by a schema, as a client of that endpoint writes it."""
    named = {"name": "sum", "schema": SUM, "strict": True}
    if endpoint == "chat":
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    return {"text": {"format": {"type": "json_schema", **named}}}


def native(name: str = "getFileTree", call_id: str = "call_9") -> dict[str, Any]:
    """A native call of a tool, as the model's item."""
    return {"type": "function_call", "name": name, "arguments": {"path": "a"}, "call_id": call_id}


def each_way(text: list[Any], natively: list[Any], *others: Any) -> pytest.MarkDecorator:
    """A case for each way in which a model calls: in its text, and natively. A proxy may know one of them, and says which."""
    marks = [IN_TEXT, pytest.mark.model(*text)]
    # What the specification says of newConversation gives the real 0.92 no native tools.
    natives = [pytest.mark.needs("native-tools"), pytest.mark.model(*natively), pytest.mark.proxy_profile(WORKS)]
    cases = [pytest.param("call-in-text", marks=marks), pytest.param("native-call", marks=natives)]
    return pytest.mark.parametrize("way", [*others, *cases])


def texts(params: dict[str, Any]) -> str:
    """The text of all text items of a payload, a line between two items."""
    found = [item["data"]["text"] for item in params["items"] if item.get("type") == "text"]
    return "\n".join(found)


def prompt_texts(endpoint: str, prompt: str) -> tuple[str, ...]:
    """The texts that the one item of a prompt may have: behind its role; a string of responses also as it is (HAND-22)."""
    return (f"[user] {prompt}",) if endpoint == "chat" else (prompt, f"[user] {prompt}")


def conversation_id(done: Exchange) -> Any:
    """What newConversation was answered with."""
    asked = done.calls("newConversation")[0]["id"]
    answers = [f.value for f in done.frames if f.sender == "server" and f.kind == "response" and f.value["id"] == asked]
    return answers[0]["result"]["conversationId"]


def same(first: Any, second: Any) -> bool:
    """Whether two values are the same JSON text, key order included."""
    return json.dumps(first) == json.dumps(second)


def is_unset(params: dict[str, Any], name: str) -> bool:
    """Whether a field is null or omitted: "Values are omitted when undefined", and the examples show nulls."""
    return params.get(name) is None


def twins(params: dict[str, Any], first: str, second: str) -> Any:
    """The value of a field that is sent in two spellings; both must be there, or neither, and say the same."""
    assert (first in params) == (second in params), f"only one of {first} and {second} is sent"
    assert same(params.get(first), params.get(second)), f"{first} and {second} differ"
    return params.get(first)
