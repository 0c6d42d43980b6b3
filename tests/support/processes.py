"""Whether a process that the test did not start itself has ended."""

from __future__ import annotations

import time

from codex_replay.shell.process.subject import runs


def ended(pid: int, within: float = 5.0) -> bool:
    """Return True if the process ends within so many seconds.

    What another process started is reaped by whoever inherits it, at a moment that no test chooses.
    """
    deadline = time.monotonic() + within
    while runs(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
