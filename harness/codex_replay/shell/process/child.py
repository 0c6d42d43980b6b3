"""Start a server on behalf of the client that started this process, send the server signals, and wait for its end.

The server is started as `subprocess.Popen` would start it. The module contains the small part of `subprocess` that a tee (a
program that records a pipe) needs. Importing `subprocess` takes as long as everything else that a tap does at its start,
and a run of a suite starts a hundred taps.
"""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Mapping, Sequence
else:
    import _signal as signal  # the C half: the other makes enums of the numbers, which is half as slow to load as `subprocess`

#: What Python ignores for itself, and a program expects to be as it was.
IGNORED = ("SIGPIPE", "SIGXFZ", "SIGXFSZ")


class Child:
    """A started command.

    `returncode` has the same meaning as in `Popen`, and is None until `poll` has noticed the end of the command. The
    program of the command is searched on PATH, and inherits all inheritable file descriptors. The function `prepare` is
    called in the child process before the command replaces it. Raises OSError if the command cannot be started, and
    ValueError for an invalid command.
    """

    def __init__(
        self,
        command: Sequence[str],
        stdin: int,
        stdout: int,
        env: Mapping[bytes, bytes] | None = None,
        prepare: Callable[[], object] | None = None,
    ) -> None:
        if not command or any("\0" in word for word in command):
            raise ValueError("no command, or a command with a null character")
        if not command[0]:  # exec refuses it with an error that has no number; to a shell it is a command that it cannot find
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
        self.returncode: int | None = None
        why, report_on = os.pipe()  # closed by exec: what is read from it is why there was none
        self.pid = os.fork()
        if not self.pid:
            _become(command, stdin, stdout, env, prepare, report_on)
        os.close(report_on)
        with open(why, "rb") as file:
            number = file.read()
        if number:
            os.waitpid(self.pid, 0)
            raise OSError(int(number), os.strerror(int(number)), command[0])

    def poll(self) -> int | None:
        """Check whether the child has ended. Return the value of `returncode`."""
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the child has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)


def _become(
    command: Sequence[str],
    stdin: int,
    stdout: int,
    env: Mapping[bytes, bytes] | None,
    prepare: Callable[[], object] | None,
    report_on: int,
) -> None:
    """Replace the child process, in which this function runs, by the command.

    On an error, report the error number and exit, so that the child runs no code of the parent.
    """
    try:
        for name in IGNORED:
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), signal.SIG_DFL)
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        if prepare is not None:
            prepare()
        os.execvpe(command[0], list(command), os.environb if env is None else env)
    except OSError as error:
        os.write(report_on, str(error.errno).encode())
    finally:
        os._exit(255)
