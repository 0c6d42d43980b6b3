"""A tap (a program that records a pipe) for the app-server of a proxy: like `wire_tap`, but with the time of each line.

    python -m codex_replay.shell.rpc.timed_tap LEDGER [PIECE] -- COMMAND...

`"t"` is in seconds of the monotonic clock, which all processes of a machine share. A test can therefore put the lines of
several app-servers and the client's requests on one timeline, even if the wall clock is set meanwhile. The ledger is not
redacted, so it must be in the test's own folder.
"""

from __future__ import annotations

import sys
import time

from codex_replay.shell.rpc import wire_tap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class TimedTap(wire_tap.Tap):
    """A tap that writes the time of each line. Each app-server has a separate ledger, so a ledger contains only one run."""

    module = "codex_replay.shell.rpc.timed_tap"

    def begin(self, words: list[str]) -> None:
        """Write the first line of the run."""
        self.add(run=0, argv=words)

    def end(self, status: int) -> None:
        """Write the last line of the run."""
        self.add(ended=status)

    def add(self, **said: Any) -> None:
        """Add one line to the ledger, in one write."""
        super().add(t=time.monotonic(), **said)


def main(argv: list[str]) -> None:
    """Run the command in place of this process, and record its traffic."""
    wire_tap.main(argv, kind=TimedTap)


if __name__ == "__main__":
    main(sys.argv[1:])
