"""The TOML that fake-codex reads by itself: where it reads, it reads as the standard library, and else it leaves it to that."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_fakes.scripted.state.plain_toml import loads, plain
from codex_replay.shell.codex.home import HermeticHome

KEYS = ["a", "b", "a-b", "_1", "é", "a.b", '"a"', "", "a b"]
EQUALS = ["=", " = ", "\t=\t", "", "==", "\u3000="]
VALUES = ['"x"', '""', '"é #"', '"', '"""', "'x'", '"a\\n"', '"a" # "b"', '"\t"', '"\x7f"', '"\u2028"', "true", "True", "false"]
VALUES += ["0", "01", "12", "-1", "1_0", "1.5", "1979-05-27", "{a = 1}", "[1]", "٣", "inf", "9" * 20, ""]
TAILS = ["", "", "", " ", "\t", "\r", "\u3000", "\x1c", "\x00", " # why", " #\x00"]
HEADS = [
    "[a]",
    "[b]",
    "[a.b]",
    "[b.a]",
    "[ a ]",
    "[[a]]",
    "[a]]",
    "[]",
    "[a.]",
    "[é]",
    "[a",
    "# a",
    "#",
    "# \x00",
    "",
    " ",
    "\x1f",
]
JOINED = [st.sampled_from(parts) for parts in (KEYS, EQUALS, VALUES, TAILS)]
LINES = st.one_of(
    st.sampled_from(HEADS),
    st.tuples(st.sampled_from(HEADS), st.sampled_from(TAILS)).map("".join),
    st.sampled_from(KEYS[:3]).map(lambda key: f"{key} = 1"),
    st.tuples(*JOINED).map("".join),
)


SMALL = [*HEADS, *(f"{key} = 1" for key in KEYS), *(f"a{equals}1" for equals in EQUALS)]
SMALL += [*(f"a = {value}" for value in VALUES), *(f"a = 1{tail}" for tail in TAILS)]
SMALL += ["[a.b]\n[a]\nb = 1", "[a]\n[a]", "a = 1\n[a]", "a = 1\na = 1", "[a.b]\n[a]\nc = 1\n[a.b.c]\nd = 2"]


@pytest.mark.parametrize("text", SMALL)
def test_what_it_reads_it_reads_as_the_standard_library(text: str) -> None:
    found = plain(text)
    if found is not None:
        assert repr(found) == repr(tomllib.loads(text))


@given(st.lists(LINES, max_size=5).map("\n".join))
def test_so_it_does_with_many_lines(text: str) -> None:
    test_what_it_reads_it_reads_as_the_standard_library(text)


@pytest.mark.parametrize(
    "text", ["", "# why\n", 'a = "b"\nc-d = 5\n\n[e]\nf_1 = true # not this one\n', '[x.y]\nz = "é #"\n[x]\nw = 0']
)
def test_what_it_leaves_is_read_all_the_same(text: str) -> None:
    assert loads(text) == tomllib.loads(text)
    assert (plain(text) is None) == ("not this one" in text)


def test_a_configuration_as_the_suites_write_it_needs_no_other(tmp_path: Path) -> None:
    home = HermeticHome(tmp_path, "http://127.0.0.1:9", features={"plugins": False})
    text = (home.home / "config.toml").read_text()
    said: dict[str, Any] | None = plain(text)
    assert said == tomllib.loads(text) == home.config


def test_what_is_no_toml_is_refused_in_the_words_of_the_standard_library() -> None:
    with pytest.raises(tomllib.TOMLDecodeError):
        loads("a = ")
