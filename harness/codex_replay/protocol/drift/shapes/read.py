"""Convert each schema to the shape of the values that it allows.

References are followed, so the name and the document of a definition do not matter, and an inline schema equals a
referenced schema. Nested unions become one union; `oneOf` and `anyOf` both mean "one of these". The members of ``allOf``
are intersected, and a union is intersected with the keywords next to it. Properties and items are read only on demand,
because types are recursive.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from codex_replay.protocol.drift.shapes.model import (
    ANYTHING,
    NOTHING,
    Array,
    Extra,
    Limits,
    Number,
    Object,
    Shape,
    kind_of,
    text_of,
)
from codex_replay.protocol.drift.shapes.sets import both, either
from codex_replay.protocol.schema.bundle import BundleError, lookup

#: The least and the greatest number of each numeric format of the bundles.
RANGES: dict[str, tuple[float, float]] = {
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32, 64)},
    "int": (-(2**63), 2**63 - 1),
    "uint": (0, 2**64 - 1),
    "float": (-3.4028235e38, 3.4028235e38),
}
_SILENT = frozenset(
    {"title", "description", "default", "examples", "definitions", "deprecated"}
    | {"$schema", "$id", "$comment", "readOnly", "writeOnly"}
)
_UNIONS = ("oneOf", "anyOf")
_OF_OBJECTS = frozenset({"properties", "required", "additionalProperties"})
_OF_ARRAYS = frozenset({"items"})
_OF_NUMBERS = frozenset({"minimum", "maximum"})
_LOWER = {"minLength": "string", "minItems": "array", "minProperties": "object"}
_UPPER = {"maxLength": "string", "maxItems": "array", "maxProperties": "object"}
_EXACT = {"pattern": "string", "uniqueItems": "array"}
LIMITS = {**_LOWER, **_UPPER, **_EXACT}
_READ = {"$ref", "type", "enum", "const", "format", "allOf", *_UNIONS, *_OF_OBJECTS, *_OF_ARRAYS, *_OF_NUMBERS, *LIMITS}


@dataclass(eq=False)
class Reader:
    """Reads the schemas of one document; each schema is read once."""

    document: dict[str, Any]
    _read: dict[int, tuple[Any, Shape]] = field(default_factory=dict)
    _targets: dict[str, Shape] = field(default_factory=dict)
    _tags: dict[int, dict[str, str]] = field(default_factory=dict)

    def shape(self, node: Any) -> Shape:
        """Return the shape of the schema `node` in the document; raises `BundleError` if `node` is not a schema."""
        known = self._read.get(id(node))
        if known is None:
            # The node is kept next to its shape, so that its id is not reused.
            known = self._read[id(node)] = (node, self._shape(node, ()))
        return known[1]

    def _shape(self, node: Any, above: tuple[str, ...]) -> Shape:
        if node is True:
            return ANYTHING
        if node is False:
            return NOTHING
        if not isinstance(node, dict):
            raise BundleError(f"The bundle has {text_of(node)[:60]} where a schema is expected.")
        if "$ref" in node:
            reference = node["$ref"]
            if reference in above:  # a definition that is nothing but itself
                return NOTHING
            if above or reference not in self._targets:
                found = self._shape(lookup(self.document, reference), (*above, reference))
                found = replace(found, owner=str(reference).rsplit("/", 1)[-1])
                if above:
                    return found
                self._targets[reference] = found
            return self._targets[reference]
        parts = [_base(node)]
        parts += [self._shape(each, above) for each in node.get("allOf", ())]
        for keyword in _UNIONS:
            if keyword in node:
                parts.append(reduce(either, [self._shape(each, above) for each in node[keyword]] or [NOTHING]))
        return reduce(both, parts)

    def tags(self, each: Object) -> dict[str, str]:
        """Return the required properties of the schema `each` that allow only one constant, each with the constant as JSON
        text.
        """
        if id(each) in self._tags:
            return self._tags[id(each)]
        found = self._tags[id(each)] = {}
        for name in sorted(each.required):
            shape = self.shape(each.properties[name])
            if len(shape.constants) == 1 and not shape.null and shape.kinds() == {kind_of(*shape.constants)}:
                (text,) = shape.constants
                if not shape.free(kind_of(text)):
                    found[name] = text
        return found


class Readers:
    """The readers of the schema documents of one bundle.

    Codex writes one file per type, and most files repeat the same definitions. Documents whose shared definitions are equal
    have one reader, so that each definition is read and compared only once.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, Reader]] = {}
        self._merged: list[Reader] = []

    def of(self, document: Any) -> Reader:
        """Return the reader of the schema document `document`."""
        if id(document) not in self._known:
            self._known[id(document)] = (document, self._find(document))
        return self._known[id(document)][1]

    def _find(self, document: Any) -> Reader:
        definitions = document.get("definitions", {})
        for reader in self._merged:
            shared = reader.document["definitions"]
            if all(shared.get(name, each) == each for name, each in definitions.items()):
                shared.update({name: each for name, each in definitions.items() if name not in shared})
                return reader
        self._merged.append(Reader({"definitions": dict(definitions)}))
        return self._merged[-1]


