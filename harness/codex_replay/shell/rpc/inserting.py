"""Put messages of a case's own among those of an app-server, at a moment that the case chooses.

    python -m codex_replay.shell.rpc.inserting FILE -- COMMAND...

FILE is JSON: `{"after": "...", "lines": ["{...}", ...]}`. The lines follow each line of the app-server that contains the text
`after`; everything else passes unchanged. A case needs this for what a real app-server sends rarely, as an event of a thread that
the client did not start.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def pass_on(lines: Iterable[bytes], write: Callable[[bytes], object], after: bytes, inserted: bytes) -> None:
    """Write every line, and `inserted` after each line that contains `after`."""
    for line in lines:
        write(line + inserted if after in line else line)


def main(argv: list[str]) -> int:
    """Be the command, with the lines of FILE among its own; return its status, or 2 if the arguments do not fit."""
    if len(argv) < 3 or argv[1] != "--":
        sys.stderr.write("Give a file and a command: python -m codex_replay.shell.rpc.inserting FILE -- COMMAND...\n")
        return 2
    given = json.loads(Path(argv[0]).read_bytes())
    inserted = "".join(f"{line}\n" for line in given["lines"]).encode()
    child = subprocess.Popen(argv[2:], stdout=subprocess.PIPE)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    assert child.stdout is not None
    with child.stdout as lines:
        try:
            pass_on(lines, _write, given["after"].encode(), inserted)
        except BrokenPipeError:
            child.terminate()
    return child.wait() & 0xFF


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
