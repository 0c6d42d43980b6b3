"""The tools of the scripted fake: the model's calls are approved and answered, but never executed.

The output of a call comes from the script: the `result` of its item (docs/fake-codex.md). The fake runs the calls of a
reply one after another, in order. The real 0.92.0 also runs the calls one after another, but in no fixed order. Versions
after 0.92 start all calls at the same time. The fake starts only calls of the client's tools at the same time, and runs
other calls one after another.
"""

from __future__ import annotations

from itertools import takewhile

from codex_fakes.scripted.state.waits import First
from codex_fakes.scripted.turns.calls import NO_OUTPUT, Commands
from codex_fakes.scripted.turns.patches import Patches
from codex_replay.core.wire.json_text import dumps
from codex_replay.protocol.turn.patch_text import BadPatch, patch_in, readable
from codex_replay.protocol.turn.tools import BadArguments, arguments_of, resolve, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from codex_fakes.scripted.state.protocols import Turn
    from codex_fakes.scripted.state.thread import Thread
    from codex_fakes.scripted.turns.calls import Output
    from codex_replay.protocol.turn.stream import Sampling


def _is_answer(answer: Any) -> bool:
    texts = answer.get("answers") if isinstance(answer, dict) else None
    return isinstance(texts, list) and all(type(text) is str for text in texts)


