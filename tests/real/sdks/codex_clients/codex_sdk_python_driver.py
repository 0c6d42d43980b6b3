"""codex-sdk-python 0.117.0: its AppServerClient with turn sessions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from codex_sdk import AppServerClient, AppServerOptions
from kit import Ask, collect, main


class Driven:
    def __init__(self, client: AppServerClient, job: dict[str, Any], ask: Ask) -> None:
        self.client, self.job, self.ask = client, job, ask

    def id_of(self, thread: Any) -> str:
        return str(thread["thread"]["id"])

    async def start(self) -> Any:
        settings = {"approval_policy": "untrusted", "sandbox": "danger-full-access", "cwd": self.job["cwd"]}
        return await self.client.thread_start(**settings, dynamicTools=[self.job["tool"]])

    async def resume(self, thread_id: str) -> Any:
        return await self.client.thread_resume(thread_id)

    async def turn(self, thread: Any, prompt: str, image: str | None = None, interrupt: bool = False) -> dict[str, Any]:
        given: list[Any] = [{"type": "text", "text": prompt}]
        given += [{"type": "image", "url": image}] if image else []
        session = await self.client.turn_session(self.id_of(thread), given)

        async def answer() -> None:
            async for request in session.requests():
                params = request.params or {}
                if request.method == "item/tool/call":
                    await self.client.respond(request.id, self.ask("tool", [params["tool"], params["arguments"]]))
                else:
                    kind = "command" if "commandExecution" in request.method else "file change"
                    shown = params.get("command" if kind == "command" else "reason")
                    await self.client.respond(request.id, {"decision": self.ask(kind, shown)})

        async def notes() -> AsyncIterator[tuple[str, dict[str, Any]]]:
            async for note in session.notifications():
                yield note.method, note.params or {}

        async def stop(turn_id: str) -> None:
            await self.client.turn_interrupt(self.id_of(thread), turn_id)

        answering = asyncio.create_task(answer())
        try:
            outcome = await collect(notes(), stop if interrupt else None)
            await session.wait()  # as its README does; a session takes requests until then, those of a next turn, too
            return outcome
        finally:
            answering.cancel()


@asynccontextmanager
async def opened(job: dict[str, Any], ask: Ask) -> AsyncIterator[Driven]:
    options = AppServerOptions(codex_path_override=job["codex"], experimental_api_enabled=True)
    async with AppServerClient(options) as client:
        yield Driven(client, job, ask)


main(opened)
