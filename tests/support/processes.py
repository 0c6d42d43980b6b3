"""Whether processes that the test did not start itself have ended."""

from __future__ import annotations

import os
import time
from pathlib import Path

from codex_replay.shell.process.subject import runs


def ended(pid: int, within: float = 60.0) -> bool:
    """Return True if the process ends within so many seconds.

    What another process started is reaped by whoever inherits it, at a moment that no test chooses.
    """
    deadline = time.monotonic() + within
    while runs(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def left_over(path: Path) -> list[str]:
    """Return the command lines of other processes that name this file or folder, pytest's own aside (Linux; empty elsewhere)."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if str(path) in line and " -m pytest " not in line and int(entry.name) != os.getpid():
            found.append(line)
    return found
