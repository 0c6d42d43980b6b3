"""codex-python-sdk-unofficial 0.128.0: its CodexSDKClient."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from codex_agent_sdk import (
    AgentTextDeltaEvent,
    ApprovalDecision,
    ApprovalRequestedEvent,
    AppServerConfig,
    CodexOptions,
    CodexSDKClient,
    TurnCompletedEvent,
    TurnStartedEvent,
)
from kit import Ask, main


class Driven:
    def __init__(self, client: CodexSDKClient, ask: Ask) -> None:
        self.client, self.ask = client, ask

    def id_of(self, thread: Any) -> str:
        return str(thread)

    async def start(self) -> Any:
        return await self.client.start_thread()

    async def resume(self, thread_id: str) -> Any:
        return await self.client.resume_thread(thread_id)

    async def turn(self, thread: Any, prompt: str, image: str | None = None, interrupt: bool = False) -> dict[str, Any]:
        given: list[Any] = [{"type": "text", "text": prompt}]
        given += [{"type": "image", "url": image}] if image else []
        turn = await self.client.query(given)
        text, kinds, outcome = "", set(), {}
        async for event in turn:
            kinds.add(type(event).__name__)
            if interrupt and isinstance(event, TurnStartedEvent):
                await turn.interrupt()
            if isinstance(event, AgentTextDeltaEvent):
                text += event.text_delta
            if isinstance(event, ApprovalRequestedEvent):
                command = getattr(event.request, "command", None)
                decision = self.ask("command" if command is not None else "file change", command)
                await event.respond(ApprovalDecision.accept() if decision == "accept" else ApprovalDecision.decline())
            if isinstance(event, TurnCompletedEvent):
                outcome = {"status": event.turn_status, "error": str(event.error) if event.error else None}
        return {"text": text, **outcome, "events": sorted(kinds)}


@asynccontextmanager
async def opened(job: dict[str, Any], ask: Ask) -> AsyncIterator[Driven]:
    options = CodexOptions(cwd=job["cwd"], approval_policy="untrusted", sandbox_mode="danger-full-access")
    async with CodexSDKClient(options=options, app_server=AppServerConfig(codex_bin=job["codex"])) as client:
        yield Driven(client, ask)


main(opened, {"dynamic tool": "the client declares no tools"})
