"""codex-app-server-client 0.1.0: its CodexAppServer, with handlers of the low-level client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from codex_app_server_client import CodexAppServer, EventAction
from codex_app_server_client.types.common import ImageInput, TextInput
from codex_app_server_client.types.threads import ThreadStartParams
from kit import Ask, main


class Driven:
    def __init__(self, codex: CodexAppServer, job: dict[str, Any]) -> None:
        self.codex, self.job = codex, job

    def id_of(self, thread: Any) -> str:
        return str(thread.id)

    async def start(self) -> Any:
        settings = {"approvalPolicy": "untrusted", "sandbox": "danger-full-access", "cwd": self.job["cwd"]}
        return await self.codex.start_thread(ThreadStartParams.model_validate({**settings, "dynamicTools": [self.job["tool"]]}))

    async def resume(self, thread_id: str) -> Any:
        return await self.codex.resume_thread(thread_id)

    async def turn(self, thread: Any, prompt: str, image: str | None = None, interrupt: bool = False) -> dict[str, Any]:
        given: list[Any] = [TextInput(text=prompt), *([ImageInput(url=image)] if image else [])]
        kinds: set[str] = set()

        def seen(method: str, event: Any) -> Any:
            kinds.add(method)
            return EventAction.INTERRUPT if interrupt and method == "item/started" else EventAction.CONTINUE

        result = await thread.run(given, on_event=seen, timeout_s=20)
        error = result.error.message if result.error else None
        return {"text": result.final_response, "status": result.status, "error": error, "events": sorted(kinds)}


@asynccontextmanager
async def opened(job: dict[str, Any], ask: Ask) -> AsyncIterator[Driven]:
    async def command(method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"decision": ask("command", params.get("command"))}

    async def change(method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"decision": ask("file change", params.get("reason"))}

    async def tool(method: str, params: dict[str, Any]) -> dict[str, Any]:
        return dict(ask("tool", [params["tool"], params["arguments"]]))

    codex = CodexAppServer(codex_bin=job["codex"])
    codex.low_level.on_server_request("item/commandExecution/requestApproval", command)
    codex.low_level.on_server_request("item/fileChange/requestApproval", change)
    codex.low_level.on_server_request("item/tool/call", tool)
    async with codex:
        yield Driven(codex, job)


main(opened)
