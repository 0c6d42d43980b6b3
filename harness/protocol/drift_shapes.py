"""Two schemas compared: which changes lead from the one to the other, and where.

Strategy: both are walked side by side from one pair of roots, so that only what can stand on the wire counts and names of
definitions count nothing. The walk makes a graph: a pair of types is compared once, and points to the pairs below it, maybe
to itself. From each root the changed pairs are then found breadth first, so the shortest path to a change comes first. The
changes themselves know nothing of senders: `drift_rules` judges.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harness.protocol.drift_model import NOTHING, Array, Number, Object, Reader, Shape, text_of

#: One step into a value: ("key", name), ("items",), ("rest",) for any key of a map, ("is", ((name, JSON text), ...)) for the
#: variant with these constants.
Step = tuple[Any, ...]
Path = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """One change, told where it stands in its definition: rule id, what was there and what is, for people and machines.

    `owner` is the definition (of the old side, "" for none) and `local` the path inside it: the same change seen at many
    places is equal. `what` is the property, value or variant that it is about, and `detail` what a program needs to tell
    whether a value is touched (see `drift_use`).
    """

    rule: str
    owner: str
    local: Path
    what: str = ""
    before: str = ""
    after: str = ""
    detail: tuple[Any, ...] = ()


Placed = tuple[Path, Change]


class Here(NamedTuple):
    """Where the walk is: the definition it is in and the path inside that."""

    owner: str
    local: Path

    def at(self, step: Step) -> Here:
        """Return the place one step further."""
        return Here(self.owner, (*self.local, step))


@dataclass(slots=True, eq=False)
class Pair:
    """Two types that stand at the same places: what changed in them, and the pairs that stand below them."""

    old: Shape
    new: Shape
    here: Here
    changes: list[Placed] = field(default_factory=list)
    edges: list[tuple[Path, Pair]] = field(default_factory=list)
    looked: bool = False

    def look(self, parts: Iterable[Part]) -> None:
        """Take in what the comparison of the two types yields."""
        self.looked = True
        for path, part in parts:
            if isinstance(part, Change):
                self.changes.append((path, part))
            else:
                self.edges.append((path, part))


#: What a comparison yields: at this path a change, or two types that are to be compared there.
Part = tuple[Path, Change | Pair]


def show(path: Path) -> str:
    """Return `path` as people write it: ``$.params.items[*](type=text).text``."""
    text = "$"
    for step in path:
        if step[0] == "key":
            text += f".{step[1]}" if str(step[1]).replace("_", "a").replace("-", "a").isalnum() else f"[{text_of(step[1])}]"
        elif step[0] == "is":
            text += "(" + ", ".join(f"{name}={value.strip(chr(34))}" for name, value in step[1]) + ")"
        else:
            text += "[*]" if step[0] == "items" else ".*"
    return text


class Comparer:
    """Compares schemas of two documents, each read by its `Reader`."""

    def __init__(self, old: Reader, new: Reader) -> None:
        self._old = old
        self._new = new
        self._pairs: dict[tuple[int, int], Pair] = {}

    def compare(self, old: Any, new: Any, here: Here) -> list[Placed]:
        """Return the changes from the schema `old` to the schema `new`, with paths relative to it, shorter ones first.

        A type that is reached by many paths is told at the `PATHS` shortest ones, since of a recursive one there are
        infinitely many.
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
        """Look at all that is below `root`, and return (by id) those pairs that are changed or lead to a change."""
        order, above = [root], {id(root): list[Pair]()}
        for pair in order:  # grows as it is walked
            if not pair.looked:
                pair.look(self._changes(pair.old, pair.new, pair.here))
            for _, other in pair.edges:
                if id(other) not in above:
                    above[id(other)] = []
                    order.append(other)
                above[id(other)].append(pair)
        changed = [pair for pair in order if pair.changes]
        alive = {id(pair) for pair in changed}
        for pair in changed:  # grows as it is walked
            for higher in above[id(pair)]:
                if id(higher) not in alive:
                    alive.add(id(higher))
                    changed.append(higher)
        return alive

    def _place(self, old: Any, new: Any, here: Here) -> Iterator[Part]:
        """Compare two schemas at one place: what may be null belongs to the place, the rest to the pair of types there."""
        if old == new and (old is True or (isinstance(old, dict) and not (old.keys() & _DEEP))):
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
            yield from _numbers(a.number, b.number, here)
        if a.string is not None and b.string is not None:
            yield from _limits(a.string, b.string, here)
        if "array" in both and isinstance(a.array, Array) and isinstance(b.array, Array):
            yield from _limits(a.array.limits, b.array.limits, here)
            yield from _below(("items",), self._place(a.array.items, b.array.items, here.at(("items",))))
        if a.objects or b.objects:
            yield from self._objects(a, b, here)

    def _types_of(self, a: Shape, b: Shape, here: Here) -> Iterator[Part]:
        """Compare the JSON types; a type that only listed values or named variants have counts with those instead."""
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
        """Tell whether some alternatives of `shape` have names: listed values, or objects told by a constant."""
        return bool(shape.constants) or any(_label(reader, each) for each in shape.objects)

    def _by_name(self, shape: Shape, kind: str, reader: Reader) -> bool:
        if kind == "object":
            return all(_label(reader, each) for each in shape.objects)
        return kind in ("boolean", "string", "number") and not shape.free(kind) and bool(shape.listed(kind))

    def _scalars(self, a: Shape, b: Shape, kind: str, here: Here) -> Iterator[Part]:
        """Compare what is listed of one scalar type."""
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
            return  # the type itself came or went, which has been said
        pairs, gone, new = _match(a.objects, b.objects, self._old, self._new)
        single = len(a.objects) == len(b.objects) == 1
        for each in gone:
            yield (), Change("variant-gone", *here, what=_title(self._old, each), detail=_signs(self._old, each))
        for each in new:
            yield (), Change("variant-new", *here, what=_title(self._new, each))
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
        yield from _limits(a.limits, b.limits, here)
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
        elif a.extra != b.extra:
            listed = tuple(sorted({*a.properties, *b.properties}))
            yield (), Change(_REST[a.extra, b.extra], *here, "", a.extra, b.extra, listed)


