"""Two connections to one app-server that listens, and what each of them gets of a conversation about one thread."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from websockets.sync.client import ClientConnection, connect

#: The model's turns: an answer, another, one that asks before it runs a command, and answers to the end.
MODEL: list[Any] = [
    "One.",
    "Two.",
    {
        "items": [
            {
                "type": "function_call",
                "name": "exec_command",
                "arguments": {"cmd": "touch never", "sandbox_permissions": "require_escalated", "justification": "why"},
            }
        ]
    },
    {"items": ["More."], "times": "always"},
]
INITIALIZE = {"clientInfo": {"name": "two", "title": None, "version": "1"}, "capabilities": {"experimentalApi": True}}


class One:
    """A connection: `news` returns the messages that came since."""

    def __init__(self, websocket: ClientConnection) -> None:
        self._websocket = websocket
        self._next = 0
        self.got: list[dict[str, Any]] = []

    def send(self, message: dict[str, Any]) -> None:
        self._websocket.send(json.dumps(message))

    def ask(self, method: str, **params: Any) -> int:
        self._next += 1
        self.send({"id": self._next, "method": method, "params": params})
        return self._next

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Read to the first message that is wanted, which is returned."""
        limit = time.monotonic() + 30
        while True:
            try:
                message = json.loads(self._websocket.recv(timeout=max(0.0, limit - time.monotonic())))
            except TimeoutError:
                raise AssertionError(f"The awaited message did not come within 30 s, but these did: {self.got}") from None
            self.got.append(message)
            if wanted(message):
                return dict(message)

    def result(self, method: str, **params: Any) -> Any:
        number = self.ask(method, **params)
        return self.until(lambda message: message.get("id") == number and "method" not in message)

    def news(self) -> list[str]:
        """Return the kinds of all messages so far, in order, and forget them; what the server has sent before now is read."""
        self.result("thread/loaded/list")
        kinds = [str(message.get("method") or ("result" if "result" in message else "error")) for message in self.got[:-1]]
        self.got.clear()
        return kinds


def conversation(url: str) -> list[tuple[str, list[str], list[str]]]:
    """Return what the two connections get at each step."""
    found: list[tuple[str, list[str], list[str]]] = []
    with ExitStack() as stack:
        a, b = (One(stack.enter_context(connect(url, compression=None, proxy=None, close_timeout=1))) for _ in "ab")

        def step(name: str) -> None:
            found.append((name, a.news(), b.news()))

        for one in (a, b):
            one.result("initialize", **INITIALIZE)
            one.send({"method": "initialized"})
            one.news()
        thread = a.result("thread/start", approvalPolicy="on-request", sandbox="workspace-write")["result"]["thread"]["id"]
        a.until(lambda message: message.get("method") == "thread/started")
        step("start")

        def turn(one: One, end: One) -> None:
            one.ask("turn/start", threadId=thread, input=[{"type": "text", "text": "Hi"}])
            end.until(lambda message: message.get("method") == "turn/completed")

        turn(a, a)
        step("turn of a")
        turn(b, a)
        step("turn of b, which does not follow the thread")
        b.result("thread/resume", threadId=thread)
        step("resume")
        b.ask("turn/start", threadId=thread, input=[{"type": "text", "text": "Hi"}])
        asked = [one.until(lambda message: "id" in message and "method" in message) for one in (a, b)]
        assert asked[0]["id"] == asked[1]["id"]
        b.send({"id": asked[1]["id"], "result": {"decision": "decline"}})
        for one in (a, b):
            one.until(lambda message: message.get("method") == "turn/completed")
        step("approval")
        a.send({"id": asked[0]["id"], "result": {"decision": "accept"}})
        for status in ("unsubscribed", "notSubscribed"):
            assert b.result("thread/unsubscribe", threadId=thread)["result"] == {"status": status}
        turn(a, a)
        step("after unsubscribe")
        b.result("thread/name/set", threadId=thread, name="Named")
        for one in (a, b):
            one.until(lambda message: message.get("method") == "thread/name/updated")
        step("name")
        b.result("thread/archive", threadId=thread)
        for one in (a, b):
            one.until(lambda message: message.get("method") == "thread/archived")
        step("archive")
    return found
