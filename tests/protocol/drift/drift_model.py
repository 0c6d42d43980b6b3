"""Protocols made at random and single changes planted in them: what the law of drift is tested with.

Strategy: a protocol is a small tree of our own (`Node`), in which a change is easy to plant and it is plain what must be found.
It is written out as a schema bundle in one of the many spellings that JSON Schema has for the same thing, with definitions
named, inlined and ordered at random, each side in a spelling of its own. It shares no code with what it tests.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

Node = dict[str, Any]
DIRECTIONS = ("client-request", "client-notification", "server-request", "server-notification")
UNIONS = dict(zip(DIRECTIONS, ("ClientRequest", "ClientNotification", "ServerRequest", "ServerNotification"), strict=True))
WORDS = ("alpha", "beta", "gamma", "delta", "kappa", "sigma", "omega", "theta")
FORMATS = ("int32", "int64", "uint16", "uint32")

#: What breaks, stated here again by hand: the rules by the sender of what changed. All the rest is additive.
EITHER = ("method-gone", "property-gone", "value-gone", "variant-gone", "type-changed", "map-gone", "keyword-changed")
NARROWER = ("enum-closed", "null-gone", "limits-narrowed", "keys-closed")
BREAKING_BY_SENDER = {
    "client": (*EITHER, "property-new-required", "property-required", "type-narrowed", *NARROWER),
    "server": (*EITHER, "property-optional", "enum-opened", "type-widened", "null-new", "limits-widened"),
}
BREAKING = {(rule, sender) for sender, rules in BREAKING_BY_SENDER.items() for rule in rules}


@dataclass
class Protocol:
    """Definitions by name; methods by direction (params, whether required, result); events by type."""

    definitions: dict[str, Node] = field(default_factory=dict)
    methods: dict[str, dict[str, Node]] = field(default_factory=lambda: {direction: {} for direction in DIRECTIONS})
    events: dict[str, Node] = field(default_factory=dict)


class Root(NamedTuple):
    kind: str
    method: str
    sender: str
    path: str
    node: Node


class Spot(NamedTuple):
    """A node of a protocol: what holds it under which key, the path to it, and the definition or root that it is in."""

    holder: Any
    key: Any
    node: Node
    path: str
    home: str


def roots(protocol: Protocol) -> Iterator[Root]:
    for direction, methods in protocol.methods.items():
        sender = direction.split("-")[0]
        for name, method in methods.items():
            if method["params"] is not None:
                yield Root(direction, name, sender, "$.params", method["params"])
            if direction.endswith("request"):
                other = "server" if sender == "client" else "client"
                yield Root(direction, name, other, "$.result", method["result"])
    for name, event in protocol.events.items():
        yield Root("event", f"codex/event/{name}", "server", "$.params.msg", event)


def _children(node: Node) -> Iterator[tuple[Any, Any, str]]:
    """Yield (holder, key, step) for each node right below `node`."""
    sort = node["k"]
    if sort == "obj":
        for name in node["props"]:
            yield node["props"][name], "of", f".{name}"
    elif sort in ("null", "arr", "map"):
        yield node, "of", {"null": "", "arr": "[*]", "map": ".*"}[sort]
    elif sort == "tagged":
        for tag in node["variants"]:
            yield node["variants"], tag, f"(type={tag})"
    elif sort == "ext":
        for name in node["variants"]:
            yield node["variants"], name, f".{name}"
    elif sort == "untag":
        for number in range(len(node["variants"])):
            yield node["variants"], number, ""


def walk(node: Node, path: str, home: str, holder: Any = None, key: Any = None) -> Iterator[Spot]:
    yield Spot(holder, key, node, path, home)
    for inner, name, step in _children(node):
        yield from walk(inner[name], path + step, home, inner, name)


def spots(protocol: Protocol) -> list[Spot]:
    """Return every node of a protocol; paths in a definition begin at that definition."""
    found = [spot for name, node in protocol.definitions.items() for spot in walk(node, "", name, protocol.definitions, name)]
    for direction, methods in protocol.methods.items():
        for name, method in methods.items():
            for part in ("params", "result"):
                if method[part] is not None and (part == "params" or direction.endswith("request")):
                    found += walk(method[part], "", f"{direction} {name} {part}", method, part)
    for name, event in protocol.events.items():
        found += walk(event, "", f"event {name}", protocol.events, name)
    return found


def places(protocol: Protocol, home: str) -> list[tuple[str, str, str, str]]:
    """Return from where the definition or root `home` is reached: (kind, method, sender, shortest path)."""
    found = []
    for root in roots(protocol):
        part = "params" if root.path == "$.params" else "result"
        name = f"event {root.method[12:]}" if root.kind == "event" else f"{root.kind} {root.method} {part}"
        seen: set[str] = set()
        queue = [(root.node, root.path, name)]
        while queue:
            node, path, here = queue.pop(0)
            if here == home:
                found.append((root.kind, root.method, root.sender, path))
                break
            for spot in walk(node, path, here):
                if spot.node["k"] == "ref" and spot.node["name"] not in seen:
                    seen.add(spot.node["name"])
                    queue.append((protocol.definitions[spot.node["name"]], spot.path, spot.node["name"]))
    return found


# --- making a protocol


def _name(random: Random, taken: Any = ()) -> str:
    while (name := f"{random.choice(WORDS)}{random.randrange(100)}") in taken:
        pass
    return name


def make_object(random: Random, names: list[str], depth: int, least: int = 1) -> Node:
    properties: dict[str, Node] = {}
    for _ in range(random.randint(least, max(least, 2))):
        properties[_name(random, properties)] = {
            "of": make(random, names, depth + 1),
            "required": random.random() < 0.5,
            "default": None,
        }
    return {"k": "obj", "props": properties, "closed": random.random() < 0.2}


def make(random: Random, names: list[str], depth: int = 0) -> Node:
    """Return a type, which may refer to the definitions `names`."""
    simple = ["str", "bool", "int", "num", "enum", "any"]
    if depth and random.random() < 0.05:
        return {"k": "obj", "props": {}, "closed": random.random() < 0.5}
    deep = ["null", "arr", "map", "obj", "obj", "tagged", "ext", "untag"]
    sort = random.choice(simple + (deep if depth < 2 else []) + (["ref"] * 3 if names else []))
    if sort == "enum":
        return {"k": sort, "values": sorted({_name(random) for _ in range(3)} | {"kept"})}
    if sort == "str":
        return {"k": sort, "limits": {"minLength": 2} if random.random() < 0.2 else {}}
    if sort == "int":
        return {"k": sort, "format": random.choice(FORMATS)}
    if sort in ("arr", "map"):
        return {"k": sort, "of": make(random, names, depth + 1)}
    if sort == "null":
        inner = make(random, names, depth + 1)
        return inner if inner["k"] in ("null", "any", "ref") else {"k": sort, "of": inner}
    if sort == "obj":
        return make_object(random, names, depth)
    if sort == "ref":
        return {"k": sort, "name": random.choice(names)}
    if sort == "tagged":
        # Two of the three differ in nothing but their names.
        one, other = make_object(random, names, depth), make_object(random, names, depth)
        return {"k": sort, "variants": {_name(random): one, _name(random): other, "kept": copy.deepcopy(one)}}
    if sort == "ext":
        return {
            "k": sort,
            "units": [_name(random), "plain"],
            "variants": {f"w{i}": make(random, names, depth + 1) for i in range(2)},
        }
    if sort == "untag":
        found = [make_object(random, names, depth, least=2) for _ in range(2)]
        for number, each in enumerate(found):
            each["props"] = {f"{name}of{number}": {**prop, "required": True} for name, prop in each["props"].items()}
            each["closed"] = False
        return {"k": sort, "variants": found}
    return {"k": sort}


def protocol(random: Random) -> Protocol:
    made = Protocol()
    names = [f"Type{number}" for number in range(random.randint(1, 3))]
    for name in names:
        made.definitions[name] = make_object(random, names, 0, least=2)
    for direction in DIRECTIONS:
        for number in range(2):
            params = make_object(random, names, 0) if random.random() < 0.8 else None
            made.methods[direction][f"{WORDS[number]}/{direction.split('-')[0]}{direction[7:10].title()}"] = {
                "params": params,
                "required": params is not None and random.random() < 0.7,
                "result": make_object(random, names, 0),
            }
    made.events = {f"event_{number}": {**make_object(random, names, 0), "closed": False} for number in range(3)}
    return made


# --- writing it out


class Writer:
    """Writes a protocol as a primary bundle file, in a spelling chosen by `random`."""

    def __init__(self, protocol: Protocol, random: Random, *, plain: bool = False) -> None:
        self._random = random
        self._plain = plain
        self._protocol = protocol
        self._names = {
            name: name if plain else f"{random.choice(['', 'v2/'])}{name}{random.choice(['', 'Renamed'])}"
            for name in protocol.definitions
        }
        self._inlining: list[str] = []

    def _odd(self, share: float = 0.3) -> bool:
        return not self._plain and self._random.random() < share

    def bundle(self) -> bytes:
        definitions: dict[str, Any] = {}
        for name, node in self._protocol.definitions.items():
            self._put(definitions, self._names[name], self.node(node))
        for direction, methods in self._protocol.methods.items():
            members = [self._method(definitions, direction, name, method) for name, method in methods.items()]
            definitions[UNIONS[direction]] = {"oneOf": self._shuffled(members)}
        events = [self._tagged(name, event) for name, event in self._protocol.events.items()]
        if events:
            definitions["EventMsg"] = {"oneOf": self._shuffled(events)}
        return json.dumps({"title": "made", "definitions": definitions}).encode()

    def _put(self, definitions: dict[str, Any], name: str, schema: Any) -> None:
        *folder, last = name.split("/")
        (definitions.setdefault("v2", {}) if folder else definitions)[last] = schema

    def _shuffled(self, members: list[Any]) -> list[Any]:
        return members if self._plain else self._random.sample(members, len(members))

    def _method(self, definitions: dict[str, Any], direction: str, name: str, method: Node) -> dict[str, Any]:
        stem = "".join(part[0].upper() + part[1:] for part in name.split("/"))
        properties: dict[str, Any] = {"method": {"type": "string", "enum": [name]}}
        required = ["method"]
        if direction.endswith("request"):
            properties["id"] = {"type": ["string", "integer"]}
            required.append("id")
            definitions[f"{stem}Response"] = self.node(method["result"])
        if method["params"] is not None:
            definitions[f"{stem}Params"] = self.node(method["params"])
            properties["params"] = {"$ref": f"#/definitions/{stem}Params"}
            required += ["params"] if method["required"] else []
        elif direction.endswith("request"):
            definitions[f"{stem}Params"] = {"type": "null"}
            properties["params"] = {"$ref": f"#/definitions/{stem}Params"}
        return {"type": "object", "properties": properties, "required": required}

    def _tagged(self, tag: str, node: Node) -> dict[str, Any]:
        schema = self._object(node)
        spelled = {"const": tag} if self._odd() else {"type": "string", "enum": [tag]}
        return {
            **schema,
            "properties": {**schema["properties"], "type": spelled},
            "required": [*schema.get("required", []), "type"],
        }

    def _object(self, node: Node) -> dict[str, Any]:
        names = self._shuffled(list(node["props"]))
        schema: dict[str, Any] = {"type": "object", "properties": {name: self._property(node["props"][name]) for name in names}}
        required = self._shuffled([name for name, each in node["props"].items() if each["required"]])
        if required:
            schema["required"] = required
        if node["closed"]:
            schema["additionalProperties"] = False
        if self._odd():
            schema["description"] = f"said {self._random.random()}"
        return schema

    def _property(self, each: Node) -> Any:
        schema = self.node(each["of"])
        if each["default"] is None:
            return schema
        return {
            "default": each["default"],
            **(schema if isinstance(schema, dict) and "$ref" not in schema else {"allOf": [schema]}),
        }

    def node(self, node: Node) -> Any:
        schema = self._node(node)
        if "odd" in node:
            schema = {**schema, "x-odd": node["odd"]}
        return schema

    def _node(self, node: Node) -> Any:
        sort = node["k"]
        if sort == "any":
            return {} if self._odd() else True
        if sort in ("str", "bool"):
            return {"type": {"str": "string", "bool": "boolean"}[sort], **node.get("limits", {})}
        if sort == "int":
            least = {"minimum": 0} if node["format"].startswith("u") and self._odd() else {}
            return {"type": "integer", **({"format": node["format"]} if node["format"] else {}), **least}
        if sort == "num":
            return {"type": "number", "format": "double"} if self._odd() else {"type": "number"}
        if sort == "enum":
            return self._enum(node["values"])
        if sort == "null":
            return self._null(self.node(node["of"]))
        if sort == "arr":
            return {"type": "array", "items": self.node(node["of"])}
        if sort == "map":
            return {"type": "object", "additionalProperties": self.node(node["of"])}
        if sort == "obj":
            return self._object(node)
        if sort == "ref":
            return self._ref(node["name"])
        return {("anyOf" if self._odd() else "oneOf"): self._shuffled(self._members(node))}

    def _members(self, node: Node) -> list[Any]:
        if node["k"] == "tagged":
            return [self._tagged(tag, each) for tag, each in node["variants"].items()]
        if node["k"] == "untag":
            return [self._object(each) for each in node["variants"]]
        units = [{"type": "string", "enum": [unit]} for unit in node["units"]] if self._odd() else [self._enum(node["units"])]
        return units + [
            {"type": "object", "required": [name], "properties": {name: self.node(each)}, "additionalProperties": False}
            for name, each in node["variants"].items()
        ]

    def _enum(self, values: list[str]) -> dict[str, Any]:
        if self._odd():
            return {"oneOf": [{"const": value} for value in self._shuffled(values)]}
        return {"type": "string", "enum": self._shuffled(values)}

    def _null(self, schema: Any) -> dict[str, Any]:
        if "type" in schema and isinstance(schema["type"], str) and "enum" not in schema and not self._odd():
            return {**schema, "type": [schema["type"], "null"]}
        return {"anyOf": self._shuffled([schema, {"type": "null"}])}

    def _ref(self, name: str) -> Any:
        if self._odd(0.15) and name not in self._inlining:
            self._inlining.append(name)
            schema = self.node(self._protocol.definitions[name])
            self._inlining.pop()
            return schema
        schema = {"$ref": f"#/definitions/{self._names[name]}"}
        return {"allOf": [schema]} if self._odd() else schema


# --- planting a change


class Expected(NamedTuple):
    """What must be found: the rule, and where (kind, method, sender, path; a path below a definition is relative to it)."""

    rule: str
    where: list[tuple[str, str, str, str]]


Plant = Callable[[Random, Protocol], Expected | None]
#: Name of a change -> what plants it in a protocol (None where there is no room for it).
CHANGES: dict[str, Plant] = {}


def change(name: str) -> Callable[[Plant], Plant]:
    def register(plant: Plant) -> Plant:
        CHANGES[name] = plant
        return plant

    return register


def _at(made: Protocol, rule: str, spot: Spot, step: str = "") -> Expected | None:
    where = [(kind, method, sender, path + spot.path + step) for kind, method, sender, path in places(made, spot.home)]
    return Expected(rule, where) if where else None


def _pick(random: Random, made: Protocol, fits: Callable[[Spot], bool]) -> Spot | None:
    found = [spot for spot in spots(made) if fits(spot) and places(made, spot.home)]
    return random.choice(found) if found else None


def _swap(name: str, rule: str, fits: Callable[[Node], bool], new: Callable[[Random, Node], Node]) -> None:
    """Register a change that puts another node in the place of one that fits (never in the place of a whole definition)."""

    def plant(random: Random, made: Protocol) -> Expected | None:
        spot = _pick(random, made, lambda it: bool(it.path) and fits(it.node) and not isinstance(it.holder, list) and _alone(it))
        if spot is None:
            return None
        spot.holder[spot.key] = new(random, spot.node)
        return _at(made, rule, spot)

    CHANGES[name] = plant


def _alone(spot: Spot) -> bool:
    """Tell whether the node is a value of its own: not the variant of a union, nor what may be null."""
    return spot.key == "of" and spot.holder.get("k") != "null"


def _kind(*sorts: str) -> Callable[[Node], bool]:
    return lambda node: node["k"] in sorts


_swap("type changes", "type-changed", _kind("str", "int", "num"), lambda r, n: {"k": "bool"})
_swap("scalar becomes array", "type-changed", _kind("str", "bool"), lambda r, n: {"k": "arr", "of": {"k": "str"}})
_swap("anything narrows to a type", "type-narrowed", _kind("any"), lambda r, n: {"k": "str"})
_swap("type widens to anything", "type-widened", _kind("str", "obj", "enum", "int"), lambda r, n: {"k": "any"})
_swap("number narrows to integer", "type-narrowed", _kind("num"), lambda r, n: {"k": "int", "format": ""})
_swap("null comes", "null-new", _kind("str", "enum", "obj", "arr", "ref", "ext", "tagged"), lambda r, n: {"k": "null", "of": n})
_swap("enum opens", "enum-opened", _kind("enum"), lambda r, n: {"k": "str"})
_swap(
    "enum closes",
    "enum-closed",
    lambda n: n["k"] == "str" and not n["limits"],
    lambda r, n: {"k": "enum", "values": ["kept", "other"]},
)
_swap("map becomes object", "map-gone", _kind("map"), lambda r, n: {"k": "obj", "props": {}, "closed": r.random() < 0.5})
_swap(
    "object becomes map",
    "map-new",
    lambda n: n["k"] == "obj" and not n["props"],
    lambda r, n: {"k": "map", "of": {"k": "str", "limits": {}}},
)
_LESS = {"int64": "int32", "uint32": "uint16"}
_MORE = {less: more for more, less in _LESS.items()}
_swap("range narrows", "limits-narrowed", lambda n: n.get("format") in _LESS, lambda r, n: {**n, "format": _LESS[n["format"]]})
_swap("range widens", "limits-widened", lambda n: n.get("format") in _MORE, lambda r, n: {**n, "format": _MORE[n["format"]]})
_swap(
    "length is bounded",
    "limits-narrowed",
    lambda n: n["k"] == "str" and not n["limits"],
    lambda r, n: {**n, "limits": {"maxLength": 9}},
)
_swap("length is free", "limits-widened", lambda n: bool(n.get("limits")), lambda r, n: {**n, "limits": {}})
_swap("unknown keyword comes", "keyword-changed", _kind("str", "int", "bool", "arr"), lambda r, n: {**n, "odd": 1})


@change("null goes")
def _null_goes(random: Random, made: Protocol) -> Expected | None:
    spot = _pick(random, made, lambda it: it.node["k"] == "null" and bool(it.path))
    if spot is None:
        return None
    spot.holder[spot.key] = spot.node["of"]
    return _at(made, "null-gone", spot)


def _properties(random: Random, made: Protocol, fits: Callable[[Node], bool] = lambda each: True) -> tuple[Spot, str] | None:
    # The key of an externally tagged variant, the constants of a tagged one and the properties by which untagged ones are
    # told apart are names, not properties; the first two are not in this model's objects.
    spot = _pick(random, made, lambda it: _whole(it) and _untold(it) and any(map(fits, it.node["props"].values())))
    if spot is None:
        return None
    return spot, random.choice([name for name, each in spot.node["props"].items() if fits(each)])


def _whole(spot: Spot) -> bool:
    """Tell whether the node is an object that is not one of those which only their properties tell apart."""
    return spot.node["k"] == "obj" and not isinstance(spot.holder, list)


def _untold(spot: Spot) -> bool:
    """Tell whether an object stays what it is when one property comes or goes: a closed one with one key is a variant's form."""
    return not (spot.node["closed"] and len(spot.node["props"]) <= 2)


