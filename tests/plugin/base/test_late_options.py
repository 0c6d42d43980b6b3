"""Another plugin has one of the suites' options: a suites run names that plugin, and an installed suite runs beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PYTEST = str(Path(sys.executable).with_name("pytest"))
COMMAND = str(Path(sys.executable).with_name("codex-replay"))
OTHER = """
def pytest_addoption(parser):
    parser.getgroup("Profiling").addoption("--profile", action="store_true", help="generate profiling information")
"""
SENTENCE = "both have the option --profile. Turn that plugin off for this run: add `-p no:{}` to the command"


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project, in an environment where another plugin is installed that has `--profile`, as pytest-profiling has."""
    place = tmp_path / "site"
    information = place / "another-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Name: another\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[pytest11]\nprofiling = another\n")
    (place / "another.py").write_text(OTHER)
    monkeypatch.setenv("PYTHONPATH", str(place))
    project = tmp_path / "project"
    project.mkdir()
    (project / "test_it.py").write_text("def test_it():\n    pass\n")
    return project


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("words", [["-p", "codex_replay.suites"], ["-n", "2", "-p", "codex_replay.suites"]])
def test_the_plugin_in_conflict_is_named(beside: Path, words: list[str]) -> None:
    done = run(beside, PYTEST, *words)
    assert done.returncode == 4, done.stdout + done.stderr
    assert "the pytest plugin 'profiling' " + SENTENCE.format("profiling") in done.stderr
    assert "Traceback" not in done.stderr


def test_the_advice_is_good(beside: Path) -> None:
    done = run(beside, PYTEST, "-p", "codex_replay.suites", "-p", "no:profiling", "--profile", "as-specified")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_run_without_the_suites_has_the_other_option(beside: Path) -> None:
    done = run(beside, PYTEST, "--profile")
    assert done.returncode == 0, done.stdout + done.stderr


def test_from_a_conftest_too(beside: Path) -> None:
    (beside / "conftest.py").write_text("pytest_plugins = ['codex_replay.suites']\n")
    done = run(beside, PYTEST)
    assert done.returncode == 4, done.stdout + done.stderr
    assert "another pytest plugin (its options are 'Profiling' in --help) " + SENTENCE.format("NAME") in done.stderr
    done = run(beside, PYTEST, "-p", "no:profiling", "--profile=default")
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_installed_suite_runs_beside_it(beside: Path) -> None:
    done = run(beside, COMMAND, "run", "schema/test_counts.py", "-n", "2", "--profile", "default")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "VERIFIED" in done.stdout


def test_a_suite_of_the_users_own_says_so(beside: Path) -> None:
    done = run(beside, COMMAND, "run", ".", "--plain")
    assert done.returncode == 4, done.stdout + done.stderr
    assert SENTENCE.format("profiling") in done.stdout + done.stderr


def test_options_are_read_whether_before_or_after_the_paths(beside: Path) -> None:
    (beside / "pytest.ini").write_text("[pytest]\naddopts = -p no:profiling -p codex_replay.suites\n")
    for words in (["--wait", "3", "-q", "test_it.py"], ["test_it.py", "--wait", "3"]):
        done = run(beside, PYTEST, *words)
        assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout + done.stderr
