"""A run that is interrupted leaves its report, whatever other plugins raise at its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CASES = """
import pathlib, time
def test_quick(): pass
def test_slow():
    pathlib.Path("begun").touch()
    time.sleep(600)
"""
#: Notes that the process that ends the run has the report of the quick case, which another one may have run.
NOTES = """
import os, pathlib, pytest

@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report):
    if report.when == "teardown" and "quick" in report.nodeid and "PYTEST_XDIST_WORKER" not in os.environ:
        pathlib.Path("reported").touch()
"""
#: An interrupt that comes in an instruction without a line, as compiled Python has them: its traceback has an entry without one.
NO_LINE = """
import pytest, sys, types
places = {}
exec(compile("import sys; frame = sys._getframe()", "planted", "exec").replace(co_linetable=b""), places)

@pytest.hookimpl(wrapper=True)
def pytest_runtestloop():
    try:
        return (yield)
    except KeyboardInterrupt as interrupt:
        last = interrupt.__traceback__
        while last.tb_next:
            last = last.tb_next
        last.tb_next = types.TracebackType(None, places["frame"], 0, -1)
        assert last.tb_next.tb_lineno is None
        raise
"""
#: Plugins of somebody else's that go wrong at the end of a run.
PLANTED = {
    "none": "",
    "raises": "def pytest_sessionfinish(): raise RuntimeError('planted')",
    "raises-first": "import pytest\n@pytest.hookimpl(tryfirst=True)\ndef pytest_sessionfinish(): raise RuntimeError('planted')",
    "wraps": "import pytest\n@pytest.hookimpl(wrapper=True, tryfirst=True)\n"
    "def pytest_sessionfinish():\n    raise RuntimeError('planted')\n    yield",
    "warns": "import warnings\ndef pytest_sessionfinish(): warnings.warn('planted')",
    "interrupts-again": "def pytest_keyboard_interrupt(): raise KeyboardInterrupt('planted')",
    "summary-raises": "def pytest_terminal_summary(): raise RuntimeError('planted')",
}


def project(folder: Path, planted: str) -> None:
    suite = folder / "suites" / "mine"
    suite.mkdir(parents=True)
    (suite / "test_it.py").write_text(CASES)
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    (folder / "planted.py").write_text(PLANTED[planted])
    (folder / "conftest.py").write_text(NOTES)


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "pytest", "suites", "-p", "codex_replay.suites", "-p", "planted"]
    argv += ["--report", "out", *words]
    env = {name: value for name, value in os.environ.items() if name != "PYTEST_XDIST_WORKER"}  # of the run of this test
    return subprocess.Popen(
        argv, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


def interrupted(folder: Path, jobs: str) -> tuple[int, str]:
    """Interrupt a run in its slow case; return its exit status and what it printed."""
    run = start(folder, "-n", jobs)
    try:
        deadline = time.monotonic() + 120
        while not all((folder / name).exists() for name in ("begun", "reported")):
            assert run.poll() is None, run.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.killpg(run.pid, signal.SIGINT)  # as a terminal does
        said, _ = run.communicate(timeout=120)
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
    return run.returncode, said


@pytest.mark.parametrize(
    ("planted", "jobs"),
    [("none", "2"), *((name, "1") for name in list(PLANTED)[1:]), ("raises", "0"), ("warns", "0"), ("interrupts-again", "0")],
)
def test_an_interrupted_run_leaves_its_report(planted: str, jobs: str, tmp_path: Path) -> None:
    project(tmp_path, planted)
    status, said = interrupted(tmp_path, jobs)
    assert (tmp_path / "out" / "report.json").exists(), said
    report = json.loads((tmp_path / "out" / "report.json").read_bytes())
    assert (report["verdict"], report["interrupted"]) == ("failed", True)
    assert any("test_quick" in case["nodeid"] for case in report["cases"])
    assert status != 0
    assert "INTERRUPTED" in said
    assert ("planted" in said) == (planted != "none")


@pytest.mark.parametrize("jobs", ["0", "2"])
def test_an_interrupt_in_an_instruction_without_a_line_is_no_error(jobs: str, tmp_path: Path) -> None:
    project(tmp_path, "none")
    (tmp_path / "planted.py").write_text(NO_LINE)
    status, said = interrupted(tmp_path, jobs)
    assert status == pytest.ExitCode.INTERRUPTED, said
    assert "Traceback" not in said


@pytest.mark.parametrize("planted", ["none", "raises", "wraps", "summary-raises"])
def test_a_whole_run_leaves_its_report_once(planted: str, tmp_path: Path) -> None:
    project(tmp_path, planted)
    run = start(tmp_path, "-n", "0", "-k", "quick")
    said, _ = run.communicate(timeout=120)
    report = json.loads((tmp_path / "out" / "report.json").read_bytes())
    assert (report["verdict"], "interrupted" in report) == ("verified", False)
    assert said.count("Report: ") == 1
    assert (run.returncode == 0) == (planted == "none")