@change("property goes")
def _property_goes(random: Random, made: Protocol) -> Expected | None:
    found = _properties(random, made)
    if found is None:
        return None
    spot, name = found
    expected = _at(made, "property-gone", spot, f".{name}")
    del spot.node["props"][name]
    return expected


def _property_comes(rule: str, required: bool) -> Plant:
    def plant(random: Random, made: Protocol) -> Expected | None:
        spot = _pick(random, made, lambda it: _whole(it) and _untold(it))
        if spot is None:
            return None
        spot.node["props"]["zNew"] = {"of": {"k": random.choice(["bool", "any", "num"])}, "required": required, "default": None}
        return _at(made, rule, spot, ".zNew")

    return plant


CHANGES["optional property comes"] = _property_comes("property-new", False)
CHANGES["required property comes"] = _property_comes("property-new-required", True)


def _requirement(rule: str, before: bool) -> Plant:
    def plant(random: Random, made: Protocol) -> Expected | None:
        found = _properties(random, made, lambda each: each["required"] == before)
        if found is None:
            return None
        spot, name = found
        spot.node["props"][name]["required"] = not before
        return _at(made, rule, spot, f".{name}")

    return plant


CHANGES["property becomes required"] = _requirement("property-required", False)
CHANGES["property becomes optional"] = _requirement("property-optional", True)


