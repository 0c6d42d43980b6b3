"""Compare all types of messages in two schema bundles, root by root.

A root is the params of a method, the result of a request, a ``codex/event/*``, or the JSON-RPC envelope. Only one side, the
client or the server, sends the values of a root. Methods are compared by their names, because the messages contain the
names. The types inside a root are compared by their structure (see the package `shapes`), so a renamed or moved definition
causes no finding.
"""

from __future__ import annotations

import re
from typing import Any

from codex_replay.protocol.drift.findings import Kind, Place
from codex_replay.protocol.drift.rules import Sender
from codex_replay.protocol.drift.shapes.change import Change, Here, Path, Placed
from codex_replay.protocol.drift.shapes.compare import Comparer
from codex_replay.protocol.drift.shapes.model import text_of
from codex_replay.protocol.drift.shapes.read import Reader, Readers
from codex_replay.protocol.drift.shapes.same import Same
from codex_replay.protocol.schema.bundle import DIRECTIONS, EVENT_PREFIX, UNIONS, Bundle, Direction, Schema

#: The share of common words from which a type counts as the response of a method.
ALIKE = 0.4
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+")
_ENVELOPE = ("JSONRPCRequest", "JSONRPCNotification", "JSONRPCResponse", "JSONRPCError")
#: One root: the sender, the path and the methods of a type.
Root = tuple[Sender, Kind, str, Path]


class Walk:
    """The comparison of two bundles. `places` has, for each sender and each change, the places of the change.

    `like` is an earlier comparison of similar bundles: a root that is the same in both comparisons is not compared again.
    """

    def __init__(self, old: Bundle, new: Bundle, like: Walk | None = None) -> None:
        self.old = old
        self.new = new
        self.places: dict[tuple[Sender, Change], dict[Place, None]] = {}
        #: Sentences on what could not be compared, and the kinds and results of methods that these speak of.
        self.uncompared: list[str] = []
        self.skipped: set[Kind | tuple[Kind, str]] = set()
        self._like = like
        self._found: dict[Root, tuple[Schema, Schema, list[Placed]]] = {}
        self._readers = Readers(), Readers()
        self._comparers: dict[tuple[Reader, Reader], Comparer] = {}
        self._same: dict[tuple[int, int], Same] = {}
        for direction in DIRECTIONS:
            _methods(self, direction)
        _events(self)
        _envelope(self)

    def note(self, sender: Sender, change: Change, place: Place) -> None:
        """Store one change with one of its places."""
        self.places.setdefault((sender, change), {})[place] = None

    def roots(
        self, sender: Sender, kind: Kind, method: str, under: Path, old: Schema, new: Schema, here: Here | None = None
    ) -> None:
        """Compare the old and the new schema of one root.

        The root is the value at the path `under` in frames of `method` that `sender` writes.

        `here` is the definition that contains the root, if any.
        """
        root: Root = (sender, kind, method, under)
        found = self._known(root, old, new)
        if found is None:
            found = self._comparer(old.document, new.document).compare(old.node, new.node, here or Here(method, under))
        self._found[root] = (old, new, found)
        for path, change in found:
            if change.owner == "EventMsg" and not change.local and change.rule.startswith("variant-"):
                continue  # an EventMsg may contain others; an added or removed one is reported as a notification
            self.note(sender, change, Place(kind, method, (*under, *path)))

    def _known(self, root: Root, old: Schema, new: Schema) -> list[Placed] | None:
        """Return the changes that the earlier comparison found at a root, if both comparisons have the same schemas there."""
        if self._like is None or root not in self._like._found:
            return None
        one, other, found = self._like._found[root]
        return found if self._equal_parts(one, old) and self._equal_parts(other, new) else None

    def _equal_parts(self, one: Schema, other: Schema) -> bool:
        if one.document is other.document and one.node is other.node:
            return True
        key = (id(one.document), id(other.document))  # both bundles keep their documents
        if key not in self._same:
            self._same[key] = Same(one.document, other.document)
        return self._same[key].equal(one.node, other.node)

    def _comparer(self, old: Any, new: Any) -> Comparer:
        key = (self._readers[0].of(old), self._readers[1].of(new))
        if key not in self._comparers:
            self._comparers[key] = Comparer(*key)
        return self._comparers[key]


