"""A text in the form that the finders search: unusual escapes resolved, the start of a word, the end of a nested string.

All of it works on bytes, so the text may be JSON, a form, a header line, SSE or other output.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple


class Span(NamedTuple):
    """The place of a secret: offsets into the text, the kind of secret, and the replacement if it is already fixed."""

    start: int
    end: int
    kind: str
    fixed: bytes | None = None


class Finder(NamedTuple):
    """A finder, and the lower-case substring without which it need not look.

    Where `long`, that must be in a word of at least `triggers.LONG` characters.
    """

    trigger: str
    find: Callable[[bytes, bytes], Iterator[Span]]
    long: bool = False


WORD = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
_COLOUR = re.compile(rb"(?:\x1b|\\u001[bB]|\\x1b|\\e|\\033)\[[0-9;]*\Z")
_COLOUR_END = re.compile(rb"[0-9]*[A-Za-z]")
ESCAPE_REST = re.compile(rb"[nrtbf]|u[0-9a-fA-F]{4}")
_PERCENT_REST = re.compile(rb"[0-9a-fA-F]{2}")


def word_start(data: bytes, end: int, letters: bytes = WORD) -> int:
    """Return the start of the word that ends at `end`.

    The letters of an escape before it (`\\n`, `%3F`, a terminal's colour) do not belong to the word.
    """
    window = data[max(0, end - 64) : end]
    start = end - len(window) + len(window.rstrip(letters))
    before = data[start - 1 : start] if start else b""
    if before == b"\\":
        rest = ESCAPE_REST.match(data, start, end)
    elif before == b"%":
        rest = _PERCENT_REST.match(data, start, end)
    elif before in (b"[", b";") and _COLOUR.search(data[max(0, start - 24) : start]):
        rest = _COLOUR_END.match(data, start, end)
    else:
        rest = None
    return start if rest is None else rest.end()


def string_end(data: bytes, start: int, unit: int) -> int:
    """Return where a JSON string's content ends, given where it starts and how deep it is nested.

    `unit` is 1 for a string of the text itself, 2 for one inside a string, 4 for one inside that. Its closing quote has unit - 1
    backslashes; a quote with fewer ends an outer string and so this one too. Without a closing quote, the line's end.
    """
    at = start
    while True:
        quote = data.find(b'"', at)
        reach = quote if quote >= 0 else len(data)
        line = data.find(b"\n", at, reach)
        if line >= 0:
            return line
        if quote < 0:
            return reach
        run = quote - len(data[at:quote].rstrip(b"\\")) - at
        own = (run + 1) & -(run + 1)
        if own <= unit:
            return quote - own + 1
        at = quote + 1


class Shadow:
    """A text with its odd JSON escapes resolved for the finders (`\\u0040`, `\\/`, `\\u0022` at any depth), and the way back."""

    _ESCAPE = re.compile(rb"(?<!\\)(\\+)(?:u00([2-7][0-9a-fA-F])|/)")

    def __init__(self, data: bytes) -> None:
        self._shadow: list[int] = [0]  # where a piece begins in the shadow,
        self._raw: list[int] = [0]  # and in the text; pieces are escapes and what is between them
        pieces: list[bytes] = []
        at = length = 0
        for found in self._ESCAPE.finditer(data):
            start, plain = self._resolved(found)
            pieces += (data[at:start], plain)
            length += start - at
            self._mark(length, start)
            length += len(plain)
            at = found.end()
            self._mark(length, at)
        pieces.append(data[at:])
        self.text = b"".join(pieces)

    def raw(self, offset: int) -> int:
        """Return where an offset of the shadow is in the text; an offset inside an escape, where the escape begins."""
        at = bisect_right(self._shadow, offset) - 1
        gone = offset - self._shadow[at]
        return self._raw[at] if at % 2 else self._raw[at] + gone

    def _mark(self, shadow: int, raw: int) -> None:
        self._shadow.append(shadow)
        self._raw.append(raw)

    @staticmethod
    def _resolved(found: re.Match[bytes]) -> tuple[int, bytes]:
        """Return the offset at which the JSON escape begins, and the character that it encodes; the last 2**depth backslashes of
        a run belong to it.
        """
        run = len(found[1])
        own = run & -run
        plain = b"/" if found[2] is None else bytes([int(found[2], 16)])
        if plain == b'"':
            plain = b"\\" * (2 * own - 1) + plain
        elif plain == b"\\":
            plain = b"\\" * (2 * own)
        return found.end(1) - own, plain
