"""Which finders a redactor asks: always those whose trigger stands in the text, whatever texts came before it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_replay.core.redact import triggers as redact_triggers
from codex_replay.core.redact.shapes import FINDERS
from codex_replay.core.redact.text import Finder, Span
from codex_replay.core.redact.triggers import Triggers, keys

WORDS = sorted({finder.trigger for finder in FINDERS})
PIECES = st.one_of(st.sampled_from([*WORDS, '"', '\\"', '":"', '","', "threadId", "x", "\xff", " "]), st.text(max_size=6))
TEXTS = st.lists(
    st.lists(PIECES, max_size=12).map(lambda pieces: "".join(pieces).lower().encode("latin-1", "replace")), max_size=8
)


def wanted(finders: tuple[Finder, ...], text: bytes) -> list[object]:
    """A key's trigger counts in a long word alone, a piece of which no quote parts."""
    words = [keys(part) for part in text.decode("latin-1").split('"')]
    return [
        finder.find
        for finder in finders
        if (any(finder.trigger.encode() in part for part in words) if finder.long else finder.trigger.encode() in text)
    ]


def faithful(triggers: Triggers, finders: tuple[Finder, ...], texts: list[bytes]) -> None:
    for text in [*texts, *texts]:
        assert triggers.finds(text) == wanted(finders, text)


@given(TEXTS)
def test_what_is_remembered_makes_no_difference(texts: list[bytes]) -> None:
    faithful(Triggers(FINDERS), FINDERS, texts)


@given(TEXTS, st.integers(0, 40))
def test_nor_does_what_was_forgotten(texts: list[bytes], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redact_triggers, "MOST", most)
        triggers = Triggers(FINDERS)
        faithful(triggers, FINDERS, texts)
        assert sum(map(len, [*triggers._clean, *triggers._telling])) <= most


@pytest.mark.parametrize("escape", ["\\u0001", "\\u001f", "\\\\u0000", "\\u000d\\u0001"])
@pytest.mark.parametrize("text", ["sk-%s", "password=%s", "curl -u ann:%s", "1000.%s", "xkey00d%s", "plain"])
def test_a_dump_of_control_characters_hides_no_trigger(escape: str, text: str) -> None:
    secret = "Ab1" * 12
    dump = escape * 9000
    data = dump + text.replace("%s", secret) + dump
    faithful(Triggers(FINDERS), FINDERS, [data.lower().encode()])


@pytest.mark.parametrize("text", ["sk-%s", "password=%s"])
def test_nor_where_a_piece_of_the_dump_ends(text: str) -> None:
    data = ("\\u0001" * 6 + text.replace("%s", "Ab1" * 12) + "\\u0002" * 6).lower().encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redact_triggers, "_CONTROLS_FROM", 1)
        for window in range(1, len(data) + 1):
            patch.setattr(redact_triggers, "_WINDOW", window)
            faithful(Triggers(FINDERS), FINDERS, [data])


def test_a_finder_without_a_trigger_is_always_asked() -> None:
    finders = (Finder("", lambda text, low: iter(())), Finder("key", lambda text, low: iter(())))
    faithful(Triggers(finders), finders, [b"", b"a", b"a", b'a"key"b', b'"'])


def test_a_trigger_that_texts_are_parted_at_is_refused() -> None:
    def find(text: bytes, low: bytes) -> Iterator[Span]:
        return iter(())

    with pytest.raises(ValueError, match="quote"):
        Triggers((Finder('"key"', find),))
    with pytest.raises(ValueError, match="quote"):
        Triggers((Finder('"key"', find, True),))
    with pytest.raises(ValueError, match="quote"):
        Triggers((), (Finder('"key"', find),))


def test_the_finders_of_a_caller_come_first_and_search_short_words_too() -> None:
    own = (Finder("zz", lambda text, low: iter(())), Finder("qqq", lambda text, low: iter(()), True))
    triggers = Triggers(FINDERS, own)
    assert triggers.finds(b"zz qqq") == [finder.find for finder in own]
    assert triggers.finds(b'"zz" token') == [own[0].find, *Triggers(FINDERS).finds(b'"zz" token')]


class Forgetful(Triggers):
    """Remembers every part as harmless."""

    def _search(self, parts: list[str]) -> list[int]:
        found = super()._search(parts)
        self._clean.update(parts)
        return found


def test_a_memory_that_is_wrong_is_found() -> None:
    with pytest.raises(AssertionError):
        faithful(Forgetful(FINDERS), FINDERS, [b'{"token":"a"}'])
