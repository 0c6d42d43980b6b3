"""Calls of the model that need the client: commands, and the parts that commands, patches and dynamic tools share."""

from __future__ import annotations

from posix import urandom

from codex_fakes.scripted.state.waits import Never, Sleep, Ticket
from codex_replay.protocol.turn.diff import AppliedDiff, TurnDiff
from codex_replay.protocol.turn.output import chunks, for_the_model, formatted, kept
from codex_replay.protocol.turn.tools import UNCONFINED, BadArguments, ShellCall, actions_v2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from codex_fakes.scripted.state.protocols import Turn
    from codex_fakes.scripted.state.thread import Thread

    Output = Generator[Any, None, str]

_POLICIES = {"never": "Never", "on-failure": "OnFailure", "on-request": "OnRequest", "untrusted": "UnlessTrusted"}


#: The event of a call that the client declined, by the request for its approval.
_DECLINED = {"exec-approval": "exec-declined", "patch-approval": "patch-declined"}


#: The output of a call that ends without one.
NO_OUTPUT = "no output"

#: The result of a request that the client answered with an error.
UNANSWERED = object()


class Aborted(Exception):
    """The client cancelled the turn, so the turn ends now."""


class Calls:
    """The tool calls of one turn. `pending` are the calls that have no output yet; the first of them is running."""

    def __init__(self, thread: Thread, turn: Turn, table: dict[str, Any]) -> None:
        self.thread, self.turn = thread, turn
        self._loads = thread.loads
        self.rows: list[dict[str, Any]] = table["tools"]
        self.settings: dict[str, Any] = table["settings"]
        # A repository of the script has its root in the directory of the thread.
        base = turn.settings.cwd if thread.clock else thread.cwd if thread.git else None
        self.diff = (AppliedDiff if thread.clock else TurnDiff)("" if base is None else f"{base.rstrip('/')}/")
        self.asked = "v2"  # the API of the listener that was asked last
        self.budget = turn.settings.output_budget()
        self.undecided: int | None = None  # the id of the open request for an approval
        self.pending: list[dict[str, Any]] = []
        self.given: list[
            tuple[dict[str, Any], dict[str, Any]]
        ] = []  # outputs that are not sent yet: for the history, and as raw items
        self._printed: tuple[str, int, str, int] | None = None  # what ran last: its text, exit code, output, milliseconds

    def ask(self, name: str, values: dict[str, Any]) -> Generator[Any, None, Any]:
        """Send a request to the client and return the result.

        If the client answers with an error, only an interrupt ends the wait. In versions after 0.92, an error gives the
        result `UNANSWERED`.
        """
        ticket = Ticket()
        ticket.late = lambda: self._late(name, values, ticket)
        self.thread.emit(name, values, ticket)
        self.undecided = ticket.number if name in ("exec-approval", "patch-approval", "user-input") else None
        yield ticket
        ticket.late = None
        self.asked = ticket.api
        if ticket.reply is None or "result" not in ticket.reply:
            if self.thread.clock:
                return UNANSWERED
            while True:
                yield Never()
        self.thread.submit()
        return ticket.reply["result"]

    def _late(self, name: str, values: dict[str, Any], ticket: Ticket) -> None:
        """Process a client's reply, which may be too late.

        A late reply counts as a submission, and a late cancel ends the running turn.
        """
        thread = self.thread
        if thread.turn is self.turn or thread.clock or ticket.reply is None or "result" not in ticket.reply:
            return
        current = thread.loads == self._loads  # else it is for the thread as it was loaded before
        if current:
            thread.submit()
        if name in _DECLINED:
            self.asked = ticket.api
            decision, _ = self._decision(name, ticket.reply["result"])
            if decision in ("deny", "abort"):
                thread.emit(_DECLINED[name], {**values, "turn": self.turn.id})
            if decision == "abort" and current:
                thread.interrupt()

    def decide(self, name: str, values: dict[str, Any]) -> Generator[Any, None, tuple[str, Any]]:
        """Ask the client for the approval of a call.

        Return the decision (approve, approve-session, approve-amend, deny, abort) and its detail.
        """
        result = yield from self.ask(name, values)
        self.thread.emit("request-resolved", {"request": self.undecided})
        self.undecided = None
        return self._decision(name, result)

    def _decision(self, name: str, result: Any) -> tuple[str, Any]:
        given = result.get("decision") if isinstance(result, dict) else None
        detail = None
        if isinstance(given, dict) and len(given) == 1:
            ((given, detail),) = given.items()
        decisions = self.settings["decisions"]
        decision = (decisions[self.asked].get(given) if isinstance(given, str) else None) or decisions["*"]
        if decision == "approve-amend":
            member = "execpolicy_amendment" if self.asked == "v2" else "proposed_execpolicy_amendment"
            rule = detail.get(member) if isinstance(detail, dict) else None
            v1_or_command = self.asked == "v1" or name == "exec-approval"
            if type(rule) is not list or any(type(word) is not str for word in rule) or not v1_or_command:
                return str(decisions["*"]), None
            return decision, rule
        # A decision may be an object with one key and a null: it means the same as the text of that key.
        return (decision if detail is None else str(decisions["*"])), None

    def refused(self, decision: str, text: str) -> str:
        """Return the output that the model gets for a call that the client declined.

        Raises `Aborted` if the client also cancelled the turn.
        """
        if decision == "abort":
            self.give(self.pending.pop(0), text)
            raise Aborted
        return text

    def forms(self) -> dict[str, Any] | None:
        """Return the table of the arguments of the version's tools (forms.json), if the version has this table."""
        from codex_replay.protocol.data_tables import load

        table: dict[str, Any] | None = load("forms", self.turn.settings.version).get("arguments")
        return table

    def give(self, call: dict[str, Any], text: str) -> None:
        """Set the output of a call for the model. `report_on` sends the output when the whole reply of the model is read."""
        if call["call"] == "function" and call["name"] == "local_shell":
            text = self.structured(text)  # only the outputs of the other shells are made readable for the model
        shown = text
        if call.get("name") not in ("shell_command", "local_shell") and self.thread.hears_raw and not self.thread.clock:
            shown = self.structured(text)
        self.given.append((output_item(call, text), output_item(call, shown)))

    def report_on(self) -> None:
        """Add the outputs of the calls to the history."""
        given, self.given = self.given, []
        for output, shown in given:
            self.thread.history.append(output if self.thread.clock else {**output, "output": kept(output["output"], self.budget)})
            self.thread.raw(shown)

    @staticmethod
    def measures(output: str, ms: int) -> dict[str, Any]:
        """Return the values that versions after 0.92 send to the model with an output: estimated tokens, time, a random name."""
        return {
            "chunk": urandom(3).hex(),
            "seconds": f"{ms / 1000:.4f}",
            "tokens": -(-len(output.encode("utf-8", "replace")) // 4),
        }

    def what_ran(self, code: int, output: str, ms: int = 0, sentence: str = "exec-output") -> str:
        """Return the output that the model gets for a command that ran; or that runs, with its number in place of its code."""
        lines, short = for_the_model(output, self.budget)
        text = self.turn.sentence(sentence, exitCode=code, lines=lines, output=short, **self.measures(output, ms))
        self._printed = text, code, output, ms
        return text

    def structured(self, text: str) -> str:
        """If `text` is the output of the last command, return it as JSON.

        Return a text that is not the output of the last command unchanged.
        """
        if self._printed is None or text is not self._printed[0]:
            return text
        from codex_fakes.scripted.state.raw import structured

        _, code, output, ms = self._printed
        return structured(output, code, ms)

    def outputs(self, name: str, values: dict[str, Any], result: dict[str, Any]) -> None:
        """Emit the output of a call in chunks, one output stream after the other."""
        for stream, text in streams(result):
            if text:
                from binascii import b2a_base64

                for piece, delta in chunks(text):
                    chunk = b2a_base64(piece, newline=False).decode()
                    self.thread.emit(name, {**values, "stream": stream, "chunk": chunk, "delta": delta})


class Commands(Calls):
    """Calls of the shell tool. The client approves a call, and the result in the script becomes its output."""

    def _shell(self, call: dict[str, Any], result: dict[str, Any]) -> Output:
        thread, turn, settings = self.thread, self.turn, self.turn.settings
        shell = self._shell_call(call)
        if shell.escalated and settings.policy != "on-request":
            return turn.sentence("escalated", policy=_POLICIES.get(settings.policy, settings.policy))
        actions = result.get("actions") or self._actions(shell.command)
        values = {
            "call": call.get("call_id"),
            "command": shell.command,
            "commandLine": shell.line,
            "cwd": shell.cwd,
            "actions": actions,
            "actionsV2": actions_v2(actions),
            "reason": result.get("reason", shell.justification),
            "amendment": result.get("amendment", shell.amendment(self.settings)),
        }
        thread.emit("exec-begin", values)
        if shell.command and not shell.shown.strip() and not thread.clock:
            return NO_OUTPUT  # the call panics in the real server
        if not shell.command:
            return self._failed(values, turn.sentence("no-command"))
        if shell.blocked(settings.policy, self.settings):
            return self._failed(values, turn.sentence("blocked", line=shell.line))
        key = (tuple(shell.command), shell.cwd, shell.escalated)
        asks = shell.asks(settings.policy, settings.sandbox["type"], self.settings, thread.allowed)
        if key not in thread.approved and result.get("approval", asks):
            refused = yield from self._approve_command(values, key)
            if refused:
                return refused
        elif "denied" in result and settings.sandbox["type"] not in UNCONFINED:
            self.outputs("exec-output", values, result["denied"])
            if settings.policy != "on-failure":
                return self._ended(values, result["denied"])
            refused = yield from self._approve_command({**values, "reason": turn.sentence("retry-reason")}, key)
            if refused:
                return refused
        if "error" in result:
            return self._failed(values, str(result["error"]))
        self.outputs("exec-output", values, result)
        while result.get("hang"):
            yield Never()  # a command that does not end until it is interrupted
        if result.get("duration_ms"):
            yield Sleep(result["duration_ms"] / 1000)
        return self._ended(values, result)

    def _shell_call(self, call: dict[str, Any]) -> ShellCall:
        try:
            return ShellCall(call, self.turn.settings.cwd, self.forms())
        except KeyError as missing:
            raise BadArguments(f"missing field `{missing.args[0]}`") from None

    @staticmethod
    def _actions(command: list[str]) -> list[dict[str, Any]]:
        from codex_replay.protocol.turn.actions import actions_of

        return actions_of(command)

    def _approve_command(self, values: dict[str, Any], key: Any) -> Generator[Any, None, str]:
        """Ask the client for the approval of a command. Return the text of the refusal, or "" if the command may run."""
        decision, detail = yield from self.decide("exec-approval", values)
        if decision in ("deny", "abort"):
            text = self.turn.sentence("exec-rejected")
            self.thread.emit("exec-declined", values)
            return self.refused(decision, self._failed(values, text))
        if decision == "approve-session":
            self.thread.approved.add(key)
        elif decision == "approve-amend" and detail:
            self.thread.allow(detail)
        elif decision == "approve-amend" and not self.thread.clock:  # an empty rule allows this command only
            message = self.turn.sentence("empty-rule", home=self.turn.settings.home)
            self.thread.emit("warning", {"message": message})
        return ""

    def _failed(self, values: dict[str, Any], text: str) -> str:
        """Emit the end of a command that could not run. Return the output of the command for the model."""
        self._ended(values, {"stderr": text, "exit_code": -1})
        return text

    def _ended(self, values: dict[str, Any], result: dict[str, Any]) -> str:
        """Emit the end of a command. Return the output of the command for the model."""
        (_, stdout), (_, stderr) = streams(result)
        aggregated = result.get("aggregated", stdout + stderr)
        late = bool(result.get("timed_out"))
        code, ms = result.get("exit_code", 124 if late else 0), result.get("duration_ms", 0)
        printed = (self.turn.sentence("timed-out", ms=ms) if late else "") + aggregated
        ended = {
            "stdout": stdout,
            "stderr": stderr,
            "aggregated": aggregated,
            "formatted": formatted(printed, self.budget),
            "aggregatedOutput": aggregated or None,
            "exitCode": code,
            "duration": {"secs": ms // 1000, "nanos": ms % 1000 * 1_000_000},
            "durationMs": ms,
            "status": "completed" if code == 0 else "failed",
        }
        self.thread.emit("exec-end", {**values, **ended})
        return self.what_ran(code, printed, ms)


def output_item(call: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the output of a call in the form for the input of the next request."""
    kind = "custom_tool_call_output" if call["call"] == "custom" else "function_call_output"
    return {"type": kind, "call_id": call.get("call_id") or call.get("id"), "output": text}


def streams(result: dict[str, Any]) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return (name, text) for both output streams (stdout, stderr) of a result."""
    return ("stdout", result.get("stdout", result.get("output", ""))), ("stderr", result.get("stderr", ""))
