"""Where a change can be made: the places of a JSON value, and how each looks in all the values of one kind.

A site is the same place in all cases: `sendUserTurn.params.effort` when it is a text. A mutant makes its change there in every
case, as a wrong program would. The elements of an array are one site (`[]`), of which the last is changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from tests.mutants.operators import Change, changes, kind

#: The keys of tools whose values are the client's own schemas: one value each, and not a place for each keyword.
OPAQUE = {
    "parameters",
    "inputSchema",
    "schema",
    "finalOutputJsonSchema",
    "final_output_json_schema",
    "outputSchema",
    "output_schema",
    "metadata",
}
#: Members whose texts are the client's, the model's or made up; each text of any other member is a look of its own.
FREE = {"name", "text", "content", "delta", "arguments", "description", "message", "id", "call_id", "model", "instructions"}
FEW = re.compile(r"[A-Za-z_.\-]{1,24}")
MOST_VALUES = 6


@dataclass(frozen=True)
class Mutant:
    """One change: `subject` and `site` are where, `what` is what is wrong there, `passes` the call or answer of the site."""

    subject: str
    site: str
    what: str
    mutation: Callable[[Any], Any]
    passes: str

    @property
    def id(self) -> str:
        return f"{self.subject}: {self.site} {self.what}"


# -- places in a value -----------------------------------------------------------------------------------------------------


def places(
    value: Any, path: str = "", opaque: Collection[str] = OPAQUE, wanted: str | None = None
) -> Iterator[tuple[str, Any, Any]]:
    """Yield (path, parent, key) of every member and element below a value, except below the `opaque` members.

    If `wanted` is a path, yield the places with this path and those on the way to them.
    """
    if isinstance(value, list):
        at = f"{path}[]"
        if wanted is None or wanted.startswith(at):
            for index, each in enumerate(list(value)):
                yield at, value, index
                yield from places(each, at, opaque, wanted)
    elif isinstance(value, dict):
        for key, each in list(value.items()):
            at = f"{path}.{key}" if path else str(key)
            if wanted is None or wanted.startswith(at):
                yield at, value, key
                if key not in opaque:
                    yield from places(each, at, opaque, wanted)


class Sites:
    """Collects the places of many values of one kind, and how each looks there.

    Nothing below the `opaque` members is a place. If `worded` is given, these members alone have a look for each of their
    words; any other has one for each type, and none for null where it is something else too.
    """

    def __init__(self, opaque: Collection[str] = OPAQUE, worded: Collection[str] | None = None) -> None:
        self._opaque, self._worded = opaque, worded
        self.seen: dict[str, dict[str, Any]] = {}
        self.members: set[str] = set()

    def add(self, value: Any) -> None:
        for path, parent, key in places(value, opaque=self._opaque):
            looks = self.seen.setdefault(path, {})
            looks.setdefault(look(parent[key]), parent[key])
            if isinstance(parent, dict):
                self.members.add(path)

    def all(self) -> Iterator[tuple[str, str | None, str, Change]]:
        """Yield (path, look, what, change) of each mutant: a place that has several looks is changed in one of them."""
        for path, looks in self.seen.items():
            member = path.rpartition(".")[2].removesuffix("[]")
            texts = [name for name in looks if name.startswith('"')]
            if self._worded is not None and member not in self._worded:
                found = {_any(value): value for value in sorted(looks.values(), key=lambda it: len(json.dumps(it)))}
                looks = {name: value for name, value in found.items() if value is not None} or {"null": None}
            elif texts and (len(texts) > MOST_VALUES or member in FREE):  # free text: one look
                looks = {**{name: value for name, value in looks.items() if name not in texts}, "a text": looks[texts[0]]}
            for name, value in looks.items():
                ordered = path.rpartition(".")[2] in OPAQUE
                for what, change in changes(value, path in self.members, ordered).items():
                    yield path, name, what, change


def look(value: Any) -> str:
    """Return what tells the values of one place apart: its type, a short word itself, an empty or full array."""
    if isinstance(value, str):
        return json.dumps(value) if FEW.fullmatch(value) else "a text"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "an empty array" if not value else "an array of one" if len(value) == 1 else "an array"
    return kind(value)


def _any(value: Any) -> str:
    """Return the look that each value of a type has."""
    return "any " + kind(value).split(" ")[-1]


def fits(value: Any, wanted: str) -> bool:
    """Return True if a value has the look; free text has that of any text, `any TYPE` that of each value of the type."""
    return look(value) == wanted or (wanted == "a text" and isinstance(value, str)) or _any(value) == wanted


def change_in(value: Any, path: str, wanted: str, change: Change) -> bool:
    """Make the change at the last place with this path and look; return False if there is none."""
    last = None
    for at, parent, key in places(value, wanted=path):
        if at == path and fits(parent[key], wanted):
            last = (parent, key)
    if last is None:
        return False
    before = json.dumps(value)
    change(*last)
    return json.dumps(value) != before
