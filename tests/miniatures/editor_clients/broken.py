"""Editor clients that are wrong in one small way each: `python broken.py NAME CODEX` is the reference with NAME done to it.

Every variant is a function whose docstring says what it does wrong; it patches the reference by name. Its arguments name the
modules of the suite that ought to see it. matrix.py tells which checks do.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from codex_replay.reference.editor_client import __main__ as program
from codex_replay.reference.editor_client import session
from codex_replay.reference.editor_client.connection import Connection, Disconnected
from codex_replay.reference.editor_client.session import Session

#: Seconds that impatient editors wait: far less than the servers' pauses (0.3), so that a busy machine does not hide them.
PATIENCE = 0.01
VARIANTS: dict[str, Callable[[], None]] = {}
MODULES: dict[str, tuple[str, ...]] = {}


def variant(*modules: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def keep(patch: Callable[[], None]) -> Callable[[], None]:
        name = patch.__name__.replace("_", "-")
        VARIANTS[name], MODULES[name] = patch, modules
        return patch

    return keep


def patch(owner: Any, name: str, new: Callable[..., Any]) -> None:
    """Replace a function by `new(old, *arguments)`."""
    old = getattr(owner, name)
    setattr(owner, name, lambda *given, **named: new(old, *given, **named))


def after(owner: Any, name: str, change: Callable[..., Any]) -> None:
    """Let `change(result, *arguments)` replace what a function returns."""
    patch(owner, name, lambda old, *given: change(old(*given), *given))


def outgoing(change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
    """Change what is written; None leaves it out."""

    def write(old: Any, self: Connection, message: dict[str, Any]) -> None:
        changed = change(message)
        if changed is not None:
            old(self, changed)

    patch(Connection, "write", write)


def incoming(change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
    """Change what is read; None leaves it out."""
    after(Connection, "decode", lambda message, *_: None if message is None else change(message))


def reported(change: Callable[[str, dict[str, Any]], tuple[str, dict[str, Any]] | None]) -> None:
    """Change what is shown; None leaves it out."""

    def show(old: Any, what: str, **fields: Any) -> None:
        changed = change(what, fields)
        if changed is not None:
            old(changed[0], **changed[1])

    patch(program, "report", show)


def asked_for(method: str, change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
    """Change the messages of one method that are written."""
    outgoing(lambda message: change(message) if message.get("method") == method else message)


def with_params(method: str, **params: Any) -> None:
    asked_for(method, lambda message: {**message, "params": {**message["params"], **params}})


# -- handshake -------------------------------------------------------------------------------------------------------------


@variant("handshake")
def no_subcommand() -> None:
    """Starts codex without the word app-server."""
    patch(Connection, "__init__", lambda old, self, command, *rest: old(self, command[:1], *rest))


@variant("handshake")
def never_initialized() -> None:
    """Never sends initialized."""
    Connection.notify = lambda self, method: None  # type: ignore[method-assign]


@variant("handshake")
def initialized_as_request() -> None:
    """Sends initialized as a request."""
    asked_for("initialized", lambda message: {"id": "done", **message})


@variant("handshake")
def initialized_with_params() -> None:
    """Sends initialized with empty params."""
    asked_for("initialized", lambda message: {**message, "params": {}})


@variant("handshake")
def initialized_at_once() -> None:
    """Sends initialized without waiting for the reply."""
    Session._initialized = lambda self, result: (setattr(self, "_ready", True), setattr(self, "_opening", False), self._advance())  # type: ignore

    def encode(old: Any, self: Connection, message: dict[str, Any]) -> Any:
        # In one write: the server listens only for a moment, in which a busy machine may not run the editor.
        return old(self, message) + (old(self, {"method": "initialized"}) if message.get("method") == "initialize" else b"")

    patch(Connection, "encode", encode)


@variant("handshake")
def initialized_last() -> None:
    """Sends initialized after the first thread/start."""
    held: list[str] = []
    patch(Connection, "notify", lambda old, self, method: held.append(method))

    def write(old: Any, self: Connection, message: dict[str, Any]) -> None:
        old(self, message)
        if held and message.get("method") == "thread/start":
            old(self, {"method": held.pop()})

    patch(Connection, "write", write)


@variant("handshake")
def no_version() -> None:
    """Leaves the version out of clientInfo."""
    session.CLIENT_INFO.pop("version")


@variant("handshake")
def no_title() -> None:
    """Leaves the title out of clientInfo."""
    session.CLIENT_INFO.pop("title")


@variant("handshake")
def ids_begin_anew() -> None:
    """Begins again with the ids of its requests after the fourth."""

    def request(old: Any, self: Connection, *given: Any) -> None:
        self._next_id = (self._next_id - 1) % 4 + 1
        old(self, *given)

    patch(Connection, "request", request)


@variant("handshake", "turns")
def a_server_per_prompt() -> None:
    """Starts a server for every prompt."""

    def prompt(old: Any, self: Session, text: str) -> None:
        self.close()
        self._reset()
        old(self, text)

    patch(Session, "prompt", prompt)


@variant("handshake")
def one_id_for_all() -> None:
    """Gives all requests the same id."""

    def request(old: Any, self: Connection, *given: Any) -> None:
        self._next_id = 1
        old(self, *given)

    patch(Connection, "request", request)


# -- threads and turns -----------------------------------------------------------------------------------------------------


@variant("turns")
def relative_cwd() -> None:
    """Starts the thread in "."."""
    with_params("thread/start", cwd=".")


@variant("turns")
def sandbox_in_camel_case() -> None:
    """Asks for the sandbox in the spelling of another method."""
    with_params("thread/start", sandbox="readOnly")


@variant("turns")
def frees_its_threads() -> None:
    """Starts the thread without a sandbox."""
    with_params("thread/start", sandbox="danger-full-access")


@variant("turns")
def frees_its_turns() -> None:
    """Starts turns without a sandbox."""
    with_params("turn/start", sandboxPolicy={"type": "dangerFullAccess"})


@variant("turns", "approvals")
def never_to_be_asked() -> None:
    """Tells the server never to ask for an approval."""
    with_params("thread/start", approvalPolicy="never")


@variant("turns")
def configures_the_server() -> None:
    """Overrules the user's configuration in another way."""
    with_params("thread/start", config={"approval_policy": "never"})