def _base(node: dict[str, Any]) -> Shape:
    """Return the shape of the values that the keywords of `node` allow, without the unions and references of `node`."""
    keys = node.keys() - _SILENT
    unread = tuple((key, text_of(node[key])) for key in sorted(keys - _READ))
    if "enum" in node or "const" in node:
        shape = _constants(node["enum"] if "enum" in node else [node["const"]], node.get("type"))
        return replace(shape, unread=unread)
    types = node.get("type")
    if types is None:
        implied = [("object", _OF_OBJECTS), ("array", _OF_ARRAYS), ("number", _OF_NUMBERS)]
        types = [name for name, words in implied if keys & words]
        types += [LIMITS[key] for key in sorted(keys & LIMITS.keys()) if LIMITS[key] not in types]
        if not types:
            return Shape(anything=True, unread=unread)
    named = {types} if isinstance(types, str) else set(types)
    return Shape(
        null="null" in named,
        boolean="boolean" in named,
        string=_limits(node, "string") if "string" in named else None,
        number=_number(node, "number" not in named) if named & {"integer", "number"} else None,
        array=Array(_items(node), _limits(node, "array")) if "array" in named else None,
        objects=(_object(node),) if "object" in named else (),
        unread=unread + ((("items", text_of(node["items"])),) if isinstance(node.get("items"), list) else ()),
    )


def _constants(values: list[Any], types: Any) -> Shape:
    named = {types} if isinstance(types, str) else set(types or ())
    found = {text_of(value) for value in values if not named or _fits(value, named)}
    return Shape(null="null" in found, constants=frozenset(found - {"null"}))


def _fits(value: Any, types: set[str]) -> bool:
    text = text_of(value)
    kind = "null" if value is None else kind_of(text)
    return kind in types or (kind == "number" and "integer" in types and isinstance(value, int))


def _limits(node: dict[str, Any], kind: str) -> Limits:
    found = [(key, node[key]) for key in sorted(LIMITS) if LIMITS[key] == kind and key in node]
    if kind == "string" and "format" in node and node["format"] not in RANGES and node["format"] != "double":
        found.append(("format", node["format"]))
    return tuple(found)


def _items(node: dict[str, Any]) -> Any:
    items = node.get("items", True)
    return True if isinstance(items, list) else items


def _number(node: dict[str, Any], whole: bool) -> Number:
    low, high = RANGES.get(node.get("format", ""), (float("-inf"), float("inf")))
    return Number(whole, max(low, node.get("minimum", low)), min(high, node.get("maximum", high)))


def _object(node: dict[str, Any]) -> Object:
    required = frozenset(node.get("required", ()))
    properties = {**node.get("properties", {})}
    properties |= {name: True for name in required if name not in properties}
    rest = node.get("additionalProperties")
    extra: Extra = "open" if rest is None else "closed" if rest is False else "map"
    values = rest if extra == "map" else True
    return Object(properties, required, extra, values, _limits(node, "object"), str(node.get("title", "")))
