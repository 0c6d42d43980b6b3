"""Signals that the main thread does not notice by itself: a wait ends at once all the same."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: The main thread waits; another one gets the signal, as the system may have it, and ends the wait when that was of no use.
WAITS = """
import signal, sys, threading, time
from codex_replay.shell.process.wakeful import answer_signals_at_once

if sys.argv[1] == "wakeful":
    answer_signals_at_once()
    answer_signals_at_once()
main, over = threading.get_ident(), threading.Event()

def interrupt():
    while sys._current_frames()[main].f_code.co_name != "wait":
        time.sleep(0.01)
    time.sleep(0.2)  # until it has let the lock go
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
    if not answered.wait(0.5 if sys.argv[1] == "plain" else 600):
        print("nothing")
    over.set()

answered = threading.Event()
thread = threading.Thread(target=interrupt)
thread.start()
try:
    over.wait()
except KeyboardInterrupt:
    print("interrupted", flush=True)
    answered.set()
thread.join()
"""
#: A process that has a use of its own for what wakes the main thread.
OTHERS = """
import os, signal, threading
from codex_replay.shell.process.wakeful import answer_signals_at_once

{before}
threads = threading.active_count()
answer_signals_at_once()
print(threading.active_count() - threads, signal.getsignal(signal.SIGURG) == {handler}, signal.set_wakeup_fd(-1) == {wakeup})
"""


def run(code: str, *arguments: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120, check=True)
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize(("how", "expected"), [("wakeful", ["interrupted"]), ("plain", ["nothing", "interrupted"])])
def test_a_wait_ends_at_a_signal_that_another_thread_got(how: str, expected: list[str]) -> None:
    assert run(WAITS, how) == expected


@pytest.mark.parametrize(
    ("before", "handler", "wakeup"),
    [
        ("signal.signal(signal.SIGURG, print)", "print", "-1"),
        ("read, write = os.pipe(); os.set_blocking(write, False); signal.set_wakeup_fd(write)", "signal.SIG_DFL", "write"),
    ],
    ids=["SIGURG", "wakeup fd"],
)
def test_a_process_that_uses_the_same_is_left_alone(before: str, handler: str, wakeup: str) -> None:
    assert run(OTHERS.format(before=before, handler=handler, wakeup=wakeup)) == ["0 True True"]
