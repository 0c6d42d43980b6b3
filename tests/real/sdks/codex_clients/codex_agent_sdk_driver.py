"""codex-agent-sdk 0.0.2: its CodexClient."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from codex_agent_sdk import CodexClient, CodexClientOptions
from kit import Ask, collect, main


class Driven:
    def __init__(self, client: CodexClient, job: dict[str, Any]) -> None:
        self.client, self.job = client, job

    def id_of(self, thread: Any) -> str:
        return str(thread["thread"]["id"])

    async def start(self) -> Any:
        settings = {"approvalPolicy": "untrusted", "sandbox": "danger-full-access", "cwd": self.job["cwd"]}
        return await self.client.thread_start({**settings, "dynamicTools": [self.job["tool"]]})

    async def resume(self, thread_id: str) -> Any:
        return await self.client.thread_resume({"threadId": thread_id})

    async def turn(self, thread: Any, prompt: str, image: str | None = None, interrupt: bool = False) -> dict[str, Any]:
        given: list[Any] = [{"type": "text", "text": prompt}]
        given += [{"type": "image", "url": image}] if image else []
        thread_id = self.id_of(thread)
        await self.client.turn_start({"threadId": thread_id, "input": given})

        async def notes() -> AsyncIterator[tuple[str, dict[str, Any]]]:
            async for note in self.client.notifications():
                yield note["method"], note.get("params") or {}

        async def stop(turn_id: str) -> None:
            await self.client.turn_interrupt({"threadId": thread_id, "turnId": turn_id})

        return await collect(notes(), stop if interrupt else None)


@asynccontextmanager
async def opened(job: dict[str, Any], ask: Ask) -> AsyncIterator[Driven]:
    async def command(params: dict[str, Any]) -> Any:
        return ask("command", params.get("command"))

    async def change(params: dict[str, Any]) -> Any:
        return ask("file change", params.get("reason"))

    async def tool(params: dict[str, Any]) -> Any:
        return ask("tool", [params["tool"], params["arguments"]])

    options = CodexClientOptions(codex_path=job["codex"], cwd=job["cwd"], experimental_api=True)
    handlers = {"command_approval_handler": command, "file_change_approval_handler": change, "dynamic_tool_handler": tool}
    async with CodexClient(options, **handlers) as client:
        yield Driven(client, job)


main(opened)
