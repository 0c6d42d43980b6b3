"""Values made from a schema, and single faults planted in them: what the validators are tested with.

Strategy: `Maker` walks a schema with a `random.Random` (a seeded one, or hypothesis's own) and builds a value that
satisfies it; on the way it notes the places where one fault can be planted, with the kind and path that a good check
must report. It shares no code with the checks.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
STRANGE = "zzStrange"


class Fault(NamedTuple):
    """One possible fault: the expected `kind` and `path`, and how to plant it in a copy of the value."""

    kind: str
    path: str
    steps: tuple[Any, ...]
    plant: Callable[[Any, Any], None]
    #: The path of the untagged union it lies in, where more than one reading is right; else None.
    vague: str | None


class Maker:
    def __init__(self, schema: dict[str, Any], random: Random) -> None:
        self.schema = schema
        self.random = random
        self.faults: list[Fault] = []
        self._vague: str | None = None

    def make(self, path: str) -> Any:
        """Return a value of the schema; `faults` then holds what can be planted in it."""
        self.faults = []
        return self._node(self.schema, path, (), 0, outer=True)

    def _follow(self, node: Any) -> Any:
        while isinstance(node, dict) and ("$ref" in node or "allOf" in node):
            if "allOf" in node:
                node = node["allOf"][0]
                continue
            found: Any = self.schema
            for step in node["$ref"].split("/")[1:]:
                found = found[step]
            node = found
        return node

    def _types(self, node: Any) -> set[str]:
        """Return the JSON types that `node` admits anywhere."""
        node = self._follow(node)
        if node is True or not {"type", "oneOf", "anyOf"} & node.keys():
            return set(TYPES)
        found: set[str] = set()
        for each in node.get("oneOf", []) + node.get("anyOf", []):
            found |= self._types(each)
        named = node.get("type", [])
        return found | ({named} if isinstance(named, str) else set(named))

    def _note(self, kind: str, path: str, steps: tuple[Any, ...], plant: Callable[[Any, Any], None]) -> None:
        self.faults.append(Fault(kind, path, steps, plant, self._vague))

    def _node(self, node: Any, path: str, steps: tuple[Any, ...], depth: int, *, outer: bool) -> Any:
        node = self._follow(node)
        if outer and steps:
            self._note_type(node, path, steps)
        if node is True or not {"type", "oneOf", "anyOf", "enum", "properties"} & node.keys():
            return self.random.choice([None, True, 3, 1.5, "open", [], [{"a": [1]}], {}, {"any": {"thing": None}}])
        members = node.get("oneOf") or node.get("anyOf")
        if members:
            return self._union(members, path, steps, depth)
        if "enum" in node:
            kind = "unknown-tag" if len(node["enum"]) == 1 else "unknown-enum"
            if path.split(".")[-1] != "method" or len(steps) > 1:
                self._note(kind, path, steps, _replace(STRANGE))
            return self.random.choice(node["enum"])
        named = node["type"]
        name = named if isinstance(named, str) else self.random.choice(named)
        return self._typed(name, node, path, steps, depth)

    def _note_type(self, node: Any, path: str, steps: tuple[Any, ...]) -> None:
        admitted = self._types(node)
        if "number" in admitted:
            admitted.add("integer")
        wrong = {"null": None, "boolean": True, "integer": 7, "number": 1.25, "string": STRANGE, "array": [], "object": {}}
        rest = [name for name in TYPES if name not in admitted]
        if rest and (len(steps) > 1 or steps[0] != "method"):
            self._note("wrong-type", path, steps, _replace(wrong[self.random.choice(rest)]))

    def _typed(self, name: str, node: Any, path: str, steps: tuple[Any, ...], depth: int) -> Any:
        if name == "null":
            return None
        if name == "boolean":
            return self.random.choice([True, False])
        if name == "integer":
            return self.random.choice([0, 1, 7, 65535, 2**31])
        if name == "number":
            return self.random.choice([0, 1.5, 2.0, 1e-7])
        if name == "string":
            return self.random.choice(["", "x", "Grüße", "a\nb", "00000000-0000-7000-8000-000000000000"])
        if name == "array":
            if "items" not in node:
                return []
            count = 0 if depth > 8 else self.random.choice([0, 1, 1, 2])
            return [self._node(node["items"], f"{path}[{i}]", (*steps, i), depth + 1, outer=True) for i in range(count)]
        return self._object(node, path, steps, depth)

    def _object(self, node: Any, path: str, steps: tuple[Any, ...], depth: int) -> dict[str, Any]:
        value: dict[str, Any] = {}
        required = node.get("required", [])
        for name, each in node.get("properties", {}).items():
            optional = name not in required
            if optional and (depth > 8 or self.random.random() < 0.5):
                continue
            value[name] = self._node(each, f"{path}.{name}", (*steps, name), depth + 1, outer=True)
            if not optional and (steps or name not in ("method", "id", "result", "error")):
                self._note("missing-required", f"{path}.{name}", steps, _drop(name))
        rest = node.get("additionalProperties")
        if rest in (None, False):
            self._note("unknown-key", f"{path}.{STRANGE}", steps, _add)
        elif depth < 8:
            for name in self.random.sample(["one", "two", "three"], self.random.choice([0, 1, 2])):
                if name not in node.get("properties", {}):
                    value[name] = self._node(rest, f"{path}.{name}", (*steps, name), depth + 1, outer=True)
        return value

    def _union(self, members: list[Any], path: str, steps: tuple[Any, ...], depth: int) -> Any:
        chosen = self._follow(self.random.choice(members))
        objects = [each for each in map(self._follow, members) if each is not True and each.get("type") == "object"]
        external = len(objects) and all(each.get("additionalProperties") is False for each in objects)
        tagged = len(objects) < 2 or external or _internal(objects)
        if external and chosen in objects:
            return self._external(chosen, path, steps, depth)
        if tagged or self._vague is not None:
            if "enum" in chosen:
                # A union of string enums: which one is not the value's business.
                self._note("unknown-enum", path, steps, _replace(STRANGE))
                return self.random.choice(chosen["enum"])
            return self._node(chosen, path, steps, depth, outer=False)
        self._vague = path
        value = self._node(chosen, path, steps, depth, outer=False)
        self._vague = None
        return value

    def _external(self, node: Any, path: str, steps: tuple[Any, ...], depth: int) -> Any:
        (key,) = node["required"]
        self._note("unknown-tag", path, steps, _rename(key))
        self._note("missing-required", path, steps, _drop(key))
        self._note("unknown-key", f"{path}.{STRANGE}", steps, _add)
        return {key: self._node(node["properties"][key], f"{path}.{key}", (*steps, key), depth + 1, outer=True)}


def _internal(objects: list[Any]) -> bool:
    """Tell whether the objects share a required property that each fixes to one string."""
    names = set.intersection(*(set(each.get("required", [])) for each in objects))
    return any(all(len(each["properties"][name].get("enum", [])) == 1 for each in objects) for name in names)


def _replace(new: Any) -> Callable[[Any, Any], None]:
    def plant(holder: Any, key: Any) -> None:
        holder[key] = copy.deepcopy(new)

    return plant


def _drop(name: str) -> Callable[[Any, Any], None]:
    def plant(holder: Any, key: Any) -> None:
        del holder[key][name]

    return plant


def _rename(name: str) -> Callable[[Any, Any], None]:
    def plant(holder: Any, key: Any) -> None:
        holder[key] = {STRANGE: holder[key][name]}

    return plant


def _add(holder: Any, key: Any) -> None:
    holder[key][STRANGE] = 1


def planted(value: Any, fault: Fault) -> Any:
    """Return a copy of `value` with `fault` in it."""
    root = {"root": copy.deepcopy(value)}
    holder: Any = root
    steps = ("root", *fault.steps)
    for step in steps[:-1]:
        holder = holder[step]
    fault.plant(holder, steps[-1])
    return root["root"]
