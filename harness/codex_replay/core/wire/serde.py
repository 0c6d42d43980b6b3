"""Read a client's line as serde_json reads it, the JSON reader of the real server.

This module handles the cases in which Python's reader gives another result.

serde_json refuses a whole line for a lone surrogate, for a number beyond the range of a double, and for values nested more than
127 deep, at any place. serde_json refuses a message that has the same member twice. serde_json reads `-0` as a float,
which is not an id. serde_json reads a list of a request's members, in their order, as a request. Source: the real 0.92.0
(tests/data/bad_lines.ndjson).
fake-codex loads this module at start-up: `read` decides by substrings whether a line needs a closer look."""

from __future__ import annotations

from codex_replay.core.wire.json_text import NotJson, dumps, loads, members

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEPTH = 127  # of nested lists and objects, the message's own included
#: The members that the types of a message have; any other may be there twice.
_MEMBERS = ("id", "method", "params", "result", "error")
_QUOTED = tuple(f'"{name}"'.encode() for name in _MEMBERS)
_DIGITS = bytes(0x30 if chr(byte).isdigit() else 0x20 for byte in range(256))
_RANGE = 309  # digits: an integer of fewer is within the range of a double


def read(line: bytes) -> Any:
    """Return the message that the real server reads from a client's line; None if the server reads no message and sends no
    answer."""
    try:
        value = loads(line)
    except NotJson:
        return None
    if type(value) is list:
        value = _of_members(value)
    if type(value) is not dict or not _is_readable(line, value):
        return None
    doubled = any(line.count(name) > 1 for name in _QUOTED)
    if (doubled or b"\\u" in line or b"-0" in line) and line.lstrip()[:1] == b"{" and not _is_plain(line, value):
        return None
    return value


def _of_members(values: list[Any]) -> dict[str, Any] | None:
    """Return the request that an array of its members represents; None if the array does not represent a request."""
    return dict(zip(_MEMBERS, values, strict=False)) if 2 <= len(values) <= 3 else None


def _is_readable(line: bytes, value: Any) -> bool:
    try:
        dumps(value)
    except ValueError:
        return False  # a lone surrogate, or an infinite number
    if line.count(b"[") + line.count(b"{") > DEPTH and _depth(value) > DEPTH:
        return False
    return not (b"0" * _RANGE in line.translate(_DIGITS) and _is_out_of_range(value))


def _depth(value: Any) -> int:
    """Return the nesting depth of lists and objects."""
    deep, level = 0, [value]
    while level := [one for one in level if type(one) in (list, dict)]:
        deep += 1
        level = [inner for one in level for inner in (one.values() if type(one) is dict else one)]
    return deep


def _is_out_of_range(value: Any) -> bool:
    todo = [value]
    while todo:
        one = todo.pop()
        if type(one) is int:
            try:
                float(one)
            except OverflowError:
                return True
        elif type(one) in (list, dict):
            todo += one.values() if type(one) is dict else one
    return False


def _is_plain(line: bytes, value: dict[str, Any]) -> bool:
    """Return True if no member of the message's type is duplicated and its id is not `-0`."""
    text = str(line, "utf-8")
    names = []
    for name, start, end in members(text):
        if name == "id" and text[start:end] == "-0":
            return False
        names.append(name)
    counted = ["id", "method", "params"] if "method" in value else ["id", "result" if "result" in value else "error"]
    return all(names.count(name) < 2 for name in counted)
