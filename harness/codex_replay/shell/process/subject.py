"""Run a program under test in a separate process group, read its output in a thread, and always end it.

The program leads a new session, so that one signal reaches all processes that it starts. One thread reads stdout and
stderr. Another thread waits for the exit of the program, but does not reap it. As long as the program is a zombie, no other
process can get its group id, so the group can be killed safely. A process that has left the group (a grandchild in a
session of its own) is found by a mark in its environment, if the system shows environments (Linux). When the interpreter
ends, all programs that are still running are killed.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
import uuid
import weakref
from typing import TYPE_CHECKING

from codex_replay.core.text.escape import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MARK = "CODEX_REPLAY_PROCESS"
_CHUNK = 1 << 16
_TAIL = 1 << 14
_HANG_UP = b"h"
_LIVE: weakref.WeakSet[Process] = weakref.WeakSet()


class CannotStart(Exception):
    """The program under test could not be started; the message of the exception is a sentence."""


class Disconnected(Exception):
    """The program no longer reads its stdin. The message is a sentence."""


class Process:
    """One running program under test.

    The function `on_stdout` is called in the reading thread with each chunk of stdout, and with b"" at the end of stdout. `argv`
    is the command line of the program, `cwd` its working directory, and `env` its complete environment. Raises `CannotStart` if
    the program cannot be started.
    """

    def __init__(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str, on_stdout: Callable[[bytes], None] | None = None
    ) -> None:
        self.argv = list(argv)
        self.mark = uuid.uuid4().hex
        self._on_stdout = on_stdout or (lambda data: None)
        self._stderr = b""
        self._stderr_bytes = 0
        self._lock = threading.Lock()
        self._write_lock = threading.Lock()
        self.exited = threading.Event()
        self.output_ended = threading.Event()
        self.status: int | None = None
        self.input_ended: float | None = None  # when, as `time.monotonic` gives it
        self._stopped = self._reaped = False
        self.pid = 0
        self._stdin: int | None = None
        self._wake_read, self._wake_write = os.pipe()
        self._pump = threading.Thread(target=self._pump_output, name="pump", daemon=True)
        self._waiter = threading.Thread(target=self._wait_for_exit, name="wait", daemon=True)
        _LIVE.add(self)  # before it starts: a signal may end us in any of the lines below
        try:
            self._child = subprocess.Popen(
                self.argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env={**env, MARK: self.mark},
                cwd=cwd,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            self.stop()
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise CannotStart(f"{self.argv[0]} cannot be started ({reason}); check the command.") from None
        self.pid = self._child.pid
        assert self._child.stdin is not None
        os.set_blocking(self._child.stdin.fileno(), False)
        self._stdin = self._child.stdin.fileno()
        self._pump.start()
        self._waiter.start()

    def _pump_output(self) -> None:
        out, err = self._child.stdout, self._child.stderr
        assert out is not None
        assert err is not None
        with selectors.DefaultSelector() as selector:
            for fd in (out.fileno(), err.fileno(), self._wake_read):
                selector.register(fd, selectors.EVENT_READ)
            while len(selector.get_map()) > 1:
                for key, _ in selector.select():
                    if key.fd == self._wake_read:
                        if os.read(self._wake_read, 1) != _HANG_UP:
                            self._end_of_output()
                            return
                        if not self.output_ended.is_set():
                            selector.unregister(out.fileno())
                            out.close()
                            self._end_of_output()
                        break  # what else was ready is asked again: stdout may have been among it
                    data = os.read(key.fd, _CHUNK)
                    if not data:
                        selector.unregister(key.fd)
                    if key.fd == err.fileno():
                        with self._lock:
                            self._stderr_bytes += len(data)
                            self._stderr = (self._stderr + data)[-_TAIL:]
                    elif data:
                        self._on_stdout(data)
                    else:
                        self._end_of_output()

    def _end_of_output(self) -> None:
        if not self.output_ended.is_set():
            self.output_ended.set()
            self._on_stdout(b"")

    def _wait_for_exit(self) -> None:
        if hasattr(os, "waitid"):
            with contextlib.suppress(ChildProcessError):
                done = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
                if done is not None:
                    self.status = done.si_status if done.si_code == os.CLD_EXITED else -done.si_status
        else:  # macOS before Python 3.13
            self.status = self._child.wait()
            self._reaped = True
        self.exited.set()
        self._settle(0.3)

    def write(self, data: bytes, timeout: float = 10.0) -> None:
        """Write `data` to the program's stdin.

        Raises `Disconnected` if the program has closed its stdin, or does not read for `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        view = memoryview(data)
        with self._write_lock, selectors.DefaultSelector() as selector:
            if self._stdin is None:
                raise Disconnected("its stdin is closed")
            selector.register(self._stdin, selectors.EVENT_WRITE)
            while view:
                try:
                    view = view[os.write(self._stdin, view) :]
                except BlockingIOError:
                    left = deadline - time.monotonic()
                    if left <= 0 or not selector.select(left):
                        raise Disconnected(
                            f"it did not read its stdin for {timeout:g} s ({len(view)} bytes were not read)"
                        ) from None
                except BrokenPipeError:
                    raise Disconnected("it has closed its stdin") from None

    def close_stdin(self) -> None:
        """Close the program's stdin. A second call does nothing."""
        with self._write_lock:
            if self._stdin is not None:
                self._stdin, self.input_ended = None, time.monotonic()
                assert self._child.stdin is not None
                self._child.stdin.close()

    def close_stdout(self) -> None:
        """Stop reading the program's stdout and close it. Later output of the program is lost."""
        if not self.output_ended.is_set():
            os.write(self._wake_write, _HANG_UP)
            self.output_ended.wait(5)

    def stderr_tail(self, lines: int = 10, since: int = 0) -> list[str]:
        """Return the last `lines` lines of the program's stderr so far, to quote them in a message.

        Control characters are escaped, except tabs. Lines before the offset `since` (an earlier value of `stderr_bytes`) are left
        out. After the program's exit, all of stderr is read first, because its last lines may contain the reason of the exit.
        """
        if self.exited.is_set() and threading.current_thread() is not self._pump:
            self._pump.join(1)  # not forever: another process may keep the pipe open
        with self._lock:
            new = max(0, min(len(self._stderr), self._stderr_bytes - since))
            message = self._stderr[len(self._stderr) - new :].decode("utf-8", "replace")
        return [escape(line, keep="\t") for line in message.splitlines()[-lines:]]

    @property
    def stderr_bytes(self) -> int:
        """Return the number of bytes that the program has written to stderr."""
        with self._lock:
            return self._stderr_bytes

    def wait(self, timeout: float) -> int | None:
        """Return the exit status, or None if the program still runs after `timeout` seconds.

        A negative status is the number of the signal that killed it.
        """
        return self.status if self.exited.wait(timeout) else None

    def _settle(self, grace: float) -> None:
        """After the program's exit, wait until all output is read.

        After `grace` seconds, end every process that keeps the output open.
        """
        if not self.output_ended.wait(grace):
            self._signal(signal.SIGKILL)
            self._kill_strays()
            if not self.output_ended.wait(grace):
                self._wake()

    def stop(self, grace: float = 1.0) -> int | None:
        """End the program and all processes that it has started: close stdin, send TERM, and after `grace` seconds send KILL.

        Returns the exit status.
        """
        if self._stopped:
            return self.status
        self._stopped = True
        child: subprocess.Popen[bytes] | None = getattr(self, "_child", None)
        if child is not None:
            self.pid = child.pid  # a signal may have ended us before it was noted, and the mark may not show yet
            self._end(grace)
        else:  # it did not start, or a signal ended us while it did
            self._kill_strays()
        os.close(self._wake_read)
        os.close(self._wake_write)
        _LIVE.discard(self)
        return self.status

    def _end(self, grace: float) -> None:
        self.close_stdin()
        if not self.exited.is_set():
            self._signal(signal.SIGTERM)
            if not self.exited.wait(grace if self._waiter.ident else 0):
                self._signal(signal.SIGKILL)
                self.exited.wait(5 if self._waiter.ident else 0)
        self._signal(signal.SIGKILL)  # the rest of its group; the unreaped leader keeps the group id ours
        self._kill_strays()
        if self._waiter.ident:
            self._waiter.join(5)
        self._wake()
        if self._pump.ident:
            self._pump.join(5)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(1)
        for stream in (self._child.stdin, self._child.stdout, self._child.stderr):
            if stream is not None:
                stream.close()

    def kill(self) -> None:
        """Send KILL to the program and its process group, without waiting. Call `stop` afterwards."""
        self._signal(signal.SIGKILL)

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b"x")

    def _signal(self, number: int) -> None:
        # While the leader is not reaped, this group id is its own. (macOS: EPERM for zombies.) Once it is reaped, a process
        # of this number is another program's; without one, the group contains only our processes.
        if not self.pid or (self._reaped and _exists(self.pid)):
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _kill_strays(self) -> None:
        for pid in strays(self.mark):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def runs(pid: int) -> bool:
    """Return True if a process is running. A zombie is not running."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return _exists(pid) and not os.path.exists("/proc/self/stat")  # macOS has no /proc: there the signal was the test


def strays(mark: str) -> list[int]:
    """Return the processes whose environment contains `mark`. If the system hides environments (macOS), return no processes."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit():
                with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as environ:
                    if wanted in environ.read().split(b"\0"):
                        found.append(int(name))
    return found


def stop_all() -> None:
    """End every program that this interpreter has started and that is still running."""
    for process in list(_LIVE):
        process.stop(grace=0.2)


atexit.register(stop_all)
