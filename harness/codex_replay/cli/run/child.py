"""Start the pytest process of a run, pass signals on to it, and wait for its end."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
from typing import TYPE_CHECKING, Any

from codex_replay.plugin.base.signals import BLOCKED, INTERRUPT
from codex_replay.shell.process.wakeful import answer_signals_at_once

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@contextlib.contextmanager
def started(arguments: Sequence[str], **more: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Start pytest, and pass the signals that end `codex-replay run` on to pytest, which then stops its servers and writes its
    report.

    During the start, signals are blocked: in the parent until it can pass signals on, and in pytest until pytest can handle
    signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield subprocess.Popen(arguments, **more)
        return
    answer_signals_at_once()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED)
    before = {}
    try:
        child = subprocess.Popen(arguments, **more)
        for number, passed_on in ((signal.SIGTERM, signal.SIGTERM), (signal.SIGHUP, signal.SIGHUP), (signal.SIGINT, INTERRUPT)):
            if signal.getsignal(number) != signal.SIG_IGN:
                before[number] = signal.signal(number, lambda *_, passed_on=passed_on: child.send_signal(passed_on))
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        yield child
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def wait(child: subprocess.Popen[bytes]) -> int:
    """Return the exit status of pytest like a shell: 128 plus the number of the signal if a signal ended pytest."""
    status = child.wait()
    return status if status >= 0 else 128 - status
