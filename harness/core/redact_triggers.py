"""Which finders are worth asking: those whose trigger stands in the text. This is where a redactor spends its time.

Strategy. There are fifty triggers, and a frame holds hardly any; but most of a frame was seen before: the names of its members,
its method, its kinds. So a text is parted at its quotes, which no trigger holds, and of each part it is remembered which
triggers stand in it; only parts that are new are searched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from harness.core.redact_text import Finder, Span

MOST = 1 << 21  # characters of parts that are remembered; when there would be more, all are forgotten


class Triggers:
    """The finders in their order, and what was seen of texts."""

    def __init__(self, finders: Sequence[Finder]) -> None:
        self._finders = finders
        if any('"' in finder.trigger for finder in finders):
            raise ValueError("a trigger with a quote would be parted")
        self._clean: set[str] = set()
        self._telling: dict[str, tuple[int, ...]] = {}
        self._size = 0

    def finds(self, low: bytes) -> list[Callable[[bytes, bytes], Iterator[Span]]]:
        """Return the finders whose trigger stands in a text, which is given in lower case; in their order."""
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
        found = [i for i, finder in enumerate(self._finders) if finder.trigger in text]
        size = sum(map(len, parts))
        if self._size + size > MOST:
            self._clean.clear()
            self._telling.clear()
            self._size = 0
        if size <= MOST:
            self._size += size
            for part in parts:
                telling = tuple(i for i in found if self._finders[i].trigger in part)
                if telling:
                    self._telling[part] = telling
                else:
                    self._clean.add(part)
        return found
