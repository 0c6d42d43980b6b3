"""One server under test: a `Client` that also knows how its server was started, and which settings the case declared."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from codex_replay.core.redact.redactor import Redactor
from codex_replay.core.text.numbers import plural
from codex_replay.plugin.app_server.upstream import RecordedUpstream
from codex_replay.plugin.base.checking import keeps_experimental
from codex_replay.plugin.base.for_versions import value_for
from codex_replay.shell.rpc.client import Client, SubjectFailure
from codex_replay.shell.rpc.progress import progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codex_replay.shell.http.backend_process import BackendSession

T = TypeVar("T")

CLIENT_INFO = {"name": "codex-replay", "title": None, "version": "1.0.0"}


class Server(Client):
    """A conversation with the app-server under test.

    `work` is the working directory of the server, and `version` is its Codex version, or "unknown".
    """

    work: str
    version: str
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
    #: The version whose values `by_version` chooses; "" for the server's own, unless versions are compared.
    dialect: ClassVar[str] = ""

    def by_version(self, values: Mapping[str, T]) -> T:
        """Return the value in `values`, keyed by Codex version, of the newest version that is not newer than the server."""
        return value_for(values, self.dialect or self.version)

    def initialize(self, *, experimental: bool = False, **client_info: Any) -> Any:
        """Do the handshake (`initialize` and `initialized`), and return the result of `initialize`.

        With `experimental`, the client declares the capability experimentalApi, if the Codex version requires the
        capability.
        """
        __tracebackhide__ = True
        asked = {"capabilities": {"experimentalApi": True}} if experimental and keeps_experimental(self.version) else {}
        result = self.request("initialize", {"clientInfo": {**CLIENT_INFO, **client_info}, **asked, **self.opening})
        self.notify("initialized")
        return result

    def wait_exit(self) -> int:
        """Wait, with stdin open, until the server exits by itself; return its exit status."""
        __tracebackhide__ = True
        status = self.process.wait(self.timeout)
        if status is None:
            raise SubjectFailure(
                self.report_on(f"{progress(self.messages())}: the server did not exit within {self.timeout:g} s")
            )
        return status

    def signal(self, number: int) -> None:
        """Send the server a signal. Only a real server can be sent a signal: a recording contains no signals."""
        os.kill(self.process.pid, number)

    def still_runs(self, seconds: float) -> bool:
        """Return True if the server is still running after the given number of seconds."""
        return self.process.wait(seconds) is None

    def close_stdout(self) -> None:
        """Stop reading the server's stdout.

        Call `close_stdout` only for a real server: a replayed recording does not change if the client stops reading.
        """
        self.process.close_stdout()

    def wait_upstream(self, requests: int) -> None:
        """Wait until the scripted model has answered `requests` turns in total.

        A replay has no model, so `wait_upstream` returns immediately.
        """
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
