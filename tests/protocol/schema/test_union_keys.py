"""Keys beside a union are known, as `unevaluatedProperties` of later drafts has it; so are those of a frame's envelope."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema_rs import Draft7Validator

from codex_replay.protocol import data_tables
from codex_replay.protocol.schema.bundle import alone
from codex_replay.protocol.schema.explain import Explainer
from codex_replay.protocol.schema.known import extract
from codex_replay.protocol.schema.validate import RpcChecker

TEXT: Any = {"type": "string"}


def tagged(tag: str, **properties: Any) -> Any:
    return {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"type": "string", "enum": [tag]}, **properties},
    }


ITEM = {"type": "object", "properties": {"startedAt": TEXT}, "oneOf": [tagged("a", x=TEXT), tagged("b", y=TEXT)]}
#: An object with keys of its own, and one of two members; `file` of 0.169.0's image items.
EITHER = {
    **tagged("c", name=TEXT),
    "anyOf": [{"properties": {"url": TEXT}, "required": ["url"]}, {"properties": {"id": TEXT}, "required": ["id"]}],
}
NESTED = {"properties": {"at": TEXT}, "oneOf": [EITHER, tagged("a", x=TEXT)]}
REFERRED = {"type": "object", "properties": {"at": TEXT}, "oneOf": [{"$ref": "#/definitions/A"}, {"$ref": "#/definitions/B"}]}
SEVERAL = {"allOf": [{"$ref": "#/definitions/A"}, {"type": "object", "properties": {"at": TEXT}}]}
OPEN = {"type": "object", "properties": {"at": TEXT}, "oneOf": [{**tagged("a"), "additionalProperties": True}, tagged("b")]}
BOTH = {
    "type": "object",
    "oneOf": [tagged("a", x=TEXT), tagged("b", y=TEXT)],
    "anyOf": [{"type": "object", "properties": {"at": TEXT}}],
}
DEFINITIONS = {"A": tagged("a", x=TEXT), "B": tagged("b", y=TEXT)}


CASES: dict[str, tuple[Any, Any, list[str]]] = {
    "a key beside oneOf": (ITEM, {"type": "a", "x": "1", "startedAt": "1"}, []),
    "a key of another member": (ITEM, {"type": "a", "y": "1", "startedAt": "1"}, ["it.y"]),
    "a key of nothing": (ITEM, {"type": "b", "bogus": 1}, ["it.bogus"]),
    "keys beside anyOf": (EITHER, {"type": "c", "name": "n", "url": "u"}, []),
    "an unknown key beside anyOf": (EITHER, {"type": "c", "url": "u", "bogus": 1}, ["it.bogus"]),
    "two levels": (NESTED, {"type": "c", "id": "i", "name": "n", "at": "1"}, []),
    "two levels, unknown": (NESTED, {"type": "c", "id": "i", "x": "n", "at": "1"}, ["it.x"]),
    "behind a reference": (REFERRED, {"type": "b", "y": "1", "at": "1"}, []),
    "behind a reference, unknown": (REFERRED, {"type": "b", "x": "1", "at": "1"}, ["it.x"]),
    "parts of allOf": (SEVERAL, {"type": "a", "x": "1", "at": "1"}, []),
    "parts of allOf, unknown": (SEVERAL, {"type": "a", "y": "1", "at": "1"}, ["it.y"]),
    "an open member": (OPEN, {"type": "a", "bogus": 1}, []),
    "the closed member beside it": (OPEN, {"type": "b", "bogus": 1}, ["it.bogus"]),
    "two unions": (BOTH, {"type": "a", "x": "1", "at": "1"}, []),
    "two unions, unknown": (BOTH, {"type": "a", "y": "1", "at": "1"}, ["it.y"]),
}


@pytest.mark.parametrize(("schema", "value", "unknown"), CASES.values(), ids=CASES.keys())
def test_which_keys_are_known(schema: Any, value: Any, unknown: list[str]) -> None:
    document = {**schema, "definitions": DEFINITIONS}
    assert Draft202012Validator({**document, "unevaluatedProperties": False}).is_valid(value) == (not unknown)
    opened, closed = (extract(schema, document, "0.0.0", close=close) for close in (False, True))
    assert Draft7Validator(opened).is_valid(value)
    assert Draft7Validator(closed).is_valid(value) == (not unknown)
    assert [fault.path for fault in Explainer(opened).faults(value, "it")] == unknown


def test_a_fault_inside_a_key_beside_a_union_is_found() -> None:
    opened, closed = (extract(ITEM, ITEM, "0.0.0", close=close) for close in (False, True))
    value = {"type": "a", "startedAt": 1}
    assert not Draft7Validator(closed).is_valid(value)
    assert [(fault.kind, fault.path) for fault in Explainer(opened).faults(value, "it")] == [("wrong-type", "it.startedAt")]


def test_a_union_that_is_its_own_member_ends() -> None:
    document = {"definitions": {"A": {"properties": {"x": TEXT}, "anyOf": [{"$ref": "#/definitions/A"}, tagged("a")]}}}
    assert extract({"$ref": "#/definitions/A"}, document, "0.0.0", close=True)


# -- what stands beside the methods -----------------------------------------------------------------------------------------


def checker(properties: Any) -> RpcChecker:
    """Check by a bundle whose ServerNotification lists `properties` beside its methods."""
    document = json.loads(data_tables.schema()[data_tables.PRIMARY])
    document["definitions"]["ServerNotification"]["properties"] = properties
    return RpcChecker(alone("0.0.0", json.dumps(document).encode()))


def faults(properties: Any, **more: Any) -> list[tuple[str, str]]:
    frame = {"method": "thread/compacted", "params": {"threadId": "t", "turnId": "1"}, **more}
    return [(each.kind, each.path) for each in checker(properties).check("server", frame)]


def test_a_key_that_every_notification_has_is_known() -> None:
    times = {"emittedAtMs": {"type": "integer"}}
    assert faults(times, emittedAtMs=1) == []
    assert faults(times) == []
    assert faults(times, emittedAtMs="1") == [("wrong-type", "thread/compacted.emittedAtMs")]
    assert faults(times, emittedAt=1) == [("unknown-key", "thread/compacted.emittedAt")]
    assert faults({}, emittedAtMs=1) == [("unknown-key", "thread/compacted.emittedAtMs")]
