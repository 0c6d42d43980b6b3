"""Select the finders that can match a text: a finder can match only if its trigger is in the text.

Strategy. There are some 370 triggers, and most frames contain none of them. Most parts of a frame (the names of its
members, its method) already occurred in earlier frames. Therefore a text is split at its quotes (no trigger contains a
quote), and the result for each part is cached. Only parts that are not in the cache are searched. Most triggers are the
beginning of a key, and a key is a long word. The triggers of keys are searched for only in the long words of a text.
Triggers that do not begin a key are grouped by a common substring: a text without the substring contains no trigger of the
group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from codex_replay.core.redact.text import Finder, Span, late

LONG = 13  # the number of characters of a word that may be a key
ALL_LETTERS = 24  # and of one without a digit, as those of Hugging Face are
_WORDS = bytes(byte if chr(byte).isascii() and (chr(byte).isalnum() or chr(byte) in "_.~:-") else 0x20 for byte in range(256))
_START = 3
_HEX = b"0123456789abcdef-:.~"
_DIGITS = b"0123456789"
#: The pieces that triggers share; a trigger is in the group of the first that it contains. Seldom ones first, then signs.
_PIECES = (
    "echo ", "secret", "key", "http", "private-", "=", "/", " ", "%", "--", "(", "user", "org", "openai", "device", "pass", "pw",
    "auth", "art", "eyj", "snmp", "cli", "sql",
)  # fmt: skip
_LETTER = late("[g-z]")  # numbers, hashes and uuids have none of these
_WINDOW = 1 << 18  # bytes
#: All but the last of the control characters that follow each other in a long text: a dump of binary data. No trigger has one.
_CONTROLS = late(rb"(?:\\{1,8}u00[01][0-9a-f]){1,512}(?=\\{1,8}u00[01][0-9a-f])")
_CONTROLS_FROM = 1 << 14  # bytes
MOST = 1 << 21  # characters of parts that are remembered; when there would be more, all are forgotten


class Triggers:
    """The finders in their order, with the finders of `own` first, and a cache of the triggers in earlier texts."""

    def __init__(self, finders: tuple[Finder, ...], own: tuple[Finder, ...] = ()) -> None:
        self._finders = finders + own
        self._signs, self._words, self._long, self._starts = _indexed(finders)
        if own:  # searched for in the whole text, and numbered from the end: they come first in order
            signs, words = _grouped([(i, finder.trigger) for i, finder in enumerate(own, -len(own))])
            self._signs, self._words = signs + self._signs, words + self._words
        self._clean: set[str] = set()
        self._telling: dict[str, tuple[int, ...]] = {}
        self._size = 0

    def finds(self, low: bytes) -> list[Callable[[bytes, bytes], Iterator[Span]]]:
        """Return, in order, the finders whose trigger is in the text. `low` is the text in lower case."""
        if len(low) > _CONTROLS_FROM and b"u00" in low:
            # In pieces, because one search of a long text holds up all threads. A piece may end within a control character.
            low = b"".join([_CONTROLS.sub(b"", low[at : at + _WINDOW]) for at in range(0, len(low), _WINDOW)])
        # A str is searched and parted, because that is twice as fast as bytes.
        parts = set(low.decode("latin-1").split('"')).difference(self._clean)
        if not parts:
            return []
        met: set[int] = set()
        new = []
        for part in parts:
            known = self._telling.get(part)
            if known is None:
                new.append(part)
            else:
                met.update(known)
        if new:
            met.update(self._search(new))
        return [self._finders[i].find for i in sorted(met)]

    def _search(self, parts: list[str]) -> list[int]:
        text = '"'.join(parts)
        found = self._anywhere_in(text)
        found += self._keys_in(text)
        size = sum(map(len, parts))
        if self._size + size > MOST:
            self._clean.clear()
            self._telling.clear()
            self._size = 0
        if size <= MOST:
            self._size += size
            if not found:
                self._clean.update(parts)
            elif len(parts) == 1:  # the usual new part of a frame: the text of a delta
                self._telling[text] = tuple(found)
            else:
                for part in parts:
                    telling = (
                        *(i for i in found if i not in self._long and self._finders[i].trigger in part),
                        *self._keys_in(part),
                    )
                    if telling:
                        self._telling[part] = telling
                    else:
                        self._clean.add(part)
        return found

    def _anywhere_in(self, text: str) -> list[int]:
        """Return the finders whose trigger is in a text, except the finders of keys."""
        groups = [group for piece, group in self._signs if piece in text]
        if _LETTER.search(text):
            groups += [group for piece, group in self._words if piece in text]
        return [i for group in groups for i, trigger in group if trigger in text]

    def _keys_in(self, text: str) -> list[int]:
        """Return the finders of keys whose trigger is in a long word of a text."""
        words = keys(text) if len(text) >= LONG else b""
        if not words:
            return []
        starts = self._starts.keys() & {words[at : at + _START] for at in range(len(words) - _START + 1)}
        return [i for start in starts for i in self._starts[start] if self._long[i] in words]


_Groups = list[tuple[str, list[tuple[int, str]]]]


@lru_cache(maxsize=1)  # all redactors have the same finders
def _indexed(finders: tuple[Finder, ...]) -> tuple[_Groups, _Groups, dict[int, bytes], dict[bytes, list[int]]]:
    """Return the groups for any text, the groups for texts with a letter, the triggers of keys, and the finders of keys by the
    first letters of their trigger.
    """
    long = {i: finder.trigger.encode() for i, finder in enumerate(finders) if finder.long}
    starts: dict[bytes, list[int]] = {}
    for i, trigger in long.items():
        starts.setdefault(trigger[:_START], []).append(i)
    if any(len(trigger) < _START for trigger in long.values()):
        raise ValueError(f"the trigger of a key has at least {_START} letters")
    if any(b'"' in trigger for trigger in long.values()):
        raise ValueError("a trigger must not contain a quote")
    return *_grouped([(i, finder.trigger) for i, finder in enumerate(finders) if not finder.long]), long, starts


def _grouped(triggers: list[tuple[int, str]]) -> tuple[_Groups, _Groups]:
    """Group the triggers by the substring that they share; return the groups for any text, and the groups for texts with a
    letter."""
    if any('"' in trigger for _, trigger in triggers):
        raise ValueError("a trigger must not contain a quote")
    groups: dict[str, list[tuple[int, str]]] = {}
    for i, trigger in triggers:
        piece = next((piece for piece in _PIECES if piece in trigger), trigger)
        groups.setdefault(piece, []).append((i, trigger))
    signs = [(piece, group) for piece, group in groups.items() if not _LETTER.search(piece)]
    return signs, [(piece, group) for piece, group in groups.items() if _LETTER.search(piece)]


def keys(text: str) -> bytes:
    """From the words of a text, return those that may be keys.

    A word that may be a key is long, is not a uuid, hash or date, and either has a digit or is very long.
    """
    data = text.encode("latin-1").translate(_WORDS)
    long: list[bytes] = []
    at = 0
    while at >= 0:  # in windows: a list of all words of a long text takes ten times its memory
        end = data.find(b" ", at + _WINDOW)
        long += [word for word in data[at : end if end >= 0 else len(data)].split() if len(word) >= LONG]
        at = end
    return b" ".join(
        [
            word
            for word in long
            if (len(word) >= ALL_LETTERS or word.translate(None, _DIGITS) != word) and word.translate(None, _HEX)
        ]
    )
