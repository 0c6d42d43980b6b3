"""A client that plays a described conversation: the same description drives the real Codex and the scripted fake.

A conversation is JSON, so that a counterexample can be read, kept and played again:

    {"api": "v2" or "v1", "threads": 1, "raw": true, "settings": {...of thread/start or newConversation}, "steps": [
        {"thread": 0, "text": "...", "params": {...of turn/start}, "decide": {"call_1": decision}, "answer": {"call_2": result},
         "interrupt": "the method after which to interrupt", "steer": "text", "steer_after": "a method", "gate": "name"},
        {"input": [...items of turn/start, in place of the text...]},      or "items": those of v1
        {"thread": 0, "call": "thread/read", "params": {...}},
        {"thread": 0, "review": {...the target of review/start}, "params": {...}},
        {"thread": 0, "load": "thread/resume", "params": {...}},          or thread/fork, resumeConversation, forkConversation
        [{...}, {...}]]}                                                  steps of several threads at once

A fork, a thread that is made of a history and one that a detached review is given come last of all threads, and are counted on.

With `raw` the client asks for raw items. `decide` is by call id, with "*" for all others; so is `answer` (dynamic tools, user
input). A "cancel" and an interrupt wait until the model's reply has been read to its end, where the reply has one: before that
the real server may or may not count it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.jsonrpc import kind

CLIENT = {"name": "codex-replay", "title": None, "version": "1.0.0"}
ENDED = "turn/completed"
COUNTED = "codex/event/token_count"
V1_DECISIONS = {"accept": "approved", "acceptForSession": "approved_for_session", "decline": "denied", "cancel": "abort"}


class AnyClient(Protocol):
    """What of `codex_replay.shell.rpc.client.Client` a conversation needs."""

    timeline: list[Frame]

    def notify(self, method: str) -> None: ...
    def post(self, method: str, params: Any) -> Any: ...
    def request(self, method: str, params: Any) -> Any: ...
    def call(self, method: str, params: Any) -> Any: ...
    def reply(self, request: Any, result: Any) -> None: ...
    def wait(self, what: str, matches: Callable[[Any], bool]) -> Any: ...


def initialize(client: AnyClient) -> Any:
    result = client.request("initialize", {"clientInfo": CLIENT})
    client.notify("initialized")
    return result


class Gates(Protocol):
    """The gates of the model, where there are any (`codex_replay.shell.http.backend_process.BackendSession`)."""

    def wait_at_gate(self, gate: str) -> bool: ...
    def release(self, gate: str) -> None: ...


class Conversation:
    """Plays one description to a client's server."""

    def __init__(self, client: AnyClient, told: dict[str, Any], work: str, gates: Gates | None = None) -> None:
        self.client, self.told, self.work, self.gates = client, told, work, gates
        self.v1 = told["api"] == "v1"
        self.threads: list[str] = []
        self.paths: dict[str, Any] = {}  # where v1 says that a conversation is kept

    def play(self) -> None:
        for _ in range(self.told.get("threads", 1)):
            self.open_thread()
        for step in self.told["steps"]:
            steps = [{**one} for one in (step if isinstance(step, list) else [step])]
            for one in steps:
                self.begin(one)
            for one in steps:
                self.finish(one)

    def open_thread(self) -> None:
        settings = {"cwd": self.work, **self.told.get("settings", {})}
        if self.v1:
            opened = self.listen(self.client.request("newConversation", settings))
        else:
            opened = self.client.request("thread/start", {**settings, **self.raw})["thread"]["id"]
            self.client.wait("thread/started", lambda m: is_started(m, opened))
        self.client.wait("mcp_startup_complete", lambda m: is_about(m, opened, "codex/event/mcp_startup_complete"))
        self.threads.append(opened)

    @property
    def raw(self) -> dict[str, Any]:
        return {"experimentalRawEvents": True} if self.told.get("raw") else {}

    def listen(self, result: Any) -> str:
        """Listen to the conversation that this result of v1 has opened; return its id."""
        opened: str = result["conversationId"]
        self.paths[opened] = result["rolloutPath"]
        self.client.request("addConversationListener", {"conversationId": opened, **self.raw})
        return opened

    def load(self, step: dict[str, Any], thread: str) -> None:
        """Load a thread again, or a fork of it; where that is refused, nothing has changed."""
        named = {"conversationId" if self.v1 else "threadId": thread}
        reply = self.client.call(step["load"], {**named, **step.get("params", {})})
        if "error" in reply:
            return
        opened = self.listen(reply["result"]) if self.v1 else reply["result"]["thread"]["id"]
        if step["load"] == "thread/fork":
            self.client.wait("thread/started", lambda m: is_started(m, opened))
        self.client.wait("mcp_startup_complete", lambda m: is_about(m, opened, "codex/event/mcp_startup_complete"))
        if opened not in self.threads:
            self.threads.append(opened)

    def call(self, step: dict[str, Any], thread: str) -> Any:
        """Ask something that is answered at once, be it with a refusal."""
        named = {"conversationId": thread} if self.v1 else {"threadId": thread}
        if step["call"] == "archiveConversation":
            named["rolloutPath"] = self.paths[thread]
        return self.client.call(step["call"], {**named, **step.get("params", {})})

    def begin(self, step: dict[str, Any]) -> None:
        thread = self.threads[step.get("thread", 0)]
        if "call" in step:
            self.call(step, thread)
        elif "load" in step:
            self.load(step, thread)
        elif "review" in step:
            begun = self.client.request("review/start", {"threadId": thread, "target": step["review"], **step.get("params", {})})
            step["turn"] = begun["turn"]["id"]
            if begun["reviewThreadId"] not in self.threads:
                self.threads.append(begun["reviewThreadId"])
            step["thread"] = self.threads.index(begun["reviewThreadId"])
        elif self.v1:
            items = step["items"] if "items" in step else [{"type": "text", "data": {"text": step["text"]}}]
            params = {"conversationId": thread, "items": items}
            self.client.request("sendUserTurn" if "params" in step else "sendUserMessage", {**params, **step.get("params", {})})
        else:
            items = step["input"] if "input" in step else [{"type": "text", "text": step["text"]}]
            params = {"threadId": thread, "input": items, **step.get("params", {})}
            step["turn"] = self.client.request("turn/start", params)["turn"]["id"]

    def finish(self, step: dict[str, Any]) -> None:
        if "call" in step or "load" in step:
            return
        thread = self.threads[step.get("thread", 0)]
        after = step.get("interrupt") or step.get("steer_after")
        while True:
            message = self.client.wait(f"the end of the turn of {thread}", lambda m, a=after: concerns(m, thread, a))
            if message["method"] == after:
                after = None
                self.break_in(step, thread, message)
            elif kind(message) == "request":
                self.reply(step, thread, message)
            elif message["method"] == ENDED:
                return

    def break_in(self, step: dict[str, Any], thread: str, message: Any) -> None:
        if kind(message) == "request" or step.get("whole"):
            self.counted(thread)
        if "gate" in step and self.gates is not None:
            self.gates.wait_at_gate(step["gate"])
        if "steer" in step:
            self.begin(
                {**step, "text": step["steer"], "params": step.get("steer_params", {})}
                if not self.v1
                else {**step, "text": step["steer"]}
            )
            if "gate" in step and self.gates is not None:
                self.gates.release(step["gate"])
        elif self.v1:
            self.client.post("interruptConversation", {"conversationId": thread})
        else:
            self.client.post("turn/interrupt", {"threadId": thread, "turnId": step["turn"]})

    def counted(self, thread: str) -> None:
        """Wait until the usage of the turn's first reply is told: the second count of the turn."""
        for _ in range(2):
            self.client.wait("token_count", lambda m: is_about(m, thread, COUNTED))

    def reply(self, step: dict[str, Any], thread: str, request: Any) -> None:
        params = request["params"]
        call = params.get("callId") or params.get("itemId")
        if request["method"] in ("item/tool/call", "item/tool/requestUserInput"):
            answers = step.get("answer", {})
            self.client.reply(request, answers[call] if call in answers else answers["*"])
            return
        decisions = step.get("decide", {})
        decision = decisions[call] if call in decisions else decisions.get("*", "accept")
        if decision == "cancel":
            self.counted(thread)
        if self.v1 and isinstance(decision, str):
            decision = V1_DECISIONS.get(decision, decision)
        self.client.reply(request, {"decision": decision})


def is_about(message: Any, thread: str, method: str) -> bool:
    """Tell whether this is such a notification of the thread."""
    if not isinstance(message, dict) or message.get("method") != method:
        return False
    return thread in (message["params"].get("conversationId"), message["params"].get("threadId"))


def is_started(message: Any, thread: str) -> bool:
    return isinstance(message, dict) and message.get("method") == "thread/started" and message["params"]["thread"]["id"] == thread


def concerns(message: Any, thread: str, after: str | None) -> bool:
    """Tell whether the client has something to do about the message: a request, the end of the turn, the place to break in."""
    params = message.get("params") if isinstance(message, dict) else None
    if not isinstance(params, dict) or thread not in (params.get("threadId"), params.get("conversationId")):
        return False
    return kind(message) == "request" or message["method"] in (ENDED, after)
