"""Find the position of one value in a JSON text, to replace this value and keep all other bytes.

The JSON texts come from a recording and were decoded before, so every given path leads to a value.
"""

from __future__ import annotations

from json.decoder import JSONDecoder
from typing import Any

from codex_replay.core.wire.json_text import NotJson, ascii_dumps, dumps, loads, skip

#: Keys and positions, from the outermost value to the one that is meant.
Path = tuple[str | int, ...]

_scan = JSONDecoder().scan_once  # type: ignore[attr-defined]


def span(data: bytes, path: Path) -> tuple[int, int]:
    """Return the position of the value at `path` in one JSON text, in bytes (start, end).

    Raises `KeyError` if the path leads to no value.
    """
    text = data.decode()
    at = skip(text, 0)
    for step in path:
        at = _inner(text, at, step)
    _, end = _scan(text, at)
    return len(text[:at].encode()), len(text[:end].encode())


def spliced(data: bytes, path: Path, value: Any) -> bytes:
    """Return a JSON text with one value replaced.

    The new value is written in the style of the old value. All bytes outside the value stay unchanged.
    """
    start, end = span(data, path)
    return data[:start] + written(data[start:end], value) + data[end:]


def written(old: bytes, value: Any) -> bytes:
    """Return the replacement of a JSON value, as compact JSON.

    If the text of the old value is escaped to ASCII, the text of the new value is, too.
    """
    try:
        if b"\\u" in old and ascii_dumps(loads(old)) == old:
            return ascii_dumps(value)
        return dumps(value)
    except (NotJson, ValueError):  # a lone surrogate has only the escaped form
        return ascii_dumps(value)


def _inner(text: str, at: int, step: str | int) -> int:
    """Return the position of the member or item `step` in the value that begins at `at`.

    If several members have the name `step`, return the last one.
    """
    found, number = -1, 0
    end = {"{": "}", "[": "]"}.get(text[at], "")
    at = skip(text, at + 1)
    while end and text[at] != end:
        name: str | int = number
        if end == "}":
            name, at = _scan(text, at)
            at = skip(text, skip(text, at) + 1)
        if name == step:
            found = at
        _, at = _scan(text, at)
        at = skip(text, at)
        if text[at] == ",":
            at = skip(text, at + 1)
        number += 1
    if found < 0:
        raise KeyError(step)
    return found
