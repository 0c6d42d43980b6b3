"""A client that plays a described conversation: the same description drives the real Codex and the scripted fake.

A conversation is JSON, so that a counterexample can be read, kept and played again:

    {"api": "v2" or "v1", "threads": 1, "settings": {...of thread/start or newConversation}, "steps": [
        {"thread": 0, "text": "...", "params": {...of turn/start}, "decide": {"call_1": decision}, "answer": {"call_2": result},
         "error": ["call_3"], "interrupt": "the method after which to interrupt", "steer_after": "a method", "steer": "text"}]}

`decide` is by call id, with "*" for all others; so is `answer` (dynamic tools, user input).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.core.jsonrpc import kind
from harness.shell.client import Client

CLIENT = {"name": "codex-replay", "title": None, "version": "1.0.0"}
ENDED = "turn/completed"
V1_DECISIONS = {"accept": "approved", "acceptForSession": "approved_for_session", "decline": "denied", "cancel": "abort"}


def initialize(client: Client) -> Any:
    result = client.request("initialize", {"clientInfo": CLIENT})
    client.notify("initialized")
    return result


class Conversation:
    """Plays one description to a client's server; `release` opens a gate of the model, where there is one."""

    def __init__(self, client: Client, told: dict[str, Any], work: str, reached: Callable[[str], Any] | None = None) -> None:
        self.client, self.told, self.work = client, told, work
        self.reached = reached
        self.v1 = told["api"] == "v1"
        self.threads: list[str] = []

    def play(self) -> None:
        for number in range(self.told.get("threads", 1)):
            self.open_thread(number)
        for step in self.told["steps"]:
            for one in step if isinstance(step, list) else [step]:
                self.begin(one)
            for one in step if isinstance(step, list) else [step]:
                self.finish(one)

    def open_thread(self, number: int) -> None:
        settings = {"cwd": self.work, **self.told.get("settings", {})}
        if self.v1:
            opened = self.client.request("newConversation", settings)["conversationId"]
            self.client.request("addConversationListener", {"conversationId": opened})
            self.client.notification("codex/event/mcp_startup_complete", conversationId=opened)
        else:
            opened = self.client.request("thread/start", settings)["thread"]["id"]
            self.client.notification("codex/event/mcp_startup_complete", conversationId=opened)
            self.client.wait(
                "thread/started", lambda m: m.get("method") == "thread/started" and m["params"]["thread"]["id"] == opened
            )
        self.threads.append(opened)

    def begin(self, step: dict[str, Any]) -> None:
        thread = self.threads[step.get("thread", 0)]
        if self.v1:
            items = [{"type": "text", "data": {"text": step["text"]}}]
            if "params" in step:
                turn = {
                    "cwd": self.work,
                    "approvalPolicy": "never",
                    "sandboxPolicy": {"type": "read-only"},
                    "model": "gpt-5.2-codex",
                    "summary": "auto",
                    **step["params"],
                }
                self.client.request("sendUserTurn", {"conversationId": thread, "items": items, **turn})
            else:
                self.client.request("sendUserMessage", {"conversationId": thread, "items": items})
        else:
            params = {"threadId": thread, "input": [{"type": "text", "text": step["text"]}], **step.get("params", {})}
            step["turn"] = self.client.request("turn/start", params)["turn"]["id"]

    def finish(self, step: dict[str, Any]) -> None:
        thread = self.threads[step.get("thread", 0)]
        after = step.get("interrupt") or step.get("steer_after")

        def concerns(message: Any) -> bool:
            params = message.get("params") if isinstance(message, dict) else None
            if not isinstance(params, dict) or thread not in (params.get("threadId"), params.get("conversationId")):
                return False
            if kind(message) == "request":
                return True
            return message["method"] == ENDED or message["method"] == after

        while True:
            message = self.client.wait(f"what ends the turn of {thread}", concerns)
            if kind(message) == "request":
                if message["method"] == after:
                    after = None
                    self.break_in(step, thread)
                else:
                    self.reply(step, message)
            elif message["method"] == ENDED:
                return
            elif after is not None:
                after = None
                self.break_in(step, thread)

    def break_in(self, step: dict[str, Any], thread: str) -> None:
        if "gate" in step and self.reached is not None:
            self.reached(step["gate"])
        if "steer" in step:
            steer = {**step, "text": step["steer"]}
            self.begin(steer)
        elif self.v1:
            self.client.post("interruptConversation", {"conversationId": thread})
        else:
            self.client.post("turn/interrupt", {"threadId": thread, "turnId": step["turn"]})

    def reply(self, step: dict[str, Any], request: Any) -> None:
        params = request["params"]
        call = params.get("callId") or params.get("itemId")
        if call in step.get("error", ()):
            self.client.send({"id": request["id"], "error": {"code": -32000, "message": "no"}})
            return
        if request["method"] in ("item/tool/call", "item/tool/requestUserInput"):
            answers = step.get("answer", {})
            self.client.reply(request, answers[call] if call in answers else answers["*"])
            return
        decisions = step.get("decide", {})
        decision = decisions[call] if call in decisions else decisions.get("*", "accept")
        if self.v1 and isinstance(decision, str):
            decision = V1_DECISIONS.get(decision, decision)
        self.client.reply(request, {"decision": decision})
