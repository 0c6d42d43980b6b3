"""A case may compare values that cannot be shown: the run goes on, and the report has a sentence in their place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SUITE = """
import pytest
class Broken:
    def __repr__(self): raise RuntimeError("\\x1b[2J")
class Gone:
    def __repr__(self): raise KeyError("gone")
def circular():
    a = []
    a.append(a)
    return a
VALUES = [Broken(), [Broken()], {"a": Gone()}, circular(), {(1, 2): Broken()}, "\\ud800", {"a": float("nan")}]
@pytest.mark.parametrize("value", VALUES, ids=range(7))
def test_values(value, codex_backend):
    assert value == 1
def test_a_message(codex_backend):
    raise AssertionError(Broken())
def test_a_key(codex_backend):
    class Key(Broken): pass
    {}[Key()]
"""


def test_a_value_that_cannot_be_shown_does_not_end_the_run(tmp_path: Path) -> None:
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "test_p.py").write_text(SUITE)
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "codex_replay.suites",
        "-p",
        "no:cacheprovider",
        "--report",
        "out",
        "suites",
    ]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=100, env={"PATH": os.defpath})
    assert done.returncode == 1, done.stdout + done.stderr
    assert "9 failed" in done.stdout
    cases = json.loads((tmp_path / "out" / "report.json").read_text())["cases"]
    assert [case["outcome"] for case in cases] == ["failed"] * 9
    assert "<Broken, whose repr raises RuntimeError>" in (tmp_path / "out" / "report.json").read_text()
