"""The checks that run on live servers alone are turned red by a server that ends wrongly (tests/miniatures/live_mutant.py)."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from codex_replay.shell.codex.cache import find_installed
from tests.miniatures.live_mutant import WAYS
from tests.plugin.app_server.test_checks_bite import LIVE as OWED

ROOT = Path(__file__).parents[2]
MUTANT = ROOT / "tests" / "miniatures" / "live_mutant.py"
MODULE = "suites/app_server/server/test_lifecycle.py"
SIGNALS = {
    *(f"signal-{name}" for name in ("SIGHUP", "SIGINT", "SIGTERM")),
    *(f"signal_in_a_turn-{name}" for name in ("SIGINT", "SIGTERM")),
    "signal_with_a_pending_approval",
}
#: way -> the live checks that must turn red, and no others.
RED: dict[str, set[str]] = {
    "faithful": set(),
    "survives-signals": SIGNALS,
    "exits-on-signal": SIGNALS,
    "ends-with-its-input": {"end_of_input_with_a_pending_approval"},
    "ends-without-reader": {"closed_stdout"},
}
LIVE = SIGNALS | {"end_of_input_with_a_pending_approval", "closed_stdout"}


@pytest.mark.parametrize("way", WAYS)
def test_each_way_turns_its_checks_red(way: str, tmp_path: Path) -> None:
    codex = find_installed("0.92.0")
    assert codex is not None, "The real Codex is not installed; run `codex-replay codex install 0.92.0` first."
    server = shlex.join([sys.executable, str(MUTANT), way, str(codex), "app-server"])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", MODULE]
    command += ["-k", "signal or pending_approval or closed_stdout", "--app-server", server, "--validate", "no"]
    command += ["--report", str(tmp_path), "--wait", "5" if way == "survives-signals" else "20"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    cases = json.loads((tmp_path / "report.json").read_text())["cases"]
    assert {case["case"] for case in cases} == LIVE, done.stdout
    assert {case["case"] for case in cases if case["outcome"] == "failed"} == RED[way], done.stdout
    assert all(case["outcome"] != "skipped" for case in cases)


def test_every_live_check_is_turned_red() -> None:
    assert set().union(*RED.values()) == LIVE == {case.removeprefix("test_lifecycle/") for case in OWED}
