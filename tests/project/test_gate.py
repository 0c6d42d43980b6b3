"""tests/gate.py: only listed cases run a second time, only after exit status 1, and the output says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gate import RACY, BadList, read_racy, reason

ROOT = Path(__file__).resolve().parents[2]
LISTED = """
[[racy]]
case = "test_it.py::test_races*"
races = "server"
reason = "two answers in any order"
"""
#: A case that fails in its first run and passes in the second.
RACES = """
import os, pathlib, signal, sys
import pytest

def once(name):
    path = pathlib.Path(name)
    there = path.exists()
    path.touch()
    return not there

@pytest.mark.parametrize("how", ["a", "b"])
def test_races(how):
    assert not once(how)

def test_well():
    pass
"""


def gate(folder: Path, source: str, *arguments: str) -> tuple[int, str]:
    (folder / "racy.toml").write_text(LISTED)
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_it.py").write_text(source)
    command = [sys.executable, "-m", "tests.gate", "--racy", "racy.toml", "-q", "-p", "no:asyncio", *arguments]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_listed_cases_run_once_more_and_are_counted(tmp_path: Path, workers: list[str]) -> None:
    status, out = gate(tmp_path, RACES, *workers)
    assert status == 0, out
    assert "2 racy cases were run again: test_it.py::test_races[a] (two answers in any order); test_it.py::test_races[b]" in out
    assert out.endswith("\n3 passed, 0 failed, 0 skipped\n")


def test_a_listed_case_that_fails_twice_is_red(tmp_path: Path) -> None:
    status, out = gate(tmp_path, "def test_races():\n    assert False\n\ndef test_well():\n    pass\n")
    assert (status, out.splitlines()[-1]) == (1, "1 passed, 1 failed, 0 skipped")
    assert "1 racy case was run again" in out


def test_a_case_that_is_not_listed_is_red_at_once(tmp_path: Path) -> None:
    status, out = gate(tmp_path, RACES + "\ndef test_other():\n    assert not once('other')\n")
    assert status == 1
    assert "RED: not listed as racy in racy.toml: test_it.py::test_other." in out
    assert "run again" not in out
    assert out.endswith("\n1 passed, 3 failed, 0 skipped\n")


@pytest.mark.parametrize("number", ["SIGKILL", "SIGTERM"])
def test_a_killed_run_is_red_whatever_an_earlier_run_left(tmp_path: Path, number: str) -> None:
    """`.pytest_cache` names a failed case of an earlier run, which would pass now."""
    assert gate(tmp_path, "def test_old():\n    assert False\n")[0] == 1
    assert list(tmp_path.glob(".pytest_cache/v/cache/lastfailed"))
    dies = f"def test_old():\n    pass\n\ndef test_races():\n    os.kill(os.getpid(), signal.{number})\n    time.sleep(9)\n"
    status, out = gate(tmp_path, "import os, signal, time\n" + dies)
    assert status in (128 + 9, 128 + 15), out
    assert "RED: pytest was killed by signal" in out
    assert out.endswith("\n0 passed, 0 failed, 0 skipped\n")


def test_a_crashed_worker_is_no_race(tmp_path: Path) -> None:
    status, out = gate(tmp_path, RACES + "\ndef test_races_too():\n    os._exit(3)\n", "-n", "1")
    assert status == 1
    assert "a crash in test_it.py::test_races_too" in out
    assert "run again" not in out


@pytest.mark.parametrize(
    ("source", "arguments", "expected"),
    [
        ("import no_such_module\n", [], 2),
        (RACES, ["--no-such-option"], 4),
        (RACES, ["-k", "nothing"], 5),
        ("def test_races():\n    raise KeyboardInterrupt\n", [], 2),
    ],
    ids=["collection", "usage", "nothing-chosen", "interrupt"],
)
def test_other_exit_statuses_never_run_again(tmp_path: Path, source: str, arguments: list[str], expected: int) -> None:
    status, out = gate(tmp_path, source, *arguments)
    assert status == expected, out
    assert f"RED: pytest ended with status {expected}; nothing runs again." in out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[[racy]]\ncase = "a::b"\nraces = "server"', "needs the texts case, races, reason"),
        ('[[racy]]\ncase = "a::b"\nraces = "server"\nreason = " "', "needs the texts"),
        ('[[racy]]\ncase = "a::b"\nraces = "us"\nreason = "so"', 'races is "server" or "browser"'),
        ('[[racy]]\ncase = "suites/*"\nraces = "server"\nreason = "so"', "must name a test function"),
    ],
)
def test_a_list_that_is_not_valid_is_refused(text: str, words: str) -> None:
    with pytest.raises(BadList, match=words):
        read_racy(text)


def test_brackets_in_a_pattern_are_plain_characters() -> None:
    assert reason("t.py::test_x[a-1]", {"t.py::test_x[a-*]": "why"}) == "why"
    assert reason("t.py::test_xa", {"t.py::test_x[a-*]": "why"}) is None


def test_the_list_names_functions_that_exist() -> None:
    for case in read_racy(RACY.read_text()):
        path, _, name = case.partition("::")
        assert f"def {name.partition('[')[0].rstrip('*')}" in (ROOT / path).read_text(), case
