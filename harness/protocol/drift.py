"""Drift: what changed in the protocol between two schema bundles, judged by the rules.

Strategy: the wire is a set of roots: each method's params, each request's result, each ``codex/event/*``, and the JSON-RPC
envelope. Each root has one sender. Methods are compared by their names, which stand on the wire; what hangs below a root is
compared by its structure (`drift_shapes`), so a definition may be renamed or moved without a finding. A change in a type that
many methods share is one finding with many places.

What is gone from a plain bundle may only have moved behind a capability (`experimental`): then it is still in the new version's
experimental bundle. That one is asked for when something is gone, and compared at the methods where something is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from harness.protocol.bundle import DIRECTIONS, EVENT_PREFIX, Bundle, Direction, Schema
from harness.protocol.drift_answers import answers_of
from harness.protocol.drift_model import Reader, Readers, text_of
from harness.protocol.drift_rules import BEHIND, GONE, IDS, RULES, Rule, Sender
from harness.protocol.drift_shapes import Change, Comparer, Here, Path, show
from harness.protocol.experimental import CAPABILITY, SAID

Kind = Literal["client-request", "client-notification", "server-request", "server-notification", "event", "envelope"]
_ENVELOPE = ("JSONRPCRequest", "JSONRPCNotification", "JSONRPCResponse", "JSONRPCError")
_KINDS: tuple[Kind, ...] = (*DIRECTIONS, "event", "envelope")
#: What a report calls the count of each kind of method.
COUNTED: dict[Direction, str] = {
    "client-request": "client_methods",
    "server-notification": "server_notifications",
    "server-request": "server_requests",
    "client-notification": "client_notifications",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a change stands on the wire: in which frames of `method`, at which path."""

    kind: Kind
    method: str
    path: Path

    @property
    def shown(self) -> str:
        """The path as people write it."""
        return show(self.path)


@dataclass(frozen=True, slots=True)
class Finding:
    """One change judged: its `rule` (with the class), and every place where it stands.

    `behind` is the capability that a client must say for what is gone to be there all the same, "" if it is gone for all.
    """

    rule: Rule
    change: Change
    places: tuple[Place, ...]
    behind: str = ""

    @property
    def breaking(self) -> bool:
        """True if somebody who relied on the old protocol is hit."""
        return self.rule.cls == "breaking"

    @property
    def hits(self) -> str:
        """Who is hit: "senders", "readers" or "nobody". It is the client's side that relies, so it is clients."""
        if not self.breaking:
            return "nobody"
        return "senders" if self.rule.sender == "client" else "readers"

    @property
    def sentence(self) -> str:
        """What it means to the client."""
        return BEHIND[self.rule.sender] if self.behind else self.rule.sentence


@dataclass(frozen=True, slots=True)
class Drift:
    """All findings between two bundles, the breaking ones first; `uncompared` are sentences on what could not be judged."""

    old: str
    new: str
    counts: dict[str, dict[str, int]]
    findings: tuple[Finding, ...]
    uncompared: tuple[str, ...] = ()

    def of(self, cls: str) -> list[Finding]:
        """Return the findings of the class "breaking" or "additive"."""
        return [finding for finding in self.findings if finding.rule.cls == cls]


def counts(bundle: Bundle) -> dict[str, int]:
    """Return how many methods of each kind a bundle has, and how many types of ``codex/event``."""
    return {name: len(bundle.methods(direction)) for direction, name in COUNTED.items()} | {"events": len(bundle.events())}


