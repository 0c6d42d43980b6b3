"""What two runs of one conversation differ in: as normalised, with four allowances for what the real binary does by chance.

- calls of one reply run in no fixed order: what each says is compared call by call (`apart`);
- the end of a cancelled or interrupted call, and the diff behind it, may be lost, when the abort is quicker (`without_lost`);
- the output of such a call, as a raw item, says that it was rejected or that it was aborted, whichever is quicker;
- the files of one patch stand in no fixed order within an event (`sorted_changes`).

And with one for what differs between two places: how many tokens are left in the context after a rollback or a compaction
(`without_estimate`). Such a usage is known by its having nothing but a total.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.json_text import dumps
from codex_replay.core.wire.jsonrpc import is_reply
from codex_replay.protocol.recordings.compare import Comparison, compare

#: The classes of scenarios (or the beginning of their names) in which one reply makes several calls.
PARALLEL = "parallel calls"


def differences(kind: str, real: list[Frame], fake: list[Frame]) -> list[str]:
    """Return a sentence for each difference between two runs of a scenario of this class."""
    sides = [without_estimate(sorted_changes(without_lost(frames))) for frames in (real, fake)]
    if not kind.startswith(PARALLEL):
        return told(compare(*sides))
    left, right = map(apart, sides)
    found = [f"only one side has the call {call}" for call in left.keys() ^ right.keys()]
    for call in sorted(left.keys() & right.keys()):
        found += [f"{call}: {text}" for text in told(compare(left[call], right[call]))]
    return found


def told(comparison: Comparison) -> list[str]:
    return [difference.sentence() for difference in comparison.differences]


def call_of(message: Any) -> str | None:
    """Return the call that a frame of the server's is about: a tool call's id, "plan" for the plan."""
    params = message.get("params") if isinstance(message, dict) else None
    if not isinstance(params, dict):
        return None
    if message["method"] in ("codex/event/plan_update", "turn/plan/updated"):
        return "plan"
    event = params.get("msg") or {}
    item = params.get("item") or {}
    found = params.get("callId") or params.get("itemId") or event.get("call_id") or event.get("callId") or item.get("id")
    return found if isinstance(found, str) and found.startswith("call_") else None


def apart(frames: list[Frame]) -> dict[str, list[Frame]]:
    """Part a run into what each call says and the rest; the client's replies follow from what it is asked, and are left out."""
    parts: dict[str, list[Frame]] = {}
    for frame in frames:
        if frame.sender == "client" and is_reply(frame.value):
            continue
        parts.setdefault(call_of(frame.value) or "the rest", []).append(frame)
    return parts


def without_lost(frames: list[Frame]) -> list[Frame]:
    """Leave out the end of each call that was cancelled, or interrupted before it was decided: the abort may be quicker."""
    open_, lost = {}, set()
    for frame in frames:
        value = frame.value
        if frame.sender == "server" and "method" in value and "id" in value:
            open_[value["id"]] = value["params"].get("callId") or value["params"].get("itemId")
        elif frame.sender == "client" and is_reply(value):
            call = open_.pop(value["id"], None)
            result = value.get("result")
            if isinstance(result, dict) and result.get("decision") in ("cancel", "abort"):
                lost.add(call)
    lost |= set(open_.values())
    kept = [frame for frame in frames if not (frame.sender == "server" and is_lost(frame.value, lost))]
    return [without_output(frame, lost) if b"_call_output" in frame.raw else frame for frame in kept]


def without_output(frame: Frame, calls: set[str]) -> Frame:
    """Leave out what the raw item of these calls' output says; that it comes stays."""
    value = deepcopy(frame.value)
    params = value.get("params") or {}
    item = params.get("item") or (params.get("msg") or {}).get("item") or {}
    if frame.sender != "server" or item.get("call_id") not in calls:
        return frame
    item["output"] = "rejected or aborted"
    return Frame(frame.n, frame.t, frame.seam, frame.sender, frame.kind, dumps(value) + b"\n")


def is_lost(message: Any, calls: set[str]) -> bool:
    params = message.get("params") or {}
    event, item = params.get("msg") or {}, params.get("item") or {}
    if message.get("method") in ("codex/event/turn_diff", "turn/diff/updated"):
        return bool(calls)  # it follows the end of a patch
    if event.get("type") in ("exec_command_end", "patch_apply_end"):
        return event.get("call_id") in calls
    return message.get("method") == "item/completed" and item.get("id") in calls and item.get("status") == "failed"


def without_estimate(frames: list[Frame]) -> list[Frame]:
    """Leave out each estimate: a last usage with nothing but a total, after a rollback or in a run with a compaction.

    The estimate counts the length of paths, which differ between two runs.
    """
    found: list[Frame] = []
    rolled_back = any(b"context_compacted" in frame.raw for frame in frames)
    for frame in frames:
        rolled_back = rolled_back or b'"method":"thread/rollback"' in frame.raw
        counts = rolled_back and frame.sender == "server" and (b'"last_token_usage"' in frame.raw or b'"tokenUsage"' in frame.raw)
        found.append(_unestimated(frame) if counts else frame)
    return found


def _unestimated(frame: Frame) -> Frame:
    value = deepcopy(frame.value)
    params = value.get("params") or {}
    info = (params.get("msg") or {}).get("info") or {}
    for last in (info.get("last_token_usage"), (params.get("tokenUsage") or {}).get("last")):
        if last is not None and not any(count for name, count in last.items() if name not in ("total_tokens", "totalTokens")):
            last.update({name: "an estimate" for name in last if name in ("total_tokens", "totalTokens")})
    return Frame(frame.n, frame.t, frame.seam, frame.sender, frame.kind, dumps(value) + b"\n")


def sorted_changes(frames: list[Frame]) -> list[Frame]:
    """Sort the files of each patch within its events."""
    return [_sorted(frame) if b'"changes":{' in frame.raw or b'"fileChanges":{' in frame.raw else frame for frame in frames]


def _sorted(frame: Frame) -> Frame:
    def ordered(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            items = sorted(value.items()) if key in ("changes", "fileChanges") else value.items()
            return {name: ordered(inner, name) for name, inner in items}
        return [ordered(inner) for inner in value] if isinstance(value, list) else value

    raw = dumps(ordered(frame.value)) + b"\n"
    return Frame(frame.n, frame.t, frame.seam, frame.sender, frame.kind, raw)