@change("object closes")
def _closes(random: Random, made: Protocol) -> Expected | None:
    spot = _pick(random, made, lambda it: _whole(it) and not it.node["closed"] and len(it.node["props"]) > 1)
    if spot is None:
        return None
    spot.node["closed"] = True
    return _at(made, "keys-closed", spot)


@change("object opens")
def _opens(random: Random, made: Protocol) -> Expected | None:
    spot = _pick(random, made, lambda it: it.node["k"] == "obj" and it.node["closed"] and len(it.node["props"]) > 1)
    if spot is None:
        return None
    spot.node["closed"] = False
    return _at(made, "keys-opened", spot)


@change("value goes")
def _value_goes(random: Random, made: Protocol) -> Expected | None:
    spot = _pick(random, made, lambda it: it.node["k"] == "enum" and len(it.node["values"]) > 1)
    if spot is None:
        return None
    spot.node["values"].remove(random.choice(spot.node["values"]))
    return _at(made, "value-gone", spot)


@change("value comes")
def _value_comes(random: Random, made: Protocol) -> Expected | None:
    spot = _pick(random, made, lambda it: it.node["k"] == "enum")
    if spot is None:
        return None
    spot.node["values"].append("zNew")
    return _at(made, "value-new", spot)


def _variants(sort: str, rule: str) -> Plant:
    def plant(random: Random, made: Protocol) -> Expected | None:
        spot = _pick(random, made, lambda it: it.node["k"] == sort)
        if spot is None:
            return None
        found = spot.node["variants"]
        expected = _at(made, rule, spot)
        if rule == "variant-gone":
            del found[random.choice(list(found) if isinstance(found, dict) else range(len(found)))]
        else:
            new = {
                "k": "obj",
                "props": {"zNewOne": {"of": {"k": "str", "limits": {}}, "required": True, "default": None}},
                "closed": False,
            }
            if isinstance(found, dict):
                found["zNew"] = new
            else:
                found.append(new)
        return expected

    return plant


