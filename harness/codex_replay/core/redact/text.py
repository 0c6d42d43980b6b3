"""The text that the finders search, with unusual escapes resolved, and functions that find the start of a word and the end of a
nested string.

The finders and these functions work on bytes, so the text may be JSON, a form, a header line, SSE or other output.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, AnyStr, NamedTuple, cast


class _Late:
    def __init__(self, form: str | bytes, flags: int) -> None:
        self._compile = partial(re.compile, form, flags)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._compile(), name)
        setattr(self, name, value)
        return value


def late(form: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a regular expression that is compiled at its first use.

    To compile the expressions of all finders takes longer than the rest of the redactor's import, and a text needs few of them.
    """
    return cast("re.Pattern[AnyStr]", _Late(form, flags))


class Span(NamedTuple):
    """The place of a secret: its offsets in the text, its kind, and its replacement if the replacement is already known."""

    start: int
    end: int
    kind: str
    fixed: bytes | None = None


class Finder(NamedTuple):
    """A function that finds secrets, and its trigger: a lower-case text that every match contains.

    If `long` is true, the trigger must be in a word of at least `triggers.LONG` characters.
    """

    trigger: str
    find: Callable[[bytes, bytes], Iterator[Span]]
    long: bool = False


WORD = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
_COLOUR = late(rb"(?:\x1b|\\u001[bB]|\\x1b|\\e|\\033)\[[0-9;]*\Z")
_COLOUR_END = late(rb"[0-9]*[A-Za-z]")
ESCAPE_REST = late(rb"[nrtbf]|u[0-9a-fA-F]{4}")
_PERCENT_REST = late(rb"[0-9a-fA-F]{2}")


def word_start(data: bytes, end: int, letters: bytes = WORD) -> int:
    """Return the start of the word that ends at `end`.

    The letters of an escape before the word (`\\n`, `%3F`, a terminal's colour code) do not belong to the word.
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
    """Return the offset at which the content of a JSON string ends; `start` is the offset at which it starts.

    `unit` shows the depth of nesting: 1 for a string in the text, 2 for a string inside a string, 4 for the next level. The
    closing quote of the string has unit - 1 backslashes before it. A quote with fewer backslashes ends an outer string, and
    with it the inner string. If there is no closing quote, the content ends at the end of the line.
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
    """A text with its unusual JSON escapes decoded for the finders (`\\u0040`, `\\/`, `\\u0022` at any depth), and the mapping of
    its offsets to the original text.
    """

    ESCAPE = late(rb"(?<!\\)(\\+)(?:u00([2-7][0-9a-fA-F])|/)")

    def __init__(self, data: bytes) -> None:
        # Arrays and not lists: a text of some MB may consist of escapes.
        self._shadow = array("q", [0])  # where a piece begins in the shadow,
        self._raw = array("q", [0])  # and in the text; pieces are escapes and what is between them
        text = bytearray()
        at = 0
        for found in self.ESCAPE.finditer(data):
            start, plain = self._resolved(found)
            text += data[at:start]
            self._mark(len(text), start)
            text += plain
            at = found.end()
            self._mark(len(text), at)
        text += data[at:]
        self.text = bytes(text)

    def raw(self, offset: int) -> int:
        """Return the offset in the original text for an offset in the decoded text.

        If the offset is inside an escape, return the offset where the escape begins.
        """
        at = bisect_right(self._shadow, offset) - 1
        gone = offset - self._shadow[at]
        return self._raw[at] if at % 2 else self._raw[at] + gone

    def _mark(self, shadow: int, raw: int) -> None:
        self._shadow.append(shadow)
        self._raw.append(raw)

    @staticmethod
    def _resolved(found: re.Match[bytes]) -> tuple[int, bytes]:
        """Return the offset at which a JSON escape begins, and the character that it encodes.

        Only the last 2**depth of several backslashes belong to the escape.
        """
        run = len(found[1])
        own = run & -run
        plain = b"/" if found[2] is None else bytes([int(found[2], 16)])
        if plain == b'"':
            plain = b"\\" * (2 * own - 1) + plain
        elif plain == b"\\":
            plain = b"\\" * (2 * own)
        return found.end(1) - own, plain


class Unquoted(Shadow):
    """A text with its percent escapes (`%3A`) decoded, and the mapping of its offsets to the original text."""

    ESCAPE = late(rb"%(0[9aAdD]|[2-7][0-9a-fA-F])")

    @staticmethod
    def _resolved(found: re.Match[bytes]) -> tuple[int, bytes]:
        return found.start(), bytes([int(found[1], 16)])


class Shortened(Shadow):
    """A text without the middles of its very long words, and the mapping of its offsets to the original text.

    `middles` are the places of the omitted middles. Very long words are encoded data, and no part of such a word is a
    separate key. If a secret consists of a very long word, the finders find the secret by the two ends of the word.
    """

    def __init__(self, data: bytes, middles: Iterable[tuple[int, int]]) -> None:
        self._shadow, self._raw = array("q", [0]), array("q", [0])
        kept: list[bytes] = []
        size = at = 0
        for start, end in middles:
            kept.append(data[at:start])
            size += start - at
            at = end
            self._mark(size, start)
            self._mark(size, end)
        kept.append(data[at:])
        self.text = b"".join(kept)


#: A word of two blocks is too long to be a key (bytes); so many bytes are kept of each of its ends.
BLOCK, END = 32768, 4096
_ENCODED = WORD + b"+/"


def middles(data: bytes) -> list[tuple[int, int]]:
    """Return the places of the middles of all words with at least two blocks.

    A block is `BLOCK` bytes long, and begins at a multiple of `BLOCK`.
    """
    words: list[tuple[int, int]] = []
    for at in range(0, len(data) - BLOCK + 1, BLOCK):
        if not data[at : at + BLOCK].translate(None, _ENCODED):
            start = words.pop()[0] if words and words[-1][1] == at else at
            words.append((start, at + BLOCK))
    found = []
    for start, end in words:
        before, after = data[max(0, start - BLOCK) : start], data[end : end + BLOCK]
        start -= len(before) - len(before.rstrip(_ENCODED))
        end += len(after) - len(after.lstrip(_ENCODED))
        if end - start >= 2 * BLOCK:
            found.append((start + END, end - END))
    return found
