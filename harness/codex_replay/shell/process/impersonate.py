"""Impersonate another program: keep its descriptors and environment, and exit with its status or signal."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
else:
    import _signal as signal  # see `child`

SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH")


def leave_as(status: int) -> None:
    """Exit in the same way as a child with this `Popen` status: with its exit code, or by the same signal."""
    if status >= 0:
        sys.exit(status)
    number = -status
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))  # its core is the one wanted
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    sys.exit(128 + number)


def original_environment() -> dict[bytes, bytes] | None:
    """Return the environment that this process was given, or None if it cannot be known.

    Python itself may add LC_CTYPE (PEP 538), which a server that is started directly would not get.
    """
    try:
        with open("/proc/self/environ", "rb") as file:
            entries = file.read().split(b"\0")
    except OSError:
        return None
    return {name: value for name, mark, value in (entry.partition(b"=") for entry in entries) if mark and name}


def open_standard_descriptors() -> None:
    """Open the null device for the descriptors 0, 1 and 2 if they are closed, so that no opened file gets such a number."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def close(descriptor: int) -> None:
    """Close a descriptor; a standard descriptor is redirected to the null device, so that no other file gets it."""
    if descriptor > 2:
        os.close(descriptor)
        return
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, descriptor)
    os.close(null)


def signal_pipe() -> int:
    """Write the numbers of the signals to pass on, and of the signal for the server's exit, to a pipe; return its reading end.

    Signals that the client made us ignore stay ignored, by this process and by the server.
    """
    wake, write = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for name in SIGNALS:
        number = getattr(signal, name)
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _nothing)
    signal.signal(signal.SIGCHLD, _nothing)
    return wake


def _nothing(_number: int, _frame: object) -> None:
    """Handle a signal without any action, because its number is already in the pipe."""


def die_with_parent() -> Callable[[], object] | None:
    """On Linux, return a function that makes the started process die when this process is killed: kill -9 must leave no orphan.

    The end of its stdin is not enough: the real app-server does not exit then if an approval is pending (REAL-93).
    """
    if sys.platform != "linux":
        return None
    try:
        import _ctypes  # the half of `ctypes` in C: the other takes as long to load as all else that a tap does at its start

        call, prctl = _ctypes.call_function, _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]
    except (ImportError, OSError, AttributeError):
        return None
    set_parent_death_signal = 1
    return lambda: call(prctl, (set_parent_death_signal, int(signal.SIGKILL), 0, 0, 0))
