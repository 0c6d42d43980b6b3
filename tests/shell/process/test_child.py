"""`codex_replay.shell.process.child`: a command is started as `subprocess` starts it, to the signals and the words of its
errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
START = """
import os, sys
from codex_replay.shell.process import child
{before}
try:
    started = child.Child({command!r}, 0, 1)
except (OSError, ValueError) as error:
    sys.exit(f"{{type(error).__name__}}: {{error}}")
os.waitid(os.P_PID, started.pid, os.WEXITED | os.WNOWAIT)
sys.exit(f"{{started.poll()}} {{started.poll()}} {{started.returncode}}")
"""
BY_SUBPROCESS = """
import subprocess, sys
try:
    sys.exit(str(subprocess.call({command!r})))
except OSError as error:
    sys.exit(f"{{type(error).__name__}}: {{error}}")
"""


def started(command: list[str], template: str = START, before: str = "") -> tuple[str, str]:
    """Start a command in a program of its own, which has no threads; return its output and how that went."""
    argv = [sys.executable, "-c", template.format(command=command, before=before)]
    done = subprocess.run(argv, cwd=ROOT, input="said", capture_output=True, text=True, check=False, timeout=60)
    return done.stdout, done.stderr.rstrip("\n")


@pytest.mark.parametrize(
    ("command", "out", "status"),
    [
        (["cat"], "said", 0),
        (["/bin/sh", "-c", "exit 7"], "", 7),
        (["sh", "-c", "kill -9 $$"], "", -9),
        (["sh", "-c", 'echo "$@"', "sh", "a b", ""], "a b \n", 0),
    ],
)
def test_a_command_is_started_and_its_end_is_known(command: list[str], out: str, status: int) -> None:
    assert started(command) == (out, f"{status} {status} {status}")


@pytest.mark.parametrize("command", [["/nowhere/codex"], ["no-such-codex"], ["/etc/passwd"], ["/"], ["/etc/passwd/codex"]])
def test_what_cannot_be_started_is_said_as_subprocess_says_it(command: list[str]) -> None:
    assert started(command) == started(command, BY_SUBPROCESS)
    assert "Error: [Errno" in started(command)[1]


@pytest.mark.parametrize("command", [[], ["echo", "a\0b"]])
def test_what_is_no_command_is_refused_before_anything_starts(command: list[str]) -> None:
    assert started(command)[1].startswith("ValueError: ")


SIGNALS = ["grep", "-E", "^Sig(Ign|Blk|Cgt)", "/proc/self/status"]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells of signals on Linux")
def test_a_command_has_the_signals_that_subprocess_leaves_it() -> None:
    as_it_should_be = started(SIGNALS, BY_SUBPROCESS)[0]
    assert as_it_should_be.startswith("SigBlk")
    assert started(SIGNALS)[0] == as_it_should_be
    assert started(SIGNALS, before="child.IGNORED = ()")[0] != as_it_should_be  # the broken one
