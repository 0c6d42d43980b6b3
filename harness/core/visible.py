"""What a program said, as it may be shown on a terminal."""

from __future__ import annotations


def visible(text: str, keep: str = "") -> str:
    """Return `text` with every character that a terminal might act on escaped (`\\x1b`), but for those of `keep`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)