@dataclass
class _Walk:
    """The comparison of two bundles under way: readers and comparers by document, findings by what they say."""

    old: Bundle
    new: Bundle
    places: dict[tuple[Sender, Change], list[Place]] = field(default_factory=dict)
    uncompared: list[str] = field(default_factory=list)
    readers: tuple[Readers, Readers] = field(default_factory=lambda: (Readers(), Readers()))
    comparers: dict[tuple[Reader, Reader], Comparer] = field(default_factory=dict)
    #: The methods to be compared, None for all; and those whose results could not be.
    only: Collection[str] | None = None
    skipped: set[str] = field(default_factory=set)

    def among(self, names: Collection[str]) -> list[str]:
        """Return those of `names` (methods or events) that are to be compared, in order."""
        return [name for name in names if self.only is None or name in self.only]

    def without(self, names: Collection[str]) -> bool:
        """Tell whether nothing of `names` is to be compared: then the new bundle need not be read for them."""
        return self.only is not None and not self.among(names)

    def comparer(self, old: Any, new: Any) -> Comparer:
        """Return the comparer of two documents."""
        key = (self.readers[0].of(old), self.readers[1].of(new))
        if key not in self.comparers:
            self.comparers[key] = Comparer(*key)
        return self.comparers[key]

    def note(self, sender: Sender, change: Change, place: Place) -> None:
        """Keep one change at one place."""
        found = self.places.setdefault((sender, change), [])
        if place not in found:
            found.append(place)

    def roots(
        self, sender: Sender, kind: Kind, method: str, under: Path, old: Schema, new: Schema, here: Here | None = None
    ) -> None:
        """Compare the schemas at one root: what `sender` writes at the path `under` of the frames of `method`.

        `here` is the definition that the root is a part of, if it is.
        """
        if old.document == new.document and old.node == new.node:
            return
        comparer = self.comparer(old.document, new.document)
        for path, change in comparer.compare(old.node, new.node, here or Here(method, under)):
            if change.owner == "EventMsg" and not change.local and change.rule.startswith("variant-"):
                continue  # an EventMsg may hold others; that one came or went is told as the notification that it is
            self.note(sender, change, Place(kind, method, (*under, *path)))


#: Returns the experimental bundle beside the plain one, or None if there is none or it cannot be had; may tell why in a sentence.
Experimental = Callable[[], tuple[Bundle | None, str]]


def compare(old: Bundle, new: Bundle, experimental: Experimental = lambda: (None, "")) -> Drift:
    """Compare two bundles; raises `BundleError` when one of them turns out to be none.

    `experimental` is asked only if something is gone. It changes no finding and no count: it tells what is gone for all.
    """
    walk = _walked(_Walk(old, new))
    findings = [Finding(RULES[change.rule, sender], change, tuple(places)) for (sender, change), places in walk.places.items()]
    gone = [finding for finding in findings if finding.rule.id in GONE]
    if gone:
        beside, why = experimental()
        if beside is not None:
            there = _still_there(old, beside, gone)
            findings = [replace(each, behind=CAPABILITY) if each in there else each for each in findings]
        elif why:
            walk.uncompared.append(f"Whether what is gone is still there for a client that says {SAID} is not known: {why}")
    findings.sort(key=_rank)
    return Drift(old.version, new.version, {"from": counts(old), "to": counts(new)}, tuple(findings), tuple(walk.uncompared))


def _still_there(old: Bundle, experimental: Bundle, gone: list[Finding]) -> list[Finding]:
    """Return which of `gone` are not gone from the experimental bundle; what cannot be compared there counts as gone."""
    # What many methods share is mostly gone for good, which one of them tells: the rest is looked at only where it does not.
    for most in (1, None):
        walk = _walked(_Walk(old, experimental, only={place.method for each in gone for place in each.places[:most]}))
        rules = {(each.change.rule, each.change.what) for each in gone}
        lost = [(key, set(places)) for key, places in walk.places.items() if (key[1].rule, key[1].what) in rules]
        gone = [each for each in gone if not any(_same(each, *one) for one in lost)]
        gone = [each for each in gone if not any(place.method in walk.skipped for place in each.places)]
    return gone


def _same(finding: Finding, key: tuple[Sender, Change], places: set[Place]) -> bool:
    """Tell whether a finding is also what `key` and `places` say: the same change, or one of the same name at the same place."""
    sender, change = key
    if finding.rule.sender != sender or (finding.change.rule, finding.change.what) != (change.rule, change.what):
        return False
    return finding.change == change or not places.isdisjoint(finding.places)


def _walked(walk: _Walk) -> _Walk:
    for direction in DIRECTIONS:
        _methods(walk, direction)
    _events(walk)
    _envelope(walk)
    return walk


def _rank(finding: Finding) -> tuple[Any, ...]:
    """Put what breaks first, whole methods before their parts, and the rest as people look for it."""
    place, rule = finding.places[0], finding.rule
    part = IDS.index(rule.id)
    return (
        not finding.breaking,
        part > 1,
        _KINDS.index(place.kind),
        place.method,
        place.shown,
        part,
        rule.sender,
        finding.change.what,
    )


_UNIONS: dict[Direction, str] = {
    "client-request": "ClientRequest",
    "client-notification": "ClientNotification",
    "server-request": "ServerRequest",
    "server-notification": "ServerNotification",
}


