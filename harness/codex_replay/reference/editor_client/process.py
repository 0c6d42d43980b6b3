"""A running server program: started with pipes for its stdin and stdout, waited for, signalled.

This is the small part of `subprocess` that an editor client needs. Loading `subprocess` takes longer than a short turn, and a
suite starts an editor for every case."""

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
    """A started program: `stdin` and `stdout` are our ends of its pipes. Raises OSError if it cannot be started."""

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
        """Close our ends of the pipes, so that the program's stdin ends."""
        os.close(self.stdin)
        os.close(self.stdout)

    def wait(self, seconds: float) -> int | None:
        """Return the exit status (negative: the signal that killed it), or None if the program is still running after this many
        seconds."""
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
        """Ask the program to end."""
        self._signal(SIGTERM)

    def kill(self) -> None:
        """End the program."""
        self._signal(SIGKILL)

    def _signal(self, number: int) -> None:
        if self.wait(0) is None:
            os.kill(self._pid, number)
