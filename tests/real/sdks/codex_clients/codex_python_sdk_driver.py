"""codex-python-sdk 0.2.1: its AsyncCodexAgenticClient."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from codex_python_sdk import AsyncCodexAgenticClient
from kit import Ask, main


class Driven:
    def __init__(self, client: AsyncCodexAgenticClient) -> None:
        self.client = client

    def id_of(self, thread: Any) -> str:
        return str(thread["id"])

    async def start(self) -> Any:
        return {"id": None}

    async def resume(self, thread_id: str) -> Any:
        return {"id": thread_id}

    async def turn(self, thread: Any, prompt: str, image: str | None = None, interrupt: bool = False) -> dict[str, Any]:
        text, kinds = "", set()
        async for event in self.client.responses_events(prompt=prompt, thread_id=thread["id"]):
            kinds.add(event.type)
            thread["id"] = thread["id"] or event.thread_id
            text += event.text_delta or ""
            if interrupt and event.type == "turn/started":
                await self.client.turn_interrupt(event.thread_id, event.turn_id)
        return {"text": text, "events": sorted(kinds)}


@asynccontextmanager
async def opened(job: dict[str, Any], ask: Ask) -> AsyncIterator[Driven]:
    settings = {"cwd": job["cwd"], "approvalPolicy": "untrusted", "sandbox": "danger-full-access", "dynamicTools": [job["tool"]]}
    client = AsyncCodexAgenticClient(
        codex_command=job["codex"],
        automatic_approval_review=False,
        process_cwd=job["cwd"],
        default_thread_params=settings,
        on_command_approval=lambda params: {"decision": ask("command", params.get("command"))},
        on_file_change_approval=lambda params: {"decision": ask("file change", params.get("reason"))},
        on_tool_call=lambda params: ask("tool", [params["tool"], params["arguments"]]),
    )
    async with client:
        yield Driven(client)


main(opened, {"image": "the client sends text only"})
