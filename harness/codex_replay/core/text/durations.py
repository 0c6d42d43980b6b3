"""Parse the waiting times in command-line options."""

from __future__ import annotations

#: Eleven days. The clocks below wait no longer than some time of their own, which differs between them.
MOST = 1_000_000.0


def parse_seconds(text: object) -> float:
    """Return a number of seconds above 0.

    Raises `ValueError` for any other text (nan, inf, -1); its message is the end of a sentence, which the caller begins.
    """
    try:
        value = float(str(text))
    except ValueError:
        value = 0.0
    if not 0 < value <= MOST:  # nan neither
        raise ValueError(f"give a number of seconds above 0 and up to {MOST:.0f}, such as 30 or 0.5.")
    return value
