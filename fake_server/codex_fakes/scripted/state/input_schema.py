"""Find the input schemas of dynamic tools that the real 0.92.0 refuses, and return the server's error messages (SCHEMA-18).

The real server converts each input schema to a Rust type. Before the conversion, the server adds a `type` to a schema
without one. Tests with the real binary show that it checks only the outermost schema, its `properties` and its `items`.
"""

from __future__ import annotations

from codex_fakes.scripted.state.form import unlike, wrong_value
from codex_fakes.scripted.state.refused import Refused
from codex_replay.protocol.data_tables import load
from codex_replay.protocol.refusals import type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_TYPES = ("boolean", "string", "integer", "number", "array", "object")


def refusal_of(tools: list[dict[str, Any]]) -> str | None:
    """Return the server's error message for the first tool with an invalid schema, or None."""
    names: set[str] = set()
    for tool in tools:
        if (wrong := _wrong_name(tool["name"], names, "tool name", "tool name", has_limits=False) or refusal(tool)) is not None:
            return wrong
        names.add(tool["name"])
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


# -- versions after 0.92, where the form of all tools is checked before their names ------------------------------------------

_LONGEST = 128  # characters of a name
_RESERVED = ("functions",)  # namespaces of the Responses API


def check(tools: list[Any], version: str) -> None:
    """Raise `Refused` with the server's error message for the first invalid tool."""
    if (wrong := _refusal(tools, load("forms", version))) is not None:
        raise Refused(wrong)


def _refusal(tools: list[Any], forms: Mapping[str, Any]) -> str | None:
    if _mixed(tools):
        return "Invalid request: dynamic tools must use either canonical or legacy format consistently"
    for tool in tools:
        if (wrong := _misshapen(tool, forms)) is not None:
            return f"Invalid request: {wrong}"
    functions = [tool for tool in tools if tool.get("type") != "namespace"]
    for tool in functions:
        if tool.get("deferLoading"):
            return f"deferred dynamic tool must include a namespace: {tool['name']}"
    if (wrong := _wrong_names(functions, "tool name", "tool name")) is not None:
        return wrong
    spaces = [tool for tool in tools if tool.get("type") == "namespace"]
    if (wrong := _wrong_names(spaces, "tool namespace", "tool namespace")) is not None:
        return wrong
    for space in spaces:
        if space["name"] in _RESERVED:
            return f"dynamic tool namespace collides with a reserved Responses API namespace: {space['name']}"
        if not space["tools"]:
            return f"dynamic tool namespace must contain at least one tool: {space['name']}"
        if (wrong := _wrong_names(space["tools"], "tool name", f"tool name in namespace {space['name']}")) is not None:
            return wrong
    for tool in [*functions, *(inner for space in spaces for inner in space["tools"])]:
        if (wrong := _wrong_schema(tool["inputSchema"])) is not None:
            return f"dynamic tool input schema is not supported for {tool['name']}: {wrong}"
    return None


def _mixed(tools: list[Any]) -> bool:
    """Return True if some tools have a `type`, and others do not."""
    found = {"type" in tool for tool in tools if type(tool) is dict}
    for tool in tools:
        inner = tool.get("tools") if type(tool) is dict else None
        found |= {"type" in each for each in inner if type(each) is dict} if type(inner) is list else set()
    return len(found) > 1


def _misshapen(tool: Any, forms: Mapping[str, Any]) -> str | None:
    if type(tool) in (int, float):
        return "invalid type: number, expected struct LegacyDynamicToolSpec"
    kind = "DynamicToolSpec" if type(tool) is dict and "type" in tool else "LegacyDynamicToolSpec"
    return wrong_value(tool, kind, forms)


def _wrong_names(tools: list[dict[str, Any]], what: str, within: str) -> str | None:
    """Check the names of tools or namespaces; `what` names them in an error, and `within` in one about equal names."""
    names: set[str] = set()
    for tool in tools:
        if (wrong := _wrong_name(tool["name"], names, what, within)) is not None:
            return wrong
        names.add(tool["name"])
    return None


def _wrong_name(name: str, earlier: set[str], what: str, within: str, has_limits: bool = True) -> str | None:
    if not name.strip():
        return f"dynamic {what} must not be empty"
    if name != name.strip():
        return f"dynamic {what} has leading/trailing whitespace: {name}"
    if has_limits and not all(sign.isascii() and (sign.isalnum() or sign in "_-") for sign in name):
        shown = "".join(sign if sign.isascii() else f"\\u{{{ord(sign):x}}}" for sign in name)
        return f"dynamic {what} must match ^[a-zA-Z0-9_-]+$ to match Responses API: {shown}"
    if has_limits and len(name) > _LONGEST:
        return f"dynamic {what} must be at most {_LONGEST} characters to match Responses API: {name}"
    if name == "mcp" or name.startswith("mcp__"):
        return f"dynamic {what} is reserved: {name}"
    return f"duplicate dynamic {within}: {name}" if name in earlier else None


def _wrong_schema(schema: Any) -> str | None:
    if type(schema) is bool:
        return None
    if type(schema) is list:
        return f"invalid length {len(schema)}, expected struct JsonSchema with 15 elements"
    if type(schema) in (int, float):
        return "invalid type: number, expected struct JsonSchema"
    if type(schema) is not dict:
        return unlike(schema, "struct JsonSchema")
    properties = schema.get("properties")
    inner = properties.values() if type(properties) is dict else ()
    return next((wrong for each in inner if (wrong := _wrong_schema(each)) is not None), None)
