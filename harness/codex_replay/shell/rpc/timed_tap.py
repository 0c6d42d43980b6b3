"""The tap of a proxy's app-server: like `wire_tap`, with the time of each line.

    python -m codex_replay.shell.rpc.timed_tap LEDGER [PIECE] -- COMMAND...

`"t"` is in seconds since the epoch, so that the lines of several children and the requests that caused them are on one timeline.
The ledger is not redacted, so it must be in the test's own folder."""

from __future__ import annotations

import sys
import time

from codex_replay.shell.rpc import wire_tap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class TimedTap(wire_tap.Tap):
    """A tap whose lines have times. Each child has its own ledger, so the ledger contains only one run."""

    module = "codex_replay.shell.rpc.timed_tap"

    def begin(self, words: list[str]) -> None:
        """Write the first line of the run."""
        self.add(run=0, argv=words)

    def end(self, status: int) -> None:
        """Write the last line of the run."""
        self.add(ended=status)

    def add(self, **said: Any) -> None:
        """Add one line, in one write."""
        super().add(t=time.time(), **said)


def main(argv: list[str]) -> None:
    """Become the command, and log its traffic."""
    wire_tap.main(argv, kind=TimedTap)


if __name__ == "__main__":
    main(sys.argv[1:])