#: At so many places at most one type is told below one root.
PATHS = 16
#: A schema without any of these says all that it says itself: two equal ones need no closer look.
_DEEP = frozenset({"$ref", "allOf", "oneOf", "anyOf", "properties", "items", "additionalProperties"})
#: Variants without a name are taken for the same from this share of common properties on.
ALIKE = 0.5


#: What it means that the keys that are not listed were this and are that.
_REST = {
    ("open", "closed"): "keys-closed",
    ("closed", "open"): "keys-opened",
    ("map", "open"): "map-gone",
    ("map", "closed"): "map-gone",
    ("open", "map"): "map-new",
    ("closed", "map"): "map-new",
}


def _below(step: Step, found: Iterable[Part]) -> Iterator[Part]:
    return (((step, *path), part) for path, part in found)


def _numbers(a: Number, b: Number, here: Here) -> Iterator[Part]:
    if a.whole != b.whole:
        rule = "type-widened" if a.whole else "type-narrowed"
        yield (), Change(rule, *here, before="integer" if a.whole else "number", after="integer" if b.whole else "number")
    before, after = _range(a), _range(b)
    if b.low > a.low or b.high < a.high:
        yield (), Change("limits-narrowed", *here, "", before, after, ("number", b.low, b.high))
    if b.low < a.low or b.high > a.high:
        yield (), Change("limits-widened", *here, "", before, after, ("number", b.low, b.high))


def _range(number: Number) -> str:
    return f"{_bound(number.low)} to {_bound(number.high)}"


def _bound(value: float) -> str:
    return (
        {float("-inf"): "no least", float("inf"): "no greatest"}.get(value) or f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )


