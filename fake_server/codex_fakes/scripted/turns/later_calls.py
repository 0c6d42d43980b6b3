"""Calls that Codex versions after 0.92 handle differently: `exec_command`, and calls of dynamic tools, which are items."""

from __future__ import annotations

from random import randrange

from codex_fakes.scripted.turns.calls import UNANSWERED
from codex_replay.core.wire.json_text import dumps
from codex_replay.protocol.turn.output import formatted
from codex_replay.protocol.turn.tools import UNCONFINED, ShellCall, actions_v2, arguments_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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
    code, ms = result.get("exit_code", 0), result.get("duration_ms", 0)
    if ms and text:  # what is printed later than at once is sent on its own, too
        calls.outputs("exec-output", running, {"stdout": text})
    status = "completed" if code == 0 else "failed"
    ended = {"aggregatedOutput": text or None, "exitCode": code, "durationMs": ms, "status": status}
    thread.emit("exec-end", {**running, **ended})
    return calls.what_ran(code, formatted(text, calls.budget), ms)


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
