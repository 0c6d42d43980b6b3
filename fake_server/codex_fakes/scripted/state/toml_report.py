"""Report the error in a config.toml as the real server does: the line, the column and the message of its TOML parser.

The module is loaded only if config.toml is invalid. For usual mistakes, the message was observed with the real server; for
rare mistakes, it is the message of `tomllib`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any

#: Where a part of the file stands: its line, its first and its last column, from 1.
Place = tuple[int, int, int]

_KEY = re.compile(r"""[A-Za-z0-9_-]+|"[^"\\\n]*"|'[^'\n]*'""")
_VALUE = re.compile(r"""\"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s#,\]}]+""")
_WORD = re.compile(r"[A-Za-z_]\w*")
_ESCAPES = 'missing escaped value, expected `b`, `e`, `f`, `n`, `r`, `\\\\`, `"`, `x`, `u`, `U`'.replace("\\\\", "\\")
_NO_KEY = "unquoted keys cannot be empty, expected letters, numbers, `-`, `_`"


def broken(text: str) -> tuple[str, Place] | None:
    """Return the message and the place of the error in a text that is not TOML. Return None if the text is valid TOML."""
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        seen: set[str] = set()
        for number, line in enumerate(text.split("\n"), 1):
            if (found := _fault(line, seen)) is not None:
                return found[0], (number, *found[1:])
        place = re.search(r"at line (\d+), column (\d+)", str(error))
        line_, column = (int(place[1]), int(place[2])) if place else (1, 1)
        if str(error).startswith("Cannot declare"):  # the head of a table that is there already
            head = text.split("\n")[line_ - 1]
            begin = len(head) - len(head.lstrip(" \t["))
            return "duplicate key", (line_, begin + 1, head.rindex("]", 0, column))
        return str(error).partition(" (at ")[0], (line_, column, column)
    return None


def shown_in(text: str, message: str, place: Place) -> str:
    """Return the error with its line, in the form that the real server reports when it edits the file."""
    number, column = place[0], place[1]
    line = text.split("\n")[number - 1]
    margin = " " * len(str(number))
    head = f"TOML parse error at line {number}, column {column}\n{margin} |\n{number} | {line}"
    return f"{head}\n{margin} | {' ' * (column - 1)}^\n{message}\n"


def _fault(line: str, seen: set[str]) -> tuple[str, int, int] | None:
    """Return the error in one line of config.toml. `seen` are the tables so far, and the keys of the last table."""
    begin = len(line) - len(line.lstrip(" \t"))
    rest = line[begin:].rstrip()
    if not rest or rest[0] == "#":
        return None
    if rest[0] == "[":
        return _head_fault(rest, begin, seen)
    if rest[0] == "=":
        return _NO_KEY, begin + 1, begin + 1
    if rest[0] in "{}":
        return "invalid key-value pair, expected key", begin + 1, begin + 1
    if rest[0] not in "\"'.+" and _KEY.match(rest) is None and "=" in rest:
        return "invalid unquoted key, expected letters, numbers, `-`, `_`", begin + 1, begin + 1
    key = _KEY.match(rest)
    after = rest[key.end() :].lstrip(" \t.") if key is not None else ""
    if key is None or "=" not in after:
        word = len(rest.split()[0])
        at = begin + word + len(rest[word:]) - len(rest[word:].lstrip()) + 1
        return "key with no value, expected `=`", at, at
    if after[:1] != "=":
        return None
    if f".{key[0]}" in seen:
        return "duplicate key", begin + 1, begin + key.end()
    seen.add(f".{key[0]}")
    return _value_fault(rest, rest.index("=") + 1, begin)


def _head_fault(rest: str, begin: int, seen: set[str]) -> tuple[str, int, int] | None:
    if "]" not in rest:
        return "unclosed table, expected `]`", begin + len(rest) + 1, begin + len(rest) + 1
    name = rest.strip("[] ")
    if not name:
        return _NO_KEY, begin + 2, begin + 2
    for key in [key for key in seen if key[0] == "."]:
        seen.discard(key)
    if rest[:2] != "[[":
        if name in seen:
            return "duplicate key", begin + 2, begin + 1 + len(name)
        seen.add(name)
    return None


def _value_fault(rest: str, at: int, begin: int) -> tuple[str, int, int] | None:
    start = at + len(rest[at:]) - len(rest[at:].lstrip(" \t"))
    value, column = rest[start:], begin + start + 1
    if not value or value[0] == "#":
        return "string values must be quoted, expected literal string", column + (not value), column + (not value)
    if value[:3] in ('"""', "'''"):
        return None
    if value[0] in "\"'":
        found = re.match(r"\"(?:[^\"\\]|\\.)*\"" if value[0] == '"' else r"'[^']*'", value)
        if found is None:
            last = begin + len(rest) + 1
            return f"invalid {'basic' if value[0] == chr(34) else 'literal'} string, expected `{value[0]}`", last, last
        bad = re.search(r"\\[^befnr\\\"xuU]", found[0]) if value[0] == '"' else None
        if bad is not None:
            return _ESCAPES, column + bad.start() + 1, column + bad.start() + 1
        return _junk(value, found.end(), column)
    if value[0] == "[":
        last = begin + len(rest) + 2  # behind the end of the line
        return ("unclosed array, expected `]`", last, last) if value.count("[") > value.count("]") else None
    word = _WORD.match(value)
    if word is None or value[0] == "{":
        if (twice := re.match(r"[+-]?[0-9][0-9_]*?_(?=_)", value)) is not None:
            return "`_` may only go between digits", column + twice.end(), column + twice.end()
        number = re.match(r"[+-]?[0-9_]+(?:\.[0-9_]+)?", value)
        if number is not None and value[number.end() : number.end() + 1] == ".":
            tail = len(value.split()[0])
            return "invalid float, expected nothing", column + number.end(), column + tail - 1
        return None
    text = word[0]
    if text in ("true", "false", "inf", "nan"):
        return _junk(value, word.end(), column)
    if text.lower() in ("true", "false"):
        return f"invalid boolean, expected `{text.lower()}`", column, column + len(text) - 1
    return "string values must be quoted, expected literal string", column, column + len(value.split()[0]) - 1


def _junk(value: str, end: int, column: int) -> tuple[str, int, int] | None:
    after = value[end:].lstrip(" \t")
    if not after or after[0] == "#":
        return None
    at = column + len(value) - len(after)
    return "unexpected key or value, expected newline, `#`", at, at


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
