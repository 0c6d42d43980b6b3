"""Which type answers which request, where the names of a bundle alone do not tell."""

from __future__ import annotations

import re

from codex_replay.protocol.schema.bundle import DIRECTIONS, Bundle, Direction

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+")


def _words(name: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(name)}


def answers(bundle: Bundle, direction: Direction) -> dict[str, str]:
    """Return which type answers which request: as the bundle's names tell, and where they do not, by the words in common.

    ``account/usage/read`` is answered by ``GetAccountTokenUsageResponse``, the one type left that speaks of it.
    """
    found = {method: name for method in bundle.methods(direction) if (name := bundle.result_type(direction, method))}
    missing = [method for method in bundle.methods(direction) if method not in found]
    if missing:
        taken = {bundle.result_type(each, method) for each in DIRECTIONS for method in bundle.methods(each)} | {"JSONRPCResponse"}
        free = [name for name in bundle.type_names() if name.endswith("Response") and name not in taken]
        ranked = sorted((-_alike(method, name), method, name) for method in missing for name in free)
        for unlike, method, name in ranked:
            if -unlike >= ALIKE and method not in found and name not in found.values():
                found[method] = name
    return found


#: The share of common words from which on a type is taken for the answer to a method.
ALIKE = 0.4


def _alike(method: str, name: str) -> float:
    one, other = _words(method), _words(name.removesuffix("Response"))
    return len(one & other) / len(one | other)


def answers_of(bundle: Bundle, direction: Direction, methods: list[str]) -> dict[str, str]:
    """Return which type answers each of `methods`; only where a name is to be guessed are the other methods looked at."""
    found = {method: name for method in methods if (name := bundle.result_type(direction, method))}
    return found if len(found) == len(methods) else answers(bundle, direction)
