"""Raw bytes to the backend's port: it answers in HTTP or closes, and fails at nothing."""

from __future__ import annotations

import contextlib
import tempfile
from random import Random

from codex_replay.shell.http.backend_process import BackendProcess
from tests.fuzz.http_wire import exchange, raw


class Target:
    """A backend with a small ledger, so that its memory can be flat."""

    total, share = 50_000, 1500

    def __enter__(self) -> Target:
        self._seen = 0
        # In an empty folder: a path of recordings that was mutated to "." would load those of the checkout.
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            self.backend = BackendProcess(options=["--ledger-requests", "50"])
        return self

    def __exit__(self, *_: object) -> None:
        self.backend.close()

    def case(self, random: Random) -> bytes:
        """Return bytes for the port."""
        return raw(random)

    def run(self, data: bytes) -> str | None:
        """Send them on a connection of their own."""
        answer = exchange(self.backend.url, data)
        if isinstance(answer, str):
            return answer
        if answer and not answer.startswith(b"HTTP/1.1 "):
            return f"the answer is no HTTP: {answer[:100]!r}"
        return f"it failed: {answer[:300]!r}" if b"HTTP/1.1 500 " in answer else None

    def pids(self) -> list[int]:
        """Return the backend."""
        return [self.backend.pid]

    def wrong(self) -> str | None:
        """Return a bug that the backend reports of itself."""
        lines = [line for line in self.backend.stderr().splitlines() if not line.startswith(("Refused ", "No further "))]
        new, self._seen = lines[self._seen :], len(lines)
        return new[0] if new else None
