"""Raw bytes through the HTTP recorder to a backend: all pass, nothing ends it or its recording, and the cassette can be read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random

from codex_replay.core.cassette.frames import BadLine, parse_line
from codex_replay.shell.http.backend_process import BackendProcess
from tests.fuzz.http_wire import exchange, raw

RECORDER = (sys.executable, "-c", "from codex_replay.cli.main import main; main()")


class Target:
    """A recorder as a program, in front of a backend; `recorder` is its command before `record`."""

    total, share = 20_000, 600

    def __init__(self, recorder: Sequence[str] = RECORDER) -> None:
        self._recorder = recorder

    def __enter__(self) -> Target:
        self._folder = tempfile.TemporaryDirectory(prefix="codex-replay-fuzz-")
        self._read = 0  # bytes of the cassette that were read
        self._out = Path(self._folder.name, "fuzz.ndjson")
        self._stack = ExitStack()
        upstream = self._upstream()
        self._said = Path(self._folder.name, "stderr").open("w+b")
        argv = [*self._recorder, "record", "--upstream", upstream, "--out", str(self._out)]
        self._process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=self._said)
        assert self._process.stdout is not None
        self._url: str = json.loads(self._process.stdout.readline())["url"]
        return self

    def _upstream(self) -> str:
        """Start what is behind the recorder, and return its URL."""
        self._backend = self._stack.enter_context(BackendProcess(options=["--ledger-requests", "50"]))
        return self._backend.url

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()
        self._stack.close()
        self._said.close()
        self._folder.cleanup()

    def case(self, random: Random) -> bytes:
        """Return bytes for the port."""
        return raw(random)

    def run(self, data: bytes) -> str | None:
        """Send them on a connection of their own."""
        answer = exchange(self._url, data)
        return answer if isinstance(answer, str) else None

    def pids(self) -> list[int]:
        """Return the recorder and its backend."""
        return [self._process.pid, self._backend.pid]

    def wrong(self) -> str | None:
        """Return a traceback, the end of the recording, or a cassette that cannot be read."""
        size = os.fstat(self._said.fileno()).st_size
        said = os.pread(self._said.fileno(), size, 0).decode("utf-8", "replace")
        for sign in ("Traceback", "could not be recorded", "Recording stops here", "exception"):
            if sign in said:
                return said[said.index(sign) :][:600]
        with self._out.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._read += len(line)
                try:
                    parse_line(line)
                except BadLine as error:
                    return f"the cassette has a line that cannot be read: {error}"
        return None
