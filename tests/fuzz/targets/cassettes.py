"""Mutated cassettes to every verb that reads one, and to fake-codex: each ends in a sentence and in time, none in a traceback."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

from codex_replay.cli.main import main
from tests.fuzz.frame import HANG
from tests.fuzz.mutate import damaged, json_text

FAKE = str(Path(sys.executable).with_name("fake-codex"))
RECORDED = Path(__file__).parents[3] / "cassettes"
INITIALIZE = b'{"id":0,"method":"initialize","params":{"clientInfo":{"name":"c","version":"1"}}}\n'
_MOST = 40  # lines of a sample
_ONCE = 25  # of so many cases one is given to fake-codex, which is a process of its own


def samples(*globs: str, most: int = 6) -> list[list[bytes]]:
    """Return the lines of recordings, of each glob the first ones."""
    found = [path for name in globs for path in sorted(RECORDED.glob(name))[:most]]
    return [path.read_bytes().splitlines(keepends=True) for path in dict.fromkeys(found)]


def mutated(random: Random, samples: Sequence[list[bytes]]) -> bytes:
    """Return a recording of which some lines are other ones."""
    lines = list(random.choice(samples))
    lines = lines[:1] + lines[1:-1][: random.randrange(1, _MOST)] + lines[-1:]
    for _ in range(random.choice((1, 1, 2, 3))):
        at, how = random.randrange(len(lines)), random.random()
        if how < 0.6:
            with contextlib.suppress(ValueError, RecursionError):  # a line that was damaged before
                lines[at] = json_text(random, json.loads(lines[at])) + b"\n"
        elif how < 0.8:
            lines[at] = damaged(random, lines[at])
        elif how < 0.9:
            lines.insert(at, random.choice(lines))
        else:
            lines = lines[:at] or [b"\n"]
    return b"".join(lines)


class Target:
    """The verbs in this process."""

    total, share = 10_000, 60

    def __enter__(self) -> Target:
        self._folder = tempfile.TemporaryDirectory(prefix="codex-replay-fuzz-")
        names = ("app_server/test_v2/text_turn.ndjson", "app_server/test_v1/*.ndjson", "backend/**/*.ndjson", "**/*.ndjson")
        self._samples = samples(*names)
        self._place = Path(self._folder.name, "fuzz.ndjson")
        self._sample = Path(self._folder.name, "sample.ndjson")
        self._sample.write_bytes(b"".join(self._samples[0]))
        self._number = 0
        # One for all: click keeps each stream that it has written to.
        self._printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def case(self, random: Random) -> bytes:
        """Return a cassette of which some lines are other ones."""
        return mutated(random, self._samples)

    def run(self, data: bytes) -> str | None:
        """Give it to each verb, and now and then to fake-codex."""
        self._place.write_bytes(data)
        path, out = str(self._place), str(Path(self._folder.name, "out"))
        self._number += 1
        for words in (
            ["cassette", "lint", path],
            ["cassette", "show", path],
            ["cassette", "show", "--full", path],
            ["cassette", "show", "--html", out + ".html", path],
            ["cassette", "stats", path],
            ["cassette", "diff", path, str(self._sample)],
            ["cassette", "redact", path, "--force", "--out", out + ".ndjson"],
            ["replay", path, "--app-server", "/bin/false"],
        ):
            if (wrong := self._verb(words)) is not None:
                return wrong
        return self._fake() if self._number % _ONCE == 1 else None

    def _verb(self, words: list[str]) -> str | None:
        begun = time.process_time()  # not of the clock: the machine may have other work
        self._printed.seek(0)
        self._printed.truncate()
        name = " ".join(words[:2])
        with contextlib.redirect_stdout(self._printed), contextlib.redirect_stderr(self._printed):
            try:
                main(words)
            except SystemExit:
                pass
            except Exception as error:
                return f"{name}: {error!r}"
        self._printed.flush()
        if b"Traceback" in (printed := self._printed.buffer.getvalue()):  # type: ignore[attr-defined]
            return f"{name}: {printed[-600:].decode()}"
        if (took := time.process_time() - begun) > HANG:
            return f"{name} took {took:.1f} s"
        return None

    def _fake(self) -> str | None:
        env = {"PATH": os.environ["PATH"], "HOME": self._folder.name, "FAKE_CODEX_CASSETTE": str(self._place)}
        try:
            done = subprocess.run([FAKE, "app-server"], input=INITIALIZE, capture_output=True, env=env, timeout=6 * HANG)
        except subprocess.TimeoutExpired:
            return "fake-codex hangs"
        if b"Traceback" in done.stderr or done.returncode not in (0, 1, 2):
            return f"fake-codex ended with {done.returncode}: {done.stderr[-600:].decode('utf-8', 'replace')}"
        return None

    def pids(self) -> list[int]:
        """Return this process."""
        return [os.getpid()]

    def wrong(self) -> str | None:
        """Return None: a verb that fails says so at once."""
        return None
