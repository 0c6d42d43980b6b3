"""Every small change of a value: other types, other values, and for members other names and other places. Pure.

A change has a name and a function: `change(parent, key)` alters `parent[key]`, a member or an element, in place.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Change = Callable[[Any, Any], None]
#: One value of each type that JSON has.
TYPES: dict[str, Any] = {"a text": "x", "a number": 7, "a boolean": True, "an array": [], "an object": {}, "null": None}


def kind(value: Any) -> str:
    """Return the JSON type of a value, as `TYPES` names it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, int | float):
        return "a number"
    return "an array" if isinstance(value, list) else "an object"


def changes(value: Any, member: bool, ordered: bool) -> dict[str, Change]:
    """Return the changes of a value that stands in an object (a member) or in an array, by what each does to it.

    The order of an object's members means nothing in JSON; it is changed only where it is a part of the value (`ordered`).
    """
    own = kind(value)
    found: dict[str, Change] = {f"is {name}": _put(other) for name, other in TYPES.items() if name != own}
    found |= {f"is {name}": _by(change) for name, change in OTHER_VALUES[own].items()}
    if member:
        found["is missing"] = _drop
        found["has another name"] = _rename
    else:
        found["is missing"] = _drop
        found["comes twice"] = _twice
    if own == "an array" and len(value) > 1:
        found["is reversed"] = _by(lambda it: it[::-1])
    if own == "an array" and value:
        found["has its last element twice"] = _by(lambda it: [*it, it[-1]])
        found["lacks its first element"] = _by(lambda it: it[1:])
        found["lacks its last element"] = _by(lambda it: it[:-1])
    if own == "an object" and len(value) > 1 and ordered:
        found["has its members in reverse"] = _by(lambda it: dict(reversed(it.items())))
    return found


OTHER_VALUES: dict[str, dict[str, Callable[[Any], Any]]] = {
    "null": {"false": lambda _: False, "zero": lambda _: 0, "empty": lambda _: ""},
    "a boolean": {
        "the opposite": lambda it: not it,
        "its own text": lambda it: str(it).lower(),
        "zero or one": lambda it: int(it),
    },
    "a number": {"one more": lambda it: it + 1, "negative": lambda it: -it - 1, "its own text": str},
    "a text": {
        "empty": lambda _: "",
        "longer": lambda it: it + " x",
        "shorter": lambda it: it[:-1] or "x",
        "in other case": lambda it: it.swapcase() if it.swapcase() != it else it + "X",
        "behind a blank": lambda it: " " + it,
    },
    "an array": {"longer by null": lambda it: [*it, None], "in an array": lambda it: [it]},
    "an object": {"with an unknown member": lambda it: {**it, "unknownMember": "x"}, "in an array": lambda it: [it]},
}


def other_name(name: str) -> str:
    """Return a name in its other spelling: snake_case for camelCase and the reverse, else in upper case."""
    if "_" in name:
        return re.sub(r"_(\w)", lambda match: match[1].upper(), name)
    snake = re.sub(r"[A-Z]", lambda match: "_" + match[0].lower(), name)
    return snake if snake != name else name.capitalize()


def _put(other: Any) -> Change:
    def change(parent: Any, key: Any) -> None:
        parent[key] = other

    return change


def _by(make: Callable[[Any], Any]) -> Change:
    def change(parent: Any, key: Any) -> None:
        parent[key] = make(parent[key])

    return change


def _drop(parent: Any, key: Any) -> None:
    del parent[key]


def _rename(parent: Any, key: Any) -> None:
    name = other_name(key)
    if name in parent:  # the twin spelling is there: this one is missing, and a third one comes
        name = key + "X"
    parent[name] = parent.pop(key)


def _twice(parent: Any, key: Any) -> None:
    parent.insert(key, parent[key])


# -- texts -----------------------------------------------------------------------------------------------------------------


def text_changes(lines: list[str]) -> dict[str, Callable[[str], str]]:
    """Return the changes of a text with these lines: of each line, word, dash and blank line. A text without the line stays."""
    found: dict[str, Callable[[str], str]] = {}
    for before, line, behind in zip(["", *lines], lines, [*lines[1:], ""], strict=False):
        name = f"the line {line[:60]!r}" if line else f"the blank line behind {before[:60]!r}"
        of = (before, line)
        found[f"{name} is missing"] = _lines(of, lambda it: [])
        found[f"{name} comes twice"] = _lines(of, lambda it: [it, it])
        found[f"{name} has a blank behind it"] = _lines(of, lambda it: [it + " "])
        if line:
            found[f"{name} has a blank line before it"] = _lines(of, lambda it: ["", it])
        found[f"{name} has words before it"] = _lines(of, lambda it: ["Note: " + it])
        found[f"{name} has a foreign line behind it"] = _lines(of, lambda it: [it, "Be careful."])
        if behind != line:
            found[f"{name} comes after the next"] = _swapped(of)
        if line.startswith("- "):
            found[f"{name} has no dash"] = _lines(of, lambda it: [it.removeprefix("- ")])
        words = line.split(" ")
        for at in range(len(words) if len(words) > 1 else 0):
            found[f"{name} lacks word {at + 1}"] = _words(of, at, lambda it: [])
            found[f"{name} has word {at + 1} twice"] = _words(of, at, lambda it: [it, it])
            found[f"{name} has word {at + 1} changed"] = _words(
                of, at, lambda it: [it.swapcase() if it.swapcase() != it else it + "x"]
            )
    return found


#: A line, and the one before it, by which a blank line is known.
Where = tuple[str, str]


def _place(lines: list[str], of: Where) -> int | None:
    before, line = of
    return next((n for n, each in enumerate(lines) if each == line and (line or lines[n - 1] == before)), None)


def _lines(of: Where, change: Callable[[str], list[str]]) -> Callable[[str], str]:
    def changed(text: str) -> str:
        lines = text.split("\n")
        number = _place(lines, of)
        if number is not None:
            lines[number : number + 1] = change(lines[number])
        return "\n".join(lines)

    return changed


def _swapped(of: Where) -> Callable[[str], str]:
    def changed(text: str) -> str:
        lines = text.split("\n")
        number = _place(lines, of)
        if number is not None:
            lines[number : number + 2] = reversed(lines[number : number + 2])
        return "\n".join(lines)

    return changed


def _words(of: Where, at: int, change: Callable[[str], list[str]]) -> Callable[[str], str]:
    def of_line(line: str) -> list[str]:
        words = line.split(" ")
        words[at : at + 1] = change(words[at])
        return [" ".join(words)]

    return _lines(of, of_line)
