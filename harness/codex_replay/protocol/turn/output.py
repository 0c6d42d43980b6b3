"""What a command printed, as 0.92.0 sends it: in pieces of at most 8 KiB, and truncated for the model.

Observed on the binary. On fake-codex's start-up path.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_PIECE = 8192  # bytes
_TOKEN = 4  # bytes, as the real server estimates
_BUDGET = 10_000  # tokens


def chunks(text: str) -> Iterator[tuple[bytes, str]]:
    """Yield the pieces of an output, each as bytes and as text, in which a character that is cut is U+FFFD."""
    data = text.encode("utf-8", "surrogatepass")
    for start in range(0, len(data), _PIECE):
        piece = data[start : start + _PIECE]
        yield piece, piece.decode("utf-8", "replace")


def truncated(text: str, budget: int = _BUDGET) -> str:
    """Return the text with its middle left out if it has more tokens (of 4 bytes) than the budget."""
    data = text.encode("utf-8", "surrogatepass")
    limit = budget * _TOKEN
    if len(data) <= limit:
        return text
    left, right = limit // 2, len(data) - (limit - limit // 2)
    while data[left] & 0xC0 == 0x80:
        left -= 1
    while right < len(data) and data[right] & 0xC0 == 0x80:
        right += 1
    removed = -(-(len(data) - limit) // _TOKEN)
    before, after = data[:left].decode("utf-8", "surrogatepass"), data[right:].decode("utf-8", "surrogatepass")
    return f"{before}\u2026{removed} tokens truncated\u2026{after}"


def formatted(text: str) -> str:
    """Return an output as the end of its command shows it."""
    short = truncated(text)
    return text if short is text else f"Total output lines: {len(text.splitlines())}\n\n{short}"


def for_the_model(text: str) -> tuple[str, str]:
    """Return the line that tells the model of lines left out, if any are, and the truncated output."""
    short = truncated(text)
    total = len(text.splitlines())
    return ("" if len(short.splitlines()) == total else f"Total output lines: {total}\n"), short
