"""Handle signals immediately, even while the main thread waits.

Python runs its signal handlers in the main thread, between two instructions. A signal ends a wait (for a lock, a line, or a
process) only if the system delivers the signal to the main thread during the wait. If a signal comes just before a wait, or
reaches another thread, its handler runs only after the wait. Without this module, an interrupt may have to wait for a
timeout. Python writes the number of each signal to a pipe, whichever thread gets the signal. A thread reads the numbers
from the pipe, and sends the signal SIGURG to the main thread until the handler of SIGURG has run there. SIGURG ends the
wait of the main thread, so that all pending handlers run. By default SIGURG does nothing. Child processes get the original
action of SIGURG.
"""

from __future__ import annotations

import os
import signal
import threading
import time

#: Seconds between two attempts to wake the main thread; its handlers have mostly run before the first.
_PAUSE = 0.05
_NUDGE = signal.SIGURG


class _Waker:
    """Wakes the main thread after each signal whose number arrives in the pipe `numbers`."""

    def __init__(self, numbers: int) -> None:
        self._numbers = numbers
        self._main = threading.get_ident()
        self._awake = False

    def answered(self, number: int, frame: object) -> None:
        """Handle SIGURG, which wakes the main thread: note that the main thread runs its handlers."""
        self._awake = True

    def run(self) -> None:
        """Wake the main thread after each signal. This function never returns."""
        while data := os.read(self._numbers, 512):
            self._awake = not data.strip(bytes([_NUDGE]))  # our own comes through the pipe, too
            while not self._awake:
                time.sleep(_PAUSE)
                signal.pthread_kill(self._main, _NUDGE)


def answer_signals_at_once() -> None:
    """From now on, run the signal handlers of this process without delay.

    Call `answer_signals_at_once` in the main thread. A second call of `answer_signals_at_once` has no effect. In a process
    that already uses SIGURG or `signal.set_wakeup_fd`, the call has no effect.
    """
    if signal.getsignal(_NUDGE) != signal.SIG_DFL:
        return
    numbers, write = os.pipe()
    os.set_blocking(write, False)
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    if before != -1:
        signal.set_wakeup_fd(before)
        os.close(numbers)
        os.close(write)
        return
    waker = _Waker(numbers)
    signal.signal(_NUDGE, waker.answered)
    # The thread is given no signal: one that the main thread blocks shall wait for it.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        threading.Thread(target=waker.run, name="signals", daemon=True).start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
