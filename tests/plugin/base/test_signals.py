"""Signals that end a run, in quick order: only the first one raises, so that pytest can finish what the first one began."""

from __future__ import annotations

import subprocess
import sys
from signal import SIGHUP, SIGINT, SIGTERM, Signals

import pytest

from codex_replay.plugin.base.signals import INTERRUPT, Interrupts

#: A worker that cannot stop a program, and whose case catches every exception.
WORKER = """
import time
from codex_replay.plugin.base.signals import follow_controller

def stop():
    raise OSError

follow_controller(stop)
print("ready", flush=True)
try:
    time.sleep(600)
except Exception:
    print("goes on")
"""


@pytest.mark.parametrize(
    ("numbers", "raised", "ended_by"),
    [
        ([SIGINT], ["KeyboardInterrupt"], 0),
        ([SIGINT, INTERRUPT], ["KeyboardInterrupt", ""], 0),  # one Ctrl-C
        ([SIGINT, SIGINT], ["KeyboardInterrupt", "KeyboardInterrupt"], 0),  # the second Ctrl-C ends a run that hangs
        ([SIGTERM, SIGHUP], ["Terminated", ""], SIGTERM),
        ([SIGINT, SIGTERM], ["KeyboardInterrupt", ""], SIGTERM),
        ([SIGTERM, SIGINT], ["Terminated", ""], SIGTERM),
        ([SIGHUP, INTERRUPT, SIGINT], ["Terminated", "", ""], SIGHUP),
        ([SIGTERM, SIGINT, SIGINT], ["Terminated", "", "KeyboardInterrupt"], SIGTERM),
    ],
)
def test_a_signal_of_another_kind_is_only_noted(numbers: list[Signals], raised: list[str], ended_by: int) -> None:
    interrupts = Interrupts()
    found = []
    for number in numbers:
        try:
            (interrupts.terminate if number in (SIGTERM, SIGHUP) else interrupts.interrupt)(number)
        except KeyboardInterrupt as error:
            found.append(type(error).__name__)
        else:
            found.append("")
    assert found == raised
    assert interrupts.ended_by == ended_by


def test_a_worker_ends_even_if_a_program_cannot_be_stopped() -> None:
    """A case may catch every exception, so that the worker would go on."""
    process = subprocess.Popen([sys.executable, "-c", WORKER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(SIGTERM)
        assert process.stdout.read() == ""
    assert process.returncode == 128 + SIGTERM
