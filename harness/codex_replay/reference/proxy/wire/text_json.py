"""Parse the text between the tags of a tool call.

Decide whether the text is a tool call, and which tool it calls. The arguments are passed on exactly as the model wrote
them. Decoding and encoding the arguments again would lose duplicate keys, `1.0` and long numbers.
"""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, NamedTuple

#: Not strict: models write real line ends into strings.
DECODER = json.JSONDecoder(strict=False)
SPACE = re.compile(r"[ \t\r\n]*")
#: A common slip: the string of arguments is not escaped, {"name":"x","arguments":"{"a":1}"}.
UNESCAPED = re.compile(r'(\{.*"arguments"\s*:\s*)"(\{.*\})"(\s*\})', re.S)


class ToolCall(NamedTuple):
    """A call of a tool: its name, and its arguments as JSON text."""

    name: str
    arguments: str


def read_call(source: str) -> ToolCall | None:
    """Return the tool call in a text: a JSON object with `name` and `arguments`. Return None if the text is not a tool call."""
    found = _members(source)
    if found is None and (slip := UNESCAPED.fullmatch(source)) is not None:
        found = _members(slip[1] + slip[2] + slip[3])
    if found is None or "name" not in found:
        return None
    name = found["name"][1]
    if not isinstance(name, str) or not name or ("arguments" not in found and len(found) > 1):
        return None  # the arguments may be under another name, which is unknown
    raw, value = found.get("arguments", ("{}", {}))
    if isinstance(value, str):
        return ToolCall(name, value if value.strip() else "{}")
    return ToolCall(name, "{}" if value is None else raw)


def _members(source: str) -> dict[str, tuple[str, Any]] | None:
    """Return the text and the value of each member of a JSON object, or None if the text is not a JSON object.

    If several members have the same name, the last one counts.
    """
    found: dict[str, tuple[str, Any]] = {}
    at = _skip(source, 0)
    if source[at : at + 1] != "{":
        return None
    at = _skip(source, at + 1)
    while source[at : at + 1] != "}":
        try:
            if source[at] != '"':
                return None
            name, at = scanstring(source, at + 1, False)
            at = _skip(source, at)
            if source[at] != ":":
                return None
            start = _skip(source, at + 1)
            value, at = DECODER.raw_decode(source, start)
            found[name] = (source[start:at], value)
            at = _skip(source, at)
            if source[at] == ",":
                at = _skip(source, at + 1)
                if source[at] == "}":
                    return None
            elif source[at] != "}":
                return None
        except (ValueError, IndexError, RecursionError):
            return None
    return found if not source[at + 1 :].strip() else None


def _skip(source: str, at: int) -> int:
    match = SPACE.match(source, at)
    return match.end() if match else at
