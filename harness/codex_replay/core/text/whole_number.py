"""Parse a whole number in a text from outside the program: a query, an option, an environment variable, a recording."""

from __future__ import annotations

#: More than a count, a port, a seed or a time in milliseconds needs; and far from the 4,300 at which `int` raises.
MOST_DIGITS = 19


def whole_number(text: str) -> int | None:
    """Return the number that a text of at most 19 ASCII digits represents; None for any other text, such as "", "-1" or "²"."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS else None