for _sort, _called in (("tagged", "tagged"), ("ext", "externally tagged"), ("untag", "untagged")):
    CHANGES[f"{_called} variant goes"] = _variants(_sort, "variant-gone")
    CHANGES[f"{_called} variant comes"] = _variants(_sort, "variant-new")


@change("unit of a union goes")
def _unit_goes(random: Random, made: Protocol) -> Expected | None:
    spot = _pick(random, made, lambda it: it.node["k"] == "ext")
    if spot is None:
        return None
    spot.node["units"].remove("plain")
    return _at(made, "value-gone", spot)


@change("default changes")
def _default_changes(random: Random, made: Protocol) -> Expected | None:
    found = _properties(random, made, lambda each: each["default"] is not None)
    if found is None:
        return None
    spot, name = found
    spot.node["props"][name]["default"] = "another"
    return _at(made, "default-changed", spot, f".{name}")


def _method_of(random: Random, made: Protocol, fits: Callable[[Node], bool] = lambda method: True) -> tuple[str, str] | None:
    found = [(direction, name) for direction, all_ in made.methods.items() for name, method in all_.items() if fits(method)]
    return random.choice(found) if found else None


@change("method goes")
def _method_goes(random: Random, made: Protocol) -> Expected | None:
    direction, name = _method_of(random, made)  # type: ignore[misc]
    del made.methods[direction][name]
    return Expected("method-gone", [(direction, name, direction.split("-")[0], "$")])


