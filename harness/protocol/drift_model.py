"""What a JSON schema admits, brought into one form in which two schemas can be compared whatever way they were written.

Strategy: a schema is a set of alternatives, by JSON type: null, constants, strings, numbers, arrays, objects. References
are followed, so the name of a definition, the document it stands in, and whether it is written inline make no difference.
Unions are flattened (`oneOf` and `anyOf` alike, since each reads as "one of these"), ``allOf`` and keywords that stand
beside a union are intersected. Properties and items stay unread until they are asked for: types are recursive.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import product
from typing import Any, Literal, NamedTuple

from harness.protocol.bundle import BundleError, lookup

Extra = Literal["open", "closed", "map"]
Limits = tuple[tuple[str, Any], ...]

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


class Number(NamedTuple):
    """Numbers between `low` and `high`, both included; only whole ones if `whole`."""

    whole: bool
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Array:
    """Arrays of `items` (a schema; True for anything) within `limits`."""

    items: Any
    limits: Limits = ()


@dataclass(frozen=True, slots=True, eq=False)
class Object:
    """Objects with `properties` (name -> schema), of which `required` are always there.

    `extra` tells what other keys may stand there: "open" (nothing is said), "closed" (none), "map" (of schema `values`).
    """

    properties: dict[str, Any]
    required: frozenset[str]
    extra: Extra = "open"
    values: Any = True
    limits: Limits = ()
    title: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """What a schema admits. `constants` are JSON texts; `string` holds the limits of strings, None where none is admitted.

    `anything` means every JSON value; `unread` are keywords that are not understood here, with their JSON text.
    `owner` is the definition in which the schema stands, for people to read; nothing is decided by it.
    """

    anything: bool = False
    null: bool = False
    constants: frozenset[str] = frozenset()
    boolean: bool = False
    string: Limits | None = None
    number: Number | None = None
    array: Array | None = None
    objects: tuple[Object, ...] = ()
    unread: Limits = ()
    owner: str = ""
    _kinds: list[frozenset[str]] = field(default_factory=list, init=False, repr=False)

    def kinds(self) -> frozenset[str]:
        """Return the JSON types that are admitted, null apart."""
        if not self._kinds:
            found = {kind_of(text) for text in self.constants}
            found |= {kind for kind in ("boolean", "string", "number", "array") if self.free(kind)}
            self._kinds.append(frozenset(found | ({"object"} if self.objects else set())))
        return self._kinds[0]

    def only_null(self) -> bool:
        """Tell whether null is admitted and nothing else."""
        return self.null and not self.anything and not self.kinds()

    def free(self, kind: str) -> bool:
        """Tell whether values of the scalar `kind` are admitted that are not listed."""
        return getattr(self, kind) not in (None, False)

    def listed(self, kind: str) -> frozenset[str]:
        """Return the constants of the scalar `kind`."""
        return frozenset(text for text in self.constants if kind_of(text) == kind)


ANYTHING = Shape(anything=True)
NOTHING = Shape()


def kind_of(text: str) -> str:
    """Return the JSON type of the constant whose JSON text is `text`."""
    return {'"': "string", "t": "boolean", "f": "boolean", "[": "array", "{": "object"}.get(text[0], "number")


def text_of(value: Any) -> str:
    """Return the JSON text by which a constant is compared: 1 and true differ, the order of keys does not count."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


