"""Print the tables of a drift report on a terminal: the columns share the width of the terminal, and long cells are folded.

The package rich is not used here, because rich is slow: the layout of a hundred rows takes longer than the comparison of
two bundles.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from unicodedata import east_asian_width

#: No column is made narrower than this to make room for others.
LEAST = 8
#: The lines of a table, for a stream that has no signs for them.
ASCII = str.maketrans("┏━┳┓┃┡╇┩│└─┴┘", "+-++|+++|+-++")


def table(head: Sequence[str], rows: Sequence[Sequence[str]], width: int, title: str = "", style: str = "") -> Iterator[str]:
    """Yield the lines of a table at most `width` cells wide; `style` is the ANSI code for the title's colour (empty: no
    colour).
    """
    widths = _widths([head, *rows], width - 3 * len(head) - 1)
    if title:
        yield f"\x1b[3;{style}m{title}\x1b[0m" if style else title
    yield _rule("┏━┳┓", widths)
    yield from _row(head, widths, "┃", "\x1b[1m{}\x1b[0m" if style else "{}")
    yield _rule("┡━╇┩", widths)
    for row in rows:
        yield from _row(row, widths, "│")
    yield _rule("└─┴┘", widths)


def _rule(signs: str, widths: Sequence[int]) -> str:
    left, line, cross, right = tuple(signs)
    return left + cross.join(line * (width + 2) for width in widths) + right


def _row(cells: Sequence[str], widths: Sequence[int], bar: str, form: str = "{}") -> Iterator[str]:
    folded = [_fold(cell, width) for cell, width in zip(cells, widths, strict=True)]
    for number in range(max(map(len, folded))):
        texts = [lines[number] if number < len(lines) else "" for lines in folded]
        padded = [form.format(text) + " " * (width - _cells(text)) for text, width in zip(texts, widths, strict=True)]
        yield f"{bar} {f' {bar} '.join(padded)} {bar}"


def _widths(rows: Sequence[Sequence[str]], room: int) -> list[int]:
    """Return the width of each column: the width of its longest cell.

    If the terminal is narrower than the table, the widest columns become narrower.
    """
    widths = [max(map(_cells, column)) for column in zip(*rows, strict=True)]
    while sum(widths) > room and max(widths) > LEAST:
        widest = max(widths)
        longest = [at for at, width in enumerate(widths) if width == widest]
        below = max([LEAST, *(width for width in widths if width < widest)])
        less = max(1, min(widest - below, -(-(sum(widths) - room) // len(longest))))
        for at in longest:
            widths[at] -= less
    return widths


def _fold(text: str, width: int) -> list[str]:
    if _cells(text) <= width:
        return [text]
    if text.isascii():
        return textwrap.wrap(text, width, break_on_hyphens=False) or [""]
    lines = [""]
    for sign in text:
        if _cells(lines[-1] + sign) > width:
            lines.append("")
        lines[-1] += sign
    return lines


def _cells(text: str) -> int:
    """Return the number of terminal cells that a text fills."""
    return len(text) if text.isascii() else sum(1 + (east_asian_width(sign) in "WF") for sign in text)
