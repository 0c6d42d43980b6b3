"""How `codex-replay run` ends when it is interrupted, terminated or killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import ended

#: A case that passes, and one that notes its process and waits for what never comes.
CASES = """
import os, pathlib, signal, subprocess, sys, time

def test_quick():
    pathlib.Path("quick").touch()

def test_slow():
    while not pathlib.Path("quick").exists():
        time.sleep(0.01)
    pathlib.Path("slow.new").write_text(str(os.getpid()))
    pathlib.Path("slow.new").rename("slow")
    time.sleep(600)
"""
#: A case in which the system gives signals to another thread than the one that waits.
ELSEWHERE = """
import pathlib, signal, threading

def test_waits():
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGUSR2})
    pathlib.Path("waits").touch()
    threading.Event().wait(600)
"""
#: Notes that the process that ends the run has the report of the case that passes.
NOTES = """
import os, pathlib, pytest

@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report):
    if report.when == "teardown" and "quick" in report.nodeid and "PYTEST_XDIST_WORKER" not in os.environ:
        pathlib.Path("reported").touch()
"""
#: Holds up whoever loads it until the test has seen it.
HOLD = """
import os, pathlib, time
{condition}:
    pathlib.Path("{name}.new").write_text(str(os.getpid()))
    pathlib.Path("{name}.new").rename("{name}")
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
"""
COMMAND = [sys.executable, "-c", "from codex_replay.cli.entry import main; main()", "run", "suites/mine", "--report", "out"]


class Run:
    """A run in a project of its own, in a process group of its own."""

    def __init__(self, folder: Path, *options: str, **more: Any) -> None:
        self.folder = folder
        env = {**os.environ, "TMPDIR": str(folder / "tmp"), **more.pop("env", {})}
        env.pop("PYTEST_XDIST_WORKER", None)  # of the run that this test belongs to
        self.process = subprocess.Popen(
            [*COMMAND, *options],
            cwd=folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            **more,
        )

    def seen(self, name: str) -> str:
        """Wait until a process of the run has written this file; return what is in it."""
        path, deadline = self.folder / name, time.monotonic() + 60
        while not path.exists():
            assert self.process.poll() is None, self.process.communicate()[0]
            assert time.monotonic() < deadline, f"{name} was not written"
            time.sleep(0.02)
        return path.read_text()

    def signal(self, number: int, to: str) -> None:
        """Send a signal to the command alone, or to its group as a terminal does."""
        if to == "command":
            self.process.send_signal(number)
        else:
            os.killpg(self.process.pid, number)

    def end(self) -> str:
        """Return what the run printed."""
        return self.process.communicate(timeout=120)[0]

    @property
    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "out" / "report.json").read_bytes())
        return found

    def left(self) -> list[str]:
        """Return what the run has left of its lock and its traces."""
        return sorted(str(path.relative_to(self.folder)) for path in [*self.folder.glob("out/.run.lock"), *self.spools()])

    def spools(self) -> list[Path]:
        return [*(self.folder / "tmp").glob("codex-replay-traces-*")]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "suites" / "mine").mkdir(parents=True)
    (tmp_path / "suites" / "mine" / "test_it.py").write_text(CASES)
    (tmp_path / "conftest.py").write_text(NOTES)
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    (tmp_path / "tmp").mkdir()
    return tmp_path


@contextlib.contextmanager
def run(folder: Path, *options: str, **more: Any) -> Iterator[Run]:
    running = Run(folder, *options, **more)
    try:
        yield running
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.process.pid, signal.SIGKILL)
        running.process.communicate()


@pytest.mark.parametrize(
    ("number", "to", "status", "jobs"),
    [
        (signal.SIGINT, "command", 2, "2"),
        (signal.SIGINT, "group", 2, "1"),
        (signal.SIGINT, "group", 2, "2"),
        (signal.SIGTERM, "command", 143, "1"),
        (signal.SIGTERM, "command", 143, "2"),
        (signal.SIGTERM, "group", 143, "2"),
        (signal.SIGHUP, "group", 129, "2"),
    ],
)
def test_an_ended_run_leaves_its_report_and_nothing_else(number: int, to: str, status: int, jobs: str, project: Path) -> None:
    with run(project, "-n", jobs) as running:
        running.seen("reported")
        worker = int(running.seen("slow"))
        running.signal(number, to)
        printed = running.end()
        assert ended(worker)
    assert running.process.returncode == status, printed
    assert (running.report["verdict"], running.report["interrupted"]) == ("failed", True)
    assert [case["case"] for case in running.report["cases"]] == ["quick"], "a case that did not end is none"
    assert printed.count("INTERRUPTED") == 1
    assert running.left() == []


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize(("number", "to", "status"), [(signal.SIGINT, "group", 2), (signal.SIGTERM, "command", 143)])
def test_a_signal_ends_the_run_at_once_though_another_thread_gets_it(
    number: int, to: str, status: int, jobs: str, project: Path
) -> None:
    """So it is, too, for one that comes just before the case begins to wait: the thread that waits is not told of either."""
    (project / "suites" / "mine" / "test_it.py").write_text(ELSEWHERE)
    with run(project, "-n", jobs) as running:
        running.seen("waits")
        running.signal(number, to)
        printed = running.end()
    assert running.process.returncode == status, printed
    assert running.report["interrupted"] is True


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("where", ["conftest.py", "suites/mine/test_held.py"])
def test_an_interrupt_before_the_first_case_is_one_sentence_and_a_report(where: str, jobs: str, project: Path) -> None:
    """The first place is loaded before pytest can answer, the second while it (or its workers) collect."""
    (project / where).write_text(HOLD.format(condition="if True", name="loading"))
    with run(project, "-n", jobs) as running:
        running.seen("loading")
        running.signal(signal.SIGINT, "group")
        (project / "go").touch()
        printed = running.end()
    assert running.process.returncode == 2, printed
    assert "Traceback" not in printed
    assert printed.count("INTERRUPTED after 0 cases") == 1, printed
    assert (running.report["verdict"], running.report["interrupted"], running.report["cases"]) == ("failed", True, [])
    assert running.left() == []


def test_an_interrupt_while_the_command_loads_is_one_sentence(project: Path) -> None:
    site = project / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'click':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    with run(project, env={"PYTHONPATH": str(site)}) as running:
        printed = running.end()
    assert (running.process.returncode, printed) == (130, "codex-replay: interrupted.\n")


def test_the_workers_of_a_killed_run_end_and_the_next_run_takes_away_what_it_left(project: Path) -> None:
    with run(project, "-n", "2") as running:
        worker = int(running.seen("slow"))
        controller = int(Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(controller, signal.SIGKILL)
        assert ended(worker)
        assert running.process.wait(60) == 137
        assert running.left() != []
    (project / "slow").unlink()
    with run(project, "-n", "2", "-k", "quick") as following:
        printed = following.end()
    assert following.process.returncode == 0, printed
    assert following.left() == []


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_what_a_case_starts_has_default_actions_though_the_run_ignores_signals(jobs: str, project: Path) -> None:
    """As below nohup, and in a background job of a shell without job control."""
    (project / "suites" / "mine" / "test_it.py").write_text(
        "import subprocess, sys\n"
        "def test_child():\n"
        "    code = 'from signal import *; print(*(getsignal(n).name for n in (SIGHUP, SIGQUIT, SIGTERM)),'\n"
        "    code += 'getsignal(SIGINT) is default_int_handler)'\n"
        "    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)\n"
        "    assert done.stdout.split() == ['SIG_DFL', 'SIG_DFL', 'SIG_DFL', 'True']\n"
    )
    numbers = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
    with run(project, "-n", jobs, preexec_fn=lambda: [signal.signal(number, signal.SIG_IGN) for number in numbers]) as running:
        printed = running.end()
    assert running.process.returncode == 0, printed


def test_xdist_is_loaded_though_pytest_shall_load_no_plugin_by_itself(project: Path) -> None:
    (project / "pytest.ini").write_text("[pytest]\n")
    with run(project, "-k", "quick", env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}) as running:
        printed = running.end()
    assert running.process.returncode == 0, printed
    assert "2 workers" in printed or "gw1" in printed
