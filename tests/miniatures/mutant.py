"""A server that is wrong in what no recording holds: `python mutant.py WAY`, in the place of fake-codex, which it starts.

It passes lines on in both directions and breaks one thing on the way: ids, exit statuses, the order of answers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

FAKE = str(Path(sys.executable).with_name("fake-codex"))


def other_ids(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Answers have the id as a string, or as a number if it was one."""
    if "method" in message:
        return [message]
    old = message["id"]
    return [message | {"id": str(old) if isinstance(old, int) else 0}]


def twice(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Every answer comes twice."""
    return [message] if "method" in message else [message, message]


class Lost:
    """Only the first answer to an id comes."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def __call__(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        if "method" in message:
            return [message]
        key = json.dumps(message["id"])
        again = key in self.seen
        self.seen.add(key)
        return [] if again else [message]


class Late:
    """An answer comes when the next one is due, after it; the last one when nothing more is to come."""

    def __init__(self) -> None:
        self.held: list[dict[str, Any]] = []

    def __call__(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        if "userAgent" in str(message):
            return [message]
        self.held.append(message)
        if len(self.held) < 2:
            return []
        out, self.held = self.held[::-1], []
        return out


WAYS: dict[str, Any] = {
    "other-ids": lambda: other_ids,
    "answers-twice": lambda: twice,
    "one-answer-an-id": Lost,
    "answers-out-of-order": Late,
}
WAYS |= {"exit-status": lambda: lambda message: [message], "unterminated-line-lost": lambda: lambda message: [message]}
WAYS |= {"survives-invalid-utf8": lambda: lambda message: [message]}
WAYS |= {"answers-what-it-should-pass-over": lambda: lambda message: [message]}


def is_call(data: bytes) -> bool:
    """Tell whether a client line is a request, or the `initialized` notification."""
    try:
        message = json.loads(data.decode())
    except ValueError:
        return False
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        return False
    return (type(message.get("id")) in (int, str) and message["id"] != 2**63) or message == {"method": "initialized"}


def write_out(message: object) -> None:
    data = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


def main(way: str) -> int:
    change = WAYS[way]()
    child = subprocess.Popen([FAKE, "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def forward() -> None:
        for data in sys.stdin.buffer:
            if way == "answers-what-it-should-pass-over" and not is_call(data):
                write_out({"error": {"code": -32700, "message": "Parse error"}, "id": None})
            if way == "unterminated-line-lost" and not data.endswith(b"\n"):
                break
            if way == "survives-invalid-utf8":
                data = data.decode("utf-8", "replace").encode()
            child.stdin.write(data)
            child.stdin.flush()
        child.stdin.close()

    threading.Thread(target=forward, daemon=True).start()
    for raw in child.stdout:
        for message in change(json.loads(raw)):
            write_out(message)
    status = child.wait()
    return 3 if way == "exit-status" else status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
