"""Play every feature with one client and print what the client reports, as JSON; runs in the environment of the client.

A driver gives `main` a function that opens a client. The opened client has `start`, `resume` and `turn`; a turn returns what a
program gets from the client: its text, its status and the kinds of its events. Standard input: the job of play.py.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

SECONDS = 12
UNKNOWN = "01a1fa4b-cfe6-7981-9efe-a552b8cdd4f3"
Ask = Callable[[str, Any], Any]


class Client(Protocol):
    """A client of one server process."""

    async def start(self) -> Any: ...

    async def resume(self, thread_id: str) -> Any: ...

    async def turn(self, thread: Any, prompt: str, image: str | None = None, interrupt: bool = False) -> dict[str, Any]: ...

    def id_of(self, thread: Any) -> str: ...


Open = Callable[[dict[str, Any], Ask], AbstractAsyncContextManager[Any]]


class Play:
    """One run of a driver."""

    def __init__(self, job: dict[str, Any], opened: Open, lacks: dict[str, str]) -> None:
        self.job, self.opened, self.lacks = job, opened, lacks
        self.asked: list[Any] = []
        self.decision = "decline"
        self.thread: str | None = job["resume"]
        self.report: dict[str, Any] = {}

    def ask(self, kind: str, what: Any) -> Any:
        """Note a request of the server; return the answer to a tool call, or the decision of an approval."""
        self.asked.append([kind, what])
        return dict(self.job["answer"]) if kind == "tool" else self.decision

    async def run(self) -> None:
        features = ["resume"] if self.job["resume"] else [name for name in FEATURES if name != "resume"]
        for name in features:
            if name in self.lacks:
                self.report[name] = {"lacks": self.lacks[name]}
                continue
            self.asked = []
            try:
                async with asyncio.timeout(SECONDS):
                    async with self.opened(self.job, self.ask) as client:
                        self.report[name] = await FEATURES[name](self, client)
            except Exception as error:
                self.report[name] = {"raised": type(error).__name__, "message": str(error)[:500], "asked": self.asked}

    async def text(self, client: Client) -> Any:
        thread = await client.start()
        outcome = await client.turn(thread, "<text>")
        self.thread = client.id_of(thread)
        return outcome

    async def two_turns(self, client: Client) -> Any:
        thread = await client.start()
        return [await client.turn(thread, "<first>"), await client.turn(thread, "<second>")]

    async def approvals(self, client: Client) -> Any:
        thread = await client.start()
        found = []
        for prompt, self.decision in (("<run>", "accept"), ("<refuse>", "decline"), ("<patch>", "accept")):
            self.asked = []
            found.append([await client.turn(thread, prompt), self.asked])
        return found

    async def dynamic_tool(self, client: Client) -> Any:
        return [await client.turn(await client.start(), "<tool>"), self.asked]

    async def interrupt(self, client: Client) -> Any:
        thread = await client.start()
        return [await client.turn(thread, "<held>", interrupt=True), await client.turn(thread, "<after>")]

    async def errors(self, client: Client) -> Any:
        found: list[Any] = []
        for call in (lambda: self.failing(client), lambda: self.stranger(client)):
            try:
                found.append(await call())
            except Exception as error:
                found.append({"raised": type(error).__name__, "message": str(error)[:500]})
        return found

    async def failing(self, client: Client) -> Any:
        return await client.turn(await client.start(), "<fails>")

    async def stranger(self, client: Client) -> Any:
        """A turn on a thread that does not exist: some clients resume it only then."""
        return await client.turn(await client.resume(UNKNOWN), "<stranger>")

    async def image(self, client: Client) -> Any:
        return await client.turn(await client.start(), "<image>", image=self.job["image"])

    async def resumed(self, client: Client) -> Any:
        thread = await client.resume(self.job["resume"])
        outcome = await client.turn(thread, "<again>")
        return {**outcome, "same": client.id_of(thread) == self.job["resume"]}


FEATURES: dict[str, Callable[[Play, Any], Awaitable[Any]]] = {
    "text": Play.text,
    "two turns": Play.two_turns,
    "approvals": Play.approvals,
    "dynamic tool": Play.dynamic_tool,
    "interrupt": Play.interrupt,
    "errors": Play.errors,
    "image": Play.image,
    "resume": Play.resumed,
}


def main(opened: Open, lacks: dict[str, str] | None = None) -> None:
    """Play the job of standard input; print {"features", "thread"}."""
    play = Play(json.load(sys.stdin), opened, lacks or {})
    asyncio.run(play.run())
    print(json.dumps({"features": play.report, "thread": play.thread}))


async def collect(
    notes: AsyncIterator[tuple[str, dict[str, Any]]], on_start: Callable[[str], Awaitable[Any]] | None
) -> dict[str, Any]:
    """Return the outcome of a turn from its notifications, (method, params) each; call `on_start` with the turn's id."""
    text, kinds = "", set()
    async for method, params in notes:
        kinds.add(method)
        if method == "item/agentMessage/delta":
            text += params["delta"]
        if method == "turn/started" and on_start is not None:
            await on_start(params["turn"]["id"])
        if method == "turn/completed":
            turn = params["turn"]
            error = (turn.get("error") or {}).get("message")
            return {"text": text, "status": turn["status"], "error": error, "events": sorted(kinds)}
    return {"text": text, "status": "no end", "events": sorted(kinds)}
