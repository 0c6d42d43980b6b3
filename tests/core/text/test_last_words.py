"""Which line of stderr names the error, whatever language the program is written in."""

from __future__ import annotations

import pytest

from codex_replay.core.text.last_words import LONG, last_words

PYTHON = [
    "Traceback (most recent call last):",
    '  File "x.py", line 1, in <module>',
    "    1 / 0",
    "ZeroDivisionError: by zero",
    "",
]
NODE = [
    "/x.js:3",
    "    throw new Error('no id')",
    "    ^",
    "",
    "Error: no id",
    "    at Object.<anonymous> (/x.js:3)",
    "",
    "Node.js v20",
]


@pytest.mark.parametrize(
    ("lines", "end"),
    [
        ([], "; its stderr is empty."),
        (["", "  "], "; its stderr is empty."),
        (PYTHON, ": ZeroDivisionError: by zero"),
        (NODE, ": Error: no id"),
        ([*NODE[:-1], "  code: 'MODULE_NOT_FOUND'", "}", "", NODE[-1]], ": Error: no id"),
        (["  indented alone"], ": indented alone"),
    ],
    ids=["nothing", "blank", "python", "node", "node-with-members", "indented"],
)
def test_the_line_that_names_the_error(lines: list[str], end: str) -> None:
    assert last_words(lines) == end


def test_a_long_line_is_cut() -> None:
    assert len(last_words(["x" * 999])) == LONG + 2
