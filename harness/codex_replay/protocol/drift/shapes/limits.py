"""Compare limits: ranges of numbers, lengths and similar limits, and if an object may have unlisted keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from codex_replay.protocol.drift.shapes.change import Change, Here, Placed
from codex_replay.protocol.drift.shapes.model import Limits, Number, Object, text_of

#: What it means that the keys that are not listed were this and are that.
_REST = {
    ("open", "closed"): "keys-closed",
    ("closed", "open"): "keys-opened",
    ("map", "open"): "map-gone",
    ("map", "closed"): "map-gone",
    ("open", "map"): "map-new",
    ("closed", "map"): "map-new",
}


def keys(a: Object, b: Object, here: Here) -> Iterator[Placed]:
    """Compare whether two objects allow unlisted keys, and whether these keys form a map."""
    if a.extra != b.extra:
        listed = tuple(sorted({*a.properties, *b.properties}))
        yield (), Change(_REST[a.extra, b.extra], *here, "", a.extra, b.extra, listed)


def numbers(a: Number, b: Number, here: Here) -> Iterator[Placed]:
    """Compare two ranges of numbers, and whether each contains only whole numbers."""
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


def limits(a: Limits, b: Limits, here: Here) -> Iterator[Placed]:
    """Compare the limits of strings, arrays or objects.

    If a limit is added or tighter, the type allows fewer values; if a limit is removed or looser, the type allows more.
    """
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
    """Return the value of a limit that allows everything."""
    return 0 if key.startswith("min") else float("inf") if key.startswith("max") else False if key == "uniqueItems" else None
