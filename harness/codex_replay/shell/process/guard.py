"""Run one command and make sure that none of its processes remains: `python -m codex_replay.shell.process.guard COMMAND...`.

The guard ends when the command exits, when the guard gets a signal (TERM, INT, HUP), or when the guard's stdin ends. The
guard's stdin ends when the guard's parent process exits for any reason. Before the guard ends, it ends all processes that
the command has started, including orphans and processes with a separate session. On Linux, orphans become children of the
guard (a "child subreaper", see prctl(2)), so that every started process is below the guard in the process tree. The exit
status of the guard is that of the command. The guard must be a separate process, because it becomes the parent of every
orphan.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time

#: Seconds for the command to exit after a signal.
GRACE = 8.0
_PR_SET_CHILD_SUBREAPER = 36


def descendants(root: int) -> list[int]:
    """Return all current processes below `root` in the process tree."""
    parents = _parents()
    found, front = [], [root]
    while front:
        front = [pid for pid, parent in parents.items() if parent in front]
        found += front
    return found


def _parents() -> dict[int, int]:
    """Return the parent of each running process. The data come from /proc, or from the command ps if /proc does not exist."""
    found = {}
    try:
        names = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        names = []
    for name in names:
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as stat:
            # The name of the program is in parentheses and may contain anything.
            found[int(name)] = int(stat.read().rpartition(b")")[2].split()[1])
    if not names:
        message = subprocess.run(["ps", "-axo", "pid=,ppid="], capture_output=True, text=True, check=False).stdout
        found = {int(line.split()[0]): int(line.split()[1]) for line in message.splitlines() if len(line.split()) == 2}
    return found


def sweep(root: int, seconds: float = 10.0) -> list[int]:
    """Kill all processes below `root` until none is left. Return the processes that did not end within `seconds`."""
    deadline = time.monotonic() + seconds
    while left := descendants(root):
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        _reap(None)
        if time.monotonic() > deadline:
            return left
        time.sleep(0.02)
    return []


def _reap(wanted: int | None) -> int | None:
    """Collect the status of every child process that has ended. If the process `wanted` has ended, return its status."""
    status = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, ended = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == wanted:
                status = os.waitstatus_to_exitcode(ended)
    return status


def _take_orphans() -> None:
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def guard(argv: list[str]) -> int:
    """Run the guarded command and return its exit status. End the command when stdin ends or a signal arrives."""
    _take_orphans()
    # A shell ignores INT for what it starts in the background, and that would be inherited by every server under test.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    command = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True)
    report: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, frame: report.append(number))
    status = None
    try:
        while status is None and not report:
            with contextlib.suppress(InterruptedError):
                if select.select([0], [], [], 0.1)[0] and not os.read(0, 1024):
                    report.append(0)
            status = _reap(command.pid)
        if status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(command.pid, signal.SIGTERM)
            deadline = time.monotonic() + GRACE
            while status is None and time.monotonic() < deadline:
                time.sleep(0.02)
                status = _reap(command.pid)
    finally:
        left = sweep(os.getpid())
        command.returncode = 0 if status is None else status  # it has been waited for here, not by Popen
    if left:
        print(f"Processes that could not be stopped: {left}.", file=sys.stderr)
    return 128 + signal.SIGTERM if status is None else status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(guard(sys.argv[1:]))
