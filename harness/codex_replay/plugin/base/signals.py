"""End an interrupted or terminated run with its report and without remaining processes.

Strategy. One process controls the run (with pytest-xdist, the controller); only this process handles the end of the run. In this
process, signals are blocked from the start until the collection of the cases, so that an interrupt finds pytest ready to write a
report. A termination is handled as an interrupt, with another exit status. Workers do not answer interrupts: the controller
terminates them. A worker whose controller has ended terminates itself. SIGINT and SIGTERM take effect immediately, even while a
case waits (see `codex_replay.shell.process.wakeful`).
"""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Any, NoReturn

from codex_replay.shell.process.wakeful import answer_signals_at_once

if TYPE_CHECKING:
    from collections.abc import Callable

#: `codex-replay run` passes an interrupt on by this signal: a terminal has sent SIGINT itself to the whole group already.
INTERRUPT = signal.SIGUSR2
#: What is blocked until the run can answer it.
BLOCKED = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, INTERRUPT})
#: How often a worker looks whether its controller lives, in seconds.
_LOOK = 0.5


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP asked the run to end; pytest handles this as an interrupt."""


class Interrupts:
    """Count the interrupts of a run; a Ctrl-C counts once, even if the terminal and `codex-replay run` both send the signal."""

    def __init__(self) -> None:
        self.ended_by = 0  # the signal that terminated the run
        self._counts = {signal.SIGINT: 0, INTERRUPT: 0}
        self._raised = 0

    def interrupt(self, number: int, frame: object = None) -> None:
        """Raise KeyboardInterrupt, unless this signal belongs to an interrupt that was already handled."""
        self._counts[signal.Signals(number)] += 1
        if max(self._counts.values()) > self._raised:
            self._raised += 1
            raise KeyboardInterrupt

    def terminate(self, number: int, frame: object = None) -> None:
        """Raise `Terminated` once: `timeout` and CI systems send the signal to the process and to its group."""
        if not self.ended_by:
            self.ended_by = number
            raise Terminated(f"the run was ended by {signal.Signals(number).name}")

    def install(self, passed_on: bool) -> None:
        """Install handlers for the signals that have their default action.

        `passed_on` is True if `codex-replay run` passes interrupts on to this process.
        """
        answer_signals_at_once()
        for number in (signal.SIGTERM, signal.SIGHUP):
            _instead_of(signal.SIG_DFL, number, self.terminate)
        if passed_on:
            signal.signal(INTERRUPT, self.interrupt)
            _instead_of(signal.default_int_handler, signal.SIGINT, self.interrupt)


def block() -> None:
    """Block the signals until `unblock` is called; processes that start meanwhile inherit the blocked signals."""
    signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED)


def unblock() -> None:
    """Unblock the signals; signals that came meanwhile are handled first."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, BLOCKED)


def restore_in_children() -> None:
    """Start children with default signal actions even if this process ignores signals, as below nohup or in a shell's background
    job.

    A started program inherits ignored signals, but no handlers.
    """
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        _instead_of(signal.SIG_IGN, number, _ignore)


def follow_controller(stop: Callable[[], None]) -> None:
    """Make this process a worker: it ignores interrupts, and calls `stop` and exits when its controller terminates it or ends."""

    def end(number: int, frame: object) -> NoReturn:
        stop()
        os._exit(128 + number)

    controller = os.getppid()
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, _ignore)
    answer_signals_at_once()
    unblock()
    threading.Thread(target=end_with, args=(controller,), daemon=True).start()


def end_with(controller: int) -> None:
    """Terminate this process once its parent is no longer the process `controller`; call this function in a separate thread."""
    waits = threading.Event()
    while os.getppid() == controller:
        waits.wait(_LOOK)
    os.kill(os.getpid(), signal.SIGTERM)


def _instead_of(current: Any, number: int, handler: Callable[[int, object], None]) -> None:
    if signal.getsignal(number) == current:
        signal.signal(number, handler)


def _ignore(number: int, frame: object) -> None:
    pass
