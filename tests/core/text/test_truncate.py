"""Long texts as they are shown: how much of them, and that what differs is always among it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_replay.core.text.truncate import CUT, excerpts, shortened, truncate

TEXTS = st.text("ab", max_size=60)


@pytest.mark.parametrize(("text", "shown"), [("a" * 10, "a" * 10), ("a" * 11, "a" * 7 + "..."), ("", "")])
def test_what_is_too_long_is_cut_and_says_so(text: str, shown: str) -> None:
    assert truncate(text, 10) == shown


def test_no_room_at_all_leaves_the_dots() -> None:
    assert truncate("abcd", 2) == "..."


@pytest.mark.parametrize(("text", "shown"), [("a" * 10, "a" * 10), ("a" * 11, "a" * 10 + "... (11 characters)")])
def test_what_is_shortened_tells_its_length(text: str, shown: str) -> None:
    assert shortened(text, 10) == shown


@pytest.mark.parametrize(
    ("texts", "shown"),
    [
        (["same", "sane"], ["same", "sane"]),
        (["a" * 9 + "xyz", "a" * 9 + "b"], ["...aaxyz", "...aab"]),
        (["ab" + "x" * 20, "ac" + "x" * 20], ["abxxxxx...", "acxxxxx..."]),
        (["a" * 5 + "x" * 20, "a" * 5], ["aaaaaxx...", "aaaaa"]),
        (["x" * 20], ["xxxxxxx..."]),
    ],
    ids=["short", "parted-late", "parted-at-once", "dots-for-less", "alone"],
)
def test_texts_are_shown_from_a_little_before_they_part(texts: list[str], shown: list[str]) -> None:
    assert excerpts(texts, 10, 2) == shown


def differing(show: Callable[..., list[str]], one: str, other: str) -> None:
    """What differs is among what is shown, and no more is shown than may be."""
    found = show((one, other), 20, 5)
    assert (found[0] == found[1]) == (one == other)
    assert all(len(text) <= 20 + len(CUT) for text in found)


@given(TEXTS, TEXTS, TEXTS)
def test_what_differs_is_shown(same: str, one: str, other: str) -> None:
    differing(excerpts, same + one, same + other)


def _from_the_start(texts: Any, most: int, _before: int) -> list[str]:
    return [truncate(text, most) for text in texts]


def _the_whole(texts: Any, _most: int, _before: int) -> list[str]:
    return list(texts)


@pytest.mark.parametrize("broken", [_from_the_start, _the_whole])
def test_one_that_does_not_look_where_they_part_is_noticed(broken: Callable[..., list[str]]) -> None:
    with pytest.raises(AssertionError):
        differing(broken, "a" * 40 + "x", "a" * 40 + "y")