@variant("turns")
def chooses_the_model() -> None:
    """Starts the thread with a model of its own."""
    with_params("thread/start", model="gpt-5.2-codex")


@variant("turns")
def no_sandbox_member() -> None:
    """Leaves the sandbox out of thread/start."""
    after(Session, "thread_params", lambda params, self: {"cwd": params["cwd"]})


@variant("turns")
def may_write_in_the_workspace() -> None:
    """Starts the thread with workspace-write, as an editor may: only the comparison with the document's example fails."""
    with_params("thread/start", sandbox="workspace-write")


@variant("turns")
def chooses_the_effort() -> None:
    """Starts turns with an effort of its own."""
    with_params("turn/start", effort="low")


@variant("turns")
def turns_without_a_folder() -> None:
    """Starts turns without a cwd."""
    after(Session, "turn_params", lambda params, *_: {name: params[name] for name in ("threadId", "input")})


@variant("turns")
def prompt_in_two_items() -> None:
    """Sends the prompt as two text items."""

    def halves(params: dict[str, Any], self: Session, prompt: str) -> dict[str, Any]:
        return {**params, "input": [{"type": "text", "text": text} for text in (prompt[:1], prompt[1:])]}

    after(Session, "turn_params", halves)


@variant("turns")
def thread_at_the_start() -> None:
    """Starts a thread before any prompt."""
    nothing = "\0"

    def advance(old: Any, self: Session) -> None:
        if self._thread is not None and nothing in self._prompts:
            self._prompts.remove(nothing)
        old(self)

    def run(old: Any, self: Session) -> None:
        self._prompts.append(nothing)
        self._advance()
        while self._thread is None:
            self.receive()
        old(self)

    patch(Session, "_advance", advance)
    patch(program, "run", run)


@variant("turns")
def a_thread_per_prompt() -> None:
    """Starts a thread for every prompt."""

    def end(old: Any, self: Session, status: str) -> None:
        self._thread = None
        old(self, status)

    patch(Session, "_end", end)


@variant("turns")
def makes_up_the_thread() -> None:
    """Uses an id of its own instead of the one that the server gave."""
    with_params("turn/start", threadId="thr_123")


@variant("turns")
def turn_in_the_home() -> None:
    """Starts turns in the home directory."""
    with_params("turn/start", cwd=os.environ.get("HOME", "/"))


@variant("turns")
def prompt_on_one_line() -> None:
    """Collapses the white space of a prompt."""
    patch(Session, "prompt", lambda old, self, text: old(self, " ".join(text.split())))


@variant("turns")
def prompt_stripped() -> None:
    """Strips the white space around a prompt."""
    patch(Session, "prompt", lambda old, self, text: old(self, text.strip()))


@variant("turns")
def prompt_in_ascii() -> None:
    """Drops what is not ASCII from a prompt."""
    patch(Session, "prompt", lambda old, self, text: old(self, text.encode("ascii", "ignore").decode()))


@variant("turns")
def prompt_cut_by_lines() -> None:
    """Sends each line of a prompt as it is, so that its message is no line."""
    after(Connection, "encode", lambda line, *_: line[:-1].replace(b"\\n", b"\n") + b"\n")


@variant("turns")
def all_prompts_again() -> None:
    """Sends the earlier prompts along with each new one."""
    said: list[str] = []
    patch(Session, "turn_params", lambda old, self, prompt: (said.append(prompt), old(self, "\n".join(said)))[1])


@variant("handshake", "turns")
def capabilities_of_a_later_version() -> None:
    """Sends a member of initialize that only later versions know."""
    with_params("initialize", capabilities={"optOutNotificationMethods": []})


@variant("turns")
def unknown_keys() -> None:
    """Sends a key that another API has."""
    with_params("turn/start", choiceCount=1)


@variant("turns", "approvals")
def unknown_keys_in_replies() -> None:
    """Says when a decision was made."""
    outgoing(lambda message: {**message, "result": {**message["result"], "at": 7}} if "result" in message else message)


