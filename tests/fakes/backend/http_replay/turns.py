"""A turn for each kind of item and each fault."""

from __future__ import annotations

from typing import Any

from codex_fakes.model.faults import NAMES, WEBSOCKET_FAULTS
from codex_replay.protocol.script.keys import ITEM_KEYS

TEXT = "Hello é✓ there, all of you good people."
KINDS: dict[str, list[Any]] = {
    "text": [TEXT],
    "refusal": [{"type": "refusal", "refusal": "no"}],
    "function_call": [{"type": "function_call", "name": "add", "arguments": {"a": i}} for i in range(3)],
    "custom_tool_call": [{"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch\n"}],
    "web_search_call": [{"type": "web_search_call", "query": "cats"}, "Found."],
    "reasoning": [{"type": "reasoning", "summary": ["a", "b"], "content": "c", "encrypted_content": "x"}, "ok"],
    "item": [{"type": "item", "item": {"type": "local_shell_call", "id": "x", "action": {}}}],
    "failed": ["half", {"type": "failed", "code": "server_error"}],
    "incomplete": ["half", {"type": "incomplete"}],
    "error": ["half", {"type": "error"}],
    "event": [{"type": "event", "event": {"type": "response.odd", "x": "\u2028"}}, "ok"],
    "raw": [{"type": "raw", "data": 'event: a\r\ndata: {"x" : 1.0e3}\r\n\r\n: \n\n'}, "ok"],
    "comment": [{"type": "comment", "text": "busy"}, "ok"],
    "wait": ["ok", {"type": "wait", "ms": 5}],
    "gate": [{"type": "gate", "name": "open"}, "ok"],
    "queued": [{"type": "queued"}, "ok"],
    "audio": [{"type": "audio", "transcript": "ok"}],
}
# What the tools of the service report, each item with its defaults.
NEEDED: dict[str, Any] = {
    "mcp_call": {"name": "find"},
    "mcp_approval_request": {"name": "find"},
    "local_shell_call": {"action": {"command": ["ls"]}},
    "shell_call": {"action": {"commands": ["ls"]}},
    "apply_patch_call": {"operation": {"type": "delete_file", "path": "a.txt"}},
}
TOOLS = ("_call", "_output", "_tools", "_request")
KINDS |= {it: [{"type": it, **NEEDED.get(it, {})}, "ok"] for it in ITEM_KEYS if it.endswith(TOOLS) and it not in KINDS}
KINDS["compaction"] = [{"type": "compaction"}, "ok"]
#: name -> the turn that answers it, and whether its client must leave for it to end
TURNS: dict[str, dict[str, Any]] = {kind: {"items": items} for kind, items in KINDS.items()} | {
    f"fault {name}": {"items": [TEXT], "fault": {"name": name, **({"bytes": 300_000} if name == "huge_event" else {})}}
    for name in NAMES
    if name not in WEBSOCKET_FAULTS  # tests/fakes/backend/test_websocket_replay.py has these
}
TURNS |= {
    "pieces of 7 bytes": {"items": [TEXT], "write": 7},
    "in one piece": {"items": [TEXT], "write": "whole"},
    "retry later": {"status": 429, "headers": {"Retry-After": "3", "X-oDD": "a  b"}, "error": {"message": "slow", "code": "x"}},
    "plain text": {"status": 502, "body": "Bad gateway <html>"},
    "no body": {"status": 503},
}
