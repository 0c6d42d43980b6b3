"""The tables of `codex-replay drift`: they fit the terminal and lose nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_replay.cli.drift import table as drift_table
from codex_replay.cli.drift.table import LEAST, table

CELLS = st.text(st.sampled_from("abc .-$[]*\u4e2d\u00e9"), max_size=60)
ROWS = st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=5)


def wide(line: str) -> int:
    return len(line) + line.count("\u4e2d")


def signs(text: str) -> list[str]:
    return [sign for sign in text if sign not in " │┃"]


@given(rows=ROWS, width=st.integers(3 * LEAST + 10, 120))
def test_every_line_fits_and_every_sign_is_there(rows: list[tuple[str, str, str]], width: int) -> None:
    lines = list(table(("one", "two", "three"), rows, width))
    assert len({wide(line) for line in lines}) == 1
    assert wide(lines[0]) <= width
    assert sorted(signs("".join(lines[3:-1]))) == sorted(signs("".join(map("".join, rows))))


def test_it_looks_like_a_table() -> None:
    assert list(table(("a", "b"), [("x", "a long cell to fold"), ("", "no-hyphen-is-a-break")], 25, "title", "31")) == [
        "\x1b[3;31mtitle\x1b[0m",
        "┏━━━┳━━━━━━━━━━━━━━━━━━━┓",
        "┃ \x1b[1ma\x1b[0m ┃ \x1b[1mb\x1b[0m                 ┃",
        "┡━━━╇━━━━━━━━━━━━━━━━━━━┩",
        "│ x │ a long cell to    │",
        "│   │ fold              │",
        "│   │ no-hyphen-is-a-br │",
        "│   │ eak               │",
        "└───┴───────────────────┘",
    ]


def test_a_column_that_is_short_keeps_its_width() -> None:
    lines = list(table(("a", "b", "c"), [("short", "x" * 80, "y" * 40)], 60))
    assert "│ short │" in lines[3]
    assert {len(line) for line in lines} == {59}  # the two others have as much each


def test_a_terminal_that_is_too_narrow_gets_a_table_all_the_same() -> None:
    lines = list(table(("a", "b"), [("x" * 20, "y" * 20)], 5))
    assert {len(line) for line in lines} == {2 * LEAST + 7}


@pytest.mark.parametrize("broken", [lambda text, width: [text], lambda text, width: [text[:width]]], ids=["not folded", "cut"])
def test_a_cell_that_is_not_folded_would_be_seen(broken: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drift_table, "_fold", broken)
    with pytest.raises(AssertionError):
        test_it_looks_like_a_table()


def test_where_there_are_no_signs_for_lines_others_are_taken() -> None:
    program = [str(Path(sys.executable).with_name("codex-replay")), "drift", "0.92.0", "0.92.0"]
    for encoding, first in (("ascii", "+----"), ("utf-8", "┏━━━━")):
        env = {**os.environ, "PYTHONIOENCODING": encoding}
        done = subprocess.run(program, env=env, capture_output=True, check=True, timeout=60)
        assert done.stdout.decode(encoding).splitlines()[1].startswith(first)
