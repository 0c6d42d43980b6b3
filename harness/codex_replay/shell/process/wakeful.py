"""Handle signals immediately, even while the main thread waits.

Python runs its signal handlers in the main thread, between two instructions. A signal ends a wait (for a lock, a line, or a
process) only if the system delivers it to the main thread while that thread waits. A signal that comes just before the wait
begins, or that another thread gets, is handled only after the wait: an interrupt would come after the timeout of the wait.

Strategy. Python writes the number of each signal to a pipe, whichever thread got the signal. A thread reads these numbers and
sends another signal, SIGURG, to the main thread until its handler has run there. SIGURG ends the wait, and all pending handlers
run with it. By default SIGURG does nothing, and the children of this process inherit its original action."""

from __future__ import annotations

import os
import signal
import threading
import time

#: Seconds between two attempts to wake the main thread; its handlers have mostly run before the first.
_PAUSE = 0.05
_NUDGE = signal.SIGURG


class _Waker:
    """Wakes the main thread for the signals whose numbers come through the pipe `numbers`."""

    def __init__(self, numbers: int) -> None:
        self._numbers = numbers
        self._main = threading.get_ident()
        self._awake = False

    def answered(self, number: int, frame: object) -> None:
        """Note that the main thread runs handlers; this is the handler of the signal that wakes it."""
        self._awake = True

    def run(self) -> None:
        """Wake the main thread after each signal; never returns."""
        while data := os.read(self._numbers, 512):
            self._awake = not data.strip(bytes([_NUDGE]))  # our own comes through the pipe, too
            while not self._awake:
                time.sleep(_PAUSE)
                signal.pthread_kill(self._main, _NUDGE)


def answer_signals_at_once() -> None:
    """Run the signal handlers of this process without delay from now on. Call it in the main thread; a second call has no effect.

    The call has no effect in a process that uses SIGURG or `signal.set_wakeup_fd` itself.
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
