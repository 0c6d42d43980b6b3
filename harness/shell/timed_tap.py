"""The tap of a proxy's app-server: as `wire_tap`, each line with the time at which it passed.

    python -m harness.shell.timed_tap LEDGER [PIECE] -- COMMAND...

With PIECE the client gets what the server says in pieces of so many bytes, each in a write of its own.

`"t"` is in seconds since the epoch, so that the lines of several children and the requests that caused them stand on one
timeline. The ledger is redacted of nothing and belongs into a test's own folder.
"""

from __future__ import annotations

import sys
import time

from harness.shell.recorder import Recorder
from harness.shell.stand_in import leave_as, open_standard_descriptors
from harness.shell.wire_tap import Tap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class TimedTap(Tap):
    """A tap whose lines tell when they passed."""

    def add(self, **said: Any) -> None:
        """Add one line, in one write."""
        super().add(t=time.time(), **said)


def main(argv: list[str]) -> None:
    """Be the command, and take down what passes."""
    open_standard_descriptors()
    at = argv.index("--") if "--" in argv else len(argv)
    before, after = argv[:at], argv[at + 1 :]
    if len(before) not in (1, 2) or not after or not all(word.isdigit() for word in before[1:]):
        sys.stderr.write("Give a file and a command: python -m harness.shell.timed_tap LEDGER [PIECE] -- COMMAND...\n")
        sys.exit(2)
    path, command = before[0], after
    tap = TimedTap(path)
    tap.add(run=0, argv=command[1:])
    try:
        recorder = Recorder(command, tap)
    except OSError as error:
        sys.stderr.write(f"{command[0]} cannot be started ({error.strerror}); check the command.\n")
        sys.exit(2)
    if before[1:]:
        recorder.server.piece = int(before[1])
    leave_as(recorder.run())


if __name__ == "__main__":
    main(sys.argv[1:])
