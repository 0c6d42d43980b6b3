"""Compare two schemas: list the changes from the first schema to the second, with their places.

Strategy: the comparison starts at the roots of both schemas and follows both at the same time. The comparison sees only
values that can occur in a message, and ignores the names of definitions. The comparison makes a graph of pairs of types.
Each pair is compared once, and refers to the pairs of its members; a pair may refer to itself. Shortest paths come first,
because a breadth-first search from each root finds the changed pairs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from codex_replay.protocol.drift.shapes import limits, variants
from codex_replay.protocol.drift.shapes.change import Change, Here, Path, Placed, Step
from codex_replay.protocol.drift.shapes.model import NOTHING, SCALARS, Array, Object, Shape, text_of
from codex_replay.protocol.drift.shapes.read import Reader
from codex_replay.protocol.drift.shapes.same import Same


class Pair:
    """A pair of types that occur at the same places in the old and the new schema: their changes, and the pairs of their
    members.
    """

    __slots__ = ("changes", "edges", "here", "looked", "new", "old")

    def __init__(self, old: Shape, new: Shape, here: Here) -> None:
        self.old = old
        self.new = new
        self.here = here
        self.changes: list[Placed] = []
        self.edges: list[tuple[Path, Pair]] = []
        self.looked = False

    def look(self, parts: Iterable[Part]) -> None:
        """Store the changes between the two types, and the pairs of their members."""
        self.looked = True
        for path, part in parts:
            if isinstance(part, Change):
                self.changes.append((path, part))
            else:
                self.edges.append((path, part))


#: What a comparison yields: at this path a change, or two types that are to be compared there.
Part = tuple[Path, Change | Pair]


class Comparer:
    """Compares schemas of two documents; each document has its own `Reader`."""

    def __init__(self, old: Reader, new: Reader) -> None:
        self._old = old
        self._new = new
        self._pairs: dict[tuple[int, int], Pair] = {}
        self._same = Same(old.document, new.document)

    def compare(self, old: Any, new: Any, here: Here) -> list[Placed]:
        """Return the changes from the schema `old` to the schema `new`.

        The paths of the changes are relative to `old` and `new`, and short paths come first.

        Only the shortest `PATHS` paths of a type are reported, because a recursive type has infinitely many paths.
        """
        root = Pair(NOTHING, NOTHING, here)
        root.look(self._place(old, new, here))
        alive = self._alive(root)
        found: list[Placed] = []
        queue: deque[tuple[Path, Pair]] = deque([((), root)])
        visits: dict[int, int] = {}
        while queue:
            path, pair = queue.popleft()
            found += (((*path, *inner), change) for inner, change in pair.changes)
            for step, other in pair.edges:
                if id(other) in alive and visits.get(id(other), 0) < PATHS:
                    visits[id(other)] = visits.get(id(other), 0) + 1
                    queue.append(((*path, *step), other))
        return found

    def _alive(self, root: Pair) -> set[int]:
        """Return the `id()` of each changed pair below `root`, and of each pair on the way to a changed pair."""
        order, above = [root], {id(root): list[Pair]()}
        for pair in order:  # grows during the walk
            if not pair.looked:
                pair.look(self._changes(pair.old, pair.new, pair.here))
            for _, other in pair.edges:
                if id(other) not in above:
                    above[id(other)] = []
                    order.append(other)
                above[id(other)].append(pair)
        changed = [pair for pair in order if pair.changes]
        alive = {id(pair) for pair in changed}
        for pair in changed:  # grows during the walk
            for higher in above[id(pair)]:
                if id(higher) not in alive:
                    alive.add(id(higher))
                    changed.append(higher)
        return alive

    def _place(self, old: Any, new: Any, here: Here) -> Iterator[Part]:
        """Compare two schemas at one place.

        If null becomes allowed or forbidden, the change is stored for one place only, and not for the pair of types. Every
        other change is stored once for the pair of types.
        """
        if self._same.equal(old, new):
            return
        a, b = self._old.shape(old), self._new.shape(new)
        if a.null != b.null and a.kinds() and b.kinds():
            yield (), Change("null-gone" if a.null else "null-new", *here)
        key = (id(a), id(b))
        if key not in self._pairs:
            self._pairs[key] = Pair(a, b, Here(a.owner, ()) if a.owner else here)
        yield (), self._pairs[key]

    def _changes(self, a: Shape, b: Shape, here: Here) -> Iterator[Part]:
        if a.unread != b.unread:
            before, after = (", ".join(f"{key}: {value}" for key, value in side.unread) for side in (a, b))
            yield (), Change("keyword-changed", *here, before=before, after=after)
        if a.anything or b.anything:
            if not b.anything:
                yield (), Change("type-narrowed", *here, before="anything", after=_types(b))
            elif not a.anything:
                yield (), Change("type-widened", *here, before=_types(a), after="anything")
            return
        yield from self._types_of(a, b, here)
        both = a.kinds() & b.kinds()
        for kind in ("boolean", "number", "string"):
            yield from self._scalars(a, b, kind, here)
        if a.number and b.number and not a.listed("number") and not b.listed("number"):
            yield from limits.numbers(a.number, b.number, here)
        if a.string is not None and b.string is not None:
            yield from limits.limits(a.string, b.string, here)
        if "array" in both and isinstance(a.array, Array) and isinstance(b.array, Array):
            yield from limits.limits(a.array.limits, b.array.limits, here)
            yield from _below(("items",), self._place(a.array.items, b.array.items, here.at(("items",))))
        if a.objects or b.objects:
            yield from self._objects(a, b, here)

    def _types_of(self, a: Shape, b: Shape, here: Here) -> Iterator[Part]:
        """Compare the JSON types that two schemas allow.

        If a type has only listed values or named variants, compare the single values or variants.
        """
        gone, new = (self._unnamed(x, y, r) for x, y, r in ((a, b, self._old), (b, a, self._new)))
        if gone and new:
            yield (), Change("type-changed", *here, before=_types(a), after=_types(b))
        elif gone:
            yield (), Change("type-narrowed", *here, before=_types(a), after=_types(b))
        elif new:
            yield (), Change("type-widened", *here, before=_types(a), after=_types(b))

    def _unnamed(self, shape: Shape, other: Shape, reader: Reader) -> frozenset[str]:
        missing = shape.kinds() - other.kinds()
        if not shape.kinds() or not other.kinds():
            # One side is null alone: null is a type among types here.
            missing |= {"null"} if shape.null and not other.null else frozenset()
        if not self._lists(other, self._new if reader is self._old else self._old):
            return missing
        return frozenset(kind for kind in missing if not self._by_name(shape, kind, reader))

    def _lists(self, shape: Shape, reader: Reader) -> bool:
        """Return True if some alternatives of `shape` have names: they are listed values, or objects with a constant."""
        return bool(shape.constants) or any(variants.label(reader, each) for each in shape.objects)

    def _by_name(self, shape: Shape, kind: str, reader: Reader) -> bool:
        if kind == "object":
            return all(variants.label(reader, each) for each in shape.objects)
        return kind in SCALARS and not shape.free(kind) and bool(shape.listed(kind))

    def _scalars(self, a: Shape, b: Shape, kind: str, here: Here) -> Iterator[Part]:
        """Compare the listed values of one scalar type."""
        old, new = a.listed(kind), b.listed(kind)
        if a.free(kind) and not b.free(kind) and new:
            yield (), Change("enum-closed", *here, "", f"any {kind}", _list(new), (kind, *sorted(new)))
        elif b.free(kind) and not a.free(kind) and old:
            yield (), Change("enum-opened", *here, before=_list(old), after=f"any {kind}")
        elif not (a.free(kind) or b.free(kind)):
            if not (old or new) or not (self._lists(a, self._old) and self._lists(b, self._new)):
                return
            yield from (((), Change("value-gone", *here, what=value)) for value in sorted(old - new))
            yield from (((), Change("value-new", *here, what=value)) for value in sorted(new - old))

    def _objects(self, a: Shape, b: Shape, here: Here) -> Iterator[Part]:
        if not (a.objects and b.objects) and not (self._lists(a, self._old) and self._lists(b, self._new)):
            return  # the type itself was added or removed, which is already reported
        pairs, gone, new = variants.match(a.objects, b.objects, self._old, self._new)
        single = len(a.objects) == len(b.objects) == 1
        for each in gone:
            called, signs = variants.title(self._old, each), variants.signs(self._old, each)
            yield (), Change("variant-gone", *here, what=called, detail=signs)
        for each in new:
            yield (), Change("variant-new", *here, what=variants.title(self._new, each))
        for one, other in pairs:
            tags = tuple(sorted(self._old.tags(one).items()))
            step = None if single or not tags else ("is", tags)
            inner = self._object(one, other, here.at(step) if step else here)
            yield from _below(step, inner) if step else inner

    def _object(self, a: Object, b: Object, here: Here) -> Iterator[Part]:
        for name in sorted(a.properties.keys() - b.properties.keys()):
            was = _types(self._old.shape(a.properties[name]))
            yield (("key", name),), Change("property-gone", *here.at(("key", name)), what=name, before=was)
        for name in sorted(b.properties.keys() - a.properties.keys()):
            rule = "property-new-required" if name in b.required else "property-new"
            now = _types(self._new.shape(b.properties[name]))
            yield (("key", name),), Change(rule, *here.at(("key", name)), what=name, after=now)
        for name in [name for name in a.properties if name in b.properties]:
            yield from _below(("key", name), self._property(a, b, name, here.at(("key", name))))
        yield from limits.limits(a.limits, b.limits, here)
        yield from self._rest(a, b, here)

    def _property(self, a: Object, b: Object, name: str, here: Here) -> Iterator[Part]:
        one, other = a.properties[name], b.properties[name]
        if (name in a.required) != (name in b.required):
            yield (), Change("property-optional" if name in a.required else "property-required", *here, what=name)
        if isinstance(one, dict) and isinstance(other, dict) and "default" in one and "default" in other:
            before, after = text_of(one["default"]), text_of(other["default"])
            if before != after:
                yield (), Change("default-changed", *here, what=name, before=before, after=after)
        yield from self._place(one, other, here)

    def _rest(self, a: Object, b: Object, here: Here) -> Iterator[Part]:
        if a.extra == b.extra == "map":
            yield from _below(("rest",), self._place(a.values, b.values, here.at(("rest",))))
        else:
            yield from limits.keys(a, b, here)


#: The maximum number of places at which a type is reported below one root.
PATHS = 16


def _below(step: Step, found: Iterable[Part]) -> Iterator[Part]:
    return (((step, *path), part) for path, part in found)


def _types(shape: Shape) -> str:
    if shape.anything:
        return "anything"
    names = sorted(shape.kinds())
    if shape.number is not None and shape.number.whole:
        names = ["integer" if name == "number" else name for name in names]
    return " or ".join([*names, "null"] if shape.null else names) or "nothing"


def _list(values: frozenset[str]) -> str:
    return ", ".join(sorted(values))
