"""A tee that writes the raw lines of both sides to a file, so that a test can check the client's bytes.

    python -m codex_replay.shell.rpc.wire_tap [--timed] LEDGER [PIECE] -- COMMAND...

PIECE is a number of bytes: the client gets the server's output in chunks of PIECE bytes, each in a separate write. Without
PIECE, the client gets the output line by line. Each line is written to LEDGER before it is passed on. A line of the client
becomes `{"got": "..."}`, and a line of the server becomes `{"said": "..."}`. The first line of a run is `{"run": N, "pid":
..., "argv": [...]}`. In all other lines of the run, `"of"` is the process id in the first line. With --timed, each line has
`"t"` instead: the time in seconds of the monotonic clock, which all processes of a machine share, so that a test can put the
lines of several app-servers and the client's requests on one timeline. The ledger is not redacted, so it must be in the
test's own folder, where all credentials are fictitious. The tap uses the recorder of `codex_replay.shell.rpc.recorder`, which
passes bytes, end of file, signals and exit status unchanged. The module imports as little as possible, because a suite starts
a hundred taps.
"""

from __future__ import annotations

import os
import sys
import time

from codex_replay.core.wire.json_text import ascii_dumps
from codex_replay.shell.process.impersonate import leave_as, open_standard_descriptors
from codex_replay.shell.rpc.recorder import Recorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Tap:
    """Logs lines to a ledger; the recorder uses a tap in place of its `Log`."""

    def __init__(self, path: str) -> None:
        self.on = True
        self._path = path
        self._whose: dict[str, int] = {}
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)

    def begin(self, words: list[str]) -> None:
        """Write the first line of a run, which has the arguments of the command."""
        self._whose = {"of": os.getpid()}
        self.add(run=_count(self._path), pid=os.getpid(), argv=words)

    def add(self, **said: Any) -> None:
        """Add one line to the ledger, in one write."""
        os.write(self._file, ascii_dumps(said) + b"\n")

    def line(self, sender: str, raw: bytes) -> None:
        """Write a line of one side to the ledger."""
        text = raw.removesuffix(b"\n").decode("utf-8", "surrogateescape")
        self.add(**{"got" if sender == "client" else "said": text}, **self._whose)

    def end(self, status: int) -> None:
        """Handle the end of the recorded command. The base class writes nothing; a subclass may write a line."""

    def give_up(self, why: str) -> None:
        """Log that a line is too long, and log no further lines. The traffic continues."""
        self.add(lost=why)
        self.on = False


class TimedTap(Tap):
    """A tap that writes the time of each line. Each app-server has a separate ledger, so a ledger contains only one run."""

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
    open_standard_descriptors()
    timed = argv[:1] == ["--timed"]
    at = argv.index("--") if "--" in argv else len(argv)
    before, command = argv[timed:at], argv[at + 1 :]
    if len(before) not in (1, 2) or not command or not all(word.isdigit() for word in before[1:]):
        sys.stderr.write("Give a file and a command: python -m codex_replay.shell.rpc.wire_tap LEDGER [PIECE] -- COMMAND...\n")
        sys.exit(2)
    tap = (TimedTap if timed else Tap)(before[0])
    tap.begin(command[1:])
    try:
        recorder = Recorder(command, tap)
    except OSError as error:
        from codex_replay.core.redact.sentence import sentence

        sys.stderr.write(sentence(f"{command[0]} cannot be started ({error.strerror}); check the command.\n"))
        sys.exit(2)
    if before[1:]:
        recorder.server.piece = int(before[1])
    status = recorder.run()
    tap.end(status)
    leave_as(status)


def _count(path: str) -> int:
    """Return the number of runs in the file."""
    with open(path, "rb") as file:
        return sum(line.startswith(b'{"run"') for line in file)


if __name__ == "__main__":
    main(sys.argv[1:])
