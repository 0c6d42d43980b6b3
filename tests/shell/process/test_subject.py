"""A program under test where the system cannot wait without reaping: macOS has no `os.waitid` before Python 3.13."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from types import FrameType

import pytest

from codex_replay.shell.process import subject
from codex_replay.shell.process.subject import Process, runs, strays

SERVES = "import sys; sys.stdin.read()"
SLEEPS = "import time; time.sleep(60)"
#: Prints the number of a program that it starts in its group, without our mark in its environment, and ends at once.
LEAVES_ONE = (
    "import subprocess, sys; "
    "one = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], env={}, stdout=-3, stderr=-3); "
    "print(one.pid, flush=True)"
)
#: How long a stop would wait for a program that does not end, in seconds; a stop of one that does takes far less.
GRACE = 60.0


@pytest.fixture(params=["waitid", "no-waitid"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "no-waitid":
        monkeypatch.delattr(os, "waitid")
    return str(request.param)


def start(code: str, said: list[bytes] | None = None) -> Process:
    on_stdout = None if said is None else said.append
    return Process([sys.executable, "-c", code], env=dict(os.environ), cwd=os.getcwd(), on_stdout=on_stdout)


@pytest.mark.parametrize(
    ("code", "status"),
    [("raise SystemExit(7)", 7), ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL)],
)
def test_the_status_of_a_program_that_ends_by_itself_is_known(system: str, code: str, status: int) -> None:
    process = start(code)
    try:
        assert process.wait(60) == status
    finally:
        assert process.stop() == status


@pytest.mark.parametrize(("code", "status"), [(SERVES, 0), (SLEEPS, -signal.SIGTERM)])
def test_a_stop_takes_no_longer_than_the_program(system: str, code: str, status: int) -> None:
    process = start(code)
    begun = time.monotonic()
    assert process.stop(GRACE) in (status, -signal.SIGTERM)
    assert time.monotonic() - begun < GRACE / 2


def test_what_a_program_has_left_behind_is_ended(system: str) -> None:
    said: list[bytes] = []
    process = start(LEAVES_ONE, said)
    assert process.wait(60) == 0
    assert process.output_ended.wait(60)
    left = int(b"".join(said))
    os.kill(left, 0)
    begun = time.monotonic()
    process.stop(GRACE)
    assert time.monotonic() - begun < GRACE / 2
    deadline = time.monotonic() + 60
    while runs(left) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not runs(left)


def test_a_group_that_is_another_programs_by_now_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once ours is reaped, the system may give its number away."""
    monkeypatch.delattr(os, "waitid")
    process = start("pass")
    assert process.wait(60) == 0
    stranger = start(SLEEPS)
    try:
        own, process.pid = process.pid, stranger.pid
        process.kill()
        time.sleep(0.1)
        assert not stranger.exited.is_set()
        process.pid = own
    finally:
        process.stop()
        stranger.stop()


INIT = Process.__init__.__code__
LINES = sorted({line for _, _, line in INIT.co_lines() if line and line > INIT.co_firstlineno})


@pytest.mark.parametrize("line", LINES, ids=[str(line - INIT.co_firstlineno) for line in LINES])
def test_a_signal_in_the_middle_of_a_start_leaves_nothing(line: int) -> None:
    """Wherever the handler of a signal raises, the end of the interpreter ends the program, and without a traceback."""
    process = interrupted_start(line)
    if process in subject._LIVE:  # as `stop_all` does, but for the processes of other tests
        process.stop()
    if mark := getattr(process, "mark", None):
        assert list(strays(mark)) == []


@pytest.mark.parametrize("line", LINES, ids=[str(line - INIT.co_firstlineno) for line in LINES])
def test_a_program_whose_environment_cannot_be_read_is_ended_too(line: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Linux, /proc shows an empty environment for a moment after the start; macOS never shows it."""
    process = interrupted_start(line)
    with monkeypatch.context() as hidden:
        hidden.setattr(subject, "strays", lambda mark: [])
        if process in subject._LIVE:
            process.stop()
    child = getattr(process, "_child", None)
    assert child is None or child.poll() is not None


def interrupted_start(line: int) -> Process:
    """Start a program, and raise `KeyboardInterrupt` before a line of `Process.__init__`; return what was made by then."""
    made: list[Process] = []

    def trace(frame: FrameType, event: str, arg: object) -> object:
        if frame.f_code is not INIT:
            return None
        made[:] = [frame.f_locals["self"]]
        if event == "line" and frame.f_lineno == line:
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with suppress(KeyboardInterrupt):
            Process([sys.executable, "-c", "import time; time.sleep(60)"], env={}, cwd="/")
    finally:
        sys.settrace(before)
    return made[0]
