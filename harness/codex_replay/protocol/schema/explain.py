"""Explain why a value does not match a schema: list each fault with its path and kind.

The explanation is slower than the validator and runs only after the validator has failed; it goes through the schema and the
value together. In a union, the check first chooses the member that the value belongs to. The choice depends on the JSON
type, on an internal tag (a property with another fixed string in each member), or on an external tag (each member is an
object with one required key). If the union has no tag, the check chooses the member with the fewest faults. Values that the
schema does not restrict are not checked. Each member of a union also allows the keys of the schema around the union
(`codex_replay.protocol.schema.union_keys`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from codex_replay.core.text.truncate import truncate
from codex_replay.protocol.schema.bundle import branches, constant, lookup
from codex_replay.protocol.schema.known import nearest, takes_objects
from codex_replay.protocol.schema.union_keys import ANY_KEY, NO_KEYS, groups, has_union

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from codex_replay.protocol.schema.union_keys import Keys

Kind = Literal[
    "not-json-rpc",
    "unknown-method",
    "missing-required",
    "wrong-type",
    "unknown-enum",
    "unknown-tag",
    "unknown-key",
    "no-such-request",
    "other",
]
Verdict = Literal["valid", "known"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a value: `verdict` names the failed check, `message` is a sentence."""

    kind: Kind
    verdict: Verdict
    path: str
    message: str


_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


def type_name(value: Any) -> str:
    """Return the JSON Schema type name of a decoded JSON value; a float without a fraction is an integer."""
    if value is None:
        return "null"
    if isinstance(value, float) and value.is_integer():
        return "integer"
    return _NAMES[type(value)]


def _a(name: str) -> str:
    """Return `name`, a JSON type, with its article."""
    if name == "null":
        return name
    return f"an {name}" if name[0] in "aeio" else f"a {name}"


def show(text: str) -> str:
    """Return `text` for an error message: cut to 80 characters, with lone surrogates escaped."""
    return truncate(text, 80).encode("utf-8", "backslashreplace").decode()


def join(path: str, key: str) -> str:
    """Return the path of the property `key` of the object at `path`."""
    return f"{path}.{key}" if key.replace("_", "").replace("-", "").isalnum() else f"{path}[{show(repr(key))}]"


