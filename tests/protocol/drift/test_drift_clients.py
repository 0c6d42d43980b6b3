"""Who notices a change: the law on changes planted in what all clients speak, in what is gated, and in what moved."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codex_replay.protocol.drift import clients as drift_clients
from codex_replay.protocol.drift import compare
from codex_replay.protocol.drift.findings import Drift
from codex_replay.protocol.drift.shapes import compare as drift_shapes
from codex_replay.protocol.drift.walk import Walk
from codex_replay.protocol.schema.bundle import Bundle, alone
from tests.protocol.drift.drift_model import CHANGES, Protocol, Writer, planted

SEEDS = st.integers(0, 2**32)
GONE = {"method-gone", "property-gone", "value-gone", "variant-gone"}
#: Rule, who sends it, what it is about, and where.
Told = set[tuple[str, str, str, str, str, str]]


def written(protocol: Protocol, random: Random, *, plain: bool) -> Bundle:
    return alone("made", Writer(protocol, random, plain=plain).bundle())


def told(found: Drift, *clients: str) -> Told:
    return {
        (each.rule.id, each.rule.sender, each.change.what, place.kind, place.method, place.shown)
        for each in found.findings
        if not clients or each.clients in clients
        for place in each.places
    }


def where(it: tuple[str, ...]) -> tuple[str, ...]:
    return (*it[:-1], ".".join(it[-1].split(".")[:2]))


def crowded(found: Told) -> set[tuple[str, ...]]:
    """Return where so many places have one change that they may not be all: a type is told at its shortest paths only."""
    return {root for root, number in Counter(map(where, found)).items() if number >= drift_shapes.PATHS}


def coarse(found: Told, crowds: set[tuple[str, ...]]) -> set[tuple[str, ...]]:
    return {where(it) if where(it) in crowds else it for it in found}


def held(old: Protocol, new: Protocol, gated_old: Protocol, gated_new: Protocol, random: Random) -> Drift:
    """Compare with what is gated, and hold to it: each sort of client is told what the comparison of its own bundles finds."""
    plain = random.random() < 0.5  # in one spelling most of both walks is the same, in many spellings nothing is
    sides = written(old, random, plain=plain), written(new, random, plain=plain)
    beside = written(gated_old, random, plain=plain), written(gated_new, random, plain=plain)
    found = compare.compare(*sides, lambda it: (beside[sides.index(it)], ""))
    for clients, pair in (("without", sides), ("with", beside)):
        mine, alone = told(found, "all", clients), told(compare.compare(*pair))
        crowds = crowded(mine) | crowded(alone)
        assert coarse(mine, crowds) == coarse(alone, crowds)
    assert not told(found, "with") & told(found, "all", "without")
    assert not told(found, "without") & told(found, "all", "with")
    for each in found.findings:
        assert each.behind == ("experimentalApi" if each.clients == "without" and each.rule.id in GONE else "")
    return found


# --- the whole change on one side of the gate


@pytest.mark.parametrize("name", CHANGES)
@settings(max_examples=2)
@given(seed=SEEDS)
def test_a_change_is_noticed_by_those_whose_bundles_have_it(name: str, seed: int) -> None:
    made = planted(seed, name)
    if made is None:
        return
    old, new, _ = made
    for capable, others, clients in ((old, new, "without"), (new, old, "with"), (new, new, "all")):
        found = held(old, others, old, capable, Random(seed))
        assert {each.clients for each in found.findings} == {clients}


# --- a part of the protocol is gated


def gate(old: Protocol, new: Protocol, random: Random) -> Callable[[Protocol], Protocol]:
    """Return what takes some methods, events and properties out of a protocol, which only its experimental bundle has then."""
    methods = {at for made in (old, new) for at in names(made) if random.random() < 0.2}
    events = {name for made in (old, new) for name in sorted(made.events) if random.random() < 0.2}
    # A closed object may be a variant, which its properties name.
    open_ = [(home, node) for home, node in homes(old) if not node["closed"]]
    properties = {(home, name) for home, node in open_ for name in node["props"] if random.random() < 0.25}

    def plain(whole: Protocol) -> Protocol:
        less = copy.deepcopy(whole)
        for direction, name in methods:
            less.methods[direction].pop(name, None)
        for name in events:
            less.events.pop(name, None)
        for home, node in homes(less):
            node["props"] = {name: each for name, each in node["props"].items() if (home, name) not in properties}
        return less

    return plain


def names(made: Protocol) -> list[tuple[str, str]]:
    return [(direction, name) for direction, methods in made.methods.items() for name in methods]


def homes(made: Protocol) -> list[tuple[str, Any]]:
    """Return the objects that stand on their own, by where."""
    found: list[tuple[str, Any]] = list(made.definitions.items())
    for direction, name in names(made):
        found += [(f"{direction} {name} {part}", made.methods[direction][name][part]) for part in ("params", "result")]
    return [(home, node) for home, node in found if node is not None and node["k"] == "obj"]


@pytest.mark.parametrize("name", CHANGES)
@settings(max_examples=4)
@given(seed=SEEDS)
def test_a_change_inside_of_what_is_gated_is_found_for_those_who_say_it(name: str, seed: int) -> None:
    inside(seed, name)


def inside(seed: int, name: str) -> set[str]:
    """Plant a change in a protocol a part of which is gated on both sides; return which clients notice some of it."""
    made = planted(seed, name)
    if made is None:
        return set()
    old, new, _ = made
    random = Random(seed)
    plain = gate(old, new, random)
    found = held(plain(old), plain(new), old, new, random)
    assert told(found, "without") == set()
    return {each.clients for each in found.findings}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_are_planted_inside_of_what_is_gated_and_beside_it(name: str) -> None:
    left = {"all", "with"}
    for seed in range(60):
        left -= inside(seed, name) if left else set()
    assert not left


@pytest.mark.parametrize("name", CHANGES)
@settings(max_examples=3)
@given(seed=SEEDS)
def test_what_moves_behind_the_capability_and_changes_is_both(name: str, seed: int) -> None:
    made = planted(seed, name)
    if made is None:
        return
    old, new, _ = made
    plain = gate(old, new, Random(seed))
    held(old, plain(new), old, new, Random(seed))
    held(plain(old), new, old, new, Random(seed))  # and back


# --- the law bites


@cache
def seeds_that_both_notice() -> tuple[int, ...]:
    return tuple(seed for seed in range(60) if inside(seed, "property goes") == {"all", "with"})


def _never(self: Any, *arguments: Any) -> bool:
    return False


def _always(self: Any, *arguments: Any) -> bool:
    return True


@pytest.mark.parametrize(
    ("owner", "name", "broken"),
    [
        (drift_clients._Other, "has", _never),
        (drift_clients._Other, "has", _always),
        (Walk, "_equal_parts", _always),
        (compare, "findings", lambda plain, capable: drift_clients.findings(plain, None)),
        (compare, "findings", lambda plain, capable: drift_clients.findings(capable or plain, None)),
    ],
    ids=["nobody shares", "all share", "all is the same", "no second walk", "no first walk"],
)
def test_who_notices_told_wrongly_turns_the_law_red(owner: Any, name: str, broken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = seeds_that_both_notice()
    monkeypatch.setattr(owner, name, broken)
    with pytest.raises(AssertionError):
        [inside(seed, "property goes") for seed in seeds]
