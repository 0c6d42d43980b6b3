"""Escape control characters in the output of a program, for a terminal."""

from __future__ import annotations


def escape(text: str, keep: str = "") -> str:
    """Return `text` with every character that may control a terminal escaped (`\\x1b`), except for the characters in `keep`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


def escape_json(text: str) -> str:
    """Return a JSON text with every character that may control a terminal as a JSON escape (`\\u001b`).

    The JSON value stays the same.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _units(c) for c in text)


def _units(character: str) -> str:
    data = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[at] << 8 | data[at + 1]:04x}" for at in range(0, len(data), 2))
