"""The law of drift: in a pair of protocols each planted change is found with the right class and rule, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codex_replay.protocol import data_tables
from codex_replay.protocol.drift import compare, rules
from codex_replay.protocol.drift import walk as drift_walk
from codex_replay.protocol.drift.shapes import compare as drift_shapes
from codex_replay.protocol.drift.shapes import limits, same, variants
from codex_replay.protocol.schema.bundle import DIRECTIONS, Bundle, alone
from tests.protocol.drift import drift_model
from tests.protocol.drift.drift_model import BREAKING, CHANGES, Protocol, Writer, planted

SEEDS = st.integers(0, 2**32)


def written(protocol: Protocol, name: str, random: Random, *, plain: bool = False) -> Bundle:
    return alone(name, Writer(protocol, random, plain=plain).bundle())


def wait_for(seed: int, name: str, *, plain: bool = False) -> bool:
    """Hold the law to one planted change; False if it does not fit into this protocol."""
    made = planted(seed, name)
    if made is None:
        return False
    old, new, expected = made
    random = Random(seed)
    found = compare.compare(written(old, "old", random, plain=plain), written(new, "new", random, plain=plain))
    assert found.uncompared == ()
    wanted = {(expected.rule, sender) for _, _, sender, _ in expected.where}
    assert {(each.change.rule, each.rule.sender) for each in found.findings} == wanted
    for each in found.findings:
        assert (each.rule.cls == "breaking") == ((each.rule.id, each.rule.sender) in BREAKING)
    places = {(p.kind, p.method, f.rule.sender, p.shown) for f in found.findings for p in f.places}
    assert {place[:3] for place in places} == {where[:3] for where in expected.where}
    assert set(expected.where) <= places
    return True


@pytest.mark.parametrize("name", CHANGES)
@settings(max_examples=6)
@given(seed=SEEDS)
def test_a_planted_change_is_found_and_nothing_else(name: str, seed: int) -> None:
    wait_for(seed, name)


@pytest.mark.parametrize("name", CHANGES)
def test_every_change_finds_room(name: str) -> None:
    assert sum(planted(seed, name) is not None for seed in range(30)) >= 8


@settings(max_examples=25)
@given(seed=SEEDS)
def test_another_spelling_is_no_change(seed: int) -> None:
    random = Random(seed)
    made = drift_model.protocol(random)
    found = compare.compare(written(made, "old", random), written(made, "new", random))
    assert (found.findings, found.uncompared) == ((), ())


# --- the law on the real bundle

PRIMARY = data_tables.schema("0.92.0")[data_tables.PRIMARY]
REAL = alone("0.92.0", PRIMARY)
Mutation = Callable[[Random, dict[str, Any]], bool]
Found = set[tuple[str, str, str]]


def refs(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, each in node.items():
            if key == "$ref":
                yield each.removeprefix("#/definitions/")
            else:
                yield from refs(each)
    elif isinstance(node, list):
        for each in node:
            yield from refs(each)


@cache
def reached() -> dict[str, Found]:
    """Return from which (kind, method, sender) each definition of the real bundle is reached, found by its references alone."""
    definitions = json.loads(PRIMARY)["definitions"]
    shared = definitions["v2"].keys() & definitions.keys()
    found: dict[str, Found] = {}

    def follow(name: str, who: tuple[str, str, str]) -> None:
        folder, _, last = name.rpartition("/")
        if who in found.setdefault(name, set()):
            return
        found[name].add(who)
        for other in refs((definitions["v2"] if folder else definitions)[last]):
            # The primary file's known mistake: what is no v2 type never means a v2 type that shares a name.
            mended = not folder and other.startswith("v2/") and other[3:] in shared
            follow(other[3:] if mended else other, who)

    for direction in DIRECTIONS:
        sender = direction.split("-")[0]
        for method in REAL.methods(direction):
            params, answer = REAL.params(direction, method), REAL.result_type(direction, method)
            for name in refs(params.node) if params else ():
                follow(name, (direction, method, sender))
            if answer and direction.endswith("request"):
                name = f"v2/{answer}" if answer in definitions["v2"] else answer
                follow(name, (direction, method, "server" if sender == "client" else "client"))
    for event in REAL.events():
        schema = REAL.event(event)
        for name in refs(schema.node) if schema else ():
            follow(name, ("event", f"codex/event/{event}", "server"))
    return {name: who for name, who in found.items() if name.rpartition("/")[2] not in shared and name != "EventMsg"}


def _some(random: Random, node: dict[str, Any], fits: Callable[[dict[str, Any], str], bool]) -> str | None:
    """Return a property of an open object that fits; what tells the variants of a union apart never does."""
    if "properties" not in node or node.get("additionalProperties") is False or len(node["properties"]) < 2:
        return None
    names = [
        name for name, each in node["properties"].items() if isinstance(each, dict) and "enum" not in each and fits(node, name)
    ]
    return random.choice(names) if names else None


def _drop(random: Random, node: dict[str, Any]) -> bool:
    name = _some(random, node, lambda node, name: True)
    if name is None:
        return False
    del node["properties"][name]
    node["required"] = [each for each in node.get("required", []) if each != name]
    return True


def _add(required: bool) -> Mutation:
    def mutate(random: Random, node: dict[str, Any]) -> bool:
        if "properties" not in node or node.get("additionalProperties") is False:
            return False
        node["properties"]["zzNew"] = {"type": random.choice(["string", "boolean"])}
        node["required"] = node.get("required", []) + (["zzNew"] if required else [])
        return True

    return mutate


def _require(required: bool) -> Mutation:
    def mutate(random: Random, node: dict[str, Any]) -> bool:
        name = _some(random, node, lambda node, name: (name in node.get("required", [])) != required)
        if name is None:
            return False
        others = [each for each in node.get("required", []) if each != name]
        node["required"] = [*others, name] if required else others
        return True

    return mutate


def _retype(old: Any, new: Any) -> Mutation:
    def mutate(random: Random, node: dict[str, Any]) -> bool:
        name = _some(random, node, lambda node, name: node["properties"][name].get("type") == old)
        if name is not None:
            node["properties"][name]["type"] = new
        return name is not None

    return mutate


def _reformat(old: str, new: str) -> Mutation:
    def mutate(random: Random, node: dict[str, Any]) -> bool:
        name = _some(random, node, lambda node, name: node["properties"][name].get("format") == old)
        if name is not None:
            node["properties"][name]["format"] = new
        return name is not None

    return mutate


def _value(gone: bool) -> Mutation:
    def mutate(random: Random, node: dict[str, Any]) -> bool:
        if len(node.get("enum", [])) < 2:
            return False
        if gone:
            node["enum"].remove(random.choice(node["enum"]))
        else:
            node["enum"].append("zzNew")
        return True

    return mutate


def _variant(gone: bool) -> Mutation:
    def mutate(random: Random, node: dict[str, Any]) -> bool:
        found = [each for each in node.get("oneOf", []) if "type" in each.get("properties", {})]
        if len(found) < 2:
            return False
        if gone:
            node["oneOf"].remove(random.choice(found))
        else:
            node["oneOf"].append({"type": "object", "properties": {"type": {"const": "zzNew"}}, "required": ["type"]})
        return True

    return mutate


MUTATIONS: dict[str, Mutation] = {
    "property-gone": _drop,
    "property-new": _add(False),
    "property-new-required": _add(True),
    "property-required": _require(True),
    "property-optional": _require(False),
    "type-changed": _retype("string", "boolean"),
    "type-widened": _retype("integer", "number"),
    "null-new": _retype("string", ["string", "null"]),
    "null-gone": _retype(["string", "null"], "string"),
    "limits-narrowed": _reformat("int64", "int32"),
    "limits-widened": _reformat("int32", "int64"),
    "value-gone": _value(True),
    "value-new": _value(False),
    "variant-gone": _variant(True),
    "variant-new": _variant(False),
}


def hold_on_the_real_bundle(seed: int, rule: str) -> None:
    random = Random(seed)
    document = json.loads(PRIMARY)
    for name in random.sample(sorted(reached()), len(reached())):
        node: Any = document["definitions"]
        for step in name.split("/"):
            node = node[step]
        if MUTATIONS[rule](random, node):
            break
    else:
        raise LookupError(f"nothing in the bundle has room for {rule}")
    found = compare.compare(REAL, alone("mutant", json.dumps(document).encode())).findings
    assert {(each.rule.id, each.rule.sender) for each in found} == {(rule, sender) for *_, sender in reached()[name]}
    assert all((each.rule.cls == "breaking") == ((each.rule.id, each.rule.sender) in BREAKING) for each in found)
    assert {(place.kind, place.method, each.rule.sender) for each in found for place in each.places} == reached()[name]


@pytest.mark.parametrize("rule", MUTATIONS)
@settings(max_examples=3)
@given(seed=SEEDS)
def test_a_change_in_the_real_bundle_is_found_and_nothing_else(rule: str, seed: int) -> None:
    hold_on_the_real_bundle(seed, rule)


# --- the law bites: what is judged or left out wrongly turns it red


@cache
def _plants(seed: int, name: str) -> set[tuple[str, str]]:
    made = planted(seed, name)
    return set() if made is None else {(made[2].rule, where[2]) for where in made[2].where}


def case_of(rule: str, sender: str) -> tuple[int, str]:
    """Return a seed and a change in which `rule` must be found in what `sender` sends."""
    for seed in range(60):
        for name in CHANGES:
            if (rule, sender) in _plants(seed, name):
                return seed, name
    raise LookupError(f"no change plants {rule} in what the {sender} sends")


ROWS = sorted(rules.RULES)


@pytest.mark.parametrize(("rule", "sender"), ROWS, ids=lambda it: it)
def test_a_flipped_rule_turns_the_law_red(rule: str, sender: rules.Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    seed, name = case_of(rule, sender)
    assert wait_for(seed, name)
    row = rules.RULES[rule, sender]
    flipped = row._replace(cls="additive" if row.cls == "breaking" else "breaking")
    monkeypatch.setitem(rules.RULES, (rule, sender), flipped)
    with pytest.raises(AssertionError):
        wait_for(seed, name)


@pytest.mark.parametrize("rule", rules.IDS)
def test_a_change_that_is_overlooked_turns_the_law_red(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seed, name = case_of(rule, "client")
    note = drift_walk.Walk.note
    monkeypatch.setattr(
        drift_walk.Walk, "note", lambda walk, sender, change, place: change.rule == rule or note(walk, sender, change, place)
    )
    with pytest.raises(AssertionError):
        wait_for(seed, name)


def _nothing(*arguments: Any) -> Iterator[Any]:
    return iter(())


#: What is left out of the comparison, and a change that it then overlooks or invents.
LEFT_OUT = {
    "types": (drift_shapes.Comparer, "_types_of", _nothing, "type changes"),
    "listed values": (drift_shapes.Comparer, "_scalars", _nothing, "value goes"),
    "objects": (drift_shapes.Comparer, "_objects", _nothing, "property goes"),
    "properties": (drift_shapes.Comparer, "_property", _nothing, "property becomes optional"),
    "other keys": (limits, "keys", _nothing, "object closes"),
    "ranges": (limits, "numbers", _nothing, "range narrows"),
    "lengths": (limits, "limits", _nothing, "length is bounded"),
    "names of variants": (variants, "label", lambda reader, each: frozenset(), "tagged variant goes"),
    "pairs of variants": (variants, "match", lambda old, new, *readers: ([], list(old), list(new)), "value comes"),
    "methods": (drift_walk, "_methods", lambda walk, direction: None, "method goes"),
    "params": (drift_walk, "_params", lambda *arguments: None, "params go"),
    "results": (drift_walk, "_results", lambda *arguments: None, "property goes"),
    "events": (drift_walk, "_events", lambda walk: None, "event goes"),
    "what references lead to": (same, "_references", _nothing, "property goes"),
    "shared types": (drift_shapes.Comparer, "_alive", lambda self, root: set(), "property goes"),
}


@pytest.mark.parametrize("what", LEFT_OUT)
def test_a_comparison_that_is_left_out_turns_the_law_red(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, instead, change = LEFT_OUT[what]
    seeds = [seed for seed in range(10) if wait_for(seed, change)]
    monkeypatch.setattr(owner, name, instead)
    with pytest.raises(AssertionError):
        any(not wait_for(seed, change) for seed in seeds)
