"""Find the equal parts of two schema documents, because equal parts need not be read or compared.

Two schemas are equal if their texts are equal, and all definitions that they refer to are equal. Definitions that refer to
each other in cycles count as equal if no difference is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from codex_replay.protocol.schema.bundle import BundleError, lookup


class Same:
    """Compare two documents; each definition is compared once."""

    def __init__(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        self._old = old
        self._new = new
        self._known: dict[str, bool] = {}

    def equal(self, old: Any, new: Any) -> bool:
        """Return True if two schemas have the same meaning; `old` is from one document, `new` from the other."""
        return bool(old == new) and all(self._defined(reference) for reference in _references(old))

    def _defined(self, reference: str) -> bool:
        """Return True if `reference` leads to equal definitions in both schema documents."""
        if reference not in self._known:
            self._look(reference)
        return self._known[reference]

    def _look(self, reference: str) -> None:
        """Search the definitions that `reference` leads to for a difference.

        If there is a difference, all definitions on the way to it differ; otherwise all visited definitions are equal.
        """
        if not self._listed(reference):
            self._known[reference] = False
            return
        seen = {reference}
        way = [(reference, _references(lookup(self._old, reference)))]
        while way:
            below = next((each for each in way[-1][1] if each not in seen and self._known.get(each) is not True), None)
            if below is None:
                way.pop()
            elif below in self._known or not self._listed(below):
                self._known |= dict.fromkeys((below, *(each for each, _ in way)), False)
                return
            else:
                seen.add(below)
                way.append((below, _references(lookup(self._old, below))))
        self._known |= dict.fromkeys(seen, True)

    def _listed(self, reference: str) -> bool:
        try:
            return bool(lookup(self._old, reference) == lookup(self._new, reference))
        except BundleError:
            return False  # the comparison of the two determines which one it is


def _references(node: Any) -> Iterator[str]:
    """Yield each reference in a schema, in no particular order."""
    left = [node] if type(node) in _HOLDERS else []
    while left:
        node = left.pop()
        if isinstance(node, dict):
            if isinstance(reference := node.get("$ref"), str):
                yield reference
            node = node.values()
        # Most of a schema are names and numbers, which are left out right here.
        left += [each for each in node if type(each) in _HOLDERS]


_HOLDERS = frozenset({dict, list})
