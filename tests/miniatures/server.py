"""A tiny app-server that misbehaves in one documented way: `python server.py WAY`.

Without a fault it answers initialize with a userAgent, any other request with an empty result, and exits with 0 at EOF.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time


def write_out(message: object) -> None:
    sys.stdout.buffer.write(json.dumps(message).encode() + b"\n")
    sys.stdout.buffer.flush()


def die_at_start() -> None:
    """Ends with status 3 before it reads anything."""
    sys.stderr.write("cannot open the configuration\n")
    raise SystemExit(3)


def die_in_turn(message: dict) -> None:
    """Ends with status 101 when a turn is asked for, after half of its answer."""
    if message.get("method") == "turn/start":
        sys.stdout.buffer.write(b'{"id":')
        sys.stdout.buffer.flush()
        sys.stderr.write("thread 'main' panicked at core.rs:1\n")
        sys.stderr.flush()
        os._exit(101)


def crash_in_turn(message: dict) -> None:
    """Dies by SIGSEGV when a turn is asked for."""
    if message.get("method") == "turn/start":
        os.kill(os.getpid(), signal.SIGSEGV)


def hang(message: dict) -> None:
    """Never answers a turn, and does not end when its stdin does."""
    if message.get("method") == "turn/start":
        sys.stderr.write("waiting for something\n")
        sys.stderr.flush()
        time.sleep(600)


def deaf() -> None:
    """Never reads its stdin."""
    time.sleep(600)


def flood_stderr(message: dict) -> None:
    """Writes 50 MB to stderr before each answer."""
    line = b"x" * 99 + b"\n"
    for _ in range(500):
        os.write(2, line * 1000)
    os.write(2, b"the flood is over\n")


def flood_stdout() -> None:
    """Writes lines that are no JSON for ever."""
    while True:
        os.write(1, b"y\n" * 1000)


def endless_line() -> None:
    """Writes one line for ever."""
    while True:
        os.write(1, b"x" * 1_000_000)


def garbage(message: dict) -> None:
    """Writes bytes that are no JSON and no UTF-8 before each answer."""
    sys.stdout.buffer.write(b"\x00\xff\xfe garbage\n[1,\n")


def close_stdout(message: dict) -> None:
    """Closes its stdout when a turn is asked for, and lives on."""
    if message.get("method") == "turn/start":
        os.close(1)
        time.sleep(600)


def ignore_sigterm() -> None:
    """Ignores SIGTERM and the end of its stdin."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def child_holds_stdout() -> None:
    """Starts a child that keeps stdout open, and ends with status 0 at EOF."""
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])


def escaped_child() -> None:
    """As child_holds_stdout, but the child is in a session of its own."""
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)


AT_START = {"die-at-start": die_at_start, "deaf": deaf, "ignore-sigterm": ignore_sigterm}
AT_START |= {"child-holds-stdout": child_holds_stdout, "escaped-child": escaped_child}
AT_START |= {"flood-stdout": flood_stdout, "endless-line": endless_line}
AT_MESSAGE = {"die-in-turn": die_in_turn, "crash-in-turn": crash_in_turn, "hang": hang, "flood-stderr": flood_stderr}
AT_MESSAGE |= {"garbage": garbage, "close-stdout": close_stdout}


def main(way: str) -> None:
    AT_START.get(way, lambda: None)()
    for line in sys.stdin.buffer:
        message = json.loads(line)
        AT_MESSAGE.get(way, lambda message: None)(message)
        if "id" in message and "method" in message:
            write_out({"id": message["id"], "result": {"userAgent": "miniature/1"} if message["method"] == "initialize" else {}})
    if way == "ignore-sigterm":
        time.sleep(600)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
