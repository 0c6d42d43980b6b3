"""One thread of the reference editor client and its turns: send prompts, report texts, and answer approvals.

Prompts wait in a queue. `_advance` does the next step that is possible: start the server, initialize the connection, start
the thread, start the turn. If the server exits, all steps are undone, and the next prompt starts a new server. The names of
fields are read in two spellings: the documentation has `thread_id`, the real server sends `threadId`. The notifications
codex/event/* are ignored, because item/* and turn/* have the same content.
"""

from __future__ import annotations

import os

from codex_replay.reference.editor_client.connection import Connection, Disconnected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from codex_replay.reference.editor_client.connection import Message

    Report = Callable[..., None]

CLIENT_INFO = {"name": "codex-replay-editor", "title": "The reference editor client", "version": "0.1.0"}
APPROVALS = {"item/commandExecution/requestApproval": "command", "item/fileChange/requestApproval": "fileChange"}
#: The user's choice -> the decision for the server. Dismissing the picker cancels.
DECISIONS = {"accept": "accept", "decline": "decline", "dismiss": "cancel"}


def field(value: Any, name: str) -> Any:
    """Return the field with the camelCase name `name`, or with the same name in snake_case.

    Return None if the field is missing.
    """
    if not isinstance(value, dict):
        return None
    return value[name] if name in value else value.get("".join(f"_{c.lower()}" if c.isupper() else c for c in name))


