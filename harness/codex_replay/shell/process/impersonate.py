"""Run in the place of another program: keep its file descriptors and environment, and exit with its status or signal."""

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
    """Exit in the same way as a child process with the `Popen` status `status`: with the same exit code, or by the same
    signal.
    """
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
    """Return the environment with which this process was started, or None if it is not available.

    Python may have added LC_CTYPE to `os.environ` when it started (PEP 538). A server that is started without a tee does
    not get LC_CTYPE, so it must not get it with a tee.
    """
    try:
        with open("/proc/self/environ", "rb") as file:
            entries = file.read().split(b"\0")
    except OSError:
        return None
    return {name: value for name, mark, value in (entry.partition(b"=") for entry in entries) if mark and name}


def open_standard_descriptors() -> None:
    """Open the null device for each closed descriptor of 0, 1 and 2, so that no file that is opened later gets the number 0, 1
    or 2.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def close(descriptor: int) -> None:
    """Close a file descriptor.

    For a standard descriptor (0, 1, 2), redirect it to the null device instead, so that no other file gets its number.
    """
    if descriptor > 2:
        os.close(descriptor)
        return
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, descriptor)
    os.close(null)


def signal_pipe() -> int:
    """Let Python write the number of each arriving signal to a pipe, and return the reading end of the pipe.

    The signals in the pipe are those that must be passed on to the server, and the signal for the server's exit. A signal
    that the client ignores stays ignored, in this process and in the server.
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
    """Handle a signal without any action, because its number is in the pipe."""


def die_with_parent() -> Callable[[], object] | None:
    """On Linux, return a function that ties a started process to this process: kill -9 of this process must leave no orphan.

    Closing the stdin of the started process is not enough: with a pending approval, the real app-server does not exit at the end
    of its stdin (REAL-93).
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
