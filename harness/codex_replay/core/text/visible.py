"""Remove control characters from a text for a terminal. A JSON text stays valid JSON."""

from __future__ import annotations

import re

#: Controls of a terminal (C0 but tab and line feed, DEL, C1), and what turns the direction of a text.
_ACTIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
#: What pytest sends to a terminal: colours, and a line that is written again.
_OWN = re.compile("(\x1b\\[[0-9;]*m|\\A\r)")


def visible(text: str, *, terminal: bool = False) -> str:
    """Return `text` with each character that may control a terminal as a JSON escape (`\\u001b`).

    With `terminal`, colours, and a carriage return at the beginning, stay unchanged.
    """
    if not _ACTIVE.search(text):
        return text
    if terminal:
        return "".join(part if i % 2 else _ACTIVE.sub(_escaped, part) for i, part in enumerate(_OWN.split(text)))
    return _ACTIVE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
