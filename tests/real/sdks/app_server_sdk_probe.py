"""Run by the Python of a client's environment: drive an app-server with codex-python-sdk and print all that the SDK reports.

Standard input: {"codex", "cwd", "tool", "answer", "prompts": [[prompt, decision], ...]}; a prompt without a decision resumes the
first thread, each other one starts a thread of its own. Standard output: one JSON object.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib.metadata import version
from typing import Any

from codex_python_sdk import AsyncCodexAgenticClient


async def main() -> None:
    job = json.load(sys.stdin)
    asked: list[list[Any]] = []
    decision = "decline"

    def handler(kind: str) -> Any:
        def decide(params: dict[str, Any]) -> dict[str, Any]:
            asked.append([kind, params])
            return dict(job["answer"]) if kind == "tool" else {"decision": decision}

        return decide

    client = AsyncCodexAgenticClient(
        codex_command=job["codex"],
        automatic_approval_review=False,
        process_cwd=job["cwd"],
        default_thread_params={
            "cwd": job["cwd"],
            "approvalPolicy": "untrusted",
            "sandbox": "danger-full-access",
            "dynamicTools": [job["tool"]],
        },
        on_command_approval=handler("command"),
        on_file_change_approval=handler("file change"),
        on_tool_call=handler("tool"),
    )
    turns: list[dict[str, Any]] = []
    first = None
    async with client:
        for prompt, wanted in job["prompts"]:
            decision, asked[:] = wanted or "decline", []
            reply = await client.responses_create(prompt=prompt, thread_id=None if wanted else first, include_events=True)
            first = first or reply.thread_id
            events = [
                {"type": e.type, "phase": e.phase, "delta": e.text_delta, "message": e.message_text, "raw": e.raw}
                for e in reply.events or []
            ]
            turns.append({"text": reply.text, "same": reply.thread_id == first, "asked": list(asked), "events": events})
    print(json.dumps({"version": version("codex-python-sdk"), "turns": turns}))


asyncio.run(main())