class Explainer:
    """Compares values with one extracted schema (see `codex_replay.protocol.schema.known.extract`)."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema

    def faults(self, value: Any, path: str) -> list[Fault]:
        """Return all faults of the value at `path`; an empty list means that the value is valid and known."""
        found: dict[tuple[str, str], Fault] = {}
        for fault in self._node(self._schema, value, path):  # each part of an allOf finds an unknown key
            found.setdefault((fault.kind, fault.path), fault)
        return list(found.values())

    def _find(self, reference: str) -> Any:
        return lookup(self._schema, reference)

    def _follow(self, node: Any) -> Any:
        """Return the schema that `node` refers to, through references and `allOf` with one member.

        The schema ``true`` becomes the empty schema.
        """
        while isinstance(node, dict):
            if "$ref" in node:
                node = lookup(self._schema, node["$ref"])
            elif len(node.get("allOf", ())) == 1 and not {"properties", "type", "oneOf", "anyOf"} & node.keys():
                node = node["allOf"][0]
            else:
                return node
        return {} if node is True else node

    def _node(self, node: Any, value: Any, path: str, around: Keys = NO_KEYS) -> list[Fault]:
        node = self._follow(node)
        if node is False:
            return [Fault("other", "valid", path, f"Nothing is allowed at {path}.")]
        faults: list[Fault] = []
        for keyword, members, keys in groups(node, around, self._find):
            if keyword == "allOf":
                faults += self._node(members[0], value, path, keys)
            else:
                faults += self._union(members, value, path, keys)
        types = self._types(node)
        if types and not _admits(types, value):
            return [*faults, _wrong_type(types, value, path)]
        if "enum" in node and not _among(value, node["enum"]):
            return [*faults, _not_allowed([str(each) for each in node["enum"]], value, path)]
        if isinstance(value, dict) and (takes_objects(node) or "properties" in node or around != NO_KEYS):
            return faults + self._object(node, value, path, around)
        if isinstance(value, list) and "items" in node:
            for index, item in enumerate(value):
                faults += self._node(node["items"], item, f"{path}[{index}]")
        elif isinstance(value, int | float) and not isinstance(value, bool) and value < node.get("minimum", value):
            faults.append(Fault("other", "valid", path, f"{path} is {value}, below the least value {node['minimum']:g}."))
        return faults

    def _object(self, node: Mapping[str, Any], value: dict[str, Any], path: str, around: Keys) -> list[Fault]:
        properties = node.get("properties", {})
        faults = [
            Fault("missing-required", "valid", join(path, name), f"`{name}` is missing from {path}.")
            for name in node.get("required", ())
            if name not in value
        ]
        rest = node.get("additionalProperties")
        if rest is None and (has_union(node) or around is ANY_KEY):
            rest = True
        known = [*properties, *(around or ())]
        for key, item in value.items():
            if key in properties:
                faults += self._node(properties[key], item, join(path, key))
            elif rest is False or (rest is None and key not in known):
                faults.append(_unknown_key(key, path, known, value, "known" if rest is None else "valid"))
            elif rest is not None:
                faults += self._node(rest, item, join(path, key))
        return faults

    def _union(self, members: list[Any], value: Any, path: str, around: Keys) -> list[Fault]:
        candidates = self._flatten(members)
        if any(not self._types(each) and not branches(each) for each in candidates):
            return self._least(candidates, value, path, around)
        fitting = [each for each in candidates if _admits(self._types(each), value)]
        if not fitting:
            return [_wrong_type(sorted({name for each in candidates for name in self._types(each)}), value, path)]
        if isinstance(value, str) and all("enum" in each for each in fitting):
            allowed = [str(name) for each in fitting for name in each["enum"]]
            return [] if value in allowed else [_not_allowed(allowed, value, path, tag=False)]
        if isinstance(value, dict):
            return self._tagged(fitting, value, path, around)
        return self._least(fitting, value, path, around)

    def _flatten(self, members: Iterable[Any]) -> list[Any]:
        """Return the members of a union, including those of nested unions, with references followed."""
        found = []
        for each in map(self._follow, members):
            inner = branches(each) if isinstance(each, dict) and "properties" not in each else []
            found += self._flatten(inner) if inner else [each]
        return found

    def _tagged(self, objects: list[Any], value: dict[str, Any], path: str, around: Keys) -> list[Fault]:
        tag, by_tag = self._internal_tag(objects)
        if tag is not None:
            if tag not in value:
                return [Fault("missing-required", "valid", join(path, tag), f"`{tag}` is missing from {path}.")]
            name = value[tag]
            if not isinstance(name, str):
                return [_wrong_type(["string"], name, join(path, tag))]
            if name not in by_tag:
                return [_not_allowed(list(by_tag), name, join(path, tag), tag=True)]
            return self._node(by_tag[name], value, path, around)
        by_key = _external_tags(objects)
        if by_key:
            found = [key for key in value if key in by_key]
            if not found:
                return [_no_variant(list(by_key), value, path)]
            return self._node(by_key[found[0]], value, path, around)
        return self._least(objects, value, path, around)

    def _internal_tag(self, objects: list[Any]) -> tuple[str | None, dict[str, Any]]:
        """Return the property that each of `objects` requires and fixes to a different string.

        Also return the `objects`, by the string that each requires.
        """
        for name in objects[0].get("required", ()):
            values = [
                constant(self._follow(each.get("properties", {}).get(name, {}))) if name in each.get("required", ()) else None
                for each in objects
            ]
            if None not in values and len(set(values)) == len(values):
                return name, {str(text): each for text, each in zip(values, objects, strict=True)}
        return None, {}

    def _least(self, candidates: list[Any], value: Any, path: str, around: Keys) -> list[Fault]:
        """For a union without a tag, return the faults of `value` in the member that fits best.

        A key is known if any member of the union that matches the value has the key.
        """
        found = [self._node(each, value, path, around) for each in candidates]
        fitting = [faults for faults in found if all(fault.verdict == "known" for fault in faults)]
        if fitting:
            shared = set.intersection(*({fault.path for fault in faults} for faults in fitting))
            return [fault for fault in fitting[0] if fault.path in shared]
        return min(found, key=lambda faults: (sum(_weight(fault, path) for fault in faults), len(faults)))

    def _types(self, node: Any) -> list[str]:
        named = node.get("type", []) if isinstance(node, dict) else []
        return [named] if isinstance(named, str) else list(named)


def _weight(fault: Fault, path: str) -> int:
    """Return the weight of a fault in a union without a tag: how strongly the fault shows that the value does not belong to a
    member.
    """
    if fault.path == path:
        return 100
    return {"unknown-key": 1, "missing-required": 3}.get(fault.kind, 2)


def _admits(types: list[str], value: Any) -> bool:
    name = type_name(value)
    return name in types or (name == "integer" and "number" in types)


def _among(value: Any, allowed: list[Any]) -> bool:
    """Return True if `value` is one of `allowed`, as JSON compares values: 1 is not equal to true."""
    return any(value == each and isinstance(value, bool) == isinstance(each, bool) for each in allowed)


def _external_tags(objects: list[Any]) -> dict[str, Any]:
    """Return `objects` by their only required key; return an empty result if the union has no external tag.

    Only objects that forbid other keys count as externally tagged. Two open objects with one key each are therefore a union
    without a tag.
    """
    found = {}
    for each in objects:
        required = each.get("required", ())
        keys = list(each.get("properties", {}))
        if len(required) != 1 or keys != list(required) or each.get("additionalProperties") is not False:
            return {}
        found[required[0]] = each
    return found if len(found) == len(objects) else {}


def _wrong_type(types: list[str], value: Any, path: str) -> Fault:
    wanted = " or ".join(_a(name) for name in sorted(types))
    return Fault("wrong-type", "valid", path, f"{path} is {_a(type_name(value))}, but must be {wanted}.")


def _list(names: list[str]) -> str:
    shown = ", ".join(f"`{show(name)}`" for name in names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"


def meant(name: str, names: Iterable[str]) -> str:
    """Return `` Did you mean `x`?`` with a space at the start, or an empty string if no name is similar."""
    near = nearest(name, names)
    return "" if near is None else f" Did you mean `{near}`?"


def _not_allowed(allowed: list[str], value: Any, path: str, *, tag: bool | None = None) -> Fault:
    if not isinstance(value, str):
        return Fault("unknown-enum", "valid", path, f"{path} is {show(repr(value))}, but must be one of {_list(allowed)}.")
    kind: Kind = "unknown-tag" if (len(allowed) == 1 if tag is None else tag) else "unknown-enum"
    wanted = f"must be {_list(allowed)}" if len(allowed) == 1 else f"must be one of {_list(allowed)}"
    return Fault(kind, "valid", path, f"{path} is `{show(value)}`, but {wanted}.{meant(value, allowed)}")


def _no_variant(allowed: list[str], value: dict[str, Any], path: str) -> Fault:
    keys = list(value)
    message = f"has the key {_list(keys)}" if keys else "is an empty object"
    hint = meant(keys[0], allowed) if keys else ""
    kind: Kind = "unknown-tag" if keys else "missing-required"
    return Fault(kind, "valid", path, f"{path} {message}, but must have one of {_list(allowed)}.{hint}")


def _unknown_key(key: str, path: str, properties: Iterable[str], value: Mapping[str, Any], verdict: Verdict) -> Fault:
    absent = [name for name in properties if name not in value]
    hint = meant(key, absent) or meant(key, properties)
    return Fault("unknown-key", verdict, join(path, key), f"`{show(key)}` is not known on {path}.{hint}")
