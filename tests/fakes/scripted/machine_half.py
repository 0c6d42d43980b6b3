"""A recording of the real binary made into a script for the scripted fake: the model's half, and the machine's.

The model's half stands in the recording's header, as it was authored. The machine's half is what the fake cannot know, since it
runs nothing and reads nothing: what a command printed, what a patch met, what git, the file search and an MCP server said. It is
taken from the recording and given to the script in the form in which a person would write it (docs/fake-codex.md): as the
`result` of a call, or under `answers`. Everything else, every frame and their order, is the fake's own.
"""

from __future__ import annotations

import json
from base64 import b64decode
from copy import deepcopy
from typing import Any

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.jsonrpc import is_reply, kind

#: Requests whose answer is the machine's: the client's parameters and the answer go to the script as they are.
OF_THE_MACHINE = (
    "command/exec",
    "execOneOffCommand",
    "gitDiffToRemote",
    "fuzzyFileSearch",
    "skills/list",
    "mcpServerStatus/list",
    "mcpServer/oauth/login",
)
#: Kinds of items that take a number in the ids that the backend makes up.
NUMBERED = ("text", "refusal", "function_call", "custom_tool_call", "web_search_call", "reasoning", "item")


def machine_script(upstream: dict[str, Any], frames: list[Frame]) -> Any:
    """Return the script of a recording (the header's `upstream`), with what its machine said."""
    script = deepcopy(upstream.get("script"))
    script = {"turns": script} if isinstance(script, list) else dict(script or {})
    results = results_of(frames)
    for number, turn in enumerate(script.get("turns", []), 1):
        place = 0
        for item in turn.get("items", []) if isinstance(turn, dict) else []:
            sort = item.get("type") if isinstance(item, dict) else "text"
            if sort in ("function_call", "custom_tool_call", "item"):
                call = (item.get("item") or item).get("call_id") or f"call_{number}_{place}"
                if call in results and "result" not in item:
                    item["result"] = results[call]
            place += sort in NUMBERED
    answers, git = answers_of(frames), git_of(frames)
    return {**script, **({"answers": answers} if answers else {}), **({"git": git} if git else {})}


def git_of(frames: list[Frame]) -> dict[str, Any]:
    """Return the repository that the recording's threads stood in."""
    for frame in frames:
        result = frame.value.get("result") if frame.seam == "rpc" and isinstance(frame.value, dict) else None
        thread = result.get("thread") if isinstance(result, dict) else None
        if isinstance(thread, dict) and thread.get("gitInfo"):
            return dict(thread["gitInfo"])
    return {}


def answers_of(frames: list[Frame]) -> dict[str, list[Any]]:
    """Return method -> answers, in the order of the requests, of those that the machine decides."""
    asked: dict[str, Any] = {}
    answers: dict[str, list[Any]] = {}
    for frame in frames:
        value = frame.value
        if frame.seam != "rpc":
            continue
        if frame.sender == "client" and kind(value) == "request" and value["method"] in OF_THE_MACHINE:
            asked[repr(value["id"])] = value
        elif frame.sender == "server" and is_reply(value) and repr(value["id"]) in asked:
            request = asked.pop(repr(value["id"]))
            given = {"error": value["error"]} if "error" in value else {"result": value["result"]}
            answers.setdefault(request["method"], []).append({"params": request["params"], **given})
    return answers


def results_of(frames: list[Frame]) -> dict[str, dict[str, Any]]:
    """Return call id -> what the call gave: what a command printed, what a patch met, what the model was told."""
    found: dict[str, dict[str, Any]] = {}
    shown: set[str] = set()
    printed: dict[str, dict[str, bytes]] = {}
    for event in events_of(frames):
        sort, call = event["type"], event.get("call_id")
        if call is None:
            continue
        gives = found.setdefault(call, {})
        if sort == "exec_command_begin":
            gives["actions"] = event["parsed_cmd"]
            printed[call] = {"stdout": b"", "stderr": b""}
        elif sort == "exec_approval_request" and any(printed.get(call, {}).values()):
            # It was tried within the sandbox first.
            gives["denied"] = {name: text.decode() for name, text in printed[call].items()}
            printed[call] = {"stdout": b"", "stderr": b""}
        elif sort == "exec_command_output_delta":
            printed.setdefault(call, {"stdout": b"", "stderr": b""})[event["stream"]] += b64decode(event["chunk"])
        elif sort == "exec_command_end":
            gives |= {"stdout": event["stdout"], "stderr": event["stderr"], "aggregated": event["aggregated_output"]}
            gives |= {"exit_code": event["exit_code"], "actions": event["parsed_cmd"]}
            printed.pop(call, None)
        elif sort == "patch_apply_begin":
            gives["changes"] = {path: whole(change) for path, change in event["changes"].items()}
        elif sort == "patch_apply_end":
            gives |= {"stdout": event["stdout"], "stderr": event["stderr"], "success": event["success"]}
        elif sort == "view_image_tool_call":
            shown.add(call)
        elif sort == "mcp_tool_call_end":
            gives["mcp"] = event["result"]
    for call, streams in printed.items():
        if any(streams.values()):  # it printed something, and its end was not seen
            found[call] |= {**{name: text.decode() for name, text in streams.items()}, "hang": True}
    for call, item in told(frames).items():
        if call not in shown and not found.get(call):
            found[call] = {"error": item["output"]}
    return {call: gives for call, gives in found.items() if gives}


def events_of(frames: list[Frame]) -> list[dict[str, Any]]:
    """Return the messages of the codex/event notifications."""
    values = [frame.value for frame in frames if frame.seam == "rpc" and frame.sender == "server"]
    return [v["params"]["msg"] for v in values if isinstance(v, dict) and str(v.get("method")).startswith("codex/event/")]


def told(frames: list[Frame]) -> dict[str, dict[str, Any]]:
    """Return call id -> the item in which the model was told what a call gave."""
    found: dict[str, dict[str, Any]] = {}
    for frame in frames:
        if frame.seam == "http" and frame.sender == "client" and frame.kind == "request":
            body = frame.value.get("body")
            for item in body.get("input", []) if isinstance(body, dict) else []:
                if str(item.get("type")).endswith("_call_output"):
                    found[item["call_id"]] = item
    return found


def whole(change: dict[str, Any]) -> dict[str, Any]:
    """Return a change with the texts of its file, before and after, where its one hunk shows the file from its first line."""
    diff = change.get("unified_diff", "")
    if not diff.startswith("@@ -1") or diff.count("\n@@") or "\n\\" in diff:
        return change
    lines = diff.split("\n")[1:-1]
    old = "".join(line[1:] + "\n" for line in lines if line[:1] in " -")
    new = "".join(line[1:] + "\n" for line in lines if line[:1] in " +")
    return {**change, "old": old, "new": new}


def as_json(script: Any) -> str:
    """Return a script as the file that the fake reads."""
    return json.dumps(script, ensure_ascii=False)
