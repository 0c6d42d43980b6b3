"""One change between two types, and the place of the change.

A change does not depend on the sender of the message: the module `rules` judges the change for each sender.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from codex_replay.protocol.drift.shapes.model import text_of

#: One step into a value: ("key", name), ("items",), ("rest",) for any key of a map, ("is", ((name, JSON text), ...)) for the
#: variant with these constants.
Step = tuple[Any, ...]
Path = tuple[Step, ...]


class Change(NamedTuple):
    """One change, described relative to the definition that contains it.

    A change has the id of its rule, and the old and the new side, each in a form for readers and in a form for programs.

    `owner` is the definition in the old schema ("" if the old schema has no such definition), and `local` is the path
    inside this definition. Equal changes at several places are therefore equal objects. `what` is the changed property,
    value or variant. `detail` has the data with which a program can decide whether a value is affected (see the module
    `users`).
    """

    rule: str
    owner: str
    local: Path
    what: str = ""
    before: str = ""
    after: str = ""
    detail: tuple[Any, ...] = ()


Placed = tuple[Path, Change]


class Here(NamedTuple):
    """The current position of the comparison: a definition, and the path inside this definition."""

    owner: str
    local: Path

    def at(self, step: Step) -> Here:
        """Return the position after one more step of the path."""
        return Here(self.owner, (*self.local, step))


@cache
def _shown(step: Step) -> str:
    if step[0] == "key":
        return f".{step[1]}" if str(step[1]).replace("_", "a").replace("-", "a").isalnum() else f"[{text_of(step[1])}]"
    if step[0] == "is":
        return "(" + ", ".join(f"{name}={value.strip(chr(34))}" for name, value in step[1]) + ")"
    return "[*]" if step[0] == "items" else ".*"


def show(path: Path) -> str:
    """Return a path in readable form: ``$.params.items[*](type=text).text``."""
    return "$" + "".join(map(_shown, path))
