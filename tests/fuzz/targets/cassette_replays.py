"""Mutated recordings of HTTP to a backend that answers with them: it refuses or plays each, and fails at none."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

from click.testing import CliRunner

from codex_replay.cli.main import main
from codex_replay.shell.http.backend_process import PREFIX, BackendError
from tests.fuzz.http_wire import exchange
from tests.fuzz.targets import backend_requests, cassettes

_ONCE = 20  # of so many cases one is also played as a client


class Target(backend_requests.Target):
    """A backend, and the recordings that it is given one after the other."""

    total, share = 10_000, 150

    def __enter__(self) -> Target:
        super().__enter__()
        self._folder = tempfile.TemporaryDirectory(prefix="codex-replay-fuzz-")
        self._path = Path(self._folder.name, "fuzz.ndjson")
        self._number = 0
        found = cassettes.samples("app_server/**/*.ndjson", most=80)
        self._samples = [[line for line in lines if b'"seam":"rpc"' not in line[:64]] for lines in found]
        return self

    def __exit__(self, *problem: object) -> None:
        super().__exit__(*problem)
        self._folder.cleanup()

    def case(self, random: Random) -> bytes:
        """Return a recording of which some lines are other ones."""
        return cassettes.mutated(random, self._samples)

    def run(self, data: bytes) -> str | None:
        """Load it, and ask for what it has."""
        self._path.write_bytes(data)
        self._number += 1
        try:
            self.backend.call("PUT", PREFIX + "default/cassette", {"path": str(self._path), "over": ["method"]})
        except BackendError as error:
            return str(error) if "did not answer" in str(error) else None
        for method in ("POST", "POST", "GET"):
            head = [f"{method} /v1/responses HTTP/1.1", "host: localhost", "content-length: 2", "content-type: application/json"]
            answer = exchange(self.backend.url, "\r\n".join([*head, "connection: close", "", ""]).encode() + b"{}")
            if isinstance(answer, str):
                return answer
            if b"The backend itself failed" in answer:
                return f"it failed: {answer[:300]!r}"
        if self._number % _ONCE == 1:
            words = ["replay", str(self._path), "--backend", self.backend.url, "--timeout", "1"]
            found = CliRunner().invoke(main, words)
            if found.exception is not None and not isinstance(found.exception, SystemExit):
                return f"replay --backend: {found.exception!r}"
        return None
