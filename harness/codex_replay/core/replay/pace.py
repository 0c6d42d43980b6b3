"""Parse the pace of a replay. The pace of a replay is written in one form everywhere: fast, burst, recorded, or Nx."""

from __future__ import annotations


def pace_of(text: str) -> float | None:
    """Return the speed relative to the recording: 0 for no waiting ("fast" and "burst"), 1 for "recorded", N for "Nx".

    Return None if the text is not a pace; N is a decimal number above 0 and below a million.
    """
    if text in ("fast", "burst", "recorded"):
        return 1.0 if text == "recorded" else 0.0
    number = text.removesuffix("x")
    if number == text or number.strip("0123456789.") or number.count(".") > 1 or number in ("", "."):
        return None
    pace = float(number)
    return pace if 0.0 < pace < 1e6 else None
