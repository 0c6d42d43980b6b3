"""Return the form of a JSON text: its spacing and notation, without its content.

A recording keeps the value of a JSON text. If the text is not the compact JSON of its value, the recording also keeps the
exact text (`http_frames`). A comparison of two recordings compares the values with ids bound and times masked, and compares
the forms of the exact texts separately. The form consists of spacing, line ends, comments, and a mark for each string or
number in an unusual notation.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from codex_replay.core.wire.json_text import NotJson, dumps, loads

_TOKEN = re.compile(r'"(?:[^"\\\r\n]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?')


def text_form(text: str) -> str:
    """Return a JSON text with each string replaced by `"` and each number by `0`.

    A `~` marks a string or number in an unusual notation.
    """
    return _TOKEN.sub(_blank, text)


def event_form(text: str, other: Callable[[str], str]) -> str:
    """Return the text of a server-sent event with the form of its JSON data in place of the data.

    The function `other` returns the replacement for a line without data.
    """
    # Not splitlines: U+2028 ends no line of an event stream.
    return "\n".join(text_form(line) if line.startswith("data:") else other(line) for line in text.split("\n"))


def _blank(found: re.Match[str]) -> str:
    token = found[0]
    sign = '"' if token[0] == '"' else "0"
    try:
        return sign if dumps(loads(token.encode())) == token.encode() else f"{sign}~"
    except (NotJson, ValueError):
        return f"{sign}~"
