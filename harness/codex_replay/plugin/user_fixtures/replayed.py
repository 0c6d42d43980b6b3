"""What a client left out of the cassette that `fake_codex` replayed to it, or said beside it, in fake-codex's own sentences.

A client may end its server in a way that lets it tell nothing, and may throw away its stderr. So what each start was sent is
played to fake-codex once more, which says of it what it would have said at the end of its input.
"""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

#: How fake-codex says of a recorded frame that the client has not sent it (`fake_server.app_server`).
_NEVER = (" never came from the client: ", " more frames never came")
_SECONDS = 1.0  # for what a client that still runs has written last


class Replays:
    """The cassettes of one test, by the shell command with which a start that has one begins."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._starts: dict[str, tuple[Mapping[str, str], bool]] = {}

    def __len__(self) -> int:
        return len(self._starts)

    def add(self, start: str, env: Mapping[str, str], partial: bool) -> None:
        """Take note of what holds for the starts that come now; with `partial` frames may be left out."""
        self._starts[start] = (dict(env), partial)

    def problems(self, wire: Callable[[], list[dict[str, Any]]], last: str) -> list[str]:
        """Return what is wrong with what was sent; `last` is the command that holds at the end."""
        deadline = time.monotonic() + _SECONDS
        entries = wire()
        while (found := self._judged(entries, last)) and any(_runs(entry) for entry in entries):
            before = len(entries)
            while len(entries := wire()) == before:
                if time.monotonic() > deadline:
                    return found
                time.sleep(0.01)
        return found

    def _judged(self, entries: Sequence[dict[str, Any]], last: str) -> list[str]:
        found = []
        runs = [entry for entry in entries if "run" in entry and "app-server" in entry["argv"][3:]]
        for run in runs:
            if run["argv"][1] in self._starts:
                sent = [entry["got"] for entry in entries if "got" in entry and entry["of"] == run["pid"]]
                found += self._told(run["argv"], sent)
        unstarted = last in self._starts and not any(run["argv"][1] == last for run in runs)
        if unstarted and self._told(["-c", last, self._program, "app-server"], []):
            found.append("no client has started the app-server, so none of the recorded frames was sent")
        return found

    def _told(self, argv: Sequence[str], sent: Sequence[str]) -> list[str]:
        env, partial = self._starts[argv[1]]
        said = subprocess.run(
            [self._program, *argv[3:]],
            input="".join(line + "\n" for line in sent).encode("utf-8", "surrogateescape"),
            env={**env, "FAKE_CODEX_MATCH": "method"},  # as by default, without the notes of what may differ
            capture_output=True,
            check=False,
        )
        lines = [line.removeprefix("fake-codex: ") for line in said.stderr.decode("utf-8", "replace").splitlines()]
        if said.returncode == 0:
            return []
        return [line for line in lines if not (partial and any(words in line for words in _NEVER))]


def _runs(entry: Mapping[str, Any]) -> bool:
    """Tell whether the start of an entry still runs; None does of any other entry."""
    if "run" not in entry:
        return False
    try:
        os.kill(entry["pid"], 0)
    except OSError:
        return False
    return True
