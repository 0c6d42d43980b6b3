"""A real server that ends wrongly: `python live_mutant.py WAY codex app-server`, in the place of `codex app-server`.

It passes bytes on in both directions, as they are, and is wrong in one way that no recording holds: how it takes signals, the end
of its input, or the loss of its reader. `faithful` is wrong in none.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading

#: way -> what is wrong.
WAYS = {
    "faithful": "nothing",
    "survives-signals": "no signal that can be ignored ends it",
    "exits-on-signal": "a signal ends it with status 0",
    "ends-with-its-input": "it ends with its input even while an approval is open",
    "ends-without-reader": "it ends as soon as nobody reads what it says",
}
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(way: str, command: list[str]) -> int:
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None

    def end(*_: object) -> None:
        child.kill()
        os._exit(0)

    for number in SIGNALS:
        handler = {"survives-signals": signal.SIG_IGN, "exits-on-signal": end}.get(way, signal.SIG_DFL)
        signal.signal(number, handler)

    reader = select.poll()
    reader.register(1, 0)  # only for the loss of the reader
    told = threading.Event()

    def forward() -> None:
        with contextlib.suppress(OSError):
            while data := os.read(0, 1 << 16):
                if reader.poll(0):
                    told.wait(20)  # the server has lost its reader before it gets what was sent behind the loss
                os.write(child.stdin.fileno(), data)
            child.stdin.close()
        if way == "ends-with-its-input":
            end()

    threading.Thread(target=forward, daemon=True).start()
    poll = select.poll()
    poll.register(child.stdout, select.POLLIN)
    poll.register(1, 0)  # only for the loss of the reader
    while True:
        ready = dict(poll.poll())
        if 1 in ready:
            if way == "ends-without-reader":
                end()
            child.stdout.close()  # so that the server itself learns it with its next word
            told.set()
            break
        data = os.read(child.stdout.fileno(), 1 << 16)
        if not data:
            break
        with contextlib.suppress(BrokenPipeError):
            while data:
                data = data[os.write(1, data) :]
    status = child.wait()
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
