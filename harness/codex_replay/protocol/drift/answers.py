"""Find the response type of each request, even if the names in a schema bundle do not show it."""

from __future__ import annotations

import re

from codex_replay.protocol.schema.bundle import DIRECTIONS, Bundle, Direction

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+")


def _name_parts(name: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(name)}


def answers(bundle: Bundle, direction: Direction) -> dict[str, str]:
    """Return the response type of each request: by the names in the bundle, otherwise by the words that the two names share.

    For example, the answer to ``account/usage/read`` is ``GetAccountTokenUsageResponse``: no other unused type has the
    words account and usage.
    """
    found = {method: name for method in bundle.methods(direction) if (name := bundle.result_type(direction, method))}
    missing = [method for method in bundle.methods(direction) if method not in found]
    if missing:
        taken = {bundle.result_type(each, method) for each in DIRECTIONS for method in bundle.methods(each)} | {"JSONRPCResponse"}
        free = [name for name in bundle.type_names() if name.endswith("Response") and name not in taken]
        ranked = sorted((-_similarity(method, name), method, name) for method in missing for name in free)
        for unlike, method, name in ranked:
            if -unlike >= ALIKE and method not in found and name not in found.values():
                found[method] = name
    return found


#: The share of common words from which a type counts as the response of a method.
ALIKE = 0.4


def _similarity(method: str, name: str) -> float:
    one, other = _name_parts(method), _name_parts(name.removesuffix("Response"))
    return len(one & other) / len(one | other)


def answers_of(bundle: Bundle, direction: Direction, methods: list[str]) -> dict[str, str]:
    """Return the response type of each method in `methods`.

    Methods of the bundle that are not in `methods` only help to guess a type.
    """
    found = {method: name for method in methods if (name := bundle.result_type(direction, method))}
    return found if len(found) == len(methods) else answers(bundle, direction)