@variant("turns", "streaming")
def only_the_first_turn() -> None:
    """Shows nothing of the second turn."""
    ends: list[str] = []

    def show(what: str, fields: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
        if what == "end":
            ends.append(what)
        return None if what == "text" and ends else (what, fields)

    reported(show)


# -- streaming -------------------------------------------------------------------------------------------------------------


@variant("streaming")
def drops_a_delta() -> None:
    """Drops every third delta."""
    count: list[int] = []

    def delta(old: Any, self: Session, params: dict[str, Any]) -> None:
        count.append(1)
        if len(count) % 3:
            old(self, params)

    patch(Session, "on_item_agentMessage_delta", delta)


@variant("streaming")
def drops_an_equal_delta() -> None:
    """Drops a delta that is equal to the delta before it."""
    last: list[Any] = [None]

    def delta(old: Any, self: Session, params: dict[str, Any]) -> None:
        if params.get("delta") != last[0]:
            old(self, params)
        last[0] = params.get("delta")

    patch(Session, "on_item_agentMessage_delta", delta)


@variant("streaming")
def strips_deltas() -> None:
    """Strips each delta."""
    patch(Session, "show", lambda old, self, item, text: old(self, item, text.strip()))


@variant("streaming")
def waits_for_the_end() -> None:
    """Shows the text when the turn is over."""
    held: list[dict[str, Any]] = []

    def show(old: Any, what: str, **fields: Any) -> None:
        if what == "text":
            held.append(fields)
            return
        if what == "end":
            old("text", text="".join(each["text"] for each in held))
            held.clear()
        old(what, **fields)

    patch(program, "report", show)


@variant("streaming")
def one_message_a_turn() -> None:
    """Shows the first message of a turn and no other."""
    patch(
        Session, "show", lambda old, self, item, text: old(self, item, text) if item in self._shown or not self._shown else None
    )


@variant("streaming", "faults")
def deltas_alone() -> None:
    """Takes text from deltas alone."""
    Session.on_item_completed = lambda self, params: None  # type: ignore[method-assign]


@variant("streaming")
def deltas_of_one_message_suffice() -> None:
    """Shows no completed message after any message of the turn."""
    patch(Session, "on_item_completed", lambda old, self, params: None if self._spoke else old(self, params))


@variant("streaming", "approvals")
def output_again() -> None:
    """Shows the whole output of a command after its deltas."""

    def completed(old: Any, self: Session, params: dict[str, Any]) -> None:
        self._shown.discard(params["item"]["id"] if params["item"].get("aggregatedOutput") else "")
        old(self, params)

    patch(Session, "on_item_completed", completed)


@variant("streaming", "faults")
def completed_again() -> None:
    """Shows the text of a completed message after its deltas."""

    def completed(old: Any, self: Session, params: dict[str, Any]) -> None:
        self._shown.clear()
        old(self, params)

    patch(Session, "on_item_completed", completed)


def on_event(kind: str, field: str) -> None:
    def event(self: Session, params: dict[str, Any]) -> None:
        self.show("event", str(params["msg"].get(field, "")))

    setattr(Session, f"on_codex_event_{kind}", event)


@variant("streaming")
def shows_event_deltas() -> None:
    """Shows the deltas of codex/event/* as well."""
    on_event("agent_message_delta", "delta")


@variant("streaming")
def shows_event_messages() -> None:
    """Shows the whole message of codex/event/agent_message as well."""
    on_event("agent_message", "message")


@variant("streaming")
def event_ends_the_turn() -> None:
    """Takes codex/event/task_complete for the end of the turn, and turn/completed for another."""

    def event(self: Session, params: dict[str, Any]) -> None:
        self._report("end", status="completed")

    Session.on_codex_event_task_complete = event  # type: ignore[attr-defined]


@variant("streaming")
def thinks_aloud() -> None:
    """Shows reasoning as the answer."""
    reported(lambda what, fields: ("text" if what == "reasoning" else what, fields))


@variant("streaming")
def answers_with_the_prompt() -> None:
    """Shows every message among the items, the user's own too."""

    def completed(old: Any, self: Session, params: dict[str, Any]) -> None:
        old(self, params)
        if params["item"]["type"] == "userMessage":
            self.show("user", params["item"]["content"][0]["text"])

    patch(Session, "on_item_completed", completed)


@variant("streaming")
def output_as_text() -> None:
    """Shows what commands print as the answer."""
    reported(lambda what, fields: ("text" if what == "output" else what, fields))


@variant("streaming")
def no_output() -> None:
    """Does not show what commands print."""
    reported(lambda what, fields: None if what == "output" else (what, fields))


@variant("streaming")
def listens_late() -> None:
    """Listens to a turn once turn/start is answered."""

    def message(old: Any, self: Session, given: dict[str, Any]) -> None:
        if "id" in given or self._turn is not None or not self._running:
            old(self, given)

    Session.on_turn_started = lambda self, params: None  # type: ignore[method-assign]
    patch(Session, "_message", message)


@variant("streaming")
def listens_from_the_next_read() -> None:
    """Begins to listen to a turn when the read that the response came in has been dealt with."""
    deaf: list[str] = []

    def receive(old: Any, self: Session) -> None:
        deaf.clear()
        old(self)

    def message(old: Any, self: Session, given: dict[str, Any]) -> None:
        if not deaf or "id" in given:
            old(self, given)

    patch(Session, "receive", receive)
    patch(Session, "_message", message)
    after(Session, "_turn_started", lambda *_: deaf.append("turn"))


@variant("streaming")
def listens_to_all() -> None:
    """Takes the messages of every thread for its own."""

    def message(old: Any, self: Session, given: dict[str, Any]) -> None:
        params = given.get("params")
        old(
            self, {**given, "params": {k: v for k, v in params.items() if k != "threadId"}} if isinstance(params, dict) else given
        )

    patch(Session, "_message", message)


# -- approvals -------------------------------------------------------------------------------------------------------------


@variant("approvals")
def hides_the_reason() -> None:
    """Does not say why something is asked."""
    reported(lambda what, fields: (what, {k: v for k, v in fields.items() if k != "reason"}))


@variant("approvals")
def hides_the_command() -> None:
    """Asks without saying which command."""
    reported(lambda what, fields: (what, {k: v for k, v in fields.items() if k != "command"}))


@variant("approvals")
def everything_is_a_command() -> None:
    """Calls every approval that of a command."""
    session.APPROVALS["item/fileChange/requestApproval"] = "command"


@variant("approvals")
def no_file_changes() -> None:
    """Knows the approval of commands alone."""
    session.APPROVALS.pop("item/fileChange/requestApproval")


@variant("approvals")
def dismiss_declines() -> None:
    """Sends decline when the picker is dismissed."""
    session.DECISIONS["dismiss"] = "decline"


@variant("approvals")
def decline_cancels() -> None:
    """Sends cancel when the user declines."""
    session.DECISIONS["decline"] = "cancel"


@variant("approvals")
def words_of_v1() -> None:
    """Says approved and denied, as v1 has it."""
    session.DECISIONS.update(accept="approved", decline="denied", dismiss="abort")


@variant("approvals")
def bare_decision() -> None:
    """Sends the decision itself as the result."""
    outgoing(lambda message: {**message, "result": message["result"]["decision"]} if "result" in message else message)


@variant("approvals")
def answers_twice() -> None:
    """Sends each decision twice."""
    patch(Connection, "answer", lambda old, self, *given: (old(self, *given), old(self, *given)))


@variant("approvals")
def id_as_text() -> None:
    """Turns the server's ids into strings."""
    patch(Connection, "answer", lambda old, self, request, result: old(self, {**request, "id": str(request["id"])}, result))


@variant("approvals")
def id_as_number() -> None:
    """Turns the server's ids that consist of digits into numbers, as a language does that does not tell them apart."""

    def answer(old: Any, self: Connection, request: dict[str, Any], result: Any) -> None:
        given = request["id"]
        old(self, {**request, "id": int(given) if isinstance(given, str) and given.isdigit() else given}, result)

    patch(Connection, "answer", answer)


@variant("approvals")
def zero_is_no_id() -> None:
    """Takes a request with the id 0 for a notification."""
    incoming(lambda message: {k: v for k, v in message.items() if k != "id" or v or "method" not in message})


@variant("approvals")
def accepts_by_itself() -> None:
    """Accepts commands before the user has chosen."""

    def requested(old: Any, self: Session, message: dict[str, Any], params: dict[str, Any]) -> None:
        if self.connection is not None and message["method"] in session.APPROVALS:
            self.connection.answer(message, {"decision": "accept"})
        old(self, message, params)

    patch(Session, "requested", requested)


def remembering(choice: str, key: Callable[[dict[str, Any]], Any], *, per_turn: bool) -> None:
    """Let one choice of the user stand for every request that says the same, in the turn or for good."""
    chosen: set[Any] = set()

    def requested(old: Any, self: Session, message: dict[str, Any], params: dict[str, Any]) -> None:
        if message["method"] in session.APPROVALS and key(message) in chosen and self.connection is not None:
            self.connection.answer(message, {"decision": choice})
        else:
            old(self, message, params)

    def decide(old: Any, self: Session, approval: Any, decision: str) -> None:
        if decision == choice and approval in self._asked:
            chosen.add(key(self._asked[approval]))
        old(self, approval, decision)

    patch(Session, "requested", requested)
    patch(Session, "decide", decide)
    if per_turn:
        patch(Session, "_end", lambda old, self, status: (chosen.clear(), old(self, status)))


@variant("approvals")
def accepted_is_accepted() -> None:
    """Accepts a command by itself that the user has accepted before in the turn."""
    remembering("accept", lambda message: message["params"].get("command") or object(), per_turn=True)


@variant("approvals")
def changes_are_accepted() -> None:
    """Accepts every further change of a kind that the user has accepted once."""
    remembering("accept", lambda message: "command" not in message["params"] or object(), per_turn=False)


@variant("approvals")
def declined_is_declined() -> None:
    """Declines a command by itself that the user has declined before, in whatever turn."""
    remembering("decline", lambda message: message["params"].get("command") or object(), per_turn=False)


@variant("approvals")
def answers_the_latest() -> None:
    """Gives every decision to the approval that was asked for last."""
    patch(Session, "decide", lambda old, self, approval, decision: old(self, max(self._asked, default=approval), decision))


@variant("approvals")
def one_at_a_time() -> None:
    """Forgets an approval when another is asked for."""

    def requested(old: Any, self: Session, message: dict[str, Any], params: dict[str, Any]) -> None:
        self._asked.clear()
        old(self, message, params)

    patch(Session, "requested", requested)


@variant("approvals", "spelling")
def insists_on_camel_case() -> None:
    """Refuses approvals without a threadId."""

    def requested(old: Any, self: Session, message: dict[str, Any], params: dict[str, Any]) -> None:
        if "threadId" in params:
            old(self, message, params)
        elif self.connection is not None:
            self.connection.refuse(message)

    patch(Session, "requested", requested)


@variant("streaming")
def any_end_is_the_end() -> None:
    """Takes the end of any turn for the end of the one that runs."""

    def ended(old: Any, self: Session, params: dict[str, Any]) -> None:
        self._ended.clear()
        old(self, params)

    patch(Session, "on_turn_completed", ended)


# -- interrupt -------------------------------------------------------------------------------------------------------------


@variant("interrupt")
def interrupt_without_turn() -> None:
    """Names the thread alone."""
    asked_for("turn/interrupt", lambda m: {**m, "params": {"threadId": m["params"]["threadId"]}})


@variant("interrupt")
def interrupt_as_notification() -> None:
    """Sends turn/interrupt without an id."""
    asked_for("turn/interrupt", lambda m: {key: value for key, value in m.items() if key != "id"})


@variant("interrupt")
def interrupts_the_first_turn() -> None:
    """Names the first turn of the conversation, whichever runs."""
    named: list[str] = []

    def first(message: dict[str, Any]) -> dict[str, Any]:
        named.append(message["params"]["turnId"])
        return {**message, "params": {**message["params"], "turnId": named[0]}}

    def know(old: Any, self: Session, turn: Any) -> None:
        if isinstance(turn, str):
            named.append(turn)
        old(self, turn)

    patch(Session, "_know_turn", know)
    asked_for("turn/interrupt", first)


@variant("interrupt")
def interrupt_is_the_end() -> None:
    """Takes the response to turn/interrupt for the end of the turn, and turn/completed for another one."""

    def interrupt(self: Session) -> None:
        if self._turn is not None and self.connection is not None:
            params = {"threadId": self._thread, "turnId": self._turn}
            self.connection.request(
                "turn/interrupt", params, lambda result: self._report("end", status="interrupted"), self._complain
            )

    Session._interrupt = interrupt  # type: ignore[method-assign]


@variant("interrupt")
def interrupt_drops_the_thread() -> None:
    """Starts a new thread after an interrupt."""

    def end(old: Any, self: Session, status: str) -> None:
        if status == "interrupted":
            self._thread = None
        old(self, status)

    patch(Session, "_end", end)


@variant("interrupt")
def interrupt_blocks() -> None:
    """Sends turn/interrupt whenever it is told to, and takes no prompt until it is answered."""

    def interrupt(self: Session) -> None:
        if self.connection is not None:
            self._opening = True
            params = {"threadId": self._thread, "turnId": self._turn or "0"}
            self.connection.request("turn/interrupt", params, lambda result: setattr(self, "_opening", False), self._complain)

    Session.interrupt = interrupt  # type: ignore[method-assign]


@variant("interrupt")
def early_interrupt_is_lost() -> None:
    """Forgets an interrupt that comes before the turn's id is known."""
    patch(Session, "interrupt", lambda old, self: old(self) if self._turn is not None else None)


@variant("interrupt")
def approvals_are_modal() -> None:
    """Takes no interrupt while an approval is open."""
    patch(Session, "interrupt", lambda old, self: None if self._asked else old(self))


@variant("interrupt")
def stale_approvals_kill() -> None:
    """Falls over when an approval is decided that is gone."""
    patch(Session, "decide", lambda old, self, approval, decision: self._asked[approval] and old(self, approval, decision))


# -- what is shown -----------------------------------------------------------------------------------------------------------


@variant("shown")
def no_diff() -> None:
    """Does not show diffs."""
    reported(lambda what, fields: None if what == "diff" else (what, fields))


@variant("shown")
def diff_trimmed() -> None:
    """Strips the diff."""
    reported(lambda what, fields: (what, {"diff": fields["diff"].strip()}) if what == "diff" else (what, fields))


@variant("shown")
def first_diff_only() -> None:
    """Shows the first diff of a turn and no update."""
    seen: list[str] = []
    reported(lambda what, fields: None if what == "diff" and (seen.append(what) or len(seen) > 1) else (what, fields))  # type: ignore


@variant("shown")
def no_plan() -> None:
    """Does not show plans."""
    reported(lambda what, fields: None if what == "plan" else (what, fields))


@variant("shown")
def plans_are_merged() -> None:
    """Keeps the steps that only an earlier plan has."""
    steps: dict[str, dict[str, Any]] = {}

    def merged(what: str, fields: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        if what == "plan":
            steps.update({step["step"]: step for step in fields["steps"]})
        return what, {"steps": list(steps.values())} if what == "plan" else fields

    reported(merged)


@variant("shown")
def plan_without_status() -> None:
    """Shows every step of a plan as pending."""
    reported(
        lambda what, fields: (
            (what, {"steps": [{**step, "status": "pending"} for step in fields["steps"]]}) if what == "plan" else (what, fields)
        )
    )


@variant("shown", "lifecycle", "faults")
def hides_errors() -> None:
    """Does not show errors."""
    reported(lambda what, fields: None if what == "error" else (what, fields))


@variant("shown")
def error_in_turn_unseen() -> None:
    """Does not look at the error of turn/completed."""
    incoming(lambda m: {**m, "params": _without_error(m["params"])} if m.get("method") == "turn/completed" else m)


def _without_error(params: dict[str, Any]) -> dict[str, Any]:
    return {**params, "turn": {key: value for key, value in params["turn"].items() if key != "error"}}


@variant("shown")
def everything_completes() -> None:
    """Calls every end completed."""
    reported(lambda what, fields: (what, {"status": "completed"}) if what == "end" else (what, fields))


@variant("shown")
def first_error_ends() -> None:
    """Ends the turn at the first error, though the server goes on."""

    def error(old: Any, self: Session, params: dict[str, Any]) -> None:
        old(self, params)
        self._end("failed")

    patch(Session, "on_error", error)


@variant("shown")
def final_error_ends() -> None:
    """Ends the turn at an error that Codex does not retry, though the server sends more of the turn."""

    def error(old: Any, self: Session, params: dict[str, Any]) -> None:
        old(self, params)
        if not params.get("willRetry"):
            self._end("failed")

    patch(Session, "on_error", error)


@variant("lifecycle")
def approvals_outlive_their_server() -> None:
    """Sends a decision about an approval of a server that has ended to the next server."""

    def disconnected(old: Any, self: Session, why: str) -> None:
        asked = dict(self._asked)
        old(self, why)
        self._asked.update(asked)

    patch(Session, "disconnected", disconnected)


@variant("lifecycle")
def failed_prompts_stay() -> None:
    """Keeps the prompts that failed because the server ended, and sends them before the next one."""

    def disconnected(old: Any, self: Session, why: str) -> None:
        waiting = list(self._prompts)
        old(self, why)
        self._prompts += waiting

    patch(Session, "disconnected", disconnected)


@variant("shown")
def refusals_are_lost() -> None:
    """Waits for ever when a request is answered with an error."""
    patch(Connection, "answered", lambda old, self, reply: None if "error" in reply else old(self, reply))


# -- the unknown -------------------------------------------------------------------------------------------------------------


@variant("unknown")
def params_are_objects() -> None:
    """Falls over when params are no object."""
    incoming(lambda message: (dict(message.get("params") or {}), message)[1])


@variant("unknown")
def answers_notifications() -> None:
    """Refuses unknown notifications as if they were requests."""

    def message(old: Any, self: Session, given: dict[str, Any]) -> None:
        if "id" not in given and "novelty" in given["method"] and self.connection is not None:
            self.connection.write({"id": None, "error": {"code": -32601, "message": "Method not found"}})
        old(self, given)

    patch(Session, "_message", message)


@variant("unknown", "streaming")
def every_item_has_text() -> None:
    """Falls over when an item is no message."""
    patch(Session, "on_item_completed", lambda old, self, params: (params["item"]["text"], old(self, params)))


@variant("unknown", "faults")
def silent_on_unknown() -> None:
    """Says nothing to a request that it does not know."""
    Connection.refuse = lambda self, request: None  # type: ignore[method-assign]


@variant("unknown")
def agrees_to_all() -> None:
    """Answers a request that it does not know with an empty result."""
    Connection.refuse = lambda self, request: self.answer(request, {})  # type: ignore[method-assign]


@variant("unknown")
def refuses_without_code() -> None:
    """Refuses with a text in the place of the error object."""
    Connection.refuse = lambda self, request: self.write({"id": request["id"], "error": "unknown"})  # type: ignore[method-assign]


@variant("unknown")
def refuses_after_approvals() -> None:
    """Takes no other request while an approval is open."""

    def requested(old: Any, self: Session, message: dict[str, Any], params: dict[str, Any]) -> None:
        if not self._asked:
            old(self, message, params)

    patch(Session, "requested", requested)


# -- spelling ----------------------------------------------------------------------------------------------------------------


@variant("spelling", "faults")
def reads_camel_case_alone() -> None:
    """Reads camelCase alone."""
    session.field = lambda value, name: value.get(name) if isinstance(value, dict) else None
    interrupt_needs_started()


def interrupt_needs_started() -> None:
    """As a client that learns its turn from the params of its deltas."""

    def delta(old: Any, self: Session, params: dict[str, Any]) -> None:
        self._turn = params.get("turnId")
        old(self, params)

    patch(Session, "on_item_agentMessage_delta", delta)


@variant("spelling", "streaming")
def reads_snake_case_alone() -> None:
    """Reads snake_case alone, as the document has it, and takes nothing whose thread it cannot read."""
    import re

    def snake(value: Any, name: str) -> Any:
        return value.get(re.sub("[A-Z]", lambda m: "_" + m[0].lower(), name)) if isinstance(value, dict) else None

    session.field = snake

    def delta(old: Any, self: Session, params: dict[str, Any]) -> None:
        if "thread_id" in params:
            old(self, params)

    patch(Session, "on_item_agentMessage_delta", delta)


@variant("spelling", "turns", "interrupt")
def speaks_snake_case() -> None:
    """Spells its own fields as the document says that the server does."""
    names = {"threadId": "thread_id", "turnId": "turn_id", "clientInfo": "client_info"}

    def spell(message: dict[str, Any]) -> dict[str, Any]:
        params = message.get("params")
        return {**message, "params": {names.get(k, k): v for k, v in params.items()}} if isinstance(params, dict) else message

    outgoing(spell)


# -- framing -----------------------------------------------------------------------------------------------------------------


@variant("framing")
def a_read_is_a_message() -> None:
    """Takes each read for one message."""
    Connection.lines = lambda self, data: [data]  # type: ignore[method-assign]


@variant("framing", "faults")
def a_read_is_whole_lines() -> None:
    """Cuts each read into lines, and keeps nothing for the next."""
    Connection.lines = lambda self, data: data.split(b"\n")  # type: ignore[method-assign]


@variant("framing")
def one_line_a_read() -> None:
    """Drops what stands behind the first line of a read."""
    after(Connection, "lines", lambda lines, *_: lines[:1])


@variant("framing")
def decodes_pieces() -> None:
    """Decodes each read by itself, so that a character that it ends in is lost."""
    patch(Connection, "lines", lambda old, self, data: old(self, data.decode("utf-8", "ignore").encode()))


@variant("framing")
def splits_at_line_separators() -> None:
    """Cuts text into lines where Unicode does."""
    after(Connection, "lines", lambda lines, *_: [p.encode() for line in lines for p in line.decode().splitlines()])


@variant("framing", "faults")
def carriage_return_is_an_error() -> None:
    """Does not take a line that ends in a carriage return."""
    patch(Connection, "decode", lambda old, self, line: None if line.endswith(b"\r") else old(self, line))


@variant("framing", "faults")
def short_lines_alone() -> None:
    """Gives up on lines beyond 64 KB."""
    patch(Connection, "decode", lambda old, self, line: None if len(line) > 65536 else old(self, line))


@variant("framing")
def unescapes_by_itself() -> None:
    """Unescapes text a second time."""
    patch(Session, "show", lambda old, self, item, text: old(self, item, text.replace("\\n", "\n").replace("\\u0041", "A")))


@variant("framing")
def no_surrogate_pairs() -> None:
    """Takes each half of an escaped pair for a character."""

    def decode(old: Any, self: Connection, line: bytes) -> Any:
        return old(self, line.replace(b"\\ud83d\\ude00", b"??"))

    patch(Connection, "decode", decode)


@variant("framing", "faults")
def every_line_is_a_message() -> None:
    """Falls over at a line that is no JSON."""
    Connection.decode = lambda self, line: json.loads(line)  # type: ignore[method-assign]


@variant("framing", "faults")
def any_object_is_a_message() -> None:
    """Falls over at an answer that nobody waits for."""
    patch(Connection, "answered", lambda old, self, reply: (self._waiting[reply["id"]], old(self, reply)))


@variant("framing")
def looks_for_the_method_first() -> None:
    """Knows a notification by how its line begins."""
    patch(Connection, "decode", lambda old, self, line: old(self, line) if line.startswith((b'{"method"', b'{"id"')) else None)


# -- lifecycle ---------------------------------------------------------------------------------------------------------------


@variant("lifecycle", "faults")
def waits_for_the_dead() -> None:
    """Does not notice that the server is gone."""

    def disconnected(self: Session, why: str) -> None:
        self.close()
        self._reset()
        self._prompts.clear()

    Session.disconnected = disconnected  # type: ignore[method-assign]


@variant("lifecycle")
def a_clean_exit_is_an_end() -> None:
    """Takes a server that exits with status 0 for one that has said all."""

    def disconnected(old: Any, self: Session, why: str) -> None:
        if "(exit status 0)" in why and self._running:
            self.close()
            self._reset()
            self._report("end", status="completed")
        else:
            old(self, why)

    patch(Session, "disconnected", disconnected)


@variant("lifecycle")
def keeps_the_old_thread() -> None:
    """Goes on with the old thread on a new server."""

    def disconnected(old: Any, self: Session, why: str) -> None:
        thread = self._thread
        old(self, why)
        self._thread = thread

    patch(Session, "disconnected", disconnected)


@variant("lifecycle")
def no_second_handshake() -> None:
    """Takes a new server for initialized."""

    def disconnected(old: Any, self: Session, why: str) -> None:
        ready = self._ready
        old(self, why)
        self._ready = ready

    patch(Session, "disconnected", disconnected)


@variant("lifecycle")
def never_again() -> None:
    """Starts one server and no second."""
    started: list[int] = []

    def begin(old: Any, self: Connection, *given: Any) -> None:
        if started:
            raise Disconnected("codex is not running.")
        started.append(1)
        old(self, *given)

    patch(Connection, "__init__", begin)


@variant("lifecycle")
def approvals_outlive_the_server() -> None:
    """Answers to a new server what the old one has asked."""

    def disconnected(old: Any, self: Session, why: str) -> None:
        asked = dict(self._asked)
        old(self, why)
        self._asked.update(asked)
        if asked:
            self._prompts.append("two")
            self._advance()
            self._prompts.clear()
            self._opening = False

    patch(Session, "disconnected", disconnected)


@variant("lifecycle")
def falls_over_without_codex() -> None:
    """Falls over when codex cannot be started."""

    def begin(self: Connection, command: Any, on_message: Any) -> None:
        subprocess.Popen(["/nowhere/at/all/codex"])

    if not os.path.exists(sys.argv[-1]):
        Connection.__init__ = begin  # type: ignore[method-assign]


@variant("lifecycle", "faults")
def impatient() -> None:
    """Gives up when an answer takes more than a hundredth of a second."""

    def receive(old: Any, self: Connection) -> None:
        if self._waiting and not select.select([self], [], [], PATIENCE)[0]:
            raise Disconnected("codex does not answer.")
        old(self)

    patch(Session, "receive", lambda old, self: old(self))
    patch(Connection, "receive", receive)
    old_select = select.select
    program.select = type("Select", (), {"select": staticmethod(lambda r, w, x: (old_select(r, w, x, 0.02)[0] or r[1:], [], []))})  # type: ignore


@variant("lifecycle")
def asks_again() -> None:
    """Sends initialize again when the answer takes more than a hundredth of a second."""
    impatient()

    def receive(self: Connection) -> None:
        if self._waiting and not select.select([self], [], [], PATIENCE)[0]:
            self.write({"id": 99, "method": "initialize", "params": {"clientInfo": session.CLIENT_INFO}})
            return
        if select.select([self], [], [], 0)[0]:
            original(self)

    Connection.receive = receive  # type: ignore[method-assign]


original = Connection.receive


def spawned_with(action: tuple[int, int, int]) -> None:
    """Do one thing more to the descriptors of a server that is started."""

    def spawn(old: Any, *given: Any, file_actions: list[Any], **named: Any) -> Any:
        return old(*given, file_actions=[*file_actions, action], **named)

    patch(os, "posix_spawnp", spawn)


@variant("lifecycle")
def stderr_is_a_pipe() -> None:
    """Gives the server a pipe for its stderr and does not read it."""
    unread = os.pipe()[1]
    spawned_with((os.POSIX_SPAWN_DUP2, unread, 2))


@variant("lifecycle")
def stderr_is_stdout() -> None:
    """Takes every line of stderr for an error of the turn."""
    spawned_with((os.POSIX_SPAWN_DUP2, 1, 2))
    after(Connection, "decode", lambda m, self, line: m or {"method": "error", "params": {"error": {"message": str(line)}}})


@variant("lifecycle")
def leaves_the_server() -> None:
    """Closes the server's stdin and goes, whatever the server does."""

    def stop(self: Connection, *, patient: bool) -> None:
        os.close(self._process.stdin)

    Connection.stop = stop  # type: ignore[method-assign]


@variant("lifecycle")
def kills_at_once() -> None:
    """Kills the server without giving it a chance."""
    patch(Connection, "stop", lambda old, self, **named: (self._process.kill(), old(self, **named)))


@variant("lifecycle")
def never_goes() -> None:
    """Does not end with its stdin."""
    after(program, "main", lambda status, *_: time.sleep(60) or status)


@variant("lifecycle", "faults")
def exits_with_one() -> None:
    """Says by its exit status that something went wrong when nothing did."""
    after(program, "main", lambda *_: 1)


# -- faults ------------------------------------------------------------------------------------------------------------------


@variant("faults")
def complains_of_the_unknown() -> None:
    """Tells the user of every notification that it does not know."""

    def heard(old: Any, self: Session, message: dict[str, Any]) -> None:
        if "id" not in message and message["method"].startswith("fake/"):
            program.report("error", message=f"What is {message['method']}?")
        old(self, message)

    patch(Session, "_message", heard)


@variant("faults")
def passes_over_the_jsonrpc_member() -> None:
    """Takes what says which JSON-RPC it is for no message of this server, which says it nowhere."""
    incoming(lambda message: None if "jsonrpc" in message else message)


@variant("faults")
def needs_turn_started() -> None:
    """Shows nothing of a turn that turn/started has not opened."""
    opened: list[bool] = []

    def told(message: dict[str, Any]) -> dict[str, Any] | None:
        opened.extend([True] * (message.get("method") == "turn/started"))
        return None if message.get("method") in ("item/agentMessage/delta", "item/completed") and not opened else message

    incoming(told)


@variant("faults")
def whole_messages_alone() -> None:
    """Shows a message when it is completed, and no delta before."""
    incoming(lambda message: None if message.get("method") == "item/agentMessage/delta" else message)


@variant("faults")
def a_blank_line_is_the_end() -> None:
    """Takes a blank line for the end of the server."""

    def decode(old: Any, self: Connection, line: bytes) -> Any:
        if not line.strip():
            raise Disconnected("codex has said nothing.")
        return old(self, line)

    patch(Connection, "decode", decode)


@variant("faults")
def every_object_has_a_method() -> None:
    """Falls over at an object that is neither a call nor an answer."""

    def decode(message: dict[str, Any] | None, *_: Any) -> Any:
        return message if message is None or "id" in message else {**message, "method": message["method"]}

    after(Connection, "decode", decode)


@variant("faults")
def every_completed_is_an_end() -> None:
    """Reports an end for each turn/completed: for the second one of a turn, too."""

    def completed(old: Any, self: Session, params: dict[str, Any]) -> None:
        if params["turn"]["id"] in self._ended:
            program.report("end", status="completed")
        old(self, params)

    patch(Session, "on_turn_completed", completed)


def main(argv: list[str]) -> int:
    name, *rest = argv
    if name != "reference":
        VARIANTS[name]()
    return program.main(rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
