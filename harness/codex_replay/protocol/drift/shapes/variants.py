"""Pair the variants of two unions: named variants by their names, the others by their common members."""

from __future__ import annotations

from typing import Any

from codex_replay.protocol.drift.shapes.model import Object
from codex_replay.protocol.drift.shapes.read import Reader

#: The share of common properties from which two variants without a name count as the same.
ALIKE = 0.5
#: What names a variant: (property, JSON text of its one value); the text is "" where the property itself is the name.
Label = frozenset[tuple[str, str]]


def label(reader: Reader, each: Object) -> Label:
    """Return the name of a variant of a union: the constants of the variant, or its key if the variant is an object with one
    required key.
    """
    tags = reader.tags(each)
    if tags:
        return frozenset(tags.items())
    if each.extra == "closed" and len(each.properties) == 1 and each.properties.keys() == each.required:
        return frozenset((name, "") for name in each.required)
    return frozenset()


def signs(reader: Reader, each: Object) -> tuple[Any, ...]:
    """Return the marks that identify a value of a variant: the step into the value, or ("has", its required keys)."""
    tags = reader.tags(each)
    return ("is", tuple(sorted(tags.items()))) if tags else ("has", tuple(sorted(each.required or each.properties)))


def title(reader: Reader, each: Object) -> str:
    """Return the title of a variant in a report: its name, or its properties."""
    if named := sorted(label(reader, each)):
        return ", ".join(f"{name}={value.strip(chr(34))}" if value else name for name, value in named)
    return "{" + ", ".join(sorted(each.properties)) + "}"


def match(
    old: tuple[Object, ...], new: tuple[Object, ...], reader: Reader, other: Reader
) -> tuple[list[tuple[Object, Object]], list[Object], list[Object]]:
    """Pair the variants of two unions.

    Pair variants with a name by their names, then pair the other variants by their common members.
    """
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


def _labels(old: tuple[Object, ...], new: tuple[Object, ...], reader: Reader, other: Reader) -> dict[int, Label]:
    """Return the label of each variant of a union: the constants of the properties that all variants have, otherwise all
    constants of the variant.
    """
    full = {id(each): label(reader, each) for each in old} | {id(each): label(other, each) for each in new}
    named = [frozenset(name for name, _ in label) for label in full.values() if label]
    shared = frozenset.intersection(*named) if named else frozenset()
    short = {key: frozenset(pair for pair in label if pair[0] in shared) for key, label in full.items()}
    for side in (old, new):
        report = [short[id(each)] for each in side if full[id(each)]]
        if not all(report) or len(set(report)) < len(report):
            return full
    return short


def _likeness(a: Object, b: Object) -> float:
    """Return how similar the properties of two objects are, from 0 to 1."""
    if not a.properties and not b.properties:
        return 1.0
    return len(a.properties.keys() & b.properties.keys()) / len(a.properties.keys() | b.properties.keys())
