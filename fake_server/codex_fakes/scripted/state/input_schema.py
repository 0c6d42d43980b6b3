"""Find the input schemas of dynamic tools that the real 0.92.0 refuses, and return the server's error messages (SCHEMA-18).

The real server converts each input schema to a Rust type. Before the conversion, the server adds a `type` to a schema
without one. Tests with the real binary show that it checks only the outermost schema, its `properties` and its `items`.
"""

from __future__ import annotations

from codex_replay.protocol.refusals import type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TYPES = ("boolean", "string", "integer", "number", "array", "object")


def refusal_of(tools: list[dict[str, Any]]) -> str | None:
    """Return the server's error message for the first tool with an invalid schema, or None."""
    names: set[str] = set()
    for tool in tools:
        name = tool["name"]
        if not name.strip():
            return "dynamic tool name must not be empty"
        if name != name.strip():
            return f"dynamic tool name has leading/trailing whitespace: {name}"
        if name == "mcp" or name.startswith("mcp__"):
            return f"dynamic tool name is reserved: {name}"
        if name in names:
            return f"duplicate dynamic tool name: {name}"
        names.add(name)
        if (wrong := refusal(tool)) is not None:
            return wrong
    return None


def refusal(tool: dict[str, Any]) -> str | None:
    """Return the server's error message for the input schema of a tool, or None if the schema is valid."""
    error = _error(tool.get("inputSchema"))
    return None if error is None else f"dynamic tool input schema is not supported for {tool['name']}: {error}"


def _error(schema: Any) -> str | None:
    if type(schema) is bool:
        return None
    if schema == []:
        return "missing field `type`"
    if type(schema) is not dict:
        return f"invalid type: {type_name(schema)}, expected internally tagged enum JsonSchema"
    kind = schema.get("type")
    if type(kind) is str and kind not in _TYPES:
        return f"unknown variant `{kind}`, expected one of " + ", ".join(f"`{each}`" for each in _TYPES)
    properties = schema.get("properties", {})
    if type(properties) is not dict:
        return f"invalid type: {type_name(properties)}, expected a map"
    required = schema.get("required", [])
    if required is not None and type(required) is not list:
        return f"invalid type: {type_name(required)}, expected a sequence"
    inner = [*properties.values(), *([schema["items"]] if "items" in schema else [])]
    return next((error for each in inner if (error := _error(each)) is not None), None)
