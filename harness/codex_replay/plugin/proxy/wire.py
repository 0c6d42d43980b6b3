"""The messages between a proxy and its app-servers.

A tap (a program between proxy and app-server) records the messages of each app-server in a file, the ledger, and this
module merges the ledgers.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from codex_replay.core.wire.jsonrpc import kind
from codex_replay.shell.process.subject import runs

#: A line of `wire_tap --timed` that has a frame in it.
_FRAME = re.compile(rb'\{"t": ?([0-9.]+), ?"(got|said)": ?(".*")\}')
#: The line that it writes at the end of the app-server.
_END = re.compile(rb'\{"t": ?([0-9.]+), ?"ended": ?-?[0-9]+\}')
#: Seconds between two looks at the ledgers.
LOOK = 0.01


@dataclass(eq=False)
class WireFrame:
    """One line of JSON-RPC between a proxy and its app-server.

    `t` is the time in seconds of the monotonic clock, `child` is the process id of the tap, `sender` is "client" (the proxy) or
    "server".

    `taken` is the line as an undecoded JSON string; the properties `raw` and `value` decode it when they are used.
    """

    t: float
    child: str
    sender: str
    taken: bytes

    @cached_property
    def raw(self) -> str:
        """The line of JSON-RPC as it was sent."""
        return str(json.loads(self.taken))

    @cached_property
    def value(self) -> Any:
        """The decoded line; None if it is not JSON."""
        try:
            return json.loads(self.raw)
        except ValueError:
            return None

    @cached_property
    def kind(self) -> str:
        """The JSON-RPC kind of the line: request, notification, response, error or other."""
        return kind(self.value)

    def child_runs(self) -> bool:
        """Return True if the app-server that the frame belongs to is still running."""
        return runs(int(self.child))


class Wire:
    """Reads the new lines of each ledger in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, int] = {}
        self._lock = threading.Lock()
        #: All frames so far, in the order of their passing.
        self.frames: list[WireFrame] = []
        #: The time at which each child ended, in seconds of the monotonic clock.
        self.ended: dict[str, float] = {}

    def update(self) -> list[WireFrame]:
        """Read the new frames, add them to `frames` and return them."""
        with self._lock:
            return self._update()

    def until(self, come: Callable[[list[WireFrame]], bool], seconds: float, frames: list[WireFrame] | None = None) -> bool:
        """Add new frames to `frames` (default: a new list) until the function `come` returns True for the list.

        Return False after `seconds`.
        """
        frames = [] if frames is None else frames
        deadline = time.monotonic() + seconds
        while True:
            frames += self.update()
            if come(frames):
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(LOOK)

    def _update(self) -> list[WireFrame]:
        new: list[WireFrame] = []
        for name in sorted(name for name in os.listdir(self.folder) if name.startswith("wire.")):
            with open(self.folder / name, "rb", buffering=0) as file:
                file.seek(self._read.get(name, 0))
                data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            self._read[name] = self._read.get(name, 0) + len(whole)
            for line in whole.splitlines():
                if found := _FRAME.fullmatch(line):
                    sender = "client" if found[2] == b"got" else "server"
                    new.append(WireFrame(float(found[1]), name.removeprefix("wire."), sender, found[3]))
                elif found := _END.fullmatch(line):
                    self.ended[name.removeprefix("wire.")] = float(found[1])
        new.sort(key=lambda frame: frame.t)
        self.frames += new
        return new

    def model_calls(self, marker: str) -> list[dict[str, Any]]:
        """Return the requests to the scripted model that contain the word `marker`, read from the ledgers of all app-servers."""
        found: list[dict[str, Any]] = []
        for path in sorted(self.folder.glob("ledger.*")):
            entries = [json.loads(line) for line in path.read_bytes().splitlines() if line]
            found += [entry for entry in entries if marker in json.dumps(entry.get("body"), ensure_ascii=False)]
        return found
