"""One editor under test: started by its command, driven by the lines of docs/editor-client.md, seen from both of its ends.

What the user sees comes from the editor's own stdout (`turn`, `wait`, `shown`); what the server sees comes from a ledger that
the server in the editor's hand keeps (`sent`, `requests`, `answers`). A report is waited for and taken once; whatever fails
is a `SubjectFailure` with both views.
"""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.core.ndjson import LineSplitter
from harness.shell.client import SubjectFailure
from harness.shell.process import CannotStart, Gone, Process

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.shell.backend_process import BackendSession

KINDS = ("text", "reasoning", "output", "diff", "plan", "approval", "error", "end")


@dataclass(frozen=True, slots=True)
class Turn:
    """One prompt from the user's side: how it ended, and all that was reported until then, in order."""

    status: str
    reports: list[dict[str, Any]]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The reports of one kind."""
        return [report for report in self.reports if report["report"] == kind]

    @property
    def text(self) -> str:
        """The answer as the user sees it."""
        return "".join(report["text"] for report in self.of("text"))

    @property
    def output(self) -> str:
        """What commands and changes have printed."""
        return "".join(report["text"] for report in self.of("output"))

    @property
    def errors(self) -> str:
        """Everything that the user was told to have gone wrong, a line each."""
        return "\n".join(str(report["message"]) for report in self.of("error"))


class Editor:
    """One run of an editor. `project` is the folder that it is started in, `ledger_path` what its server takes down."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        project: Path,
        ledger_path: Path,
        wait: float,
        upstream: BackendSession | None = None,
    ) -> None:
        __tracebackhide__ = True
        self.argv = argv
        self.project = project
        self.timeout = wait
        self.reports: list[dict[str, Any]] = []
        self.upstream = upstream
        self._ledger_path = ledger_path
        self._splitter = LineSplitter()
        self._changed = threading.Condition()
        self._taken: set[int] = set()
        self._since = 0
        self._ended = False
        self._nonsense: list[str] = []
        self._gates: list[int] = []
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
        """Answer an approval that was reported: accept, decline or dismiss."""
        __tracebackhide__ = True
        self._do(do="decide", id=approval["id"], decision=decision)

    def interrupt(self) -> None:
        """Interrupt the turn."""
        __tracebackhide__ = True
        self._do(do="interrupt")

    def turn(self, prompt: str = "Hello") -> Turn:
        """Give a prompt and return the turn when it has ended."""
        __tracebackhide__ = True
        self.prompt(prompt)
        return self.end()

    def close(self) -> int:
        """Tell the editor to shut down; return its exit status. Raises `SubjectFailure` if it does not end."""
        __tracebackhide__ = True
        self._do(do="shutdown")
        return self.ended()

    def hang_up(self) -> int:
        """End the editor's stdin instead; return its exit status."""
        __tracebackhide__ = True
        self.process.close_stdin()
        return self.ended()

    def ended(self) -> int:
        """Wait for the editor's end and return its exit status."""
        __tracebackhide__ = True
        status = self.process.wait(self.timeout)
        if status is None:
            raise SubjectFailure(self.tell(f"The editor did not end within {self.timeout:g} s"))
        self.process.output_ended.wait(self.timeout)
        return status

    def _do(self, **command: Any) -> None:
        __tracebackhide__ = True
        try:
            self.process.write(json.dumps(command).encode() + b"\n", self.timeout)
        except Gone as gone:
            raise SubjectFailure(self.tell(f"The editor could not be told {command}: {gone}")) from None

    # -- what the user sees ------------------------------------------------------------------------------------------------

    def wait(self, kind: str, /, **fields: Any) -> dict[str, Any]:
        """Take and return the next report of a kind that has these fields."""
        __tracebackhide__ = True

        def found() -> dict[str, Any] | None:
            for at, report in enumerate(self.reports):
                if at not in self._taken and report["report"] == kind and all(report.get(k) == v for k, v in fields.items()):
                    self._taken.add(at)
                    return report
            return None

        named = "".join(f" with {key} {value!r}" for key, value in fields.items())
        report: dict[str, Any] = self._until(found, f"A report {kind!r}{named}")
        return report

    def end(self) -> Turn:
        """Wait for the end of the turn; return it with all reports since the prompt."""
        __tracebackhide__ = True
        last = self.wait("end")
        with self._changed:
            at = next(i for i, report in enumerate(self.reports) if report is last)
            return Turn(str(last.get("status")), self.reports[self._since : at])

    @property
    def shown(self) -> str:
        """The text that the user has seen since the prompt."""
        with self._changed:
            return Turn("", self.reports[self._since :]).text

    def wait_shown(self, text: str) -> None:
        """Wait until the user has seen just this text since the prompt."""
        __tracebackhide__ = True
        self._until(lambda: self._text() == text or None, f"The text {text!r} (on show: {self.shown[:200]!r})")

    def _text(self) -> str:
        return Turn("", self.reports[self._since :]).text

    def _until(self, found: Any, what: str) -> Any:
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
        raise SubjectFailure(self.tell(f"{what} " + ("never came" if self._ended else f"did not come within {self.timeout:g} s")))

    # -- what the server sees ----------------------------------------------------------------------------------------------

    def ledger(self) -> list[dict[str, Any]]:
        """What the server has taken down so far, in order; see `fake_server.byte_server` and `harness.shell.wire_tap`."""
        try:
            lines = self._ledger_path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines[:-1]]

    def lines(self) -> list[str]:
        """The lines that the editor has written to its servers, without their terminator."""
        return [entry["got"] for entry in self.ledger() if "got" in entry]

    def said(self) -> list[Any]:
        """The messages that the server has said, but for those that were no message or too long to keep."""
        return [json.loads(entry["said"]) for entry in self.ledger() if "said" in entry]

    def sent(self) -> list[Any]:
        """The messages that the editor has written; raises `SubjectFailure` for a line that is none."""
        __tracebackhide__ = True
        found = []
        for line in self.lines():
            try:
                message = json.loads(line)
            except ValueError:
                message = None
            if not isinstance(message, dict):
                raise SubjectFailure(self.tell(f"The editor wrote a line that is no JSON object: {line[:200]!r}"))
            found.append(message)
        return found

    def requests(self, method: str) -> list[dict[str, Any]]:
        """The requests and notifications of one method."""
        __tracebackhide__ = True
        return [message for message in self.sent() if message.get("method") == method]

    def wait_sent(self, method: str) -> None:
        """Wait until the editor has written a request or notification of a method."""
        __tracebackhide__ = True
        self._until_wire(lambda: bool(self.requests(method)), f"The editor did not send {method}")

    def wait_said(self, method: str, times: int = 1) -> None:
        """Wait until the server has said a method so many times."""
        __tracebackhide__ = True
        heard = f"The server did not say {method} {times} times"
        self._until_wire(lambda: sum(said.get("method") == method for said in self.said()) >= times, heard)

    def _until_wire(self, true: Callable[[], bool], what: str) -> None:
        __tracebackhide__ = True
        deadline = time.monotonic() + self.timeout
        while not true():
            if self.process.wait(0.005) is not None or time.monotonic() > deadline:
                raise SubjectFailure(self.tell(what))

    def answers(self) -> list[dict[str, Any]]:
        """The editor's answers to the server's requests, in order."""
        __tracebackhide__ = True
        return [message for message in self.sent() if "method" not in message]

    def violations(self) -> list[str]:
        """Return a sentence for each thing that the editor sent and Codex 0.92 does not have: wrong types, unknown keys.

        Judged by the schema bundle, with every object closed.
        """
        from harness.core.frames import Frame
        from harness.plugin.checking import BundleChecker
        from harness.protocol.bundle import DEFAULT_VERSION

        checker = BundleChecker(DEFAULT_VERSION)
        found = []
        for number, entry in enumerate(self.ledger(), 1):
            if "run" in entry:
                checker = BundleChecker(DEFAULT_VERSION)
            for key, sender in (("got", "client"), ("said", "server")):
                if key in entry:
                    raw = entry[key].encode("utf-8", "surrogateescape") + b"\n"
                    said = checker.check(Frame(number, 0.0, "rpc", sender, "msg", raw))
                    found += said if sender == "client" else []
        return found

    def server_pids(self) -> list[int]:
        """The process ids of the servers that the editor has started."""
        return [entry["pid"] for entry in self.ledger() if "run" in entry]

    def wait_gate(self, name: str) -> None:
        """Wait until a byte server holds at a gate."""
        __tracebackhide__ = True
        deadline = time.monotonic() + self.timeout
        while {"gate": name} not in self.ledger():
            if self.process.wait(0.005) is not None or time.monotonic() > deadline:
                raise SubjectFailure(self.tell(f"The server did not come to the gate {name!r}"))

    def open_gate(self, name: str) -> None:
        """Let a byte server go on that holds at a gate, or will."""
        gate = os.open(self._ledger_path.parent / "gates" / name, os.O_RDWR)
        os.write(gate, b"x")
        self._gates.append(gate)  # what is written is lost when nobody holds the pipe open

    # -- for people ----------------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the editor and all it started, at once."""
        self.process.stop(grace=0.2)
        for gate in self._gates:
            os.close(gate)
        self._gates.clear()

    def tell(self, what: str) -> str:
        """Return the sentence `what` with the editor's state and what both of its ends saw."""
        status = self.process.status
        state = "The editor still runs." if status is None else f"The editor ended with status {status}."
        return f"{what}. {state}\n{self.traffic(8)}"

    def traffic(self, most: int = 30) -> str:
        """Return the last of what the user and the server saw."""
        with self._changed:
            reports = [_short(json.dumps(report, ensure_ascii=False)) for report in self.reports[-most:]]
            nonsense = [f"no report: {line!r}" for line in self._nonsense[:3]]
        wire = [_wire(entry) for entry in self.ledger()[-most:]]
        said = self.process.stderr_tail(8)
        parts = [("What the user saw:", [*reports, *nonsense]), ("What passed on the wire:", wire), ("stderr:", said)]
        return "\n".join(line for head, lines in parts for line in [head, *(f"    {each}" for each in lines or ["(nothing)"])])


def _wire(entry: Mapping[str, Any]) -> str:
    for key, arrow in (("got", "->"), ("said", "<-"), ("sent", "<-")):
        if key in entry:
            return f"{arrow} {_short(str(entry[key]))}"
    return _short(json.dumps(entry))


def _short(text: str, most: int = 300) -> str:
    """Return a text for people: bytes that are no UTF-8 are told as such, for a report must be able to hold it."""
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"
