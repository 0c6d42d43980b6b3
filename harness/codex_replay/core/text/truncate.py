"""Truncate long texts for display, or show the part in which two texts differ."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

CUT = "..."


def truncate(text: str, most: int) -> str:
    """Return `text`, or its beginning of at most `most` characters with a mark at the end."""
    return text if len(text) <= most else text[: max(0, most - len(CUT))] + CUT


def shortened(text: str, most: int) -> str:
    """Return `text`, or its first `most` characters and a note of its full length."""
    return text if len(text) <= most else f"{text[:most]}{CUT} ({len(text)} characters)"


def excerpts(texts: Sequence[str], most: int, before: int) -> list[str]:
    """Shorten texts that are shown side by side, if one of them has more than `most` characters.

    Each shortened text begins `before` characters before the first difference between the texts, and has at most `most`
    characters. Dots take the place of the omitted characters. The dots are never longer than the omitted text.
    """
    if all(len(text) <= most for text in texts):
        return list(texts)
    parted = next((at for at, signs in enumerate(zip(*texts, strict=False)) if len(set(signs)) > 1), min(map(len, texts)))
    begin = parted - before if len(texts) > 1 and parted > before + len(CUT) else 0
    return [(CUT if begin else "") + truncate(text[begin:], most) for text in texts]
