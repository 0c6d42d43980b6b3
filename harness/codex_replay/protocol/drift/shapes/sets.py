"""Join and intersect shapes: a union allows the values of any schema, an intersection only values that all schemas allow.

Joining and intersecting are approximate: for example, after two arrays are joined, the result does not show which items had
which limits. The approximation is the same on both sides of a comparison.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from codex_replay.protocol.drift.shapes.model import ANYTHING, SCALARS, Array, Extra, Limits, Number, Object, Shape, kind_of


def either(a: Shape, b: Shape) -> Shape:
    """Return the shape that allows every value of `a` and every value of `b`."""
    if a.anything or b.anything:
        return replace(ANYTHING, unread=a.unread + b.unread)
    boolean = a.boolean or b.boolean
    string = a.string if b.string is None else b.string if a.string is None else _common(a.string, b.string)
    number = _span(a.number, b.number)
    free = {"boolean": boolean, "string": string is not None, "number": number is not None}
    return Shape(
        null=a.null or b.null,
        # A constant that another alternative admits anyway is redundant.
        constants=frozenset(text for text in a.constants | b.constants if not free.get(kind_of(text))),
        boolean=boolean,
        string=string,
        number=number,
        array=a.array if b.array is None else b.array if a.array is None else _joined(a.array, b.array),
        objects=a.objects + b.objects,
        unread=a.unread + b.unread,
        owner=a.owner if b.only_null() else b.owner if a.only_null() else "",
    )


def _common(a: Limits, b: Limits) -> Limits:
    return tuple(each for each in a if each in b)


def _span(a: Number | None, b: Number | None) -> Number | None:
    if a is None or b is None:
        return a or b
    return Number(a.whole and b.whole, min(a.low, b.low), max(a.high, b.high))


def _joined(a: Array, b: Array) -> Array:
    return Array({"anyOf": [a.items, b.items]}, _common(a.limits, b.limits))


def both(a: Shape, b: Shape) -> Shape:
    """Return the shape that allows only the values that `a` and `b` share."""
    unread = a.unread + b.unread
    if a.anything or b.anything:
        kept = b if a.anything else a
        return replace(kept, unread=unread) if a.unread or b.unread else kept
    constants = {text for text in a.constants if text in b.constants or _free(b, text)}
    constants |= {text for text in b.constants if _free(a, text)}
    return Shape(
        null=a.null and b.null,
        constants=frozenset(constants),
        boolean=a.boolean and b.boolean,
        string=None if a.string is None or b.string is None else a.string + tuple(x for x in b.string if x not in a.string),
        number=_overlap(a.number, b.number),
        array=None if a.array is None or b.array is None else _merged(a.array, b.array),
        objects=tuple(_merged_objects(x, y) for x, y in product(a.objects, b.objects)),
        unread=unread,
    )


def _free(shape: Shape, text: str) -> bool:
    return kind_of(text) in SCALARS and shape.free(kind_of(text))


def _overlap(a: Number | None, b: Number | None) -> Number | None:
    if a is None or b is None:
        return None
    return Number(a.whole or b.whole, max(a.low, b.low), min(a.high, b.high))


def _merged(a: Array, b: Array) -> Array:
    items = a.items if b.items is True else b.items if a.items is True else {"allOf": [a.items, b.items]}
    return Array(items, a.limits + tuple(each for each in b.limits if each not in a.limits))


def _merged_objects(a: Object, b: Object) -> Object:
    """Return objects that have the properties of both shapes, as if one schema had been written for both.

    For example, Rust's serde (`flatten`) joins the properties of a struct and an enum in one object.
    """
    properties = {**a.properties}
    for name, node in b.properties.items():
        other = properties.get(name, True)
        properties[name] = node if other is True else other if node is True else {"allOf": [other, node]}
    maps = [each for each in (a, b) if each.extra == "map"]
    extra: Extra = "map" if maps else "closed" if a.extra == b.extra == "closed" else "open"
    values = maps[0].values if maps else True
    return Object(properties, a.required | b.required, extra, values, a.limits + b.limits, b.title or a.title)
