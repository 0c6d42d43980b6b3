"""Make an example that satisfies a JSON schema.

To end for a recursive schema, the function remembers the references that it has followed. The example is as small as
possible: it has only the required properties (or the first few if none is required), and uses the first branch that allows
a value.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

Schema = dict[str, Any]
FORMATS = {
    "date-time": "2025-01-01T00:00:00Z",
    "date": "2025-01-01",
    "time": "00:00:00Z",
    "duration": "P1D",
    "email": "user@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com",
    "uri-reference": "/example",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "regex": ".*",
    "json-pointer": "/example",
}
#: What a pattern is tried with.
WORDS: tuple[str, ...] = (
    "example",
    "a",
    "A",
    "0",
    "1",
    "abc",
    "ABC",
    "12",
    "123",
    "1234",
    "12345",
    "a1",
    "A1",
    "a-b",
    "a_b",
    "a.b",
    "a/b",
    "#abcdef",
)
WORDS += (*FORMATS.values(), "1.0.0", "+1", "en", "en-US", "")
#: Where any of these is, a property that is not required could break the rule.
RISKY = {"oneOf", "not", "dependentRequired", "dependentSchemas", "dependencies", "maxProperties", "propertyNames", "if"}


class NoExample(Exception):
    """No value that the schema allows was found."""


def resolve(schema: Any, root: Any) -> Any:
    """Return the schema to which a local reference (RFC 6901) points.

    If the reference is unknown, return a schema that allows any value.
    """
    reference = schema["$ref"]
    if not isinstance(reference, str) or not reference.startswith("#"):
        return {}
    if "%" in reference:
        from urllib.parse import unquote  # late: it is slow to load, and few references need it

        reference = unquote(reference)
    found = root
    for part in reference[1:].split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and key.isdigit() and int(key) < len(found):
            found = found[int(key)]
        elif isinstance(found, dict) and key in found:
            found = found[key]
        else:
            return {}
    return found


def example_for_schema(schema: Any) -> Any:
    """Return a value that the schema allows. Return an empty object if the schema allows any value, or if no value was found."""
    if not isinstance(schema, dict) or not schema:
        return {}
    try:
        return _example(schema, schema, ())
    except NoExample:
        return {}


def _example(schema: Any, root: Any, open_refs: tuple[str, ...]) -> Any:
    if schema is False:
        raise NoExample
    if not isinstance(schema, dict) or not schema:
        return "example"
    if "$ref" in schema:
        reference = str(schema["$ref"])
        if reference in open_refs:
            raise NoExample  # what contains itself is left out, or another branch is taken
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return _example(_merged(resolve(schema, root), beside), root, (*open_refs, reference))
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return _from_enum(schema)
    if schema.get("allOf"):
        rest = {key: value for key, value in schema.items() if key != "allOf"}
        for part in schema["allOf"]:
            found = resolve(part, root) if isinstance(part, dict) and "$ref" in part else part
            rest = _merged(rest, found)
        return _example(rest, root, open_refs)
    for word in ("anyOf", "oneOf"):
        if schema.get(word):
            rest = {key: value for key, value in schema.items() if key != word}
            return _first(schema[word], rest, root, open_refs)
    return _of_type(_type(schema), schema, root, open_refs)


def _from_enum(schema: Schema) -> Any:
    kinds = schema.get("type")
    if kinds is None:
        return schema["enum"][0]
    fits = [value for value in schema["enum"] if _type_of(value) in (kinds if isinstance(kinds, list) else [kinds])]
    return (fits or schema["enum"])[0]


def _first(branches: list[Any], rest: Schema, root: Any, open_refs: tuple[str, ...]) -> Any:
    for branch in branches:
        try:
            return _example(_merged(branch, rest), root, open_refs)
        except NoExample:
            continue
    raise NoExample


def _merged(schema: Any, more: Any) -> Any:
    """Return one schema that has the constraints of both schemas, as far as possible."""
    if not isinstance(schema, dict) or not isinstance(more, dict):
        return False if schema is False or more is False else (more if isinstance(more, dict) else schema)
    result = {**schema, **more}
    for key in ("properties", "$defs", "definitions"):
        if key in schema and key in more:
            result[key] = {**schema[key], **more[key]}
    if "required" in schema and "required" in more:
        result["required"] = list(dict.fromkeys([*schema["required"], *more["required"]]))
    if "enum" in schema and "enum" in more:
        result["enum"] = [value for value in schema["enum"] if value in more["enum"]] or schema["enum"]
    return result


def _type(schema: Schema) -> str:
    found = schema.get("type")
    if isinstance(found, list):
        found = next((kind for kind in found if kind != "null"), "null")
    if isinstance(found, str):
        return found
    if "properties" in schema or "required" in schema or "additionalProperties" in schema:
        return "object"
    if "items" in schema or "prefixItems" in schema:
        return "array"
    return "number" if {"minimum", "maximum", "multipleOf"} & schema.keys() else "string"


def _type_of(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _of_type(kind: str, schema: Schema, root: Any, open_refs: tuple[str, ...]) -> Any:
    match kind:
        case "object":
            return _object(schema, root, open_refs)
        case "array":
            return _array(schema, root, open_refs)
        case "string":
            return _string(schema)
        case "integer" | "number":
            return _number(schema, kind == "integer")
        case "boolean":
            return True
        case "null":
            return None
    return "example"


def _object(schema: Schema, root: Any, open_refs: tuple[str, ...]) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    required = list(schema.get("required") or [])
    extra = schema.get("additionalProperties", True)
    found = {name: _example(properties.get(name, extra), root, open_refs) for name in required}
    least = schema.get("minProperties", 0)
    wanted = max(least, 0 if required or RISKY & schema.keys() else 3)
    for name in properties:
        if len(found) >= wanted:
            break
        if name not in found:
            try:
                found[name] = _example(properties[name], root, open_refs)
            except NoExample:
                continue
    for number in itertools.count(1):
        if len(found) >= least:
            return found
        found[f"key{number}"] = _example(extra, root, open_refs)
    raise NoExample


def _array(schema: Schema, root: Any, open_refs: tuple[str, ...]) -> list[Any]:
    least, most = schema.get("minItems", 0), schema.get("maxItems", 1000)
    first = schema.get("prefixItems") or []
    items = schema.get("items", True)
    if isinstance(items, list):  # as before draft 2020-12
        first, items = items, schema.get("additionalItems", True)
    found = [_example(item, root, open_refs) for item in first[: max(least, len(first)) if most >= len(first) else most]]
    if "contains" in schema:
        found.append(_example(schema["contains"], root, open_refs))
    try:
        if not found and most and items is not True:
            found.append(_example(items, root, open_refs))
        while len(found) < least:
            found.append(_another(items, root, open_refs, found, bool(schema.get("uniqueItems"))))
    except NoExample:
        if len(found) < least:
            raise
    return found


def _another(items: Any, root: Any, open_refs: tuple[str, ...], found: list[Any], unique: bool) -> Any:
    value = _example(items, root, open_refs)
    if not unique or value not in found:
        return value
    schema = resolve(items, root) if isinstance(items, dict) and "$ref" in items else items
    choices = schema.get("enum", []) if isinstance(schema, dict) else []
    for other in choices:
        if other not in found:
            return other
    if isinstance(value, str):
        return f"{value}{len(found) + 1}"
    if isinstance(value, bool):
        return not value
    return value + len(found) if isinstance(value, int | float) else value


def _string(schema: Schema) -> str:
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    usual = FORMATS.get(str(schema.get("format")), "example")
    if isinstance(pattern := schema.get("pattern"), str):
        for word in (usual, *WORDS):
            try:
                if re.search(pattern, word) and len(word) >= least and (most is None or len(word) <= most):
                    return word
            except re.error:
                break
    grown = usual + "x" * max(0, least - len(usual))
    return str(grown if most is None else grown[:most])


def _number(schema: Schema, whole: bool) -> float:
    step = schema.get("multipleOf") or 1
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if above is True:  # as in draft 4
        above = low
    if below is True:
        below = high
    above = above if isinstance(above, int | float) and not isinstance(above, bool) else None
    below = below if isinstance(below, int | float) and not isinstance(below, bool) else None

    def fits(value: float) -> bool:
        return (
            (low is None or value >= low)
            and (high is None or value <= high)
            and (above is None or value > above)
            and (below is None or value < below)
        )

    starts = [bound for bound in (low, above, high, below) if bound is not None]
    for start in (1, *starts):
        multiple = start // step * step
        for value in (multiple, multiple + step, multiple - step, 0):
            if fits(value):
                return int(value) if whole or value == int(value) else value
    if not whole and starts:
        bounds = sorted(starts)
        return float(bounds[0] + bounds[-1]) / 2
    raise NoExample
