"""Report the error in a config.toml as the real server does: the line, the column and the message of its TOML parser.

The module is loaded only if config.toml is invalid. If `toml_faults` does not find the fault, the message is that of `tomllib`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any

from codex_fakes.scripted.state.toml_faults import first_fault

#: Where a part of the file stands: its line, its first and its last column, from 1.
Place = tuple[int, int, int]

_KEY = re.compile(r"""[A-Za-z0-9_-]+|"[^"\\\n]*"|'[^'\n]*'""")
_VALUE = re.compile(r"""\"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s#,\]}]+""")


def broken(text: str) -> tuple[str, Place] | None:
    """Return the message and the place of the error in a text that is not TOML. Return None if the text is valid TOML."""
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        if (fault := first_fault(text)) is not None:
            return str(fault), _place(text, fault.first, fault.end - 1)
        place = re.search(r"at line (\d+), column (\d+)", str(error))
        line, column = (int(place[1]), int(place[2])) if place else (1, 1)
        return str(error).partition(" (at ")[0], (line, column, column)
    return None


def _place(text: str, first: int, last: int) -> Place:
    """Return the place of the characters from `first` to `last`. The end of the text counts as part of its last line.

    If the fault is one character that is not ASCII, or begins with it, the real server counts the bytes before the character.
    """
    begin = text.rfind("\n", 0, min(first, len(text) - 1)) + 1
    before = text[begin:first]
    column = len(before if text[first : first + 1].isascii() else before.encode()) + 1
    return text.count("\n", 0, begin) + 1, column, column if last <= first else last - begin + 1


def shown_in(text: str, message: str, place: Place) -> str:
    """Return the error with its line, in the form that the real server reports when it edits the file."""
    number, column, last = place
    line = text.split("\n")[number - 1]
    margin = " " * len(str(number))
    size = 1 if last == column else len(line[column - 1 : last].encode())  # the real server counts bytes
    head = f"TOML parse error at line {number}, column {column}\n{margin} |\n{number} | {line}"
    return f"{head}\n{margin} | {' ' * (column - 1)}{'^' * size}\n{message}\n"


def place_of(text: str, path: Sequence[str]) -> Place | None:
    """Return the place of the value at a path in the text: after the key of the value, or at the head of its table."""
    table: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        rest = line.strip()
        if rest[:1] == "[" and rest[:2] != "[[" and "]" in rest:
            table = _names(rest[1 : rest.index("]")])
            if table == list(path):
                begin = line.index("[") + 1
                return number, begin, begin + rest.index("]")
        elif "=" in rest and rest[0] != "#":
            names = [*table, *_names(rest.partition("=")[0])]
            if len(names) > len(path) > len(table) and names[: len(path)] == list(path):
                key = list(_KEY.finditer(line.partition("=")[0]))[len(path) - len(table) - 1]
                return number, key.start() + 1, key.end()
            if names == list(path)[: len(names)]:
                start = line.index("=") + 1
                start += len(line[start:]) - len(line[start:].lstrip())
                if (inner := _inside(line, start, path[len(names) :])) is not None:
                    return number, inner + 1, inner + _length(line[inner:].rstrip())
    return None


def _inside(line: str, start: int, path: Sequence[str]) -> int | None:
    """Return the column (from 0) at which the value at a path begins.

    `line` has an inline value that begins at column `start`.
    """
    for name in path:
        if line[start : start + 1] == "[":
            places = [found.start() for found in _VALUE.finditer(line, start + 1)]
            start = places[int(name)] if int(name) < len(places) else start
        else:
            key = re.compile(rf"""[{{,]\s*["']?{re.escape(name)}["']?\s*=\s*""").search(line, start)
            if key is None:
                return None
            start = key.end()
    return start


def _length(value: str) -> int:
    if value[:1] in ("[", "{"):
        close = value.rfind("]" if value[0] == "[" else "}")
        return close + 1 if close > 0 else len(value)
    found = _VALUE.match(value)
    return found.end() if found is not None else len(value)


def _names(key: str) -> list[str]:
    return [name.strip("\"'") for name in _KEY.findall(key)]


def warning(details: str, path: str | None = None, place: Place | None = None) -> dict[str, Any]:
    """Return the notification about an invalid configuration."""
    params: dict[str, Any] = {"summary": "Invalid configuration; using defaults.", "details": details}
    if place is not None:
        line, first, last = place
        span = {"start": {"line": line, "column": first}, "end": {"line": line, "column": last}}
        params |= {"path": path, "range": span}
    return {"method": "configWarning", "params": params}