@dataclass(eq=False)
class Reader:
    """Reads the schemas of one document; each is read once."""

    document: dict[str, Any]
    _read: dict[int, tuple[Any, Shape]] = field(default_factory=dict)
    _targets: dict[str, Shape] = field(default_factory=dict)
    _tags: dict[int, dict[str, str]] = field(default_factory=dict)

    def shape(self, node: Any) -> Shape:
        """Return what the schema `node` of this document admits; raises `BundleError` for what is no schema."""
        known = self._read.get(id(node))
        if known is None:
            # The node is kept beside its shape, so that no other node can come to have its id.
            known = self._read[id(node)] = (node, self._shape(node, ()))
        return known[1]

    def _shape(self, node: Any, above: tuple[str, ...]) -> Shape:
        if node is True:
            return ANYTHING
        if node is False:
            return NOTHING
        if not isinstance(node, dict):
            raise BundleError(f"The bundle holds {text_of(node)[:60]} where a schema should stand.")
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
                parts.append(reduce(_either, [self._shape(each, above) for each in node[keyword]] or [NOTHING]))
        return reduce(_both, parts)

    def tags(self, each: Object) -> dict[str, str]:
        """Return the required properties of `each` that admit one constant only, with its JSON text."""
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
    """Gives the reader of each document of one bundle.

    Codex writes a file a type, and most of them repeat the same definitions. Documents that agree in all that they share
    are read as one, so that each definition is read and compared once.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, Reader]] = {}
        self._merged: list[Reader] = []

    def of(self, document: Any) -> Reader:
        """Return the reader of `document`."""
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
    """Return what the keywords of `node` itself admit, its unions and references left out."""
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


def _either(a: Shape, b: Shape) -> Shape:
    """Return what `a` or `b` admits."""
    if a.anything or b.anything:
        return replace(ANYTHING, unread=a.unread + b.unread)
    shape = Shape(
        null=a.null or b.null,
        boolean=a.boolean or b.boolean,
        string=a.string if b.string is None else b.string if a.string is None else _common(a.string, b.string),
        number=_span(a.number, b.number),
        array=a.array if b.array is None else b.array if a.array is None else _joined(a.array, b.array),
        objects=a.objects + b.objects,
        unread=a.unread + b.unread,
        owner=a.owner if b.only_null() else b.owner if a.only_null() else "",
    )
    # A constant that an alternative admits anyway says nothing.
    listed = frozenset(text for text in a.constants | b.constants if not (kind_of(text) in _SCALAR and shape.free(kind_of(text))))
    return replace(shape, constants=listed)


_SCALAR = ("boolean", "string", "number")


def _common(a: Limits, b: Limits) -> Limits:
    return tuple(each for each in a if each in b)


def _span(a: Number | None, b: Number | None) -> Number | None:
    if a is None or b is None:
        return a or b
    return Number(a.whole and b.whole, min(a.low, b.low), max(a.high, b.high))


def _joined(a: Array, b: Array) -> Array:
    return Array({"anyOf": [a.items, b.items]}, _common(a.limits, b.limits))


def _both(a: Shape, b: Shape) -> Shape:
    """Return what `a` and `b` admit alike."""
    unread = a.unread + b.unread
    if a.anything or b.anything:
        kept = b if a.anything else a
        return replace(kept, unread=unread) if a.unread or b.unread else kept
    constants = {text for text in a.constants if text in b.constants or _free(b, text)}
    constants |= {text for text in b.constants if _free(a, text)}
    return Shape(
        null=a.null and b.null,
        constants=frozenset(constants),
        boolean=a.boolean and b.boolean,
        string=None if a.string is None or b.string is None else a.string + tuple(x for x in b.string if x not in a.string),
        number=_overlap(a.number, b.number),
        array=None if a.array is None or b.array is None else _merged(a.array, b.array),
        objects=tuple(_merged_objects(x, y) for x, y in product(a.objects, b.objects)),
        unread=unread,
    )


def _free(shape: Shape, text: str) -> bool:
    return kind_of(text) in _SCALAR and shape.free(kind_of(text))


def _overlap(a: Number | None, b: Number | None) -> Number | None:
    if a is None or b is None:
        return None
    return Number(a.whole or b.whole, max(a.low, b.low), min(a.high, b.high))


def _merged(a: Array, b: Array) -> Array:
    items = a.items if b.items is True else b.items if a.items is True else {"allOf": [a.items, b.items]}
    return Array(items, a.limits + tuple(each for each in b.limits if each not in a.limits))


def _merged_objects(a: Object, b: Object) -> Object:
    """Return objects that have the properties of both: what serde's `flatten` makes of a struct and an enum."""
    properties = {**a.properties}
    for name, node in b.properties.items():
        other = properties.get(name, True)
        properties[name] = node if other is True else other if node is True else {"allOf": [other, node]}
    maps = [each for each in (a, b) if each.extra == "map"]
    extra: Extra = "map" if maps else "closed" if a.extra == b.extra == "closed" else "open"
    values = maps[0].values if maps else True
    return Object(properties, a.required | b.required, extra, values, a.limits + b.limits, b.title or a.title)
