"""Calls that Codex versions after 0.92 handle differently: commands, which can go on, and dynamic tools, which are items."""

from __future__ import annotations

from random import randrange
from time import monotonic

from codex_fakes.scripted.state.waits import Sleep
from codex_fakes.scripted.turns.calls import UNANSWERED
from codex_replay.core.wire.json_text import dumps
from codex_replay.protocol.turn.output import formatted
from codex_replay.protocol.turn.tools import UNCONFINED, ShellCall, actions_v2, arguments_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from codex_fakes.scripted.state.thread import Thread
    from codex_fakes.scripted.turns.calls import Calls, Output

#: The output for the model of a command that does not run, by the decision.
_REFUSED = {"deny": "exec-rejected", "abort": "exec-aborted", "unknown": "exec-undecided"}
_POLICIES = {"never": "Never", "on-request": "OnRequest", "untrusted": "UnlessTrusted"}


def execute(calls: Calls, call: dict[str, Any], result: dict[str, Any]) -> Output:
    """Run a call of `exec_command`: ask for an approval, and use the result in the script.

    Return the output of the call for the model.
    """
    thread, turn, settings = calls.thread, calls.turn, calls.turn.settings
    given = arguments_of(call, ("cmd",))
    shell = ShellCall({**call, "arguments": dumps({**given, "command": given["cmd"]}).decode()}, settings.cwd)
    if shell.escalated and settings.policy not in ("on-request", "untrusted"):
        return turn.sentence("escalated", policy=_POLICIES.get(settings.policy, settings.policy))
    actions = result.get("actions") or [{"type": "unknown", "cmd": shell.shown}]
    values: dict[str, Any] = {
        "call": call["call_id"],
        "commandLine": shell.line,
        "cwd": shell.cwd,
        "actionsV2": actions_v2(actions),
        "reason": result.get("reason", shell.justification),
        "amendment": result.get(
            "amendment", _amendment(shell, thread.allowed, given.get("prefix_rule"), calls.settings["noRule"])
        ),
        "process": None,
        "source": "agent",
    }
    running = {**values, "process": str(randrange(1000, 100_000)), "source": "unifiedExecStartup"}
    key = (tuple(shell.command), shell.cwd, shell.escalated)
    dangerous = shell.blocked("never", calls.settings)
    if dangerous and settings.policy == "never":
        return turn.sentence("blocked", line=shell.line)
    escalated = shell.escalated and settings.sandbox["type"] not in UNCONFINED
    asks = (escalated or dangerous or settings.policy == "untrusted") and _unallowed(shell, thread.allowed)
    if key not in thread.approved and result.get("approval", asks):
        thread.emit("exec-waiting")
        thread.emit("exec-begin", values)
        decision, detail = yield from calls.decide("exec-approval", values)
        if decision in ("deny", "abort", "unknown"):
            thread.emit("exec-declined", {**values, "status": "failed" if decision == "unknown" else "declined"})
            thread.emit("waiting-over")
            return calls.refused(decision, turn.sentence(_REFUSED[decision]))
        thread.emit("waiting-over")
        if decision == "approve-session":
            thread.approved.add(key)
        elif decision == "approve-amend" and detail:
            thread.allow(detail)
        elif decision == "approve-amend":
            thread.emit("warning", {"message": turn.sentence("amendment-empty", home=thread.settings.home)})
    else:
        thread.emit("exec-begin", running)
    text = f"{result.get('stdout', result.get('output', ''))}{result.get('stderr', '')}"
    text = result.get("aggregated", text)
    terminal = Terminal(thread, running, given)
    wait = 0
    if result.get("duration_ms") or result.get("hang"):
        thread.terminals[terminal.number] = terminal
        terminal.print(text)  # what is printed later than at once is sent on its own, too
        terminal.end_by(result)
        wait = _within(given.get("yield_time_ms", _WAIT), _WAITS)
        yield Until(terminal, wait)
    else:
        terminal.printed = terminal.unread = text
        terminal.end(result.get("exit_code", 0))
    return terminal.answer(calls, min(wait, result.get("duration_ms", wait)))


_WAIT = 10_000
#: The shortest and the longest time, in milliseconds, that a call waits for the end of a command; and a write without text.
_WAITS, _POLLS = (250, 30_000), (5_000, 300_000)


def _within(ms: int, limits: tuple[int, int]) -> int:
    return max(limits[0], min(ms, limits[1]))


