"""Cut the output of a command like Codex 0.92.0: into chunks of at most 8 KiB for the client, and truncated for the model.

The rules here were observed with the real Codex. The program fake-codex loads this module at start-up.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_PIECE = 8192  # bytes
_TOKEN = 4  # bytes, as the real server estimates

#: What an output may have: a number of "tokens" or of "chars" (which are counted as bytes), by the model.
Budget = tuple[int, str]
TOKENS: Budget = (10_000, "tokens")
CHARS: Budget = (10_000, "chars")


def chunks(text: str) -> Iterator[tuple[bytes, str]]:
    """Yield the chunks of an output; each chunk is given as bytes and as text.

    If the bytes of a character are split between two chunks, the character becomes U+FFFD in their texts.
    """
    data = text.encode("utf-8", "surrogatepass")
    for start in range(0, len(data), _PIECE):
        piece = data[start : start + _PIECE]
        yield piece, piece.decode("utf-8", "replace")


def kept(text: str, budget: Budget = TOKENS) -> str:
    """Return the output of a call, truncated for the history of the conversation.

    The history may have a fifth more text than the output of a command.
    """
    most, unit = budget
    return truncated(text, (most * 6 // 5, unit))


def truncated(text: str, budget: Budget = TOKENS) -> str:
    """If the text has more tokens (of 4 bytes each) or bytes than the budget, return the text without its middle part."""
    data = text.encode("utf-8", "surrogatepass")
    most, unit = budget
    limit = most * _TOKEN if unit == "tokens" else most
    if len(data) <= limit:
        return text
    left, right = limit // 2, len(data) - (limit - limit // 2)
    while data[left] & 0xC0 == 0x80:
        left -= 1
    while right < len(data) and data[right] & 0xC0 == 0x80:
        right += 1
    before, middle, after = [part.decode("utf-8", "surrogatepass") for part in (data[:left], data[left:right], data[right:])]
    removed = -(-(len(data) - limit) // _TOKEN) if unit == "tokens" else len(middle)
    return f"{before}\u2026{removed} {unit} truncated\u2026{after}"


def formatted(text: str, budget: Budget = TOKENS) -> str:
    """Return an output in the form for the event at the end of the command."""
    short = truncated(text, budget)
    return text if short is text else f"Total output lines: {len(text.splitlines())}\n\n{short}"


def for_the_model(text: str, budget: Budget = TOKENS) -> tuple[str, str]:
    """Return a line with the total number of lines ("" if no line was left out), and the truncated output for the model."""
    short = truncated(text, budget)
    total = len(text.splitlines())
    return ("" if len(short.splitlines()) == total else f"Total output lines: {total}\n"), short
