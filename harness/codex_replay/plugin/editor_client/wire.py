"""The messages between an editor and its server, read from the ledger (the file in which the server records all messages)."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codex_replay.core.text.truncate import shortened
from codex_replay.core.wire.jsonrpc import label
from codex_replay.shell.process.subject import runs
from codex_replay.shell.rpc.client import SubjectFailure
from codex_replay.shell.rpc.progress import progress, turn_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from codex_replay.shell.process.subject import Process


class Wire:
    """The messages between an editor and its server; the server records them in the file `ledger_path`.

    `version` is the Codex version of the app-server under test. A subclass must have the attribute `process`, the process
    of the editor.
    """

    process: Process

    def __init__(self, ledger_path: Path, wait: float, version: str) -> None:
        self.timeout = wait
        self._version = version
        self.timed_out = False  # something did not come within the limit
        self._ledger_path = ledger_path
        self._gates: list[int] = []

    def report_on(self, what: str) -> str:
        """Return the sentence `what`, followed by the state of the editor and its latest messages."""
        raise NotImplementedError

    def ledger(self) -> list[dict[str, Any]]:
        """Return the entries of the server's ledger so far, in order.

        The programs `codex_fakes.stdio.byte_server` and `codex_replay.shell.rpc.wire_tap` write the ledger.
        """
        try:
            lines = self._ledger_path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines[:-1]]

    def lines(self) -> list[str]:
        """The lines that the editor has written to its servers, without the line terminator."""
        return [entry["got"] for entry in self.ledger() if "got" in entry]

    def server_messages(self) -> list[dict[str, Any]]:
        """The messages of the server, without invalid lines and without lines that are too long to record."""
        return _messages_in(entry["said"] for entry in self.ledger() if "said" in entry)

    def sent(self) -> list[Any]:
        """The messages that the editor has written; raises `SubjectFailure` for an invalid line."""
        __tracebackhide__ = True
        found = []
        for line in self.lines():
            try:
                message = json.loads(line)
            except ValueError:
                message = None
            if not isinstance(message, dict):
                raise SubjectFailure(self.report_on(f"The editor wrote a line that is not a JSON object: {line[:200]!r}"))
            found.append(message)
        return found

    def requests(self, method: str) -> list[dict[str, Any]]:
        """The requests and notifications of the method `method` that the editor has written."""
        __tracebackhide__ = True
        return [message for message in self.sent() if message.get("method") == method]

    def wait_sent(self, method: str) -> None:
        """Wait until the editor has written a request or notification of a method."""
        __tracebackhide__ = True
        self._until_wire(lambda: bool(self.requests(method)), f"The editor did not send {method}")

    def wait_said(self, method: str, times: int = 1) -> None:
        """Wait until the server has sent `times` messages of one method."""
        __tracebackhide__ = True
        heard = f"The server did not send {method} {times} times"
        self._until_wire(lambda: sum(message.get("method") == method for message in self.server_messages()) >= times, heard)

    def _until_wire(self, true: Callable[[], bool], what: str) -> None:
        __tracebackhide__ = True
        deadline = time.monotonic() + self.timeout
        while not true():
            if self.process.wait(0.005) is not None or time.monotonic() > deadline:
                self.timed_out = True
                raise SubjectFailure(self.report_on(f"{progress(self.server_messages())}: {what[:1].lower()}{what[1:]}"))

    def cause(self, approvals: int | None = None) -> str:
        """Return the likely cause of a timeout, as the beginning of a sentence: the messages so far, and the server's end.

        Only the messages of the server that was started last count.

        `approvals` is the number of approvals that the editor has reported to the user, if the case waits for one more.
        """
        entries = self.ledger()
        entries = entries[max((at for at, entry in enumerate(entries) if "run" in entry), default=0) :]
        message, sent = (_messages_in(entry[key] for entry in entries if key in entry) for key in ("said", "got"))
        state = turn_state(message)
        refused = [each for each in message if "error" in each and "method" not in each]
        if not refused and self.server_pids() and not self.running_servers():
            last = f"{state}; the last message of the server was {label(message[-1])}" if message else "had sent no message"
            return f"The server had ended, and {last}"
        asked = {json.dumps(each["id"]): each["method"] for each in message if "method" in each and "id" in each}
        replied = [json.dumps(each.get("id")) for each in sent if "method" not in each]
        for number, method in asked.items():
            if number not in replied:
                other = next((f" (id {number}; the id of its reply is {each})" for each in replied if each not in asked), "")
                return f"The editor has not answered the server's request {method}{other}"
        decided = [method for method in asked.values() if method.endswith("/requestApproval")]
        if approvals is not None and approvals < len(decided):
            return f"The editor answered the server's request {decided[approvals]} without asking the user"
        methods = {json.dumps(each.get("id")): each.get("method") for each in sent if "method" in each and "id" in each}
        if refused:
            method = methods.get(json.dumps(refused[-1].get("id")), "a request")
            return f"The server refused {method} with the error {short(json.dumps(refused[-1]['error'], ensure_ascii=False))}"
        if not sent:
            return "The editor has sent nothing to its server"
        if state == "no turn had started":
            return f"The editor has started no turn; the last message that it sent was {label(sent[-1])}"
        return f"{state[0].upper()}{state[1:]}; the last message of the server was {label(message[-1])}"

    def answers(self) -> list[dict[str, Any]]:
        """The editor's answers to the server's requests, in order."""
        __tracebackhide__ = True
        return [message for message in self.sent() if "method" not in message]

    def answer_to(self, number: int) -> dict[str, Any]:
        """Return the editor's answer to the server's request `number`; wait for the answer, even if the server does not wait."""
        __tracebackhide__ = True
        self._until_wire(
            lambda: any(answer.get("id") == number for answer in self.answers()),
            f"The editor did not answer the server's request {number}",
        )
        return next(answer for answer in self.answers() if answer.get("id") == number)

    def violations(self) -> list[str]:
        """Return a sentence for each fault in the editor's messages: a value of a wrong type, or a key unknown to Codex.

        The JSON schemas of the app-server's version decide (0.92.0 if there are none). In every object, a key that the schemas
        do not name is a fault.
        """
        from codex_replay.core.cassette.frames import Frame
        from codex_replay.plugin.base.checking import BundleChecker, has_bundle
        from codex_replay.protocol.versions import DEFAULT

        version = self._version if has_bundle(self._version) else DEFAULT
        checker = BundleChecker(version)
        found = []
        for number, entry in enumerate(self.ledger(), 1):
            if "run" in entry:
                checker = BundleChecker(version)
            for key, sender in (("got", "client"), ("said", "server")):
                if key in entry:
                    raw = entry[key].encode("utf-8", "surrogateescape") + b"\n"
                    message = checker.check(Frame(number, 0.0, "rpc", sender, "msg", raw))
                    found += message if sender == "client" else []
        return found

    def server_pids(self) -> list[int]:
        """The process ids of the servers that the editor has started."""
        return [entry["pid"] for entry in self.ledger() if "run" in entry]

    def running_servers(self) -> list[int]:
        """The process ids of the servers that are still running."""
        return [pid for pid in self.server_pids() if runs(pid)]

    def wait_gate(self, name: str) -> None:
        """Wait until a byte server has reached the gate `name` (a step of its list that waits for `open`)."""
        __tracebackhide__ = True
        self._until_wire(lambda: {"gate": name} in self.ledger(), f"The server did not reach the gate {name!r}")

    def open_gate(self, name: str) -> None:
        """Open a gate of the byte server, so that it continues.

        If the server has not yet reached the gate, it will not wait there.
        """
        gate = os.open(self._ledger_path.parent / "gates" / name, os.O_RDWR)
        os.write(gate, b"x")
        self._gates.append(gate)  # a write is lost if no process has the pipe open

    def close_gates(self) -> None:
        """Release all gates."""
        for gate in self._gates:
            os.close(gate)
        self._gates.clear()

    def passed(self, most: int) -> list[str]:
        """Return the last messages between the editor and its server as readable text."""
        return [_passed(entry) for entry in self.ledger()[-most:]]


def _passed(entry: Mapping[str, Any]) -> str:
    for key, arrow in (("got", "->"), ("said", "<-"), ("sent", "<-")):
        if key in entry:
            return f"{arrow} {short(str(entry[key]))}"
    return short(json.dumps(entry))


def short(text: str) -> str:
    """Return bytes as a text for a report; bytes that are not UTF-8 are escaped."""
    return shortened(text.encode("utf-8", "backslashreplace").decode(), 300)


def _messages_in(lines: Iterable[str]) -> list[dict[str, Any]]:
    """Return the JSON objects in the given lines."""
    found = []
    for line in lines:
        with contextlib.suppress(ValueError):
            found.append(json.loads(line))
    return [each for each in found if isinstance(each, dict)]
