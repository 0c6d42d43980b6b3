"""Tool schemas of many kinds for the examples in the instructions.

The schemas are JSON Schemas as real clients send them.
"""

from __future__ import annotations

from typing import Any


def _object(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object", "properties": properties}
    return found if required is None else {**found, "required": required}


SCHEMAS: dict[str, dict[str, Any]] = {
    "empty": {"type": "object", "properties": {}},
    "no-properties": {"type": "object"},
    "scalars": _object(
        ["s", "n", "i", "b"], s={"type": "string"}, n={"type": "number"}, i={"type": "integer"}, b={"type": "boolean"}
    ),
    "null": _object(["nothing"], nothing={"type": "null"}),
    "enum": _object(["mode"], mode={"type": "string", "enum": ["vault", "web"]}),
    "enum-untyped": _object(["mode"], mode={"enum": [3, "x", None]}),
    "const": _object(["kind"], kind={"const": "note"}),
    "nested": _object(["range"], range=_object(["start", "end"], start={"type": "integer"}, end={"type": "integer"})),
    "array": _object(["names"], names={"type": "array", "items": {"type": "string"}, "minItems": 2}),
    "array-of-objects": _object(["turns"], turns={"type": "array", "items": _object(["role"], role={"enum": ["user", "ai"]})}),
    "any-of": _object(["when"], when={"anyOf": [{"type": "string", "enum": ["now"]}, {"type": "null"}]}),
    "one-of": _object(["at"], at={"oneOf": [_object(["line"], line={"type": "integer"}), {"type": "string"}]}),
    "all-of": _object(["both"], both={"allOf": [_object(["a"], a={"type": "string"}), _object(["b"], b={"type": "integer"})]}),
    "type-list": _object(["maybe"], maybe={"type": ["integer", "null"]}),
    "bounds": _object(
        ["n", "s"],
        n={"type": "integer", "minimum": 10, "maximum": 12},
        s={"type": "string", "minLength": 20, "maxLength": 24},
    ),
    "closed": {**_object(["a"], a={"type": "string"}, b={"type": "string"}), "additionalProperties": False},
    "optional": _object(None, maybe={"type": "string"}, also={"type": "array", "items": {"type": "number"}}),
    "ref": {**_object(["place"], place={"$ref": "#/$defs/Place"}), "$defs": {"Place": _object(["x"], x={"type": "number"})}},
    "recursive": {
        **_object(["tree"], tree={"$ref": "#/$defs/Tree"}),
        "$defs": {
            "Tree": _object(["label"], label={"type": "string"}, children={"type": "array", "items": {"$ref": "#/$defs/Tree"}})
        },
    },
    "odd-names": _object(
        ["päth", "a b", "</tool_call>"], **{"päth": {"type": "string"}, "a b": {}, "</tool_call>": {"type": "null"}}
    ),
}
