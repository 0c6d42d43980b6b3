"""Start a server program with pipes for its stdin and stdout, wait for its end, and send it signals.

This module contains the small part of `subprocess` that an editor client needs. Loading `subprocess` takes longer than a short
turn, and a suite starts an editor client for every case.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from signal import SIGKILL, SIGPIPE, SIGTERM
else:
    from _signal import SIGKILL, SIGPIPE, SIGTERM  # the half in C: the other makes enums of the numbers

#: How often it is looked whether the program has ended, in seconds.
PAUSE = 0.002


class Process:
    """A started program, with pipes to its stdin and stdout.

    `stdin` and `stdout` are the client's ends of the pipes. Raises OSError if the program cannot be started.
    """

    def __init__(self, command: Sequence[str]) -> None:
        theirs_in, self.stdin = os.pipe()
        self.stdout, theirs_out = os.pipe()
        self._status: int | None = None
        becomes = [(os.POSIX_SPAWN_DUP2, theirs_in, 0), (os.POSIX_SPAWN_DUP2, theirs_out, 1)]
        try:
            # Python ignores SIGPIPE; a program expects it to be as it was.
            self._pid = os.posix_spawnp(command[0], list(command), os.environ, file_actions=becomes, setsigdef=[SIGPIPE])
        except OSError:
            self.close()
            raise
        finally:
            os.close(theirs_in)
            os.close(theirs_out)

    def close(self) -> None:
        """Close the client's ends of the pipes, so that the program reads the end of its stdin."""
        os.close(self.stdin)
        os.close(self.stdout)

    def wait(self, seconds: float) -> int | None:
        """Return the exit status, or None if the program still runs after the given number of seconds.

        A negative status is the number of the signal that killed the program.
        """
        deadline = time.monotonic() + seconds
        while self._status is None:
            ended, status = os.waitpid(self._pid, os.WNOHANG)
            if ended:
                self._status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > deadline:
                return None
            else:
                time.sleep(PAUSE)
        return self._status

    def terminate(self) -> None:
        """Send the program SIGTERM, so that it ends."""
        self._signal(SIGTERM)

    def kill(self) -> None:
        """End the program."""
        self._signal(SIGKILL)

    def _signal(self, number: int) -> None:
        if self.wait(0) is None:
            os.kill(self._pid, number)
