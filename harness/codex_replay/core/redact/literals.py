"""Find the caller's own secrets and directories in a text, in every spelling that percent-encoding or JSON escapes (at any depth)
may give them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from codex_replay.core.redact.shapes import PATH_BEFORE
from codex_replay.core.redact.text import ESCAPE_REST, WORD, Finder, Span, late, word_start

SHORT = 8  # characters: a literal of fewer is replaced only where it is by itself ("k" not in "chunked")
_SEPARATOR = rb"(?:\\{0,64}/|\\{1,64}|%2[Ff]|%5[Cc])"
_HARMLESS = late(r"[!#-\[\]-~ ]*")
_PLAIN_RUN = late(r"[A-Za-z0-9]+")
_SEGMENT_END = rb"(?![A-Za-z0-9_~\x80-\xff-]|\.[A-Za-z0-9_]|%(?!2[Ff]|5[Cc]|2[026]|3[ABCDabcd]))"


def own_finders(table: Mapping[str, str], kind: str) -> Iterator[Finder]:
    """Yield a finder for each literal or path of the user, the longest first.

    If two literals match at the same place, the longer literal is replaced.
    """
    for old, new in sorted(table.items(), key=lambda entry: -len(entry[0])):
        if not old.strip("/\\ "):
            raise ValueError(f"{kind} {old!r} is empty; give the text to redact")
        if not _HARMLESS.fullmatch(new):
            raise ValueError(
                f"{old!r} cannot be replaced by {new!r}: a replacement must be printable ASCII without quotes and backslashes"
            )
        if old == new:
            continue
        spelling = _Spelling(old.rstrip("/\\") if kind == "path" else old, kind == "path")
        find = _paths_of if kind == "path" else _literals_of
        yield Finder(spelling.trigger, find(spelling, new.encode()))


class _Spelling:
    """A pattern that finds a literal of the user in all its spellings (escaped or not).

    The pattern is compiled at the first use, because compiling is slow and most runs never need it.
    """

    def __init__(self, text: str, is_path: bool) -> None:
        runs = _PLAIN_RUN.findall(text)
        self.trigger = max(runs, key=len, default="").lower()
        self._runs = [run.lower().encode() for run in set(runs)]
        self._text = text
        self._is_path = is_path
        self.whole = not is_path and len(text) < SHORT
        self._pattern: re.Pattern[bytes] | None = None

    def finditer(self, data: bytes, low: bytes) -> Iterator[re.Match[bytes]]:
        """Yield each match of the literal in `data`. `low` is `data` in lower case."""
        if not all(run in low for run in self._runs):  # letters and digits are spelled in one way only
            return iter(())
        if self._pattern is None:
            separator, end = (_SEPARATOR, _SEGMENT_END) if self._is_path else (None, b"")
            self._pattern = re.compile(b"".join(_character(char, separator) for char in self._text) + end)
        return self._pattern.finditer(data)


def _literals_of(spelling: _Spelling, new: bytes) -> Callable[[bytes, bytes], Iterator[Span]]:
    def find(data: bytes, low: bytes) -> Iterator[Span]:
        for found in spelling.finditer(data, low):
            start, end = found.span()
            if data[start - 1 : start] == b"\\":  # perhaps the end of an escape (\\n): it must stay one
                escape = ESCAPE_REST.match(data, start, end)
                start = escape.end() if escape else start
            if start < end and not (spelling.whole and _within_a_word(data, start, end)):
                yield Span(start, end, "literal", new)

    return find


def _within_a_word(data: bytes, start: int, end: int) -> bool:
    """Return True if a match of a literal is only a part of a longer word. An escape before the match is not part of the word."""
    if data[start] in WORD and word_start(data, start) < start:
        return True
    return data[end - 1] in WORD and data[end : end + 1] != b"" and data[end] in WORD


_BEFORE = late(PATH_BEFORE + rb"(?P<private>/private)?\Z")


def _paths_of(spelling: _Spelling, new: bytes) -> Callable[[bytes, bytes], Iterator[Span]]:
    def find(data: bytes, low: bytes) -> Iterator[Span]:
        for found in spelling.finditer(data, low):
            before = _BEFORE.search(data[max(0, found.start() - 64) : found.start()])
            if before is not None:  # macOS resolves /tmp and /var to /private/...: the same directory
                private = len(before["private"] or b"")
                yield Span(found.start() - private, found.end(), "path", new)

    return find


def _character(char: str, separator: bytes | None) -> bytes:
    """Return a pattern for a character of a literal as it may be in JSON at any depth, or percent-encoded."""
    if char in "/\\" and separator is not None:
        return separator
    if char.isascii() and char.isalnum():
        return char.encode()
    raw = char.encode("utf-8", "surrogatepass")
    percent = b"".join(b"%%(?i:%02x)" % byte for byte in raw)
    ways = [re.escape(raw), percent]
    if char in '"\\':
        ways[0] = rb"\\{0,63}" + re.escape(raw)
    elif char in "\n\r\t":
        ways.append(rb"\\{1,64}" + {"\n": b"n", "\r": b"r", "\t": b"t"}[char])
    elif char == " ":
        ways.append(rb"\+")
    elif not char.isascii():
        units = char.encode("utf-16-be", "surrogatepass")
        ways.append(b"".join(rb"\\{1,64}u(?i:%02x%02x)" % (units[i], units[i + 1]) for i in range(0, len(units), 2)))
    return b"(?:" + b"|".join(ways) + b")"
