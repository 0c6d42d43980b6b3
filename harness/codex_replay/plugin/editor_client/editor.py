"""Start and control one editor under test.

The harness controls the editor with the commands of docs/editor-client.md, and reads its messages to the user and to the
server.

The editor writes its reports to the user on stdout; the methods `turn`, `wait` and `shown` read these reports. The methods
`sent`, `requests` and `answers` read the messages between the editor and its server (module `wire`). The method `wait`
returns each report only once. Every failure raises a `SubjectFailure` that quotes the messages to the user and to the
server.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codex_replay.core.text.last_words import last_words
from codex_replay.core.wire.ndjson import LineSplitter
from codex_replay.plugin.editor_client.wire import Wire, short
from codex_replay.shell.process.subject import CannotStart, Disconnected, Process
from codex_replay.shell.rpc.client import SubjectFailure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from codex_replay.shell.http.backend_process import BackendSession

KINDS = ("text", "reasoning", "output", "diff", "plan", "approval", "error", "end")
#: The number of stderr lines to show: Node.js writes a dozen below the error message.
STDERR = 20
#: Seconds that an editor has for its exit after a failed case.
EXIT = 1.0


@dataclass(frozen=True, slots=True)
class Turn:
    """The result of one prompt: how the turn ended, and all reports of the editor to the user until then, in order."""

    status: str
    reports: list[dict[str, Any]]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the editor's reports of one kind."""
        return [report for report in self.reports if report["report"] == kind]

    @property
    def text(self) -> str:
        """The model's answer, as the editor reported it to the user."""
        return "".join(report["text"] for report in self.of("text"))

    @property
    def output(self) -> str:
        """Return the output of commands and file changes that the editor reported."""
        return "".join(report["text"] for report in self.of("output"))

    @property
    def errors(self) -> str:
        """All errors that the editor reported to the user, one per line."""
        return "\n".join(str(report["message"]) for report in self.of("error"))


