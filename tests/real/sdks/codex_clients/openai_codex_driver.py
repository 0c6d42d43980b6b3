"""openai-codex 0.163.0: its AsyncCodex."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kit import Ask, main
from openai_codex import AsyncCodex, CodexConfig, ImageInput, Sandbox, TextInput


class Driven:
    def __init__(self, codex: AsyncCodex, job: dict[str, Any]) -> None:
        self.codex, self.job = codex, job

    def id_of(self, thread: Any) -> str:
        return str(thread.id)

    async def start(self) -> Any:
        return await self.codex.thread_start(cwd=self.job["cwd"], sandbox=Sandbox.full_access)

    async def resume(self, thread_id: str) -> Any:
        return await self.codex.thread_resume(thread_id)

    async def turn(self, thread: Any, prompt: str, image: str | None = None, interrupt: bool = False) -> dict[str, Any]:
        given: Any = [TextInput(prompt), ImageInput(image)] if image else prompt
        turn = await thread.turn(given)
        text, kinds, outcome = "", set(), {}
        async for event in turn.stream():
            kinds.add(event.method)
            if interrupt and event.method == "item/completed":
                await turn.interrupt()
            if event.method == "item/agentMessage/delta":
                text += event.payload.delta
            if event.method == "turn/completed":
                error = event.payload.turn.error
                outcome = {"status": event.payload.turn.status.value, "error": error.message if error else None}
        return {"text": text, **outcome, "events": sorted(kinds)}


@asynccontextmanager
async def opened(job: dict[str, Any], ask: Ask) -> AsyncIterator[Driven]:
    async with AsyncCodex(CodexConfig(codex_bin=job["codex"], cwd=job["cwd"])) as codex:
        yield Driven(codex, job)


main(opened, {"approvals": "the client offers no handler", "dynamic tool": "the client declares no tools"})
