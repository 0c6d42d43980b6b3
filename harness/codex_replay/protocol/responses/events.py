"""Check one event of a Responses stream against the types of the `openai` package and the additions of the Codex backend.

The schema is data in this package, generated from the types of the `openai` package (tests/tools/gen_openai_events.py). A
second table, the overlay of the Codex version, adds the members and events that only Codex's own backend sends. An unknown
key in an object is a fault, because the real service never sends unknown keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from jsonschema_rs import Draft202012Validator, ValidationError

from codex_replay.protocol import data_tables, versions


class EventSchemas:
    """The compiled types of all events; `openai` and `codex` are the versions of the data."""

    def __init__(self, openai: str = versions.OPENAI, codex: str = versions.DEFAULT) -> None:
        vendored = data_tables.load("events", f"openai-{openai}")
        overlay = data_tables.load("responses/overlay", codex)
        self.version: str = vendored["version"]
        self._definitions = _closed(vendored["schema"]["$defs"], overlay)
        self._names = {
            self._definitions[name]["properties"]["type"]["const"]: name
            for name in (_last(ref["$ref"]) for ref in vendored["schema"]["anyOf"])
        }
        self._validators: dict[str, Draft202012Validator] = {}

    @property
    def types(self) -> list[str]:
        """All event types, sorted."""
        return sorted(self._names)

    def problems(self, event: object) -> list[str]:
        """Check one decoded event; return one sentence for each fault, or an empty list."""
        if not isinstance(event, Mapping):
            return ["The data of the event is not a JSON object."]
        kind = event.get("type")
        if not isinstance(kind, str):
            return ['The event has no "type".']
        if kind not in self._names:
            return [f"{kind} is not an event type of the openai package {self.version}."]
        return [_sentence(kind, error) for error in self._validator(kind).iter_errors(event)]

    def _validator(self, kind: str) -> Draft202012Validator:
        if kind not in self._validators:
            schema = {"$ref": f"#/$defs/{self._names[kind]}", "$defs": self._definitions}
            self._validators[kind] = Draft202012Validator(schema)
        return self._validators[kind]


@cache
def event_schemas() -> EventSchemas:
    """Return the schemas of the default versions; they are loaded once."""
    return EventSchemas()


def _sentence(kind: str, error: ValidationError) -> str:
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path)
    text = error.message if len(error.message) <= 300 else "..." + error.message[-297:]
    return f"{kind}{where}: {text}"


def _closed(definitions: dict[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """Forbid unknown members in every object, add the fields of `overlay`, and select the member of a union by its `type`.

    Because of the selection by `type`, the message about a fault names the exact place.
    """
    for name, definition in definitions.items():
        if "properties" in definition:
            definition["additionalProperties"] = False
            definition["properties"].update({key: {} for key in overlay["extra_keys"].get(name, {})})
    codes = definitions["ResponseError"]["properties"]["code"]
    codes["enum"] = sorted({*codes["enum"], *overlay["error_codes"]})
    found: dict[str, Any] = _by_type(definitions, definitions)
    return found


def _by_type(node: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_by_type(entry, definitions) for entry in node]
    if not isinstance(node, dict):
        return node
    tags = _tags(node.get("anyOf"), definitions)
    if tags is None:
        return {key: _by_type(value, definitions) for key, value in node.items()}
    null = any(member.get("type") == "null" for member in node["anyOf"])
    choice: dict[str, Any] = {"properties": {"type": {"enum": sorted(tags)}}, "required": ["type"], "type": "object"}
    choice["allOf"] = [{"if": {"properties": {"type": {"const": tag}}}, "then": {"$ref": ref}} for tag, ref in tags.items()]
    if null:
        return {"if": {"type": "null"}, "else": choice}
    return choice


def _tags(members: Any, definitions: Mapping[str, Any]) -> dict[str, str] | None:
    """Map each `type` to its member of the union, if all members except null have different types."""
    if not isinstance(members, list):
        return None
    tags: dict[str, str] = {}
    objects = [member for member in members if member.get("type") != "null"]
    for member in objects:
        ref = member.get("$ref", "")
        tag = definitions.get(_last(ref), {}).get("properties", {}).get("type", {}).get("const")
        if tag is None:
            return None
        tags[tag] = ref
    return tags if len(tags) == len(objects) > 1 else None


def _last(reference: str) -> str:
    """Return the name at the end of a reference (``#/$defs/X``)."""
    return reference.rpartition("/")[2]