class Session:
    """The conversation of the reference editor client with its server.

    The function `report(kind, **fields)` shows a report to the user.
    """

    def __init__(self, codex: str, report: Report) -> None:
        self.connection: Connection | None = None
        self.cwd = os.getcwd()
        self._codex = codex
        self._report = report
        self._prompts: list[str] = []
        self._approvals = 0
        self._reset()

    def _reset(self) -> None:
        self._ready = False
        self._opening = False
        self._thread: str | None = None
        self._running = False
        self._turn: str | None = None
        self._ended: set[str] = set()
        self._interrupting = False
        self._asked: dict[int, Message] = {}
        self._shown: set[str] = set()
        self._spoke = False
        self._complaint = ""

    # -- what the user does ------------------------------------------------------------------------------------------------

    def prompt(self, text: str) -> None:
        """Send a prompt to the server. If a turn is running, send the prompt after the turn."""
        self._prompts.append(text)
        self._guarded(self._advance)

    def decide(self, approval: Any, decision: str) -> None:
        """Answer an approval."""
        request = self._asked.pop(approval, None)
        if request is None or self.connection is None:
            self._report("error", message=f"There is no approval {approval} to decide.")
            return
        connection = self.connection
        self._guarded(lambda: connection.answer(request, {"decision": DECISIONS[decision]}))

    def interrupt(self) -> None:
        """Interrupt the running turn, if there is one."""
        if self._running or self._prompts:
            self._interrupting = True
            self._guarded(self._interrupt)

    def close(self) -> None:
        """End the server."""
        if self.connection is not None:
            self.connection.stop(patient=not self._asked)
            self.connection = None

    # -- one step after another --------------------------------------------------------------------------------------------

    def _guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Disconnected as gone:
            self.disconnected(str(gone))

    def receive(self) -> None:
        """Process a message of the server."""
        if self.connection is not None:
            self._guarded(self.connection.receive)

    def disconnected(self, why: str) -> None:
        """Record that the server has exited, and report the end of the open turn. The next prompt starts a new server."""
        self.close()
        waiting = len(self._prompts) + self._running
        self._prompts.clear()
        self._reset()
        self._report("error", message=why)
        for _ in range(waiting):
            self._report("end", status="failed")

    def _advance(self) -> None:
        if not self._prompts or self._running or self._opening:
            return
        if self.connection is None:
            self.connection = Connection([self._codex, "app-server"], self._message)
        if not self._ready:
            self._opening = True
            self.connection.request("initialize", {"clientInfo": CLIENT_INFO}, self._initialized, self._cannot_open)
        elif self._thread is None:
            self._opening = True
            self.connection.request("thread/start", self.thread_params(), self._thread_started, self._cannot_open)
        else:
            self._running = True
            self._spoke = False
            self._complaint = ""
            params = self.turn_params(self._prompts.pop(0))
            self.connection.request("turn/start", params, self._turn_started, self._turn_refused)

    def thread_params(self) -> Message:
        """Return the parameters of the request thread/start."""
        return {"cwd": self.cwd, "sandbox": None}

    def turn_params(self, prompt: str) -> Message:
        """Return the parameters of the request turn/start for a prompt."""
        return {"threadId": self._thread, "input": [{"type": "text", "text": prompt}], "cwd": self.cwd}

    def _initialized(self, result: Any) -> None:
        assert self.connection is not None
        self.connection.notify("initialized")
        self._ready, self._opening = True, False
        self._advance()

    def _thread_started(self, result: Any) -> None:
        thread = field(field(result, "thread"), "id")
        if not isinstance(thread, str):
            self._cannot_open("codex has started a thread without an id.")
            return
        self._thread, self._opening = thread, False
        self._advance()

    def _cannot_open(self, why: str) -> None:
        self._opening = False
        self._report("error", message=why)
        for _ in range(len(self._prompts)):
            self._report("end", status="failed")
        self._prompts.clear()

    def _turn_started(self, result: Any) -> None:
        self._know_turn(field(field(result, "turn"), "id"))

    def _know_turn(self, turn: Any) -> None:
        if isinstance(turn, str) and self._running and turn not in self._ended:
            self._turn = turn
            if self._interrupting:
                self._interrupt()

    def _turn_refused(self, why: str) -> None:
        self._report("error", message=why)
        self._end("failed")

    def _interrupt(self) -> None:
        if self._turn is None or self.connection is None:
            return  # its id is not known yet: interrupt as soon as it is
        self._interrupting = False
        params = {"threadId": self._thread, "turnId": self._turn}
        self.connection.request("turn/interrupt", params, lambda result: None, self._complain)

    def _complain(self, why: str) -> None:
        self._report("error", message=why)

    def _end(self, status: str) -> None:
        if not self._running:
            return
        if self._turn is not None:
            self._ended.add(self._turn)
        self._running, self._turn, self._interrupting = False, None, False
        self._asked.clear()
        self._report("end", status=status)
        self._advance()

    # -- messages of the server ----------------------------------------------------------------------------------------------

    def _message(self, message: Message) -> None:
        method, params = message["method"], message.get("params")
        params = params if isinstance(params, dict) else {}
        if "id" in message:
            self.requested(message, params)
            return
        handler = getattr(self, "on_" + str(method).replace("/", "_"), None)
        thread = field(params, "threadId")
        if handler is not None and (thread is None or thread == self._thread):
            handler(params)

    def requested(self, message: Message, params: Message) -> None:
        """Handle a request of the server for an approval, or an unknown request of the server."""
        assert self.connection is not None
        kind = APPROVALS.get(message["method"])
        if kind is None:
            self.connection.refuse(message)
            return
        self._approvals += 1
        self._asked[self._approvals] = message
        report = {"reason": field(params, "reason"), "command": field(params, "command"), "item": field(params, "itemId")}
        self._report("approval", id=self._approvals, kind=kind, **report)

    def on_turn_started(self, params: Message) -> None:
        """Handle turn/started, which may come before the response to turn/start."""
        self._know_turn(field(field(params, "turn"), "id"))

    def on_item_agentMessage_delta(self, params: Message) -> None:  # noqa: N802 - the method's name
        """Show the next part of the answer."""
        self.show(str(field(params, "itemId")), str(params.get("delta", "")))

    def show(self, item: str, text: str) -> None:
        """Append a text to the displayed answer of the model. Each message of a turn is a separate paragraph."""
        if item not in self._shown and self._spoke:
            self._report("text", text="\n\n")
        self._shown.add(item)
        self._spoke = True
        self._report("text", text=text)

    def on_item_completed(self, params: Message) -> None:
        """Show a completed item (an answer, or the output of a command) that had no deltas."""
        item = field(params, "item")
        printed = field(item, "aggregatedOutput")
        if field(item, "type") == "commandExecution" and printed and str(item.get("id")) not in self._shown:
            self._report("output", text=str(printed))
        if field(item, "type") == "agentMessage" and str(item.get("id")) not in self._shown:
            self.show(str(item.get("id")), str(item.get("text", "")))

    def on_item_reasoning_summaryTextDelta(self, params: Message) -> None:  # noqa: N802
        """The model thinks."""
        self._report("reasoning", text=str(params.get("delta", "")))

    on_item_reasoning_textDelta = on_item_reasoning_summaryTextDelta  # noqa: N815

    def on_item_commandExecution_outputDelta(self, params: Message) -> None:  # noqa: N802
        """Show output of a command or of a file change."""
        self._shown.add(str(field(params, "itemId")))
        self._report("output", text=str(params.get("delta", "")))

    on_item_fileChange_outputDelta = on_item_commandExecution_outputDelta  # noqa: N815

    def on_turn_diff_updated(self, params: Message) -> None:
        """Show the diff of the turn so far."""
        self._report("diff", diff=str(params.get("diff", "")))

    def on_turn_plan_updated(self, params: Message) -> None:
        """Show the new plan."""
        steps = [{"step": step.get("step"), "status": step.get("status")} for step in params.get("plan", [])]
        self._report("plan", steps=steps)

    def on_error(self, params: Message) -> None:
        """Report an error; turn/completed shows whether the turn is over."""
        self._complaint = str(field(field(params, "error"), "message") or params.get("message") or "codex reports an error.")
        self._report("error", message=self._complaint)

    def on_turn_completed(self, params: Message) -> None:
        """Record the end of the turn, and report it.

        Ignore a second notification about the end of an earlier turn, which may come while the next turn starts.
        """
        turn = field(params, "turn")
        name = field(turn, "id")
        if isinstance(name, str) and name in self._ended:
            return
        if self._turn is None:
            self._turn = name
        complaint = field(field(turn, "error"), "message")
        if complaint and complaint != self._complaint:
            self._report("error", message=str(complaint))
        self._end(str(field(turn, "status") or "completed"))
