"""Numbers in sentences."""

from __future__ import annotations


def plural(number: int, what: str) -> str:
    """Return a number and a noun. The noun is in the plural unless the number is one: "1 case", "2 cases"."""
    return f"{number} {what if number == 1 else what + 's'}"
