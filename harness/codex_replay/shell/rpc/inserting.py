"""Insert messages of a test case into the output of an app-server, or delay messages, at a place that the case chooses.

    python -m codex_replay.shell.rpc.inserting FILE -- COMMAND...

FILE is JSON: `{"after": "...", "lines": ["{...}", ...]}`. The `lines` are inserted after each line of the app-server that
contains the text `after`. In the `lines`, `{threadId}` and `{turnId}` become the ids of the line with the text `after`. Lines
without the text `after` stay unchanged. A case uses the program to insert messages that a real app-server sends rarely, such
as an event of a thread that the client did not start, or a question. `{"delay": ["...", ...],
"seconds": 0.5}` delays each line that contains one of the texts, and the lines after it. During the delay, a client has
time to disconnect. `{"refuse": ["...", ...], "error": {...}}` replaces each reply that contains one of the texts by the error.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


def pass_on(lines: Iterable[bytes], write: Callable[[bytes], object], after: bytes, inserted: bytes) -> None:
    """Write every line of the app-server. Write `inserted` after each line that contains the text `after`."""
    for line in lines:
        write(line + with_ids(inserted, line) if after in line else line)


def with_ids(inserted: bytes, line: bytes) -> bytes:
    """Return the text `inserted` with the ids of the thread and the turn that the notification `line` is about."""
    if b"{threadId}" not in inserted:
        return inserted
    params = json.loads(line)["params"]
    turn = params.get("turnId") or params["turn"]["id"]
    return inserted.replace(b"{threadId}", params["threadId"].encode()).replace(b"{turnId}", turn.encode())


def delayed(lines: Iterable[bytes], texts: list[bytes], wait: Callable[[], object]) -> Iterator[bytes]:
    """Yield every line of the app-server. Call the function `wait` before each line that contains one of the texts."""
    for line in lines:
        if any(text in line for text in texts):
            wait()
        yield line


def refused(lines: Iterable[bytes], texts: list[bytes], error: object) -> Iterator[bytes]:
    """Yield every line of the app-server; replace each reply that contains one of the texts by a reply with `error`."""
    for line in lines:
        if any(text in line for text in texts):
            line = json.dumps({"id": json.loads(line)["id"], "error": error}).encode() + b"\n"
        yield line


def main(argv: list[str]) -> int:
    """Run the app-server command with the changes that FILE describes.

    Return the exit status of the command, or 2 for invalid arguments.
    """
    if len(argv) < 3 or argv[1] != "--":
        sys.stderr.write("Give a file and a command: python -m codex_replay.shell.rpc.inserting FILE -- COMMAND...\n")
        return 2
    given = json.loads(Path(argv[0]).read_bytes())
    inserted = "".join(f"{line}\n" for line in given.get("lines", [])).encode()
    texts, refuse = ([text.encode() for text in given.get(key, [])] for key in ("delay", "refuse"))
    child = subprocess.Popen(argv[2:], stdout=subprocess.PIPE)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    assert child.stdout is not None
    with child.stdout as lines:
        try:
            late = delayed(lines, texts, lambda: time.sleep(given["seconds"]))
            pass_on(refused(late, refuse, given.get("error")), _write, given.get("after", "").encode(), inserted)
        except BrokenPipeError:
            child.terminate()
    return child.wait() & 0xFF


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
