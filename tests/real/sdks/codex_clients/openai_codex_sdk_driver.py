"""openai-codex-sdk 0.1.11: a process of `codex exec` for each turn."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kit import Ask, main
from openai_codex_sdk import AbortController, Codex


class Driven:
    def __init__(self, codex: Codex, job: dict[str, Any]) -> None:
        self.codex, self.job = codex, job
        self.options = {"working_directory": job["cwd"], "skip_git_repo_check": True, "sandbox_mode": "danger-full-access"}

    def id_of(self, thread: Any) -> str:
        return str(thread.id)

    async def start(self) -> Any:
        return self.codex.start_thread(self.options)

    async def resume(self, thread_id: str) -> Any:
        return self.codex.resume_thread(thread_id, self.options)

    async def turn(self, thread: Any, prompt: str, image: str | None = None, interrupt: bool = False) -> dict[str, Any]:
        path = self.job["image_file"]
        given: Any = [{"type": "text", "text": prompt}, {"type": "local_image", "path": path}] if image else prompt
        control = AbortController()
        streamed = await thread.run_streamed(given, {"signal": control.signal})
        text, kinds, error = "", set(), None
        try:
            async for event in streamed.events:
                kinds.add(event.type)
                if interrupt and event.type == "turn.started":
                    control.abort()
                if event.type == "item.completed" and event.item.type == "agent_message":
                    text += event.item.text
                if event.type == "turn.failed":
                    error = event.error.message
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"[:300]
        return {"text": text, "error": error, "events": sorted(kinds)}


@asynccontextmanager
async def opened(job: dict[str, Any], ask: Ask) -> AsyncIterator[Driven]:
    yield Driven(Codex({"codex_path_override": job["codex"]}), job)


main(opened, {"approvals": "codex exec asks for none", "dynamic tool": "codex exec has none"})
