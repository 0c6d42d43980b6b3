"""Numbers in sentences and in texts from outside the program: options, queries, environment variables, recordings."""

from __future__ import annotations

#: More than a count, a port, a seed or a time in milliseconds needs; and far from the 4,300 at which `int` raises.
MOST_DIGITS = 19
#: Eleven days. The clocks below wait no longer than some time of their own, which differs between them.
MOST_SECONDS = 1_000_000.0


def plural(number: int, what: str) -> str:
    """Return a number and a noun. The noun is in the plural unless the number is one: "1 case", "2 cases"."""
    return f"{number} {what if number == 1 else what + 's'}"


def whole_number(text: str) -> int | None:
    """Return the number that a text of at most 19 ASCII digits represents; None for any other text, such as "", "-1" or "²"."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS else None


def parse_seconds(text: object) -> float:
    """Return a number of seconds above 0.

    Raises `ValueError` for any other text (nan, inf, -1); its message is the end of a sentence, which the caller begins.
    """
    try:
        value = float(str(text))
    except ValueError:
        value = 0.0
    if not 0 < value <= MOST_SECONDS:  # nan neither
        raise ValueError(f"give a number of seconds above 0 and up to {MOST_SECONDS:.0f}, such as 30 or 0.5.")
    return value
