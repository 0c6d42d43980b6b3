"""The text of a baseline: a bad file is said in a sentence, and stars match as those of a shell."""

from __future__ import annotations

import fnmatch
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_replay.plugin.reporting.baseline_file import BadBaseline, Line, parse


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{a: 1}", "must be a list of entries"),
        ("- 1", "entry 1: it must be an object"),
        ("- {check: a}", "entry 1: it has no reason"),
        ("- {check: a, reason: ' '}", "entry 1: it has no reason"),
        ("- {reason: a}", "entry 1: it has no check"),
        ("- {check: a, reason: b, why: c}", "unknown key 'why'"),
        ("- {check: a, reason: b, flaky: true}", "replace flaky by racy and how often it fails"),
        ("- {check: a, reason: b, racy: true}", "racy must state how often the check fails, such as 1/20"),
        ("- {check: a, reason: b, racy: 3/2}", "racy must state how often"),
        ("- {check: a, reason: b, racy: 0/2}", "racy must state how often"),
        ("- {check: a, checks: [b], reason: c}", "the entry has both check and checks"),
        ("- {checks: [], reason: c}", "it has no check"),
        ("- {checks: [1], reason: c}", "it has no check"),
        ("- {check: a, reason: b, cause: 1}", "it has no cause"),
        ("- {", "is not YAML"),
        ("[" * 3000 + "]" * 3000, "is not YAML: it is nested too deeply"),
        ("- 9999-99-99", "is not YAML: a value does not have the form of its tag"),
        ("- !!timestamp x", "is not YAML: a value does not have the form of its tag"),
        ("- !!bool x", "is not YAML: a value does not have the form of its tag"),
        ("- !!python/object/apply:os.getcwd []", "is not YAML: could not determine a constructor"),
    ],
)
def test_a_bad_file_is_said_in_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(BadBaseline, match=sentence):
        parse(text, "known.yaml")


@given(st.text(max_size=20), st.text(max_size=20))
def test_without_stars_a_line_means_one_name(check: str, name: str) -> None:
    if not set("*?") & set(check):
        assert Line(check, "x").matches([name]) == (check == name)


@given(st.text("ab*?.", max_size=8), st.text("ab.", max_size=8))
def test_stars_match_as_those_of_a_shell(check: str, name: str) -> None:
    if set("*?") & set(check):
        assert Line(check, "x").matches([name]) == fnmatch.fnmatchcase(name, check)


def test_many_stars_take_no_time() -> None:
    program = f"from {parse.__module__} import Line; print(Line('*a' * 20 + '*b', 'x').matches(['a' * 60]))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60).stdout == "False\n"


def test_an_empty_file_lists_nothing(tmp_path: Path) -> None:
    assert parse("", "x") == parse("[]", "x") == []
