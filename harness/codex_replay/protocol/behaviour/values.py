"""Find the paths at which two normalised values differ. If a change occurs in several cases, its path is the same in all of them.

List items are paired by their kind (type, role, name), and not by their index. A path contains the kind of a list item:
`$.body.input[function_call_output].output` is the output that the model gets, at any index of the list. The package
deepdiff is not used, because it compares by index: one item inserted at the front would change all items. Placeholder
names, which stand for ids, are compared as identities: a name in one run must always correspond to the same name in the
other run, even if the numbers of the two names differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, NamedTuple

from codex_replay.core.normalise.normaliser import is_headers
from codex_replay.protocol.behaviour.run_form import NAME, blank, role


class Absent:
    """The value that stands for an absent member."""

    def __repr__(self) -> str:
        return "(absent)"


ABSENT = Absent()


class At(NamedTuple):
    """One difference: its path, and the value in each run (`ABSENT` if a run has no value there).

    `identity` is True if only placeholder names differ.
    """

    path: str
    before: Any
    after: Any
    identity: bool = False


class Names:
    """The mapping between the placeholder names of two runs; two names become partners where they first occur."""

    def __init__(self) -> None:
        self._there: dict[tuple[str, str], str] = {}
        self._back: dict[tuple[str, str], str] = {}

    def same(self, one: str, other: str) -> bool:
        """Return True if two texts have the same meaning although the numbers in their placeholder names differ.

        Names that are new in both texts become partners.
        """
        good = True
        for left, right in zip(NAME.finditer(one), NAME.finditer(other), strict=True):
            what = role(left[1])
            there = self._there.setdefault((what, left[0]), right[0])
            back = self._back.setdefault((what, right[0]), left[0])
            good = good and there == right[0] and back == left[0]
        return good


def differences(one: Any, other: Any, names: Names, path: str = "$") -> Iterator[At]:
    """Yield each difference between two normalised values."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in {**one, **other}:
            yield from _member(one.get(key, ABSENT), other.get(key, ABSENT), names, f"{path}{_step(key)}")
    elif isinstance(one, list) and isinstance(other, list):
        yield from _lists(one, other, names, path)
    elif isinstance(one, str) and isinstance(other, str):
        if blank(one) != blank(other):
            yield At(path, one, other)
        elif not names.same(one, other):
            yield At(path, one, other, identity=True)
    elif type(one) is not type(other) or one != other:
        yield At(path, one, other)


def _member(one: Any, other: Any, names: Names, path: str) -> Iterator[At]:
    if one is ABSENT or other is ABSENT:
        yield At(path, one, other)
    else:
        yield from differences(one, other, names, path)


def _lists(one: list[Any], other: list[Any], names: Names, path: str) -> Iterator[At]:
    if is_headers(one) and is_headers(other):
        left, right = _by_name(one), _by_name(other)
        for name in {**left, **right}:
            for before, after in zip_longest(left.get(name, ()), right.get(name, ()), fillvalue=ABSENT):
                yield from _member(before, after, names, f"{path}[{name}]")
        return
    for left_item, right_item in aligned([_kind_of(item) for item in one], [_kind_of(item) for item in other]):
        before = ABSENT if left_item is None else one[left_item]
        after = ABSENT if right_item is None else other[right_item]
        yield from _member(before, after, names, f"{path}[{selector(after if before is ABSENT else before)}]")


def _by_name(headers: list[list[str]]) -> dict[str, list[str]]:
    """Return a list of values for each header, because a header may be repeated."""
    found: dict[str, list[str]] = {}
    for name, value in headers:
        found.setdefault(name.lower(), []).append(value)
    return found


def aligned(one: Sequence[tuple[str, str]], other: Sequence[tuple[str, str]]) -> Iterator[tuple[int | None, int | None]]:
    """Pair the items of two lists in order: first items with equal beginnings, then items with equal identities.

    Both lists contain pairs (identity, beginning); the result contains pairs of indexes.
    """
    for _, from_a, to_a, from_b, to_b in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        next_free = from_b
        for index in range(from_a, to_a):
            partner = next((at for at in range(next_free, to_b) if other[at][0] == one[index][0]), None)
            if partner is not None:
                yield from ((None, at) for at in range(next_free, partner))
                next_free = partner + 1
            yield index, partner
        yield from ((None, at) for at in range(next_free, to_b))


def selector(item: Any) -> str:
    """Return the name of a list item in a path: its type, role and name."""
    if not isinstance(item, dict):
        return ""
    words = [item[key] for key in ("type", "role", "name", "method") if isinstance(item.get(key), str)]
    return blank(" ".join(word[:40] for word in words))


def _kind_of(item: Any) -> tuple[str, str]:
    """Return the kind of a list item and the beginning of its content.

    The kind of a scalar is its value. The beginning is the call id if the item has one, otherwise the first characters of its
    text.
    """
    if isinstance(item, dict):
        own = item.get("call_id") or item.get("text") or item.get("content") or ""
        first = own[0].get("text", "") if isinstance(own, list) and own and isinstance(own[0], dict) else own
        return selector(item) or " ".join(sorted(item)), blank(str(first))[:24].strip()
    return ("list", "") if isinstance(item, list) else (blank(json.dumps(item)), "")


def _step(key: str) -> str:
    return f".{key}" if key.isidentifier() else f"[{json.dumps(blank(key))}]"