def _methods(walk: Walk, direction: Direction) -> None:
    sender: Sender = "client" if direction.startswith("client") else "server"
    lacking = [bundle.version for bundle in (walk.old, walk.new) if bundle.type(UNIONS[direction]) is None]
    if lacking:
        # A version has all four; a partial export may have fewer, which proves nothing about the rest.
        walk.skipped.add(direction)
        walk.uncompared.append(f"{UNIONS[direction]} was not compared: the bundle of {' and '.join(lacking)} does not define it.")
        return
    old, new = walk.old.methods(direction), walk.new.methods(direction)
    for method in old:
        if method not in new:
            walk.note(sender, Change("method-gone", method, (), what=method), Place(direction, method, ()))
    for method in new:
        if method not in old:
            walk.note(sender, Change("method-new", method, (), what=method), Place(direction, method, ()))
    both = [method for method in old if method in new]
    for method in both:
        _params(walk, sender, direction, method)
    if direction.endswith("request"):
        _results(walk, "server" if sender == "client" else "client", direction, both)


_PARAMS: Path = (("key", "params"),)


def _params(walk: Walk, sender: Sender, direction: Direction, method: str) -> None:
    """Compare the params of one method: do they exist, are they required, and which type do they have?"""
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
    """Return the schema of the params of a method; None if the method has no params, or accepts only null."""
    params = bundle.params(direction, method)
    if params is None or bundle.params_required(direction, method):
        return params
    return None if Reader(dict(params.document)).shape(params.node).only_null() else params


def _results(walk: Walk, sender: Sender, direction: Direction, methods: list[str]) -> None:
    old, new = (answers_of(bundle, direction, methods) for bundle in (walk.old, walk.new))
    for method in methods:
        # A type that was given another name answers still; the old name is the best guess that is left.
        names = old.get(method), new.get(method) or old.get(method)
        one, other = (bundle.type(name) if name else None for bundle, name in zip((walk.old, walk.new), names, strict=True))
        if one is None or other is None:
            walk.skipped.add((direction, method))
            which = " and ".join(bundle.version for bundle, it in ((walk.old, one), (walk.new, other)) if it is None)
            walk.uncompared.append(
                f"The result of {method} was not compared: the bundle of {which} does not name the type of the response."
            )
        else:
            walk.roots(sender, direction, method, (("key", "result"),), one, other)


_MSG: Path = (("key", "params"), ("key", "msg"))


def _events(walk: Walk) -> None:
    old, new = walk.old.events(), walk.new.events()
    for name in [*old, *(each for each in new if each not in old)]:
        method = EVENT_PREFIX + name
        one, other = walk.old.event(name), walk.new.event(name)
        if one is not None and other is not None:
            walk.roots("server", "event", method, _MSG, one, other, Here("EventMsg", (("is", (("type", text_of(name)),)),)))
        else:
            rule = "method-gone" if other is None else "method-new"
            walk.note("server", Change(rule, method, (), what=method), Place("event", method, ()))


def _envelope(walk: Walk) -> None:
    """Compare the JSON-RPC envelope (the members around params and result), which both the client and the server write."""
    for name in _ENVELOPE:
        one, other = walk.old.type(name), walk.new.type(name)
        if one is not None and other is not None:
            walk.roots("client", "envelope", name, (), one, other)
            walk.roots("server", "envelope", name, (), one, other)


def _name_parts(name: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(name)}


def answers(bundle: Bundle, direction: Direction) -> dict[str, str]:
    """Return the response type of each request: by the names in the bundle, otherwise by the words that the two names share.

    For example, the answer to ``account/usage/read`` is ``GetAccountTokenUsageResponse``: no other unused type has the
    words account and usage.
    """
    found = {method: name for method in bundle.methods(direction) if (name := bundle.result_type(direction, method))}
    missing = [method for method in bundle.methods(direction) if method not in found]
    if missing:
        taken = {bundle.result_type(each, method) for each in DIRECTIONS for method in bundle.methods(each)} | {"JSONRPCResponse"}
        free = [name for name in bundle.type_names() if name.endswith("Response") and name not in taken]
        ranked = sorted((-_similarity(method, name), method, name) for method in missing for name in free)
        for unlike, method, name in ranked:
            if -unlike >= ALIKE and method not in found and name not in found.values():
                found[method] = name
    return found


def _similarity(method: str, name: str) -> float:
    one, other = _name_parts(method), _name_parts(name.removesuffix("Response"))
    return len(one & other) / len(one | other)


def answers_of(bundle: Bundle, direction: Direction, methods: list[str]) -> dict[str, str]:
    """Return the response type of each method in `methods`.

    Methods of the bundle that are not in `methods` only help to guess a type.
    """
    found = {method: name for method in methods if (name := bundle.result_type(direction, method))}
    return found if len(found) == len(methods) else answers(bundle, direction)
