"""The tools of the scripted fake: the model's calls, asked for, obeyed and answered, and never executed.

What a call gives comes from the script: the `result` of its item (docs/fake-codex.md). Calls run one after the other, in the
order of the calls; the real binary runs them one after the other too, in no fixed order.
"""

from __future__ import annotations

from fake_server.scripted_thread import Never, Ticket
from harness.core.jsontext import dumps
from harness.protocol.turn_diff import BadPatch, TurnDiff, changes_of, parse_patch, shown, shown_v2, summary_lines
from harness.protocol.turn_tools import BadArguments, ShellCall, actions_v2, arguments_of, plan_of, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from fake_server.scripted_thread import Thread
    from fake_server.scripted_turn import Turn
    from harness.protocol.turn_stream import Sampling

    Output = Generator[Any, None, str]

_POLICIES = {"never": "Never", "on-failure": "OnFailure", "on-request": "OnRequest", "untrusted": "UnlessTrusted"}


class Aborted(Exception):
    """The client cancelled: the turn ends here."""


class Tools:
    """The calls of one turn. `results` is what the script gives, by call id; `ran` counts the calls of the current request."""

    def __init__(self, thread: Thread, turn: Turn, table: dict[str, Any]) -> None:
        self._thread, self._turn = thread, turn
        self._rows = table["tools"]
        self._settings = table["settings"]
        self.results: dict[str, Any] = {}
        self.diff = TurnDiff()
        self.ran = 0
        self._pending: list[dict[str, Any]] = []

    def run(self, sampling: Sampling) -> Generator[Any, None, None]:
        """Run the calls of a reply that have not run yet, and put their outputs into the history."""
        while sampling.calls:
            self._pending, sampling.calls = sampling.calls, []
            outputs = []
            while self._pending:
                call = self._pending[0]
                self.ran += 1
                text = yield from self._run(call)
                outputs.append(output_item(call, text))
                self._pending.pop(0)
            self._thread.history += outputs

    def abandon(self) -> None:
        """Give the calls that were broken off the output that the real binary gives them."""
        for call in self._pending:
            exec_ = self._does(call) == "shell"
            text = self._turn.sentence("exec-aborted" if exec_ else "call-aborted")
            self._thread.history.append(output_item(call, text))
        self._pending = []

    def _does(self, call: dict[str, Any]) -> str:
        for row in self._rows:
            if row["call"] == call["call"] and row["name"] in (call.get("name"), "*"):
                return str(row["does"])
        return "unsupported"

    def _run(self, call: dict[str, Any]) -> Output:
        tool = getattr(self, "_" + self._does(call))
        try:
            made = tool(call, self.results.get(call.get("call_id") or "") or {})
            text: str = made if isinstance(made, str) else (yield from made)
        except BadArguments as error:
            return self._turn.sentence("bad-arguments", why=str(error))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            # Arguments of another shape; the real binary has a sentence of serde's for each, which is not worth a parser.
            return self._turn.sentence("bad-arguments", why=f"invalid type, {error}")
        return text

    # -- asking the client --------------------------------------------------------------------------------------------

    def _ask(self, name: str, values: dict[str, Any]) -> Generator[Any, None, Any]:
        """Ask the client and return its result; an error is no answer, and nothing but an interrupt ends the wait."""
        ticket = Ticket()
        self._thread.emit(name, values, ticket)
        yield ticket
        self._thread.submit()
        if ticket.reply is None or "result" not in ticket.reply:
            while True:
                yield Never()
        return ticket.reply["result"]

    def _decide(self, name: str, values: dict[str, Any]) -> Generator[Any, None, tuple[str, Any]]:
        """Ask for an approval; return what was decided (approve, approve-session, approve-amend, deny, abort) and its detail."""
        result = yield from self._ask(name, values)
        given = result.get("decision") if isinstance(result, dict) else None
        detail = None
        if isinstance(given, dict) and len(given) == 1:
            ((given, detail),) = given.items()
        decisions = self._settings["decisions"]
        return (decisions.get(given) if isinstance(given, str) else None) or decisions["*"], detail

    # -- commands -----------------------------------------------------------------------------------------------------

    def _shell(self, call: dict[str, Any], result: dict[str, Any]) -> Output:
        thread, turn, settings = self._thread, self._turn, self._thread.settings
        try:
            shell = ShellCall(call, settings.cwd)
        except KeyError as missing:
            raise BadArguments(f"missing field `{missing.args[0]}`") from None
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
            "amendment": result.get("amendment", shell.amendment(self._settings)),
        }
        thread.emit("exec-begin", values)
        key = (tuple(shell.command), shell.cwd, shell.escalated)
        asks = shell.asks(settings.policy, settings.sandbox["type"], self._settings, thread.allowed)
        if key not in thread.approved and result.get("approval", asks):
            refused = yield from self._approve_command(values, key)
            if refused:
                return refused
        elif "denied" in result and settings.sandbox["type"] != "dangerFullAccess":
            self._outputs("exec-output", values, result["denied"])
            if settings.policy != "on-failure":
                return self._ended(values, result["denied"])
            refused = yield from self._approve_command({**values, "reason": turn.sentence("retry-reason")}, key)
            if refused:
                return refused
        self._outputs("exec-output", values, result)
        while result.get("hang"):
            yield Never()  # a command that does not end until it is interrupted
        return self._ended(values, result)

    def _approve_command(self, values: dict[str, Any], key: Any) -> Generator[Any, None, str]:
        """Ask; return the refusal's text, or "" when the command may run."""
        decision, detail = yield from self._decide("exec-approval", values)
        if decision in ("deny", "abort"):
            text = self._turn.sentence("exec-rejected")
            self._thread.emit("exec-declined", values)
            self._ended(values, {"stderr": text, "exit_code": -1})
            if decision == "abort":
                self._thread.history.append(output_item(self._pending.pop(0), text))
                raise Aborted
            return text
        if decision == "approve-session":
            self._thread.approved.add(key)
        elif decision == "approve-amend":
            given = detail if isinstance(detail, dict) else {}
            rule = given.get("execpolicy_amendment") or given.get("proposed_execpolicy_amendment") or values["amendment"]
            self._thread.allow(list(rule))
        return ""

    def _outputs(self, name: str, values: dict[str, Any], result: dict[str, Any]) -> None:
        for stream, text in _streams(result):
            if text:
                from binascii import b2a_base64

                chunk = b2a_base64(text.encode("utf-8", "surrogatepass"), newline=False).decode()
                self._thread.emit(name, {**values, "stream": stream, "chunk": chunk, "delta": text})

    def _ended(self, values: dict[str, Any], result: dict[str, Any]) -> str:
        """Emit the command's end; return what the model is told."""
        (_, stdout), (_, stderr) = _streams(result)
        aggregated = result.get("aggregated", stdout + stderr)
        code, ms = result.get("exit_code", 0), result.get("duration_ms", 0)
        ended = {
            "stdout": stdout,
            "stderr": stderr,
            "aggregated": aggregated,
            "aggregatedOutput": aggregated or None,
            "exitCode": code,
            "duration": {"secs": ms // 1000, "nanos": ms % 1000 * 1_000_000},
            "durationMs": ms,
            "status": "completed" if code == 0 else "failed",
        }
        self._thread.emit("exec-end", {**values, **ended})
        return self._turn.sentence("exec-output", exitCode=code, output=aggregated)

    # -- patches ------------------------------------------------------------------------------------------------------

    def _patch(self, call: dict[str, Any], result: dict[str, Any]) -> Output:
        thread, turn, settings = self._thread, self._turn, self._thread.settings
        patch = call["input"] if call["call"] == "custom" else arguments_of(call, ("input",))["input"]
        if "error" in result:
            return str(result["error"])
        try:
            changes = changes_of(patch, settings.cwd, result)
        except BadPatch as error:
            return turn.sentence("patch-unverified", why=str(error))
        inside = self._writable(changes)
        asks = settings.policy == "untrusted" or (settings.policy == "on-request" and not inside)
        if settings.policy == "never" and not inside:
            return turn.sentence("patch-outside")
        values = {
            "call": call.get("call_id"),
            "changes": shown(changes),
            "changesV2": shown_v2(changes),
            "autoApproved": not asks,
            "reason": None,
        }
        thread.emit("patch-begin", values)
        self.diff.begin(changes)
        key = tuple(sorted(changes))
        if result.get("approval", asks) and not all(("file", path) in thread.approved for path in key):
            refused = yield from self._approve_patch(values, key)
            if refused:
                return refused
            if "denied" in result and not inside:  # it is tried within the sandbox first
                if result["denied"].get("final"):
                    return self._patched(patch, changes, values, {**result["denied"], "success": False})
                self._outputs("patch-output", values, result["denied"])
        elif "denied" in result and not inside:
            self._outputs("patch-output", values, result["denied"])
            refused = yield from self._approve_patch({**values, "reason": turn.sentence("retry-reason")}, key)
            if refused:
                return refused
        return self._patched(patch, changes, values, result)

    def _patched(self, patch: str, changes: dict[str, Any], values: dict[str, Any], result: dict[str, Any]) -> str:
        thread, turn = self._thread, self._turn
        success = result.get("success", True)
        if success and "stdout" not in result:
            result = {**result, "stdout": turn.sentence("patch-success") + _summary(patch)}
        self._outputs("patch-output", values, result)
        (_, stdout), (_, stderr) = _streams(result)
        ended = {"stdout": stdout, "stderr": stderr, "success": success, "status": "completed" if success else "failed"}
        thread.emit("patch-end", {**values, **ended})
        if success:
            self.diff.apply(changes)
        self._diff()
        code = result.get("exit_code", 0 if success else 1)
        return turn.sentence("exec-output", exitCode=code, output=stdout + stderr)

    def _diff(self) -> None:
        if diff := self.diff.text():
            self._thread.emit("turn-diff", {"diff": diff})

    def _approve_patch(self, values: dict[str, Any], key: tuple[str, ...]) -> Generator[Any, None, str]:
        decision, _ = yield from self._decide("patch-approval", values)
        if decision in ("deny", "abort"):
            text = self._turn.sentence("patch-rejected")
            self._thread.emit("patch-declined", values)
            ended = {"stdout": "", "stderr": text, "success": False, "status": "failed"}
            self._thread.emit("patch-end", {**values, **ended})
            self._diff()
            if decision == "abort":
                self._thread.history.append(output_item(self._pending.pop(0), text))
                raise Aborted
            return text
        if decision == "approve-session":
            self._thread.approved.update(("file", path) for path in key)
        return ""

    def _writable(self, changes: dict[str, Any]) -> bool:
        """Tell whether the sandbox lets all these files be written."""
        sandbox = self._thread.settings.sandbox
        if sandbox["type"] == "dangerFullAccess":
            return True
        if sandbox["type"] != "workspaceWrite":
            return False
        roots = [self._thread.settings.cwd, *sandbox["writableRoots"], *(() if sandbox["excludeSlashTmp"] else ("/tmp",))]
        paths = [*changes, *(c["move_path"] for c in changes.values() if c.get("move_path"))]
        return all(any(path.startswith(root.rstrip("/") + "/") for root in roots) for path in paths)

    # -- the others ---------------------------------------------------------------------------------------------------

    def _plan(self, call: dict[str, Any], result: dict[str, Any]) -> str:
        given = arguments_of(call, ("plan",))
        plan = plan_of(given)
        steps = [{**step, "status": "inProgress" if step["status"] == "in_progress" else step["status"]} for step in plan]
        self._thread.emit("plan", {"explanation": given.get("explanation"), "plan": plan, "planV2": steps})
        return self._turn.sentence("plan-updated")

    def _image(self, call: dict[str, Any], result: dict[str, Any]) -> str:
        path = resolve(self._thread.settings.cwd, str(arguments_of(call, ("path",))["path"]))
        if "error" in result:
            return str(result["error"])
        self._thread.emit("image-view", {"call": call["call_id"], "path": path})
        return self._turn.sentence("image-attached")

    def _mcp(self, call: dict[str, Any], result: dict[str, Any]) -> str:
        given = arguments_of(call)
        text = result.get("output") or self._turn.sentence(call["name"])
        values = {"call": call["call_id"], "server": given.get("server", "codex"), "tool": call["name"], "arguments": given}
        self._thread.emit("mcp-begin", values)
        content = [{"text": text, "type": "text"}]
        self._thread.emit("mcp-end", {**values, "content": content, "duration": {"secs": 0, "nanos": 0}, "durationMs": 0})
        return str(text)

    def _dynamic(self, call: dict[str, Any], result: dict[str, Any]) -> Output:
        if all(tool.get("name") != call["name"] for tool in self._thread.dynamic_tools):
            return self._turn.sentence("unsupported", name=call["name"])
        values = {"call": call["call_id"], "tool": call["name"], "arguments": arguments_of(call)}
        given = yield from self._ask("dynamic-call", values)
        if not (isinstance(given, dict) and type(given.get("output")) is str and type(given.get("success")) is bool):
            return self._turn.sentence("dynamic-invalid")
        return str(given["output"])

    def _user_input(self, call: dict[str, Any], result: dict[str, Any]) -> Output:
        if self._thread.settings.mode != "plan":
            return self._turn.sentence("unsupported", name=call["name"])
        names = ("id", "header", "question", "isOther", "options")
        questions = [
            {name: {"isOther": False, **question}.get(name) for name in names}
            for question in arguments_of(call, ("questions",))["questions"]
        ]
        given = yield from self._ask("user-input", {"call": call["call_id"], "questions": questions})
        return dumps(given).decode()

    def _unsupported(self, call: dict[str, Any], result: dict[str, Any]) -> str:
        return self._turn.sentence("unsupported-custom", name=call.get("name"))


def output_item(call: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the output of a call as it stands in the next request's input."""
    kind = "custom_tool_call_output" if call["call"] == "custom" else "function_call_output"
    return {"type": kind, "call_id": call.get("call_id"), "output": text}


def _streams(result: dict[str, Any]) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("stdout", result.get("stdout", result.get("output", ""))), ("stderr", result.get("stderr", ""))


def _summary(patch: str) -> str:
    try:
        parse_patch(patch)
        return summary_lines(patch)
    except BadPatch:
        return ""
