"""Handle keys next to a union: each member of ``oneOf``, ``anyOf`` and ``allOf`` also allows the keys of the schema around the
union.

A schema may list some keys in ``properties``, and other keys in the members of a union next to ``properties``. For example,
the ThreadItem of later Codex versions lists keys in ``properties`` and in the members of a union. An object may have keys
from ``properties`` and keys from one member of the union. Each member of a union is checked together with all keys around
the union (`UnionKeys`). The keys of the schema around the union are checked only together with a member.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    #: Returns the schema that a reference (``#/definitions/X``) names.
    Find = Callable[[str], Any]

UNIONS = ("allOf", "oneOf", "anyOf")
#: The keys of an object that may have any.
ANY_KEY: None = None
Keys = frozenset[str] | None
NO_KEYS: Keys = frozenset()


class UnionKeys(NamedTuple):
    """The members of one union (each member of ``allOf`` counts as a union), and the keys that they get from the schema around
    it.
    """

    keyword: str
    members: list[Any]
    keys: Keys


def has_union(node: Mapping[str, Any]) -> bool:
    """Return True if `node` has a union, so that its keys are checked together with the members of the union."""
    return any(node.get(keyword) for keyword in UNIONS)


def groups(node: Mapping[str, Any], around: Keys, find: Find) -> list[UnionKeys]:
    """Return the unions (``oneOf``, ``anyOf``, ``allOf``) of `node`.

    `around` has the keys that `node` gets from the schema around it.
    """
    found = [("allOf", [each]) for each in node.get("allOf", ())]
    found += [(keyword, list(node[keyword])) for keyword in ("oneOf", "anyOf") if node.get(keyword)]
    own = _both(around, _listed(node))
    if len(found) == 1:
        ((keyword, members),) = found
        return [UnionKeys(keyword, members, own)]
    known = [_all(members, find, ()) for _, members in found]
    result = []
    for at, (keyword, members) in enumerate(found):
        keys = own
        for other in (*known[:at], *known[at + 1 :]):
            keys = _both(keys, other)
        result.append(UnionKeys(keyword, members, keys))
    return result


def _listed(node: Mapping[str, Any]) -> Keys:
    """Return the keys in the ``properties`` of `node`, without the keys of its unions."""
    if node.get("additionalProperties", False) is not False:
        return ANY_KEY
    return frozenset(node.get("properties", ()))


def _both(one: Keys, other: Keys) -> Keys:
    return ANY_KEY if one is ANY_KEY or other is ANY_KEY else one | other


def _all(members: list[Any], find: Find, above: tuple[str, ...]) -> Keys:
    keys = NO_KEYS
    for each in members:
        keys = _both(keys, _keys(each, find, above))
    return keys


def _keys(node: Any, find: Find, above: tuple[str, ...]) -> Keys:
    """Return every key that an object of the schema `node` may have, including the keys of its unions."""
    if node is True:
        return ANY_KEY
    if not isinstance(node, dict):
        return NO_KEYS
    reference = node.get("$ref")
    if reference is not None:
        return NO_KEYS if reference in above else _keys(find(reference), find, (*above, reference))
    return _both(_listed(node), _all([each for keyword in UNIONS for each in node.get(keyword, ())], find, above))