def _methods(walk: _Walk, direction: Direction) -> None:
    sender: Sender = "client" if direction.startswith("client") else "server"
    if walk.without(walk.old.methods(direction)):
        return
    lacking = [bundle.version for bundle in (walk.old, walk.new) if bundle.type(_UNIONS[direction]) is None]
    if lacking:
        # A version has all four; somebody's export may hold a part, which says nothing of the rest.
        walk.uncompared.append(f"{_UNIONS[direction]} was not compared: {' and '.join(lacking)} does not define it.")
        return
    old, new = walk.old.methods(direction), walk.new.methods(direction)
    for method in walk.among(old):
        if method not in new:
            walk.note(sender, Change("method-gone", method, (), what=method), Place(direction, method, ()))
    for method in walk.among(new):
        if method not in old:
            walk.note(sender, Change("method-new", method, (), what=method), Place(direction, method, ()))
    both = [method for method in walk.among(old) if method in new]
    for method in both:
        _params(walk, sender, direction, method)
    if direction.endswith("request"):
        _results(walk, "server" if sender == "client" else "client", direction, both)


_PARAMS: Path = (("key", "params"),)


def _params(walk: _Walk, sender: Sender, direction: Direction, method: str) -> None:
    """Compare the params of one method: whether there are any, whether they must be there, and what they hold."""
    old, new = (_params_of(bundle, direction, method) for bundle in (walk.old, walk.new))
    place = Place(direction, method, _PARAMS)
    if old is not None and new is not None:
        required = [bundle.params_required(direction, method) for bundle in (walk.old, walk.new)]
        if required[0] != required[1]:
            rule = "property-required" if required[1] else "property-optional"
            walk.note(sender, Change(rule, method, _PARAMS, what="params"), place)
        walk.roots(sender, direction, method, _PARAMS, old, new)
    elif old is not None:
        walk.note(sender, Change("property-gone", method, _PARAMS, what="params"), place)
    elif new is not None:
        rule = "property-new-required" if walk.new.params_required(direction, method) else "property-new"
        walk.note(sender, Change(rule, method, _PARAMS, what="params"), place)


def _params_of(bundle: Bundle, direction: Direction, method: str) -> Schema | None:
    """Return the params of a method; params that may be left out and are null at most count as none."""
    params = bundle.params(direction, method)
    if params is None or bundle.params_required(direction, method):
        return params
    return None if Reader(dict(params.document)).shape(params.node).only_null() else params


def _results(walk: _Walk, sender: Sender, direction: Direction, methods: list[str]) -> None:
    old, new = (answers_of(bundle, direction, methods) for bundle in (walk.old, walk.new))
    for method in methods:
        # A type that was given another name answers still; the old name is the best guess that is left.
        names = old.get(method), new.get(method) or old.get(method)
        one, other = (bundle.type(name) if name else None for bundle, name in zip((walk.old, walk.new), names, strict=True))
        if one is None or other is None:
            walk.skipped.add(method)
            which = " and ".join(bundle.version for bundle, it in ((walk.old, one), (walk.new, other)) if it is None)
            walk.uncompared.append(
                f"The result of {method} was not compared: the bundle of {which} does not tell which type answers."
            )
        else:
            walk.roots(sender, direction, method, (("key", "result"),), one, other)


_MSG: Path = (("key", "params"), ("key", "msg"))


def _events(walk: _Walk) -> None:
    old = walk.old.events()
    if walk.without([EVENT_PREFIX + name for name in old]):
        return
    new = walk.new.events()
    for method in walk.among([EVENT_PREFIX + name for name in [*old, *(each for each in new if each not in old)]]):
        name = method.removeprefix(EVENT_PREFIX)
        one, other = walk.old.event(name), walk.new.event(name)
        if one is not None and other is not None:
            walk.roots("server", "event", method, _MSG, one, other, Here("EventMsg", (("is", (("type", text_of(name)),)),)))
        else:
            rule = "method-gone" if other is None else "method-new"
            walk.note("server", Change(rule, method, (), what=method), Place("event", method, ()))


def _envelope(walk: _Walk) -> None:
    """Compare the JSON-RPC envelope, which both sides write."""
    for name in walk.among(_ENVELOPE):
        one, other = walk.old.type(name), walk.new.type(name)
        if one is not None and other is not None:
            walk.roots("client", "envelope", name, (), one, other)
            walk.roots("server", "envelope", name, (), one, other)
