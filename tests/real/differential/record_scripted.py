"""The conversations that the mapping table was derived from.

`python -m tests.real.differential.record_scripted [NAME...]` records them again.

Each is a pair in tests/data/scripted: NAME.json (script and conversation) and NAME.ndjson (what the real binary said). The tests
of the table replay them on the scripted fake, without the real binary.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from codex_replay.core.cassette.frames import Header
from codex_replay.core.redact.redactor import Redactor
from codex_replay.shell.cassettes.file import CassetteWriter
from codex_replay.shell.codex.cache import find_installed
from codex_replay.shell.codex.home import HermeticHome
from codex_replay.shell.codex.origin import bundle_of
from codex_replay.shell.http.backend_process import BackendProcess
from codex_replay.shell.rpc.client import Client
from tests.fakes.scripted.conversing import Conversation, initialize
from tests.real.differential import vocabulary
from tests.real.differential.scenarios import FREE, GO, NEXT, TOOL, conversation, dynamic, patch, plan, shell

FOLDER = Path(__file__).parents[2] / "data" / "scripted"
WORDS = vocabulary.load()
ADDED = next(text for text in WORDS["patches"] if "Add File: new.txt" in text)
ASK = {"approvalPolicy": "untrusted", "sandbox": "danger-full-access"}
STEPS = [{"step": "a", "status": "completed"}, {"step": "b", "status": "in_progress"}, {"step": "c", "status": "pending"}]
QUESTION = {"id": "q", "header": "H", "question": "Which?", "options": [{"label": "A", "description": "a"}]}
PLAN_MODE = {"mode": "plan", "settings": {"model": "gpt-5.2-codex", "reasoning_effort": None, "developer_instructions": None}}


def function(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "function_call", "name": name, "arguments": arguments, "call_id": "call_1"}


def asked(item: Any, decision: str, api: str) -> dict[str, Any]:
    return conversation([{"items": [item]}, {"items": ["Ok."]}], [{**GO, "decide": {"*": decision}}], api, settings=ASK)


def both(make: Any) -> dict[str, Any]:
    return {api: make(api) for api in ("v1", "v2")}


def conversations() -> dict[str, dict[str, Any]]:
    """Return name -> scenario."""
    rich = [
        {"type": "reasoning", "summary": ["**One** and", "two"], "content": ["raw thought"]},
        {"type": "web_search_call", "query": "codex"},
        "A text of more than one delta.",
        plan("call_1", STEPS, "why"),
    ]
    found: dict[str, dict[str, Any]] = {}

    def add(name: str, make: Any) -> None:
        found.update({f"{name}-{api}": scenario for api, scenario in both(make).items()})

    add("rich", lambda api: conversation([{"items": rich}, {"items": ["Ok."]}, {"items": ["Again."]}], [GO, NEXT], api))
    failing = "printf err >&2; exit 3"
    add(
        "command", lambda api: conversation([{"items": [shell("call_1", failing)]}, {"items": ["Ok."]}], [GO], api, settings=FREE)
    )
    add("command-accepted", lambda api: asked(shell("call_1", "printf marker"), "accept", api))
    add("command-declined", lambda api: asked(shell("call_1", "printf marker"), "decline", api))
    add("patch", lambda api: conversation([{"items": [patch("call_1", ADDED)]}, {"items": ["Ok."]}], [GO], api, settings=FREE))
    add("patch-accepted", lambda api: asked(patch("call_1", ADDED), "accept", api))
    add("patch-declined", lambda api: asked(patch("call_1", ADDED), "decline", api))
    add("failed", lambda api: conversation([{"status": 500}, {"items": ["Ok."]}], [GO, NEXT], api))
    wait = {"interrupt": "execCommandApproval"}
    found["interrupted-v1"] = conversation(
        [{"items": [shell("call_1", "printf marker")]}, {"items": ["Ok."]}], [{**GO, **wait}, NEXT], "v1", settings=ASK
    )
    wait = {"interrupt": "item/tool/call"}
    tools = {"dynamicTools": [TOOL]}
    found["interrupted-v2"] = conversation(
        [{"items": [dynamic("call_1", "Rome")]}, {"items": ["Ok."]}], [{**GO, **wait}, NEXT], settings=tools
    )
    answer = {"answer": {"*": {"output": "sunny", "success": True}}}
    found["dynamic"] = conversation(
        [{"items": [dynamic("call_1", "Rome")]}, {"items": ["Ok."]}], [{**GO, **answer}], settings=tools
    )
    found["image"] = conversation([{"items": [function("view_image", path="old.txt")]}, {"items": ["Ok."]}], [GO])
    found["mcp"] = conversation([{"items": [function("list_mcp_resources")]}, {"items": ["Ok."]}], [GO])
    found["mcp-failed"] = conversation(
        [{"items": [function("read_mcp_resource", server="nonesuch", uri="u")]}, {"items": ["Ok."]}], [GO]
    )
    settings = {"config": {"model_providers.mock.stream_max_retries": 1}}
    found["retried"] = conversation(
        [{"items": ["Part."], "fault": "missing_completed"}, {"items": ["Ok."]}], [GO], settings=settings
    )
    thought = {"type": "reasoning", "summary": ["**One** and", "two"], "content": ["raw thought"]}
    reviewed = [{"items": [thought, {"type": "web_search_call", "query": "codex"}, "Not yet.", plan("call_1", STEPS)]}]
    found["review"] = conversation(
        [*reviewed, {"items": ["It is fine."]}, {"items": ["Ok."]}],
        [{"review": {"type": "custom", "instructions": "Look."}}, NEXT],
    )
    full = {"items": ["Full."], "usage": {"input_tokens": 260000, "output_tokens": 100}}
    too_long = {"items": [{"type": "failed", "code": "context_length_exceeded", "message": "m"}]}
    found["compacted"] = conversation([full, too_long, {"items": ["Summary."]}, {"items": ["Ok."]}], [GO, NEXT])
    step = {**GO, "params": {"collaborationMode": PLAN_MODE}, "answer": {"*": {"answers": {"q": {"answers": ["A"]}}}}}
    found["asked"] = conversation([{"items": [function("request_user_input", questions=[QUESTION])]}, {"items": ["Ok."]}], [step])
    return found


def main() -> None:
    """Record them all, or those that are named."""
    wanted = sys.argv[1:]
    found = {name: scenario for name, scenario in conversations().items() if not wanted or name in wanted}
    FOLDER.mkdir(parents=True, exist_ok=True)
    extra = {"suppress_unstable_features_warning": True}
    with BackendProcess() as backend:
        for name, scenario in found.items():
            with tempfile.TemporaryDirectory() as root:
                session = backend.session(name, scenario["script"])
                home = HermeticHome(Path(root), session.url, features={"collaboration_modes": True}, extra_config=extra)
                vocabulary.fill(home.work)
                client = Client([str(find_installed("0.92.0")), "app-server"], env=home.env, cwd=str(home.work), timeout=20)
                try:
                    initialize(client)
                    Conversation(client, scenario["conversation"], str(home.work), session).play()
                finally:
                    client.stop()
            (FOLDER / f"{name}.json").write_text(json.dumps(scenario, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
            origin = {"rpc.client": "authored", "rpc.server": "recorded"}
            header = Header("0.92.0", bundle_of("0.92.0"), f"scripted/{name}", origin)
            redactor = Redactor(paths={str(home.home): "/home/user", str(home.work): "/home/user/work"})
            with CassetteWriter(FOLDER / f"{name}.ndjson", header, redactor) as writer:
                for frame in client.timeline:
                    writer.write(frame)
            sys.stdout.write(f"{name}: {len(client.timeline)} frames\n")


if __name__ == "__main__":
    main()
