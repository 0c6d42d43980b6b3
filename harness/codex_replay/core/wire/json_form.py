"""The form of a JSON text: how it is written, without its content.

A recording keeps the value of a text, and the exact text too if that is not the compact JSON of the value (`http_frames`).
Values are compared with ids bound and times masked. The form of the texts is compared separately: spacing, line ends,
comments, and strings and numbers that are written in an unusual way.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from codex_replay.core.wire.json_text import NotJson, dumps, loads

_TOKEN = re.compile(r'"(?:[^"\\\r\n]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?')


def text_form(text: str) -> str:
    """Return a JSON text in which each string is `"` and each number is `0`, with a `~` if it is written unusually."""
    return _TOKEN.sub(_blank, text)


def event_form(text: str, other: Callable[[str], str]) -> str:
    """Return the block of an event with its JSON data normalised; `other` returns the replacement for each other line."""
    # Not splitlines: U+2028 ends no line of an event stream.
    return "\n".join(text_form(line) if line.startswith("data:") else other(line) for line in text.split("\n"))


def _blank(found: re.Match[str]) -> str:
    token = found[0]
    sign = '"' if token[0] == '"' else "0"
    try:
        return sign if dumps(loads(token.encode())) == token.encode() else f"{sign}~"
    except (NotJson, ValueError):
        return f"{sign}~"
