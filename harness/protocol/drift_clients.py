"""Which clients notice a change: all of them, only those that say the capability, or only those that do not.

Strategy: whoever does not say it speaks the plain bundle (`experimental`), whoever says it the experimental one. So the wire is
walked twice, and what only one walk has found is noticed only there. What went from the plain bundle alone has only moved behind
the capability; what came to it alone was there before for whoever says it; and what changed inside of what is gated is found by
the second walk only. A change that is noticed by all at some places and not at others is one finding for each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from harness.protocol.drift_change import Change, Path
from harness.protocol.drift_findings import Clients, Finding, Place
from harness.protocol.drift_rules import RULES, Sender
from harness.protocol.drift_shapes import PATHS
from harness.protocol.drift_walk import Walk

#: What is told of these by their names alone: what type they had or have may differ between the two bundles of one version.
_NAMED = ("method-", "property-new", "property-gone", "property-required", "property-optional", "value-", "variant-")


def findings(plain: Walk, capable: Walk | None) -> list[Finding]:
    """Return what a walk over the plain bundles has found, and one over the experimental ones, if there is one."""
    if capable is None:
        return [_finding(sender, change, places) for (sender, change), places in plain.places.items()]
    here, there = _Index(plain), _Index(capable)
    found: list[Finding] = []
    for (sender, change), places in plain.places.items():
        both = [place for place in places if there.has(sender, change, place)]
        found += _some(sender, change, both, "all")
        found += _some(sender, change, [place for place in places if place not in both], "without")
    for (sender, change), places in capable.places.items():
        found += _some(sender, change, [place for place in places if not here.has(sender, change, place)], "with")
    return found


def _some(sender: Sender, change: Change, places: list[Place], clients: Clients) -> Iterator[Finding]:
    if places:
        yield _finding(sender, change, places, clients)


def _finding(sender: Sender, change: Change, places: Iterable[Place], clients: Clients = "all") -> Finding:
    return Finding(RULES[change.rule, sender], change, tuple(places), clients)


class _Index:
    """Tells whether a walk has found a change at a place too, wherever its definition is and whatever stands beside it."""

    def __init__(self, walk: Walk) -> None:
        self._skipped = walk.skipped
        self._paths: dict[tuple[Any, ...], list[Path]] = {}
        self._exact: set[tuple[Any, ...]] = set()
        self._roots: Counter[tuple[Any, ...]] = Counter()
        for (sender, change), places in walk.places.items():
            what = _what(sender, change)
            for place in places:
                self._exact.add((what, place))
                self._roots[what, place[:2], place.path[:1]] += 1
                self._paths.setdefault((what, place[:2], _without_variants(place.path)), []).append(place.path)

    def has(self, sender: Sender, change: Change, place: Place) -> bool:
        """Tell it; what could not be compared there, and places beyond those that are told of one type, count as found."""
        what = _what(sender, change)
        if (what, place) in self._exact:
            return True
        result = place.path[:1] == (("key", "result"),) and (place.kind, place.method) in self._skipped
        if place.kind in self._skipped or result or self._roots[what, place[:2], place.path[:1]] >= PATHS:
            return True
        paths = self._paths.get((what, place[:2], _without_variants(place.path)), ())
        return any(_meet(place.path, path) for path in paths)


def _what(sender: Sender, change: Change) -> tuple[Any, ...]:
    """Return what a change says, its definition left out."""
    if not change.rule.startswith(_NAMED):
        return (sender, change.rule, change.what, change.before, change.after, change.detail)
    # A variant without a name is called by its properties, of which the other bundle may have more.
    return (sender, change.rule, "" if change.what.startswith("{") else change.what)


def _without_variants(path: Path) -> Path:
    return tuple(step for step in path if step[0] != "is")


def _meet(one: Path, other: Path) -> bool:
    """Tell whether two paths, alike but for the variants in them, may be of one value: a union of one variant names none."""
    left, right = (_variants(path) for path in (one, other))
    return all(left[at] <= right[at] or right[at] <= left[at] for at in left.keys() & right.keys())


def _variants(path: Path) -> dict[int, frozenset[tuple[str, str]]]:
    """Return the constants of each variant that a path goes through, by how many other steps stand before it."""
    found: dict[int, frozenset[tuple[str, str]]] = {}
    steps = 0
    for step in path:
        if step[0] == "is":
            found[steps] = found.get(steps, frozenset()) | frozenset(step[1])
        else:
            steps += 1
    return found
