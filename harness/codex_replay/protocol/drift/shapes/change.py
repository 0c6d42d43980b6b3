"""One change between two types, and its place. A change does not depend on the sender; `rules` then judges it for each sender."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from codex_replay.protocol.drift.shapes.model import text_of

#: One step into a value: ("key", name), ("items",), ("rest",) for any key of a map, ("is", ((name, JSON text), ...)) for the
#: variant with these constants.
Step = tuple[Any, ...]
Path = tuple[Step, ...]


class Change(NamedTuple):
    """One change, described relative to its definition: the rule id, and both sides in forms for people and for programs.

    `owner` is the definition (of the old side, "" for none) and `local` is the path inside the definition. Therefore the same
    change at several places gives equal values. `what` is the property, value or variant, and `detail` the data from which a
    program finds out whether a value is affected (see `users`).
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
    """The current position of the walk: the definition, and the path inside it."""

    owner: str
    local: Path

    def at(self, step: Step) -> Here:
        """Return the position after one more step."""
        return Here(self.owner, (*self.local, step))


@cache
def _shown(step: Step) -> str:
    if step[0] == "key":
        return f".{step[1]}" if str(step[1]).replace("_", "a").replace("-", "a").isalnum() else f"[{text_of(step[1])}]"
    if step[0] == "is":
        return "(" + ", ".join(f"{name}={value.strip(chr(34))}" for name, value in step[1]) + ")"
    return "[*]" if step[0] == "items" else ".*"


def show(path: Path) -> str:
    """Return `path` as people write it: ``$.params.items[*](type=text).text``."""
    return "$" + "".join(map(_shown, path))
