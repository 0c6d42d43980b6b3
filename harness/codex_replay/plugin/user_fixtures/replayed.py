"""Find the recorded messages that a client did not send, and the messages of the client that are not in the cassette.

A client may kill the fake codex, so that the fake codex cannot report which messages are missing. Therefore, after the
test, the client's messages are sent to fake-codex once more. When it gets the messages again, fake-codex reports the
differences as JSON (`FAKE_CODEX_ENDING`).
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

_SECONDS = 1.0  # for what a client that still runs has written last


class Differences(NamedTuple):
    """The differences between the messages of a client and its cassettes, one sentence each.

    `problems` are the missing frames, and the client's frames that match no recorded frame. `notes` are the requests that
    were answered although their content differs from the recording.
    """

    problems: list[str]
    notes: list[str]


class Replays:
    """The cassettes of one test. The key of each cassette is the shell command that starts fake-codex with it."""

    def __init__(self, program: str, folder: Path) -> None:
        """`program` is the command of fake-codex, which writes its reports into `folder`."""
        self._program = program
        self._ending = folder / "ending.ndjson"
        self._starts: dict[str, tuple[Mapping[str, str], bool]] = {}

    def __len__(self) -> int:
        return len(self._starts)

    def add(self, start: str, env: Mapping[str, str], partial: bool) -> None:
        """Store the cassette settings for later starts of fake-codex; with `partial`, the client may leave frames out."""
        self._starts[start] = (dict(env), partial)

    def differences(self, wire: Callable[[], list[dict[str, Any]]], last: str, seconds: float = _SECONDS) -> Differences:
        """Return the differences between the messages of the client and the recorded messages.

        `last` is the shell command for the last cassette that the test set. If a client still runs and has problems, wait
        up to `seconds` for its next messages.
        """
        deadline = time.monotonic() + seconds
        entries = wire()
        while (found := self._judged(entries, last)).problems and any(_runs(entry) for entry in entries):
            before = len(entries)
            while len(entries := wire()) == before:
                if time.monotonic() > deadline:
                    return found
                time.sleep(0.01)
        return found

    def _judged(self, entries: Sequence[dict[str, Any]], last: str) -> Differences:
        found = Differences([], [])
        runs = [entry for entry in entries if "run" in entry and "app-server" in entry["argv"][3:]]
        for run in runs:
            if run["argv"][1] in self._starts:
                sent = [entry["got"] for entry in entries if "got" in entry and entry["of"] == run["pid"]]
                for all_of_kind, more in zip(found, self._misses(run["argv"], sent), strict=True):
                    all_of_kind += more
        unstarted = last in self._starts and not any(run["argv"][1] == last for run in runs)
        if unstarted and self._misses(["-c", last, self._program, "app-server"], []).problems:
            found.problems.append("no client started the app-server, so no recorded frame was sent")
        return found

    def _misses(self, argv: Sequence[str], sent: Sequence[str]) -> Differences:
        env, partial = self._starts[argv[1]]
        self._ending.unlink(missing_ok=True)
        done = subprocess.run(
            [self._program, *argv[3:]],
            input="".join(line + "\n" for line in sent).encode("utf-8", "surrogateescape"),
            env={**env, "FAKE_CODEX_ENDING": str(self._ending)},
            capture_output=True,
            check=False,
        )
        try:
            ending = json.loads(self._ending.read_bytes())
        except FileNotFoundError:  # it has not begun to replay, and its stderr has the reason
            lines = done.stderr.decode("utf-8", "replace").splitlines() if done.returncode else []
            return Differences([line.removeprefix("fake-codex: ") for line in lines], [])
        problems = [line for sentence in ending["unmatched"] for line in sentence.splitlines()]
        for each in () if partial else ending["left_out"]:
            fate = "came from the client, but did not match (see above)" if each["refused"] else "never came from the client"
            problems.append(f"frame {each['n']} of {ending['cassette']} {fate}: {each['message']}")
        return Differences(problems, [each["text"] for each in ending["otherwise"]])


def _runs(entry: Mapping[str, Any]) -> bool:
    """Return True if one particular start of fake-codex is still running."""
    if "run" not in entry:
        return False
    try:
        os.kill(entry["pid"], 0)
    except OSError:
        return False
    return True