class Editor(Wire):
    """One run of an editor.

    `project` is the folder in which the editor is started. `ledger_path` is the file in which the server of the editor
    records all messages.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        project: Path,
        ledger_path: Path,
        wait: float,
        version: str,
        upstream: BackendSession | None = None,
    ) -> None:
        __tracebackhide__ = True
        super().__init__(ledger_path, wait, version)
        self.argv = argv
        self.project = project
        self.reports: list[dict[str, Any]] = []
        self.upstream = upstream
        self._splitter = LineSplitter()
        self._changed = threading.Condition()
        self._taken: set[int] = set()
        self._since = 0
        self._ended = False
        self._nonsense: list[str] = []
        try:
            self.process = Process(argv, env=env, cwd=str(project), on_stdout=self._on_stdout)
        except CannotStart as error:
            raise SubjectFailure(f"--editor-client: {error}") from None

    def _on_stdout(self, data: bytes) -> None:
        with self._changed:
            for line in self._splitter.feed(data) if data else [self._splitter.close()]:
                self._line(line)
            self._ended = self._ended or not data
            self._changed.notify_all()

    def _line(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            report = json.loads(line)
            if not isinstance(report, dict) or not isinstance(report.get("report"), str):
                raise ValueError
        except ValueError:
            self._nonsense.append(line[:200].decode("utf-8", "backslashreplace").rstrip())
        else:
            self.reports.append(report)

    # -- what the user does ------------------------------------------------------------------------------------------------

    def prompt(self, text: str) -> None:
        """Give the editor a prompt."""
        __tracebackhide__ = True
        self._since = len(self.reports)
        self._do(do="prompt", text=text)

    def decide(self, approval: Mapping[str, Any], decision: str) -> None:
        """Answer an approval that the editor has reported: accept, decline or dismiss."""
        __tracebackhide__ = True
        self._do(do="decide", id=approval["id"], decision=decision)

    def interrupt(self) -> None:
        """Interrupt the turn."""
        __tracebackhide__ = True
        self._do(do="interrupt")

    def turn(self, prompt: str = "Hello") -> Turn:
        """Send a prompt, wait until its turn has ended, and return the turn."""
        __tracebackhide__ = True
        self.prompt(prompt)
        return self.end()

    def close(self) -> int:
        """Shut the editor down; return its exit status. Raises `SubjectFailure` if the editor does not exit."""
        __tracebackhide__ = True
        self._do(do="shutdown")
        return self.ended()

    def hang_up(self) -> int:
        """Close the editor's stdin without a shutdown; return its exit status."""
        __tracebackhide__ = True
        self.process.close_stdin()
        return self.ended()

    def ended(self) -> int:
        """Wait until the editor exits; return its exit status."""
        __tracebackhide__ = True
        status = self.process.wait(self.timeout)
        if status is None:
            self.timed_out = True
            raise SubjectFailure(self.report_on(f"{self.cause()}: the editor did not end within {self.timeout:g} s"))
        self.process.output_ended.wait(self.timeout)
        return status

    def _do(self, **command: Any) -> None:
        __tracebackhide__ = True
        try:
            self.process.write(json.dumps(command).encode() + b"\n", self.timeout)
        except Disconnected as gone:
            raise SubjectFailure(self._early_end(f"The command {command} could not be sent to the editor: {gone}")) from None

    # -- what the user sees ------------------------------------------------------------------------------------------------

    def wait(self, kind: str, /, **fields: Any) -> dict[str, Any]:
        """Wait for the next report of the editor with the given kind and fields; return each report only once."""
        __tracebackhide__ = True

        def found() -> dict[str, Any] | None:
            for at, report in enumerate(self.reports):
                if at not in self._taken and report["report"] == kind and all(report.get(k) == v for k, v in fields.items()):
                    self._taken.add(at)
                    return report
            return None

        named = "".join(f" with {key} {value!r}" for key, value in fields.items())
        report: dict[str, Any] = self._until(found, f"a report {kind!r}{named}", approval=kind == "approval")
        return report

    def end(self) -> Turn:
        """Wait until the turn has ended; return the turn with all reports since the prompt."""
        __tracebackhide__ = True
        last = self.wait("end")
        with self._changed:
            at = next(i for i, report in enumerate(self.reports) if report is last)
            return Turn(str(last.get("status")), self.reports[self._since : at])

    @property
    def shown(self) -> str:
        """The text of the answer that the editor has reported since the prompt."""
        with self._changed:
            return Turn("", self.reports[self._since :]).text

    def wait_shown(self, text: str) -> None:
        """Wait until the editor has shown exactly the given text since the prompt."""
        __tracebackhide__ = True
        self._until(lambda: self._text() == text or None, f"the text {text!r} (shown: {self.shown[:200]!r})")

    def _text(self) -> str:
        return Turn("", self.reports[self._since :]).text

    def _until(self, found: Any, what: str, approval: bool = False) -> Any:
        __tracebackhide__ = True
        deadline = time.monotonic() + self.timeout
        with self._changed:
            while True:
                value = found()
                if value is not None:
                    return value
                left = deadline - time.monotonic()
                if self._ended or left <= 0:
                    break
                self._changed.wait(left)
        if self._ended:
            raise SubjectFailure(self._early_end(f"The case was waiting for {what}"))
        self.timed_out = True
        cause = self.cause(sum(report["report"] == "approval" for report in self.reports) if approval else None)
        raise SubjectFailure(self.report_on(f"{cause}: {what} did not come within {self.timeout:g} s"))

    def _early_end(self, what: str) -> str:
        """Return the error text for an editor that ended too early: exit status, last line on stderr, and the description
        `report_on`.
        """
        status = self.process.wait(2.0)  # worth the wait: the status and stderr are the cause
        if status is None:
            return self.report_on(f"The editor closed its stdin or stdout, but is still running. {what}")
        how = f"ended with status {status}" if status >= 0 else f"was ended by signal {-status}"
        return f"The editor {how} too early{last_words(self.process.stderr_tail(60))}\n{self.report_on(what)}"

    # -- for people ----------------------------------------------------------------------------------------------------------

    def last_stderr(self) -> str:
        """End the editor after a failure: close its stdin, and give it a moment to exit. Return what it then wrote to stderr.

        Some programs report an error only when they exit, such as an exception that no task of asyncio has awaited.
        """
        since = self.process.stderr_bytes
        self.process.close_stdin()
        self.process.wait(EXIT)
        return "\n".join(self.process.stderr_tail(60, since))

    def stop(self) -> None:
        """Stop the editor and all processes that it started, immediately."""
        self.process.stop(grace=0.2)
        self.close_gates()

    def report_on(self, what: str) -> str:
        """Return the sentence `what`, the state of the editor, and the latest messages to the user and to the server."""
        status = self.process.status
        closed = ", but has closed its stdout" if self._ended else ""
        state = f"The editor is still running{closed}." if status is None else f"The editor ended with status {status}."
        return f"{what}. {state}\n{self.traffic(8)}"

    def traffic(self, most: int = 30) -> str:
        """Return the latest messages to the user and to the server."""
        with self._changed:
            reports = [short(json.dumps(report, ensure_ascii=False)) for report in self.reports[-most:]]
            nonsense = [f"not a report: {line!r}" for line in self._nonsense[:3]]
        message = self.process.stderr_tail(STDERR)
        parts = [
            ("What the user saw:", [*reports, *nonsense]),
            ("Messages on the wire:", self.passed(most)),
            ("stderr:", message),
        ]
        return "\n".join(line for head, lines in parts for line in [head, *(f"    {each}" for each in lines or ["(nothing)"])])
