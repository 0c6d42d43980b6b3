"""Escape control characters in the output of a program, for a terminal."""

from __future__ import annotations


def escape(text: str, keep: str = "") -> str:
    """Return `text` with every character that a terminal might act on escaped (`\\x1b`), except for those of `keep`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


def escape_json(text: str) -> str:
    """Return a JSON text of the same value in which each character that a terminal might act on is an escape (`\\u001b`)."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _units(c) for c in text)


def _units(character: str) -> str:
    data = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[at] << 8 | data[at + 1]:04x}" for at in range(0, len(data), 2))