@change("method comes")
def _method_comes(random: Random, made: Protocol) -> Expected | None:
    direction, _ = _method_of(random, made)  # type: ignore[misc]
    result = {"k": "obj", "props": {}, "closed": False}
    made.methods[direction]["brand/new"] = {"params": None, "required": False, "result": result}
    return Expected("method-new", [(direction, "brand/new", direction.split("-")[0], "$")])


@change("event goes")
def _event_goes(random: Random, made: Protocol) -> Expected | None:
    name = random.choice(list(made.events))
    del made.events[name]
    return Expected("method-gone", [("event", f"codex/event/{name}", "server", "$")])


@change("event comes")
def _event_comes(random: Random, made: Protocol) -> Expected | None:
    made.events["brand_new"] = {"k": "obj", "props": {}, "closed": False}
    return Expected("method-new", [("event", "codex/event/brand_new", "server", "$")])


@change("params go")
def _params_go(random: Random, made: Protocol) -> Expected | None:
    found = _method_of(random, made, lambda method: method["params"] is not None)
    if found is None:
        return None
    direction, name = found
    made.methods[direction][name] |= {"params": None, "required": False}
    return Expected("property-gone", [(direction, name, direction.split("-")[0], "$.params")])


@change("params come")
def _params_come(random: Random, made: Protocol) -> Expected | None:
    found = _method_of(random, made, lambda method: method["params"] is None)
    if found is None:
        return None
    direction, name = found
    required = random.random() < 0.5
    made.methods[direction][name] |= {"params": {"k": "obj", "props": {}, "closed": False}, "required": required}
    return Expected(
        "property-new-required" if required else "property-new", [(direction, name, direction.split("-")[0], "$.params")]
    )


@change("params become required or optional")
def _params_requirement(random: Random, made: Protocol) -> Expected | None:
    found = _method_of(random, made, lambda method: method["params"] is not None)
    if found is None:
        return None
    direction, name = found
    before = made.methods[direction][name]["required"]
    made.methods[direction][name]["required"] = not before
    return Expected(
        "property-optional" if before else "property-required", [(direction, name, direction.split("-")[0], "$.params")]
    )


def planted(seed: int, name: str) -> tuple[Protocol, Protocol, Expected] | None:
    """Return a protocol, the same with one change planted in it, and what must be found; None where it does not fit."""
    random = Random(f"{name}{seed}")
    old = protocol(random)
    if name == "default changes":
        for spot in spots(old):
            if spot.node["k"] == "obj":
                for each in spot.node["props"].values():
                    each["default"] = "said"
    new = copy.deepcopy(old)
    expected = CHANGES[name](random, new)
    return None if expected is None or not expected.where else (old, new, expected)
