"""Find the clients that notice a change: all clients, only clients with the capability experimentalApi, or only clients without
it.

Clients without the capability use the plain schema bundle; clients with the capability use the experimental bundle
(`experimental`). All messages of the protocol are compared twice: once in the plain bundles, and once in the experimental
bundles. If only one comparison finds a change, only the clients that use its bundle notice the change. If a part of the
protocol was removed only from the plain bundle, the part now requires the capability. If a part is new only in the plain
bundle, clients with the capability already had the part. Changes in experimental parts are found only in the experimental
bundle. A change that concerns all clients at some places, and only some clients at other places, becomes two findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from codex_replay.protocol.drift.findings import Clients, DriftFinding, Place
from codex_replay.protocol.drift.rules import RULES, Sender
from codex_replay.protocol.drift.shapes.change import Change, Path, Step
from codex_replay.protocol.drift.shapes.compare import PATHS
from codex_replay.protocol.drift.walk import Walk

#: Compared only by name: their types may differ between the two bundles of one version.
_NAMED = ("method-", "property-new", "property-gone", "property-required", "property-optional", "value-", "variant-")


def findings(plain: Walk, capable: Walk | None) -> list[DriftFinding]:
    """Return the findings from the plain bundles and, if they exist, from the experimental bundles."""
    if capable is None:
        return [_drift_finding(sender, change, places) for (sender, change), places in plain.places.items()]
    here, there = _Other(plain), _Other(capable)
    found: list[DriftFinding] = []
    for (sender, change), places in plain.places.items():
        both = [place for place in places if there.has(sender, change, place)]
        found += _some(sender, change, both, "all")
        found += _some(sender, change, [place for place in places if place not in both], "without")
    for (sender, change), places in capable.places.items():
        found += _some(sender, change, [place for place in places if not here.has(sender, change, place)], "with")
    return found


def _some(sender: Sender, change: Change, places: list[Place], clients: Clients) -> Iterator[DriftFinding]:
    if places:
        yield _drift_finding(sender, change, places, clients)


def _drift_finding(sender: Sender, change: Change, places: Iterable[Place], clients: Clients = "all") -> DriftFinding:
    return DriftFinding(RULES[change.rule, sender], change, tuple(places), clients)


class _Other:
    """The result of comparing the bundles of the other kind: the plain bundles while the experimental bundles are compared, and
    vice versa.

    The method `has` returns True if the comparison of the other bundles found the change at the same place, in any
    definition.
    """

    def __init__(self, walk: Walk) -> None:
        self._walk = walk

    def has(self, sender: Sender, change: Change, place: Place) -> bool:
        """Return True if the comparison of the other bundles also found the change.

        A part that could not be compared, and a place beyond the maximum number of places, count as found.
        """
        if place in self._walk.places.get((sender, change), ()):
            return True
        skipped, under = self._walk.skipped, place.path[:1]
        if place.kind in skipped or (under == (("key", "result"),) and (place.kind, place.method) in skipped):
            return True
        # Below, the change may have another form, or be missing: that is rare, and it counts as found.
        paths = self._paths.get((_what(sender, change), place[:2], under), ())
        return len(paths) >= PATHS or any(_meet(place.path, path) for path in paths)

    @cached_property
    def _paths(self) -> dict[tuple[Any, ...], list[Path]]:
        """The paths at which the comparison found a change, by root (see the module `walk`)."""
        found: dict[tuple[Any, ...], list[Path]] = {}
        for (sender, change), places in self._walk.places.items():
            what = _what(sender, change)
            for place in places:
                found.setdefault((what, place[:2], place.path[:1]), []).append(place.path)
        return found


def _what(sender: Sender, change: Change) -> tuple[Any, ...]:
    """Return a readable description of a change, without the definition that contains it.

    For a closed object, the description has the object's keys.
    """
    if not change.rule.startswith(_NAMED):
        return (sender, change.rule, change.what, change.before, change.after)
    # A variant without a name is called by its properties, of which the other bundle may have more.
    return (sender, change.rule, "" if change.what.startswith("{") else change.what)


def _meet(one: Path, other: Path) -> bool:
    """Return True if two paths in a schema may lead to the same value."""
    (left, named), (right, called) = _parted(one), _parted(other)
    return left == right and all(named[at] <= called[at] or called[at] <= named[at] for at in named.keys() & called.keys())


def _parted(path: Path) -> tuple[Path, dict[int, frozenset[tuple[str, str]]]]:
    """Return the steps of a path in a schema without the variants of unions.

    Also return the constants that identify each variant, by the number of steps before the variant.
    """
    steps: list[Step] = []
    variants: dict[int, frozenset[tuple[str, str]]] = {}
    for step in path:
        if step[0] == "is":
            variants[len(steps)] = variants.get(len(steps), frozenset()) | frozenset(step[1])
        else:
            steps.append(step)
    return tuple(steps), variants
