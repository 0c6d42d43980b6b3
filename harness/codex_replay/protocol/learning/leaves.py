"""Find the leaves (values without members) in which two normalised values differ, with their paths.

The module `masks` learns masks from the differing leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from codex_replay.core.normalise.normaliser import is_headers


class Leaf(NamedTuple):
    """One difference between two normalised values.

    `path` has names and indexes; `left` and `right` are the two values at the path. `kind` is "value" for two leaves,
    "order" for objects with the same members in another order, and "shape" for any other difference, such as a missing
    member. For an HTTP header, the path contains "headers" and the header's name.
    """

    path: tuple[str | int, ...]
    left: Any
    right: Any
    kind: str

    @property
    def key(self) -> str:
        """The last member name in the path of the leaf."""
        return next((step for step in reversed(self.path) if isinstance(step, str)), "")

    @property
    def place(self) -> str:
        """The path as text."""
        return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)


def leaves(left: Any, right: Any, path: tuple[str | int, ...] = ()) -> Iterator[Leaf]:
    """Yield each path at which two values differ."""
    if type(left) is not type(right):
        numbers = (int, float)
        yield Leaf(path, left, right, "value" if type(left) in numbers and type(right) in numbers else "shape")
    elif type(left) is dict:
        if left.keys() != right.keys():
            yield Leaf(path, sorted(left), sorted(right), "shape")
        elif list(left) != list(right):
            yield Leaf(path, list(left), list(right), "order")
        for name in left.keys() & right.keys():
            yield from leaves(left[name], right[name], (*path, name))
    elif type(left) is list:
        if is_headers(left) and is_headers(right) and path[-1:] == ("headers",):
            yield from _headers(left, right, path)
        elif len(left) != len(right):
            yield Leaf(path, len(left), len(right), "shape")
        else:
            for index, (one, other) in enumerate(zip(left, right, strict=True)):
                yield from leaves(one, other, (*path, index))
    elif left != right:
        yield Leaf(path, left, right, "value")


def _headers(left: list[list[str]], right: list[list[str]], path: tuple[str | int, ...]) -> Iterator[Leaf]:
    if [name for name, _ in left] != [name for name, _ in right]:
        yield Leaf(path, [name for name, _ in left], [name for name, _ in right], "shape")
        return
    for (name, one), (_, other) in zip(left, right, strict=True):
        if one != other:
            yield Leaf((*path, name.lower()), one, other, "value")
