"""Describe the parameters of a tool for the model, one per line. A recursive schema is described only once."""

from __future__ import annotations

from typing import Any

from codex_replay.reference.proxy.asking.examples import Schema, resolve


def summarize_schema_parameters(schema: Any) -> list[str]:
    """Return a line for each parameter: its name (the path of a nested parameter), its type, `required` or `optional`, its
    allowed values, its description.
    """
    return _lines(schema, schema, "", ()) or ["none"]


def _lines(schema: Any, root: Any, path: str, open_refs: tuple[str, ...]) -> list[str]:
    if not isinstance(schema, dict):
        return []
    if "$ref" in schema:
        reference = str(schema["$ref"])
        return [] if reference in open_refs else _lines(resolve(schema, root), root, path, (*open_refs, reference))
    lines = []
    required = schema.get("required") or []
    properties = schema.get("properties") or {}
    unsaid = {name: schema.get("additionalProperties", {}) for name in required if name not in properties}
    for name, inner in {**properties, **unsaid}.items():
        where = f"{path}.{name}" if path else name
        lines.append(_line(where, inner, root, name in required, open_refs))
        lines.extend(_lines(inner, root, where, open_refs))
    if isinstance(schema.get("items"), dict):
        lines.extend(_lines(schema["items"], root, f"{path}[]", open_refs))
    for word in ("allOf", "anyOf", "oneOf"):
        for branch in schema.get(word) or []:
            lines.extend(_lines(branch, root, path, open_refs))
    return list(dict.fromkeys(lines))


def _line(where: str, schema: Any, root: Any, required: bool, open_refs: tuple[str, ...]) -> str:
    found = schema
    if isinstance(found, dict) and "$ref" in found:
        recursive = str(found["$ref"]) in open_refs
        found = (
            {**(resolve(found, root) or {}), "description": found.get("description")} if not recursive else {"type": "as above"}
        )
    found = found if isinstance(found, dict) else {}
    words = [_kind(found), "required" if required else "optional"]
    text = f"{where} ({', '.join(words)})"
    if found.get("enum"):
        text += " one of " + ", ".join(str(value) for value in found["enum"])
    description = " ".join(str(found.get("description") or "").split())
    return f"{text}: {description}" if description else text


def _kind(schema: Schema) -> str:
    found = schema.get("type")
    if isinstance(found, list):
        return " or ".join(map(str, found))
    if found == "array":
        items = schema.get("items")
        inner = items.get("type") if isinstance(items, dict) else None
        return f"array of {inner}" if isinstance(inner, str) else "array"
    if isinstance(found, str):
        return found
    branches = schema.get("anyOf") or schema.get("oneOf") or []
    kinds = dict.fromkeys(str(branch.get("type", "any")) for branch in branches if isinstance(branch, dict))
    return " or ".join(kinds) or ("one value" if "enum" in schema or "const" in schema else "any")