class Tools(Commands, Patches):
    """The tool calls of one turn.

    `results` maps call ids to the results in the script. `ran` is the number of calls of the current request that have run.
    """

    def __init__(self, thread: Thread, turn: Turn, table: dict[str, Any]) -> None:
        super().__init__(thread, turn, table)
        self.results: dict[str, Any] = {}
        self.ran = 0

    def run(self, sampling: Sampling, ended: bool = False) -> Generator[Any, None, None]:
        """Run the tool calls of a reply that have not run yet. If the reply has `ended`, send the outputs one by one."""
        if ended:
            self.report_on()
        while sampling.calls:
            self.pending, sampling.calls = sampling.calls, []
            while self.pending:
                if self.thread.clock and self.is_dynamic(self.pending[0]):
                    yield from self._at_once()
                else:
                    self.ran += 1
                    text = yield from self.output_of(self.pending[0])
                    call = self.pending.pop(0)
                    if text is not NO_OUTPUT:
                        self.give(call, text)
                if ended:
                    self.report_on()

    def _at_once(self) -> Generator[Any, None, None]:
        """Run all calls of client tools at the beginning of the pending calls together: send their requests to the client at
        once.

        The client's replies may come in any order. After the last reply, the calls get their outputs in the order of the calls.
        After an interrupt, the replies that have arrived become the outputs of their calls.
        """
        group = list(takewhile(self.is_dynamic, self.pending))
        runs = [self.output_of(call) for call in group]
        waits: dict[int, Any] = {}
        texts = [self.turn.sentence("dynamic-cancelled")] * len(group)

        def go_on(number: int) -> None:
            try:
                waits[number] = next(runs[number])
            except StopIteration as end:
                waits.pop(number, None)
                texts[number] = end.value

        for number in range(len(group)):
            self.ran += 1
            go_on(number)
        try:
            while waits:
                yield First(waits.values())
                for number in [number for number, wait in waits.items() if wait.ready()]:
                    go_on(number)
        finally:
            for number in waits:
                runs[number].close()
            for text in texts:
                self.give(self.pending.pop(0), text)

    def drop(self, sampling: Sampling) -> None:
        """Forget the calls of a failed reply, and their outputs, because they are not sent to the model."""
        sampling.calls, self.pending, self.given, self.ran = [], [], [], 0

    def abandon(self) -> None:
        """Give each interrupted call the output that the real binary gives it."""
        for call in self.pending:
            exec_ = self._does(call) in ("shell", "exec")
            text = self.turn.sentence("exec-aborted" if exec_ else "call-aborted")
            self.give(call, text)
        self.pending = []
        self.report_on()

    def is_dynamic(self, call: dict[str, Any]) -> bool:
        """Return True if a call is for a tool of the client."""
        return self._does(call) == "dynamic"

    def _does(self, call: dict[str, Any]) -> str:
        if call["call"] == "function" and any(tool.get("name") == call["name"] for tool in self.thread.dynamic_tools):
            return "dynamic"  # the client's tool comes before one of the same name that Codex has
        for row in self.rows:
            if row["call"] == call["call"] and row["name"] in (call.get("name"), "*"):
                offered = row["name"] != "apply_patch" or self.turn.settings.has_patches()
                return str(row["does"]) if offered else "unsupported"
        return "unsupported"

    def output_of(self, call: dict[str, Any]) -> Output:
        """Run one tool call. Return the output of the call for the model."""
        tool = getattr(self, "_" + self._does(call))
        try:
            made = tool(call, self.results.get(call.get("call_id") or "") or {})
            text: str = made if isinstance(made, str) else (yield from made)
        except BadArguments as error:
            return self.turn.sentence("bad-arguments", why=str(error))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            # Arguments of another shape; the real binary has a sentence of serde's for each, which is not worth a parser.
            return self.turn.sentence("bad-arguments", why=f"invalid type, {error}")
        return text

    def _shell(self, call: dict[str, Any], result: dict[str, Any]) -> Output:
        """Run a command, or apply the patch in the command."""
        if call["call"] == "local_shell":
            text = yield from super()._shell(call, result)
            return text
        shell = self._shell_call(call)
        try:
            found = patch_in(shell.command)
        except BadPatch as error:
            return self.turn.sentence("patch-unverified", why=str(error))
        if found is None:
            text = yield from super()._shell(call, result)
            return text
        patch, folder = found
        if readable(patch):
            words = self.turn.sentence("patch-in-shell", name=call["name"])
            warning = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": words}]}
            self.thread.history.append(warning)
            self.thread.raw(warning)
        text = yield from self._change(call, patch, shell.cwd if folder is None else resolve(shell.cwd, folder), result)
        return self.structured(text) if call["name"] == "shell_command" else text

    def _exec(self, call: dict[str, Any], result: dict[str, Any]) -> Output:
        """Run a command as versions after 0.92 do."""
        from codex_fakes.scripted.turns.later_calls import execute

        text = yield from execute(self, call, result)
        return text

    def _write(self, call: dict[str, Any], result: dict[str, Any]) -> Output:
        """Write input to a command that goes on."""
        from codex_fakes.scripted.turns.later_calls import write_stdin

        text = yield from write_stdin(self, call, result)
        return text

    # -- the others ---------------------------------------------------------------------------------------------------

    def _plan(self, call: dict[str, Any], result: dict[str, Any]) -> str:
        given = arguments_of(call, ("plan",), self.forms())
        plan = given["plan"]
        steps = [{**step, "status": "inProgress" if step["status"] == "in_progress" else step["status"]} for step in plan]
        self.thread.emit("plan", {"explanation": given.get("explanation"), "plan": plan, "planV2": steps})
        return self.turn.sentence("plan-updated")

    def _image(self, call: dict[str, Any], result: dict[str, Any]) -> str:
        path = resolve(self.turn.settings.cwd, str(arguments_of(call, ("path",), self.forms())["path"]))
        if "error" in result:
            return str(result["error"])
        self.thread.emit("image-view", {"call": call["call_id"], "path": path})
        return self.turn.sentence("image-attached")

    def _mcp(self, call: dict[str, Any], result: dict[str, Any]) -> str:
        given = value_of(call) if call.get("arguments", "").strip() else None
        reads = call["name"] == "read_mcp_resource"
        if reads and given is None:
            raise BadArguments("expected value")
        read = arguments_of(call, (), self.forms()) if given not in (None, []) or reads else {}
        words = {name: text.strip() for name, text in read.items() if text and text.strip()}
        if reads and (empty := next((name for name in ("server", "uri") if name not in words), None)):
            return f"{empty} must be provided"
        values = {"call": call["call_id"], "server": words.get("server", "codex"), "tool": call["name"], "arguments": given}
        self.thread.emit("mcp-begin", values)
        wrong = self._no_server(call["name"], words) if "output" not in result else None
        if wrong is not None:
            self.thread.emit("mcp-failed", {**values, "message": wrong, "duration": {"secs": 0, "nanos": 0}, "durationMs": 0})
            return wrong
        text = result.get("output") or self.turn.sentence(call["name"])
        content = [{"text": text, "type": "text"}]
        self.thread.emit("mcp-end", {**values, "content": content, "duration": {"secs": 0, "nanos": 0}, "durationMs": 0})
        return str(text)

    def _no_server(self, name: str, words: dict[str, str]) -> str | None:
        """Return the error for a call about the resources of an MCP server.

        The fake has no MCP servers, so every name is unknown.
        """
        if "server" in words:
            return self.turn.sentence("no-mcp-server", what=self.settings["mcp"][name], server=words["server"])
        return self.turn.sentence("mcp-cursor") if "cursor" in words else None

    def _dynamic(self, call: dict[str, Any], result: dict[str, Any]) -> Output:
        if all(tool.get("name") != call["name"] for tool in self.thread.dynamic_tools):
            return self.turn.sentence("unsupported", name=call["name"])
        values = {"call": call["call_id"], "tool": call["name"], "arguments": value_of(call)}
        if self.thread.clock:
            from codex_fakes.scripted.turns.later_calls import dynamic

            text = yield from dynamic(self, values)
            return text
        given = yield from self.ask("dynamic-call", values)
        if not (isinstance(given, dict) and type(given.get("output")) is str and type(given.get("success")) is bool):
            return self.turn.sentence("dynamic-invalid")
        return str(given["output"])

    def _user_input(self, call: dict[str, Any], result: dict[str, Any]) -> Output:
        late = self.thread.clock
        if not late and not self.turn.settings.feature("collaboration_modes"):
            return self.turn.sentence("unsupported", name=call["name"])
        if (mode := self.settings["modes"].get(self.turn.settings.mode)) is not None:
            return self.turn.sentence("no-questions", mode=mode)
        asked = arguments_of(call, ("questions",), self.forms())["questions"]
        if late and not all(question.get("options") for question in asked):
            return self.turn.sentence("no-options")
        names = ("id", "header", "question", "isOther", *(("isSecret",) if late else ()), "options")
        always: dict[str, Any] = {"isOther": True} if late else {}
        questions = [
            {name: {"isOther": False, "isSecret": False, **question, **always}.get(name) for name in names} for question in asked
        ]
        short = [{name: value for name, value in question.items() if value is not None} for question in questions]
        given = yield from self.ask("user-input", {"call": call["call_id"], "questions": questions, "short": short})
        if late:
            self.thread.emit("request-resolved", {"request": self.undecided})
            self.undecided = None
            self.thread.emit("waiting-over")
        answers = given.get("answers") if isinstance(given, dict) else None
        if not (isinstance(answers, dict) and all(map(_is_answer, answers.values()))):
            given = {"answers": {}}  # no answer at all counts as no answer to any question
        return dumps(given).decode()

    def _unsupported(self, call: dict[str, Any], result: dict[str, Any]) -> str:
        if not self.thread.clock and self._takes_no_input(call):
            return NO_OUTPUT
        return self.turn.sentence("unsupported-custom", name=call.get("name"))

    def _takes_no_input(self, call: dict[str, Any]) -> bool:
        """Return True if the called tool exists and is not a custom tool.

        The real server aborts a custom call of a tool that is not a custom tool.
        """
        does = self._does({**call, "call": "function"})
        if does == "dynamic":
            return call.get("name") == "local_shell" or any(t.get("name") == call["name"] for t in self.thread.dynamic_tools)
        return does != "user_input" or self.turn.settings.feature("collaboration_modes")
