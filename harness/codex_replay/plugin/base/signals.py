"""If a run is interrupted or terminated, still write its report, and end all processes that it started.

Only one process handles signals that end the run: with pytest-xdist, the controller. The controlling process blocks signals
until pytest has collected the cases, because pytest cannot write a report earlier. SIGTERM is handled like an interrupt,
but with another exit status. Workers of pytest-xdist ignore interrupts: the controller terminates the workers. A worker
terminates itself if its controller has ended. SIGINT and SIGTERM take effect immediately, even while a case waits (see
`codex_replay.shell.process.wakeful`).
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
    """SIGTERM or SIGHUP asked the run to end; pytest handles this exception as an interrupt."""


class Interrupts:
    """Count the interrupts of a run. One Ctrl-C counts once, even if both the terminal and `codex-replay run` send its signal."""

    def __init__(self) -> None:
        self.ended_by = 0  # the signal that terminated the run
        self._counts = {signal.SIGINT: 0, INTERRUPT: 0}
        self._raised = 0

    def interrupt(self, number: int, frame: object = None) -> None:
        """Raise KeyboardInterrupt, unless the signal belongs to an interrupt that was already handled.

        The first interrupt after `terminate` is not raised, because pytest is already ending the run.
        """
        self._counts[signal.Signals(number)] += 1
        if max(self._counts.values()) > self._raised:
            self._raised += 1
            if not self.ended_by or self._raised > 1:
                raise KeyboardInterrupt

    def terminate(self, number: int, frame: object = None) -> None:
        """Raise `Terminated` for the first signal only: `timeout` and CI systems signal the process and its process group.

        After an interrupt, only note the signal, because pytest is already ending the run.
        """
        if not self.ended_by:
            self.ended_by = number
            if not self._raised:
                raise Terminated(f"the run was ended by {signal.Signals(number).name}")

    def install(self, passed_on: bool) -> None:
        """Install signal handlers, but only for signals that still have their default action.

        `passed_on` is True if `codex-replay run` passes interrupts on to this process.
        """
        answer_signals_at_once()
        for number in (signal.SIGTERM, signal.SIGHUP):
            _instead_of(signal.SIG_DFL, number, self.terminate)
        if passed_on:
            signal.signal(INTERRUPT, self.interrupt)
            _instead_of(signal.default_int_handler, signal.SIGINT, self.interrupt)


def block() -> None:
    """Block the signals that end a run, until `unblock` is called.

    A process that is started meanwhile also starts with blocked signals.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED)


def unblock() -> None:
    """Unblock the signals; handle signals that arrived while they were blocked."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, BLOCKED)


def restore_in_children() -> None:
    """Start children with default signal actions even if this process ignores signals, for example under `nohup`.

    A child process inherits ignored signals from its parent, but no signal handlers.
    """
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        _instead_of(signal.SIG_IGN, number, _ignore)


def follow_controller(stop: Callable[[], None]) -> None:
    """Make this process a worker of pytest-xdist that ignores interrupts.

    When the controller terminates the worker, or ends, the worker calls `stop` and exits.
    """

    def end(number: int, frame: object) -> NoReturn:
        try:
            stop()
        finally:
            os._exit(128 + number)

    controller = os.getppid()
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, _ignore)
    answer_signals_at_once()
    unblock()
    threading.Thread(target=end_with, args=(controller,), daemon=True).start()


def end_with(controller: int) -> None:
    """Wait until the process `controller` is no longer the parent of this process, then terminate this process.

    Call `end_with` in a separate thread, because it blocks.
    """
    waits = threading.Event()
    while os.getppid() == controller:
        waits.wait(_LOOK)
    os.kill(os.getpid(), signal.SIGTERM)


def _instead_of(current: Any, number: int, handler: Callable[[int, object], None]) -> None:
    if signal.getsignal(number) == current:
        signal.signal(number, handler)


def _ignore(number: int, frame: object) -> None:
    pass
