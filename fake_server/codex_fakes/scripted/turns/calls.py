"""Calls of the model's that ask the client: what commands, patches and dynamic tools share, and commands themselves."""

from __future__ import annotations

from posix import urandom

from codex_fakes.scripted.state.waits import Never, Sleep, Ticket
from codex_replay.protocol.turn.diff import TurnDiff
from codex_replay.protocol.turn.output import chunks, for_the_model, formatted
from codex_replay.protocol.turn.tools import BadArguments, ShellCall, actions_v2

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


class Aborted(Exception):
    """The client cancelled: the turn ends here."""


class Calls:
    """The calls of one turn: `pending` are those without an output, the first of them runs."""

    def __init__(self, thread: Thread, turn: Turn, table: dict[str, Any]) -> None:
        self.thread, self.turn = thread, turn
        self._loads = thread.loads
        self.rows: list[dict[str, Any]] = table["tools"]
        self.settings: dict[str, Any] = table["settings"]
        self.diff = TurnDiff(f"{turn.settings.cwd.rstrip('/')}/" if thread.clock else "")
        self.asked = "v2"  # the API of the listener that was asked last
        self.undecided: int | None = None  # the id of the open request for an approval
        self.pending: list[dict[str, Any]] = []
        self.given: list[
            tuple[dict[str, Any], dict[str, Any]]
        ] = []  # outputs that are not sent yet: for the history, and as raw items
        self._printed: tuple[str, int, str, int] | None = None  # what ran last: its text, exit code, output, milliseconds

    def ask(self, name: str, values: dict[str, Any]) -> Generator[Any, None, Any]:
        """Ask the client and return its result; an error is not an answer, and nothing but an interrupt ends the wait."""
        ticket = Ticket()
        ticket.late = lambda: self._late(name, values, ticket)
        self.thread.emit(name, values, ticket)
        self.undecided = ticket.number if name in ("exec-approval", "patch-approval") else None
        yield ticket
        ticket.late = None
        self.asked = ticket.api
        if ticket.reply is None or "result" not in ticket.reply:
            while True:
                yield Never()
        self.thread.submit()
        return ticket.reply["result"]

    def _late(self, name: str, values: dict[str, Any], ticket: Ticket) -> None:
        """Take a reply that may be too late. It still takes a submission's number, and a cancel ends what runs now."""
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
        """Ask for an approval; return the decision (approve, approve-session, approve-amend, deny, abort) and its detail."""
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
        """Return the output for the model of a call that the client declined; raises `Aborted` if it also cancelled the turn."""
        if decision == "abort":
            self.give(self.pending.pop(0), text)
            raise Aborted
        return text

    def give(self, call: dict[str, Any], text: str) -> None:
        """Set the output of a call; it is sent after the whole reply was read (`report_on`)."""
        shown = text
        if call.get("name") != "shell_command" and self.thread.hears_raw:
            shown = self.structured(text)
        self.given.append((output_item(call, text), output_item(call, shown)))

    def report_on(self) -> None:
        """Put the outputs into the history."""
        given, self.given = self.given, []
        for output, shown in given:
            self.thread.history.append(output)
            self.thread.raw(shown)

    @staticmethod
    def measures(output: str, ms: int) -> dict[str, Any]:
        """Return what later versions tell the model beside an output: its estimated tokens, the time, a random name."""
        return {
            "chunk": urandom(3).hex(),
            "seconds": f"{ms / 1000:.4f}",
            "tokens": -(-len(output.encode("utf-8", "replace")) // 4),
        }

    def what_ran(self, code: int, output: str, ms: int = 0, sentence: str = "exec-output") -> str:
        """Return the output for the model of what ran."""
        lines, short = for_the_model(output)
        text = self.turn.sentence(sentence, exitCode=code, lines=lines, output=short, **self.measures(output, ms))
        self._printed = text, code, output, ms
        return text

    def structured(self, text: str) -> str:
        """Return the output of the last command as JSON, if `text` is that output; any other text unchanged."""
        if self._printed is None or text is not self._printed[0]:
            return text
        from codex_fakes.scripted.state.raw import structured

        _, code, output, ms = self._printed
        return structured(output, code, ms)

    def outputs(self, name: str, values: dict[str, Any], result: dict[str, Any]) -> None:
        """Emit what a call prints, each stream in chunks."""
        for stream, text in streams(result):
            if text:
                from binascii import b2a_base64

                for piece, delta in chunks(text):
                    chunk = b2a_base64(piece, newline=False).decode()
                    self.thread.emit(name, {**values, "stream": stream, "chunk": chunk, "delta": delta})


class Commands(Calls):
    """Shell calls: asked for, obeyed, and answered with the script's result."""

    def _shell(self, call: dict[str, Any], result: dict[str, Any]) -> Output:
        thread, turn, settings = self.thread, self.turn, self.turn.settings
        shell = self._shell_call(call)
        if shell.escalated and settings.policy != "on-request":
            return turn.sentence("escalated", policy=_POLICIES.get(settings.policy, settings.policy))
        actions = result.get("actions") or [{"type": "unknown", "cmd": shell.shown}]
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
        if shell.blocked(settings.policy, self.settings):
            text = turn.sentence("blocked", line=shell.line)
            self._ended(values, {"stderr": text, "exit_code": -1})
            return text
        key = (tuple(shell.command), shell.cwd, shell.escalated)
        asks = shell.asks(settings.policy, settings.sandbox["type"], self.settings, thread.allowed)
        if key not in thread.approved and result.get("approval", asks):
            refused = yield from self._approve_command(values, key)
            if refused:
                return refused
        elif "denied" in result and settings.sandbox["type"] != "dangerFullAccess":
            self.outputs("exec-output", values, result["denied"])
            if settings.policy != "on-failure":
                return self._ended(values, result["denied"])
            refused = yield from self._approve_command({**values, "reason": turn.sentence("retry-reason")}, key)
            if refused:
                return refused
        self.outputs("exec-output", values, result)
        while result.get("hang"):
            yield Never()  # a command that does not end until it is interrupted
        if result.get("duration_ms"):
            yield Sleep(result["duration_ms"] / 1000)
        return self._ended(values, result)

    def _shell_call(self, call: dict[str, Any]) -> ShellCall:
        try:
            return ShellCall(call, self.turn.settings.cwd)
        except KeyError as missing:
            raise BadArguments(f"missing field `{missing.args[0]}`") from None

    def _approve_command(self, values: dict[str, Any], key: Any) -> Generator[Any, None, str]:
        """Ask; return the refusal's text, or "" when the command may run."""
        decision, detail = yield from self.decide("exec-approval", values)
        if decision in ("deny", "abort"):
            text = self.turn.sentence("exec-rejected")
            self.thread.emit("exec-declined", values)
            self._ended(values, {"stderr": text, "exit_code": -1})
            return self.refused(decision, text)
        if decision == "approve-session":
            self.thread.approved.add(key)
        elif decision == "approve-amend" and detail:  # an empty rule allows this command only
            self.thread.allow(detail)
        return ""

    def _ended(self, values: dict[str, Any], result: dict[str, Any]) -> str:
        """Emit the command's end; return the output for the model."""
        (_, stdout), (_, stderr) = streams(result)
        aggregated = result.get("aggregated", stdout + stderr)
        late = bool(result.get("timed_out"))
        code, ms = result.get("exit_code", 124 if late else 0), result.get("duration_ms", 0)
        printed = (self.turn.sentence("timed-out", ms=ms) if late else "") + aggregated
        ended = {
            "stdout": stdout,
            "stderr": stderr,
            "aggregated": aggregated,
            "formatted": formatted(printed),
            "aggregatedOutput": aggregated or None,
            "exitCode": code,
            "duration": {"secs": ms // 1000, "nanos": ms % 1000 * 1_000_000},
            "durationMs": ms,
            "status": "completed" if code == 0 else "failed",
        }
        self.thread.emit("exec-end", {**values, **ended})
        return self.what_ran(code, printed, ms)


def output_item(call: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the output of a call in the form for the next request's input."""
    kind = "custom_tool_call_output" if call["call"] == "custom" else "function_call_output"
    return {"type": kind, "call_id": call.get("call_id") or call.get("id"), "output": text}


def streams(result: dict[str, Any]) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return (name, text) of both output streams of a result."""
    return ("stdout", result.get("stdout", result.get("output", ""))), ("stderr", result.get("stderr", ""))
