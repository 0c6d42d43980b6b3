"""One server under test: a `Client` that also knows how the server was started and what the case declared about it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from codex_replay.core.redact.redactor import Redactor
from codex_replay.core.text.plural import plural
from codex_replay.plugin.app_server.upstream import RecordedUpstream
from codex_replay.shell.rpc.client import Client, SubjectFailure
from codex_replay.shell.rpc.progress import progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codex_replay.shell.http.backend_process import BackendSession

CLIENT_INFO = {"name": "codex-replay", "title": None, "version": "1.0.0"}


class Server(Client):
    """A conversation with the app-server under test. `work` is its working directory."""

    work: str
    live: bool
    bad_input = False
    cut: int | None = None
    racy = ""
    ends: int | None = 0
    refused = False
    cassette: Path
    redactor: Redactor
    upstream: BackendSession | None = None
    recorded: RecordedUpstream | None = None
    behind: Mapping[str, Any]
    #: What every client sends at initialize besides its clientInfo; empty unless versions are compared (see kept_runs).
    opening: ClassVar[Mapping[str, Any]] = {}

    def initialize(self, **client_info: Any) -> Any:
        """Do the handshake, initialize and initialized, and return the result of the former."""
        __tracebackhide__ = True
        result = self.request("initialize", {"clientInfo": {**CLIENT_INFO, **client_info}, **self.opening})
        self.notify("initialized")
        return result

    def wait_exit(self) -> int:
        """Wait, with its stdin open, until the server exits by itself; return its exit status."""
        __tracebackhide__ = True
        status = self.process.wait(self.timeout)
        if status is None:
            raise SubjectFailure(
                self.report_on(f"{progress(self.messages())}: the server did not exit within {self.timeout:g} s")
            )
        return status

    def signal(self, number: int) -> None:
        """Send the server a signal. Only a live server can get one, because a recording has no signals."""
        os.kill(self.process.pid, number)

    def still_runs(self, seconds: float) -> bool:
        """Return True if the server is still running after this many seconds."""
        return self.process.wait(seconds) is None

    def close_stdout(self) -> None:
        """Stop reading the server's stdout. Only a live server can notice this; a recording cannot show it."""
        self.process.close_stdout()

    def end_input(self) -> None:
        """End the server's stdin without waiting for its end."""
        self.process.close_stdin()

    def wait_upstream(self, requests: int) -> None:
        """Wait until the model has answered this many turns in total; a replay has no model, so it returns at once."""
        __tracebackhide__ = True
        wanted = requests
        while self.upstream is not None:
            ledger = self.upstream.ledger(requests=wanted, seconds=self.timeout)
            others = sum(entry["method"] != "POST" for entry in ledger)
            if len(ledger) - others >= requests:
                return
            if len(ledger) < wanted:
                answered = f"the model has answered {len(ledger) - others} of {plural(requests, 'request')}"
                raise SubjectFailure(
                    self.report_on(
                        f"{progress(self.messages())}; {answered}: the next request did not come within {self.timeout:g} s"
                    )
                )
            wanted = requests + others