def _limits(a: tuple[tuple[str, Any], ...], b: tuple[tuple[str, Any], ...], here: Here) -> Iterator[Part]:
    """Compare limits of strings, arrays or objects: what is added or tightened narrows, what is dropped or loosened widens."""
    old, new = dict(a), dict(b)
    for key in sorted(old.keys() | new.keys()):
        one, other = old.get(key, _free(key)), new.get(key, _free(key))
        if one == other:
            continue
        if key.startswith(("min", "max")):
            tighter, looser = (other > one, other < one) if key.startswith("min") else (other < one, other > one)
        else:
            tighter, looser = bool(other), bool(one)
        before, after = (f"{key}: {value}" if value is not None else f"no {key}" for value in (old.get(key), new.get(key)))
        if tighter:
            yield (), Change("limits-narrowed", *here, "", before, after, (key, text_of(new[key])))
        if looser:
            yield (), Change("limits-widened", *here, before=before, after=after)


def _free(key: str) -> Any:
    """Return the value of a limit that limits nothing."""
    return 0 if key.startswith("min") else float("inf") if key.startswith("max") else False if key == "uniqueItems" else None


def _types(shape: Shape) -> str:
    if shape.anything:
        return "anything"
    names = sorted(shape.kinds())
    if shape.number is not None and shape.number.whole:
        names = ["integer" if name == "number" else name for name in names]
    return " or ".join([*names, "null"] if shape.null else names) or "nothing"


def _list(values: frozenset[str]) -> str:
    return ", ".join(sorted(values))


def _label(reader: Reader, each: Object) -> frozenset[tuple[str, str]]:
    """Return what names a variant of a union: its constants, or the one key that an externally tagged variant has."""
    tags = reader.tags(each)
    if tags:
        return frozenset(tags.items())
    if each.extra == "closed" and len(each.properties) == 1 and each.properties.keys() == each.required:
        return frozenset((name, "") for name in each.required)
    return frozenset()


def _signs(reader: Reader, each: Object) -> tuple[Any, ...]:
    """Return by what a value of this variant is known: the step into it, or ("has", its required keys)."""
    tags = reader.tags(each)
    return ("is", tuple(sorted(tags.items()))) if tags else ("has", tuple(sorted(each.required or each.properties)))


def _title(reader: Reader, each: Object) -> str:
    label = sorted(_label(reader, each))
    if label:
        return ", ".join(f"{name}={value.strip(chr(34))}" if value else name for name, value in label)
    return "{" + ", ".join(sorted(each.properties)) + "}"


def _match(
    old: tuple[Object, ...], new: tuple[Object, ...], reader: Reader, other: Reader
) -> tuple[list[tuple[Object, Object]], list[Object], list[Object]]:
    """Pair the variants of two unions: by their names first, those without by what they have in common."""
    labels = _labels(old, new, reader, other)
    pairs: list[tuple[Object, Object]] = []
    left, right = list(old), list(new)
    for each in old:
        found = next((it for it in right if labels[id(each)] and labels[id(it)] == labels[id(each)]), None)
        if found is not None:
            pairs.append((each, found))
            left.remove(each)
            right.remove(found)
    single = len(old) == len(new) == 1
    ranked = [(_likeness(one, it), one, it) for one in left for it in right if not (labels[id(one)] and labels[id(it)])]
    for likeness, one, it in sorted(ranked, key=lambda row: -row[0]):
        if one in left and it in right and (single or likeness >= ALIKE):
            pairs.append((one, it))
            left.remove(one)
            right.remove(it)
    return pairs, left, right


def _labels(
    old: tuple[Object, ...], new: tuple[Object, ...], reader: Reader, other: Reader
) -> dict[int, frozenset[tuple[str, str]]]:
    """Return by what each variant is known: the constants that all of them have, or else all that it has itself."""
    full = {id(each): _label(reader, each) for each in old} | {id(each): _label(other, each) for each in new}
    named = [frozenset(name for name, _ in label) for label in full.values() if label]
    shared = frozenset.intersection(*named) if named else frozenset()
    short = {key: frozenset(pair for pair in label if pair[0] in shared) for key, label in full.items()}
    for side in (old, new):
        told = [short[id(each)] for each in side if full[id(each)]]
        if not all(told) or len(set(told)) < len(told):
            return full
    return short


def _likeness(a: Object, b: Object) -> float:
    """Return how alike the properties of two objects are, 0 to 1."""
    if not a.properties and not b.properties:
        return 1.0
    return len(a.properties.keys() & b.properties.keys()) / len(a.properties.keys() | b.properties.keys())