class Terminal:
    """A command of the model, which may go on after its call and after its turn. The model writes its input with write_stdin."""

    def __init__(self, thread: Thread, running: dict[str, Any], given: dict[str, Any]) -> None:
        self.thread, self.number, self.tty = thread, int(running["process"]), given.get("tty") is True
        turn = thread.turn.id if thread.turn is not None else ""
        self.values = {**running, "turn": turn, "root": turn, "record": thread.turns[-1] if thread.turns else None}
        self.line: str = given["cmd"]
        self.printed = self.unread = ""  # `unread` is what no call has returned to the model
        self.typed: dict[str, Any] | None = None  # the input that the client does not know yet
        self.code: int | None = None
        self._begun = monotonic()

    def print(self, text: str) -> None:
        """Print a text, and send it to the client."""
        self.printed, self.unread = self.printed + text, self.unread + text
        if text:
            self.thread.emit("exec-output", {**self.values, "delta": text})

    def end_by(self, result: dict[str, Any]) -> None:
        """End the command as a result in the script says: after its `duration_ms`, and not at all if it hangs."""
        if not result.get("hang"):
            end = {"code": result.get("exit_code", 0), "text": result.get("later", "")}
            self.thread.out.after(result.get("duration_ms", 0) / 1000, lambda: self.end(**end))

    def end(self, code: int, text: str = "") -> None:
        """End the command, unless it has ended; `text` is what it prints at last."""
        if self.code is not None:
            return
        self.print(text)
        self.report_input()
        self.code = code
        ended = {"exitCode": code, "durationMs": int((monotonic() - self._begun) * 1000)}
        status = "completed" if code == 0 else "failed"
        self.thread.emit("exec-end", {**self.values, **ended, "aggregatedOutput": self.printed or None, "status": status})

    def report_input(self) -> None:
        """Send the client the input that the model has written."""
        typed, self.typed = self.typed, None
        if typed is not None:
            self.thread.emit("exec-input", typed)

    def answer(self, calls: Calls, ms: int) -> str:
        """Return the output of a call for the model: what was printed since the last one."""
        text, self.unread = formatted(self.unread, calls.budget), ""
        if self.code is None:
            return calls.what_ran(self.number, text, ms, "exec-running")
        self.thread.terminals.pop(self.number, None)
        return calls.what_ran(self.code, text, ms)


class Until(Sleep):
    """Wait until a command has ended, for a limited time in milliseconds."""

    __slots__ = ("_terminal",)

    def __init__(self, terminal: Terminal, ms: int) -> None:
        super().__init__(ms / 1000)
        self._terminal = terminal

    def ready(self) -> bool:
        """Return True if the command has ended or the time has passed."""
        return self._terminal.code is not None or super().ready()


def write_stdin(calls: Calls, call: dict[str, Any], result: dict[str, Any]) -> Output:
    """Write input to a command that goes on, and wait for what it prints; a write without text only waits.

    The result in the script has what the command prints; with an `exit_code`, the input ends the command.
    """
    given = arguments_of(call, ("session_id",))
    terminal: Terminal | None = calls.thread.terminals.get(given["session_id"])
    text = given.get("chars") or ""
    if terminal is None:
        return calls.turn.sentence("no-terminal", number=given["session_id"])
    if text and not terminal.tty and text != _INTERRUPT:
        return calls.turn.sentence("stdin-closed")
    typed = {**terminal.values, "turn": calls.turn.id, "stdin": text}
    begun = monotonic()
    if text:
        terminal.typed = typed
        if terminal.code is None:
            terminal.print(result.get("stdout", ""))
            if "exit_code" in result:
                terminal.end_by(result)
    try:
        yield Until(terminal, _within(given.get("yield_time_ms", 0), _WAITS if text else _POLLS))
    except GeneratorExit:  # the turn is interrupted
        terminal.typed = None
        raise
    if not text and terminal.code is None:
        terminal.typed = typed
    terminal.report_input()
    return terminal.answer(calls, int((monotonic() - begun) * 1000))


_INTERRUPT = "\x03"  # Ctrl-C, which a command without a terminal gets, too


def _amendment(shell: ShellCall, prefixes: list[list[str]], wanted: Any, refused: list[str]) -> list[str]:
    """Return the rule that the request for an approval proposes to the client.

    The rule `wanted` of the model is proposed if all commands that are not allowed yet begin with the rule; otherwise the first
    such command. A program of `refused` alone is never proposed, because such a program can run any other.
    """
    commands = _unallowed(shell, prefixes)
    able = isinstance(wanted, list) and bool(wanted) and not (len(wanted) == 1 and wanted[0] in refused)
    if able and commands and all(argv[: len(wanted)] == wanted for argv in commands):
        return list(wanted)
    return next(iter(commands), list(shell.command))


def _unallowed(shell: ShellCall, prefixes: list[list[str]]) -> list[list[str]]:
    """Return the commands in a shell line that begin with no prefix that the client has allowed."""
    commands = [list(argv) for argv in shell.commands or [shell.command]]
    return [argv for argv in commands if not any(argv[: len(prefix)] == prefix for prefix in prefixes)]


def dynamic(calls: Calls, values: dict[str, Any]) -> Output:
    """Ask the client for the result of its tool. Return the output of the call for the model: a text, or a list of texts."""
    thread = calls.thread
    thread.emit("dynamic-begin", values)
    try:
        given = yield from calls.ask("dynamic-call", values)
    except GeneratorExit:  # the turn is interrupted
        thread.emit("dynamic-end", {**values, "contentItems": [], "success": False, "status": "failed", "durationMs": 0})
        raise
    wrong = "dynamic-unanswered" if given is UNANSWERED else "dynamic-invalid"
    items = given.get("contentItems") if isinstance(given, dict) else None
    success = given.get("success") if isinstance(given, dict) else None
    if type(items) is not list or type(success) is not bool or not all(map(_is_content, items)):
        items, success = [{"type": "inputText", "text": calls.turn.sentence(wrong)}], False
    status = "completed" if success else "failed"
    thread.emit("dynamic-end", {**values, "contentItems": items, "success": success, "status": status, "durationMs": 0})
    texts = [item.get("text", calls.turn.sentence("no-image")) for item in items]
    if len(items) == 1 and items[0]["type"] == "inputText":
        return str(texts[0])
    return [{"type": "input_text", "text": text} for text in texts]  # type: ignore[return-value]


def _is_content(item: Any) -> bool:
    """Return True for a text or an image."""
    if not isinstance(item, dict):
        return False
    wanted = {"inputText": "text", "inputImage": "imageUrl"}.get(str(item.get("type")))
    return wanted is not None and type(item.get(wanted)) is str
