"""The default reply of the backend, which is used without a script. The same request always gets the same reply.

The replies are those of a very simple model, so that a client can be tried without a script. The default model calls a
function that the prompt names, repeats the outputs of tools, and reports missing tools if the prompt asks for a call
(LITE-66). If the prompt does not lead to a call, the default model sends a greeting.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from codex_replay.protocol.script.expect import input_items, message_texts
from codex_replay.protocol.script.script import Turn

#: How much of a tool's output is repeated, in characters.
REPEATED = 200
#: How much of the end of a prompt the model reads, in characters: other clients wait meanwhile.
READ = 65536
_CALL = re.compile(r"\b(call|use)\b", re.IGNORECASE)
_TOOL = re.compile(r"\b(tool|function)\b", re.IGNORECASE)


def default_turn(body: Mapping[str, Any]) -> Turn:
    """Choose the reply for a request that no script answers. The same request always gets the same reply."""
    items = input_items(body)
    outputs: list[str] = []
    for item in reversed(items):
        if str(item.get("type", "")).endswith("_call_output"):
            outputs.insert(0, str(item.get("output")))
        else:
            break
    if outputs:
        return _says("The tools returned: " + "; ".join(text[:REPEATED] for text in outputs))
    prompt = _last_prompt(items)
    given = body.get("tools")
    tools = [tool for tool in given if isinstance(tool, Mapping)] if isinstance(given, list) else []
    named = [tool for tool in tools if tool.get("name") and re.search(rf"\b{re.escape(str(tool['name']))}\b", prompt)]
    functions = [tool for tool in named or tools if tool.get("type") == "function" and valid_schema(tool)]
    if functions and (named or body.get("tool_choice") == "required"):
        tool = functions[0]
        call = {"type": "function_call", "name": str(tool["name"]), "arguments": _example(tool.get("parameters"))}
        return Turn(items=(call,))
    searched = re.search(r"\bweb[ _]search\b|\bsearch the web\b", prompt, re.IGNORECASE)
    if searched and any(tool.get("type") == "web_search" for tool in tools):
        return Turn(items=({"type": "web_search_call", "query": prompt[:80]}, {"type": "text", "text": "I searched the web."}))
    # Two searches: one for both takes hours for "use use use ...".
    if not tools and (called := _CALL.search(prompt)) is not None and _TOOL.search(prompt, called.end()) is not None:
        return _says("I cannot call a tool: this request declares none.")
    return _says("Hello from the scripted backend.")


def valid_schema(tool: Mapping[str, Any]) -> bool:
    """Return True if the parameters of a function tool are a possible schema.

    A tool whose parameters are not a possible schema is ignored (edge case 1).
    """
    parameters = tool.get("parameters")
    if parameters is None:
        return True
    return (
        isinstance(parameters, Mapping)
        and parameters.get("type", "object") == "object"
        and isinstance(parameters.get("properties", {}), Mapping)
    )


def _says(text: str) -> Turn:
    return Turn(items=({"type": "text", "text": text},))


def _last_prompt(items: list[Mapping[str, Any]]) -> str:
    for item in reversed(items):
        if item.get("role") == "user":
            return "\n".join(message_texts(item))[-READ:]
    return ""


def _example(schema: object) -> Any:
    """Make the simplest value that a schema allows."""
    if not isinstance(schema, Mapping):
        return {}
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return schema["enum"][0]
    kind = schema.get("type", "object")
    if kind == "object":
        given, required = schema.get("properties"), schema.get("required")
        properties = given if isinstance(given, Mapping) else {}
        required = required if isinstance(required, list) else list(properties)
        return {str(key): _example(properties.get(key, {"type": "string"})) for key in required if isinstance(key, str)}
    return {"string": "text", "number": 1, "integer": 1, "boolean": True, "array": []}.get(str(kind))
