"""Items of the service's own tools: every event type of the newest openai package comes from items of a script."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from codex_replay.protocol.responses import hosted
from codex_replay.protocol.responses.events import event_schemas
from codex_replay.protocol.responses.items import reply
from codex_replay.protocol.responses.steps import Send
from codex_replay.protocol.script.keys import ITEM_KEYS, OUTPUT_KINDS
from codex_replay.protocol.script.script import BadScript, parse
from tests.protocol.responses.test_responses import ITEMS, at, drop, problems, stream

HOSTED: dict[str, list[Any]] = {
    "file search": [{"type": "file_search_call", "queries": ["cats"], "results": [{"file_id": "f1", "text": "a", "score": 0.5}]}],
    "code": [{"type": "code_interpreter_call", "code": "print(1 + 1)  # two", "outputs": [{"type": "logs", "logs": "2"}]}],
    "image": [{"type": "image_generation_call", "partial_images": ["AAAA", "BBBB"], "revised_prompt": "a cat"}],
    "MCP tools": [{"type": "mcp_list_tools", "server_label": "docs", "tools": [{"name": "find", "description": "Find."}]}],
    "MCP tools, failed": [{"type": "mcp_list_tools", "error": "unreachable"}],
    "MCP call": [{"type": "mcp_call", "name": "find", "arguments": {"text": "a long argument"}, "output": "1"}],
    "MCP call, failed": [{"type": "mcp_call", "name": "find", "status": "failed"}],
    "MCP approval": [{"type": "mcp_approval_request", "name": "find", "arguments": {"a": 1}}],
    "computer": [{"type": "computer_call", "action": {"type": "click", "x": 1, "y": 2, "button": "left"}}],
    "local shell": [{"type": "local_shell_call", "action": {"command": ["ls"]}}],
    "shell": [
        {"type": "shell_call", "action": {"commands": ["ls", "cat a.txt | sort --unique"]}, "call_id": "c1"},
        {"type": "shell_call_output", "output": [{"stdout": "a"}, {"stdout": "", "stderr": "none"}], "call_id": "c1"},
    ],
    "patch": [{"type": "apply_patch_call", "operation": {"type": "create_file", "path": "a", "diff": "+a"}}],
    "compaction": [{"type": "compaction"}],
    "audio": [{"type": "audio", "data": "AAAA", "transcript": "Hello to all of you."}],
    "queued": [{"type": "queued"}, "Hello."],
}
#: Each kind with nothing but what it needs.
LEAST: dict[str, dict[str, Any]] = {
    "mcp_call": {"name": "find"},
    "mcp_approval_request": {"name": "find"},
    "local_shell_call": {"action": {}},
    "shell_call": {"action": {}},
    "apply_patch_call": {"operation": {"type": "delete_file", "path": "a"}},
}


def whole(items: list[Any], **body: Any) -> list[dict[str, Any]]:
    """Return the events that a client other than Codex gets."""
    (turn,) = parse([{"items": items}]).turns
    return [dict(step.event) for step in reply(turn, body, "1", True) if isinstance(step, Send)]


@pytest.mark.parametrize("items", HOSTED.values(), ids=HOSTED.keys())
def test_the_stream_is_valid_for_codex_and_for_others(items: list[Any]) -> None:
    assert problems(stream(*items)) == []
    assert problems(whole(items)) == []


@pytest.mark.parametrize("kind", hosted.KINDS)
def test_what_a_script_omits_has_a_valid_default(kind: str) -> None:
    assert problems(whole([{"type": kind, **LEAST.get(kind, {})}, {"type": "incomplete"}])) == []


def test_every_event_type_comes_from_items() -> None:
    sent = {event["type"] for items in [*ITEMS.values(), *HOSTED.values()] for event in whole(items)}
    assert (sorted(sent), len(sent)) == (event_schemas().types, 59)


def test_the_kinds_are_those_of_the_scripts() -> None:
    assert set(hosted.KINDS) < OUTPUT_KINDS
    for kind, table in hosted.KINDS.items():
        words = ITEM_KEYS[kind].get("status", ((), False))[0]
        assert set(table.statuses) == set(words) or table.statuses == ("completed",), kind
        assert set(table.defaults) <= {*ITEM_KEYS[kind]}, kind


def test_a_failed_tool_does_not_complete() -> None:
    for kind in ("file_search_call", "code_interpreter_call", "image_generation_call"):
        events = whole([{"type": kind, "status": "failed"}])
        assert not any(event["type"] == f"response.{kind}.completed" for event in events)
        assert events[-1]["response"]["output"][0]["status"] == "failed"
    kinds = [event["type"] for event in whole([{"type": "mcp_call", "name": "f", "status": "failed"}])]
    assert "response.mcp_call.failed" in kinds
    assert "response.mcp_call.completed" not in kinds


def test_a_response_in_the_background_is_queued() -> None:
    events = whole(["Hello."], background=True)
    assert [event["type"] for event in events[:3]] == ["response.created", "response.queued", "response.in_progress"]
    assert [event["response"]["status"] for event in events[:3]] == ["queued", "queued", "in_progress"]
    assert problems(events) == []


@pytest.mark.parametrize(("name", "key"), [("file search", "results"), ("code", "outputs")])
def test_what_a_tool_found_comes_if_it_is_asked_for(name: str, key: str) -> None:
    (given,) = HOSTED[name]
    assert whole([given])[-1]["response"]["output"][0][key] is None
    assert whole([given], include=[f"{given['type']}.{key}"])[-1]["response"]["output"][0][key] == given[key]
    assert stream(given)[-1]["response"]["output"][0][key] == given[key]


def test_queued_comes_first() -> None:
    with pytest.raises(BadScript, match="must be the first"):
        parse([{"items": ["a", {"type": "queued"}]}])


@pytest.mark.parametrize(("item", "event"), [("MCP call", "mcp_call_arguments"), ("code", "code_interpreter_call_code")])
def test_a_lost_delta_is_named(item: str, event: str) -> None:
    events = copy.deepcopy(whole(HOSTED[item]))
    drop(events, f"response.{event}.delta")
    assert any("joined deltas" in problem for problem in problems(events))


def test_an_item_without_its_event_is_named() -> None:
    events = copy.deepcopy(whole(HOSTED["compaction"]))
    at(events, "response.compaction.compacting").pop("item_id")
    assert any("item_id" in problem for problem in problems(events))


@pytest.mark.parametrize(("given", "keys"), [({}, set()), ({"error": "unreachable"}, {"error"})], ids=["well", "failed"])
def test_a_list_of_tools_has_an_error_only_if_it_failed(given: dict[str, Any], keys: set[str]) -> None:
    events = whole([{"type": "mcp_list_tools", "tools": [{"name": "t"}], **given}])
    assert [event["item"].keys() & {"error"} for event in events if event["type"] == "response.output_item.done"] == [keys]
