"""The keys next to a union: each member of ``oneOf``, ``anyOf`` and ``allOf`` also allows the keys of the schema around it.

Strategy: a schema may list keys in ``properties`` and in the members of a union next to them, as the ThreadItem of later versions
does. An object of such a schema may have the keys of both. A member is therefore checked with all keys around it (`UnionKeys`),
and the object that contains the union is not checked itself, because its members are checked.
`codex_replay.protocol.schema.known` closes schemas by this rule, and `codex_replay.protocol.schema.explain` uses it too.
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
    """Return True if `node` has members, so that its keys are checked in them."""
    return any(node.get(keyword) for keyword in UNIONS)


def groups(node: Mapping[str, Any], around: Keys, find: Find) -> list[UnionKeys]:
    """Return the unions of `node`. `around` are the keys that `node` gets from the schema around it."""
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
    """Return the keys that `node` lists itself, without those of its unions."""
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
    """Return every key that an object of `node` may have, including those of its unions."""
    if node is True:
        return ANY_KEY
    if not isinstance(node, dict):
        return NO_KEYS
    reference = node.get("$ref")
    if reference is not None:
        return NO_KEYS if reference in above else _keys(find(reference), find, (*above, reference))
    return _both(_listed(node), _all([each for keyword in UNIONS for each in node.get(keyword, ())], find, above))
