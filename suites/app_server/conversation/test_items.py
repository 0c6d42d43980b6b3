"""The parts of a model's answer besides text and commands: plan, reasoning, web search, images, output schema, raw items.

Source: docs/contract/real-0.92.md, sections 3 and 4, and the bundle's ThreadItem, EventMsg and TurnPlanStepStatus.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from codex_replay.plugin import AppServer, Server
from suites.app_server.dialect import has_events, in_events, these, turn_id
from suites.app_server.expected import Events, all_of, event, events, item_notification, shell_call, text
from suites.app_server.turns import FREE, ended, items_of, last_words, methods, msgs, open_thread, run

#: A PNG of one pixel.
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
DATA_URL = "data:image/png;base64," + base64.b64encode(PNG).decode()


NO_PLAN = pytest.mark.until("0.140.0", "0.169.0 gives its models no tool update_plan")


def function_call(name: str, arguments: Any, call_id: str = "call_1") -> dict[str, Any]:
    """Return a script's item: the model calls a function."""
    return {"type": "function_call", "name": name, "call_id": call_id, "arguments": arguments}


def expects(output: Any) -> dict[str, Any]:
    """Return a turn of the script that expects the given output of call_1, and then sends a message."""
    return {"items": [text("Done")], "expect": {"outputs": {"call_1": output}}}


def about(server: Server, turn: str, *words: str) -> Events:
    """Return the notifications of a turn that contain at least one of the given words."""
    return [each for each in events(server, turn) if any(word in str(each) for word in words)]


def with_image(root: Path) -> None:
    """Write the image a.png to the working directory."""
    (root / "work" / "a.png").write_bytes(PNG)


@NO_PLAN
def test_plan(app_server: AppServer) -> None:
    """For update_plan, the server sends an event (in_progress) and turn/plan/updated (inProgress).

    The model gets a confirmation of the plan.
    """
    steps = [("one", "completed"), ("two", "in_progress"), ("three", "pending")]
    plan = [{"step": step, "status": status} for step, status in steps]
    server = app_server(
        [{"items": [function_call("update_plan", {"explanation": "So far.", "plan": plan})]}, expects("Plan updated")]
    )
    thread = open_thread(server)
    run(server, thread)
    camel = [{"step": step, "status": "inProgress" if status == "in_progress" else status} for step, status in steps]
    wanted = [
        event(thread, turn_id(server), "plan_update", explanation="So far.", plan=plan),
        ("turn/plan/updated", {"threadId": thread, "turnId": turn_id(server), "explanation": "So far.", "plan": camel}),
    ]
    assert about(server, turn_id(server), "plan") == these(server, wanted)


@NO_PLAN
def test_plan_without_explanation(app_server: AppServer) -> None:
    """If a plan has no explanation, turn/plan/updated has null as the explanation."""
    plan = [{"step": "one", "status": "pending"}]
    server = app_server([{"items": [function_call("update_plan", {"plan": plan})]}, expects("Plan updated")])
    thread = open_thread(server)
    run(server, thread)
    of = {"threadId": thread, "turnId": turn_id(server)}
    assert all_of(server, "turn/plan/updated") == [{**of, "explanation": None, "plan": plan}]
    if has_events(server):
        assert msgs(server, "plan_update")[0].get("explanation") is None


@NO_PLAN
def test_plan_with_a_status_that_is_none(app_server: AppServer) -> None:
    """If the plan of the model is invalid, only the model gets an error."""
    why = (
        "failed to parse function arguments: unknown variant `done`, expected one of `pending`, `in_progress`, `completed` "
        "at line 1 column 36"
    )
    server = app_server([{"items": [function_call("update_plan", '{"plan":[{"step":"a","status":"done"}]}')]}, expects(why)])
    thread = open_thread(server)
    assert run(server, thread)["status"] == "completed"
    assert all_of(server, "turn/plan/updated") == []
    assert last_words(server) == ["Done"]


def reasoned(server: Server, thread: str, summary: list[str], content: list[str], *, raw: bool) -> Events:
    """Return the frames of a reasoning item; each of its parts comes in one chunk."""
    of, camel = (
        {"thread_id": thread, "turn_id": turn_id(server)},
        {"threadId": thread, "turnId": turn_id(server), "itemId": "rs_1"},
    )
    old = {"type": "Reasoning", "id": "rs_1"}
    new = {"type": "reasoning", "id": "rs_1"}
    found = [
        event(thread, turn_id(server), "item_started", **of, item={**old, "summary_text": [], "raw_content": []}),
        item_notification("started", thread, turn_id(server), {**new, "summary": [], "content": []}),
    ]
    for n, delta in enumerate(summary):
        found += [
            event(thread, turn_id(server), "agent_reasoning_section_break", item_id="rs_1", summary_index=n),
            ("item/reasoning/summaryPartAdded", {**camel, "summaryIndex": n}),
            event(thread, turn_id(server), "reasoning_content_delta", **of, item_id="rs_1", delta=delta, summary_index=n),
            ("item/reasoning/summaryTextDelta", {**camel, "delta": delta, "summaryIndex": n}),
            event(thread, turn_id(server), "agent_reasoning_delta", delta=delta),
        ]
    for n, delta in enumerate(content):
        found += [
            event(thread, turn_id(server), "reasoning_raw_content_delta", **of, item_id="rs_1", delta=delta, content_index=n),
            ("item/reasoning/textDelta", {**camel, "delta": delta, "contentIndex": n}),
            event(thread, turn_id(server), "agent_reasoning_raw_content_delta", delta=delta),
        ]
    found += [
        event(thread, turn_id(server), "item_completed", **of, item={**old, "summary_text": summary, "raw_content": content}),
        item_notification("completed", thread, turn_id(server), {**new, "summary": summary, "content": content}),
    ]
    found += [event(thread, turn_id(server), "agent_reasoning", text=part) for part in summary]
    return found + [event(thread, turn_id(server), "agent_reasoning_raw_content", text=part) for part in content if raw]


@pytest.mark.parametrize("raw", [False, True], ids=["as-a-rule", "raw"])
def test_reasoning(app_server: AppServer, raw: bool) -> None:
    """The server first sends the parts of the reasoning, then the complete item.

    The server sends the raw content of the reasoning as an event only with `show_raw_agent_reasoning`.

    Source: REAL-72, EDIT-32.
    """
    summary, content = ["**Think**", "Then speak."], ["Hm."]
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": summary, "content": content}
    server = app_server([{"items": [reasoning, text("Done")]}], config={"show_raw_agent_reasoning": raw})
    thread = open_thread(server)
    assert run(server, thread)["status"] == "completed"
    assert about(server, turn_id(server), "easoning") == these(server, reasoned(server, thread, summary, content, raw=raw))
    seen = methods(server)
    assert seen.index("item/reasoning/textDelta") < seen.index("item/agentMessage/delta")


#: name -> (the action of the search in the model's answer, the query in the item)
SEARCHES: dict[str, tuple[dict[str, Any], str]] = {
    "search": ({"type": "search", "query": "the weather"}, "the weather"),
    "open-page": ({"type": "open_page", "url": "https://example.invalid/"}, "https://example.invalid/"),
    "find-in-page": (
        {"type": "find_in_page", "url": "https://example.invalid/", "pattern": "rain"},
        "'rain' in https://example.invalid/",
    ),
    "other": ({"type": "other"}, ""),
}


@pytest.mark.parametrize("row", SEARCHES)
def test_web_search(app_server: AppServer, row: str) -> None:
    """The item of the model's web search starts with an empty query and completes with a text for its action. (REAL-71)"""
    action, query = SEARCHES[row]
    server = app_server([{"items": [{"type": "web_search_call", "id": "ws_1", "action": action}, text("Done")]}])
    thread = open_thread(server)
    assert run(server, thread)["status"] == "completed"
    of = {"thread_id": thread, "turn_id": turn_id(server)}
    old, new = {"type": "WebSearch", "id": "ws_1"}, {"type": "webSearch", "id": "ws_1"}
    wanted = [
        event(
            thread, turn_id(server), "item_started", **of, item={**old, "query": "", "action": {"type": "search", "query": ""}}
        ),
        item_notification("started", thread, turn_id(server), {**new, "query": ""}),
        event(thread, turn_id(server), "web_search_begin", call_id="ws_1"),
        event(thread, turn_id(server), "item_completed", **of, item={**old, "query": query, "action": action}),
        item_notification("completed", thread, turn_id(server), {**new, "query": query}),
        event(thread, turn_id(server), "web_search_end", call_id="ws_1", query=query, action=action),
    ]
    assert about(server, turn_id(server), "ws_1") == these(server, wanted)


#: name -> (a command, the action that the server recognises in it)
ACTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "read": ("cat a.txt", {"type": "read", "name": "a.txt", "path": "a.txt"}),
    "list": ("ls deep", {"type": "listFiles", "path": "deep"}),
    "search": ("grep -rn one deep", {"type": "search", "query": "one", "path": "deep"}),
    "unknown": ("printf one", {"type": "unknown"}),
}


@pytest.mark.parametrize("row", ACTIONS)
def test_command_action(app_server: AppServer, row: str) -> None:
    """The item of a command describes the command; the event has the same content in snake_case."""
    command, action = ACTIONS[row]
    server = app_server([{"items": [shell_call(command)]}, {"items": [text("Done")]}])
    thread = open_thread(server, **FREE)
    assert run(server, thread)["status"] == "completed"
    if action["type"] == "read" and server.by_version({"0.0.0": False, "0.169.0": True}):  # 0.169.0 has the whole path
        action = {**action, "path": f"{server.work}/{action['path']}"}
    assert items_of(server, "commandExecution", "started")[0]["commandActions"] == these(server, [{**action, "command": command}])
    if not has_events(server):
        return
    (parsed,) = msgs(server, "exec_command_begin")[0]["parsed_cmd"]
    kind = {"listFiles": "list_files"}.get(action["type"], action["type"])
    assert parsed == {**action, "type": kind, "cmd": command}


def test_images_of_the_user(app_server: AppServer) -> None:
    """The item of the user's message repeats each image as its path or URL; the model gets every image as data."""
    server = app_server([{"items": [text("A pixel.")]}], prepare=with_image)
    thread = open_thread(server)
    path = f"{server.work}/a.png"
    words = {"type": "text", "text": "Look.", "text_elements": []}
    given = [{"type": "localImage", "path": path}, {"type": "image", "url": DATA_URL}, words]
    server.request("turn/start", {"threadId": thread, "input": given})
    ended(server, thread)
    assert items_of(server, "userMessage")[0]["content"] == these(server, given)
    old = [{"type": "local_image", "path": path}, {"type": "image", "image_url": DATA_URL}, words]
    if has_events(server):
        assert msgs(server, "item_completed")[0]["item"]["content"] == old
    shown = {"message": "Look.", "images": [DATA_URL], "local_images": [path], "text_elements": []}
    assert msgs(server, "user_message") == in_events(server, [shown])
    if server.upstream is not None:
        asked = next(entry["body"]["input"] for entry in server.upstream.ledger() if entry["method"] == "POST")[-1]["content"]
        assert [part["image_url"] for part in asked if part["type"] == "input_image"] == [DATA_URL, DATA_URL]
        assert asked[-1] == {"type": "input_text", "text": "Look."}


def test_an_image_that_is_not_there(app_server: AppServer) -> None:
    """An unreadable image path does not fail the turn: the model gets a message."""
    server = app_server([{"items": [text("Which image?")], "expect": {"prompt": "Codex could not read the local image at"}}])
    thread = open_thread(server)
    given = [{"type": "localImage", "path": f"{server.work}/none.png"}]
    server.request("turn/start", {"threadId": thread, "input": given})
    assert ended(server, thread)["status"] == "completed"
    assert items_of(server, "userMessage")[0]["content"] == these(server, given)


def test_view_image(app_server: AppServer) -> None:
    """view_image: one event, and one imageView item that starts and completes immediately. (REAL-33)"""
    image = [{"type": "input_image", "image_url": DATA_URL, "detail": "high"}]
    report = app_server.by_version({"0.0.0": "attached local image path", "0.169.0": image})
    script = [{"items": [function_call("view_image", {"path": "a.png"})]}, expects(report)]
    server = app_server(script, prepare=with_image)
    thread = open_thread(server)
    assert run(server, thread)["status"] == "completed"
    item = {"type": "imageView", "id": "call_1", "path": f"{server.work}/a.png"}
    wanted = [
        event(thread, turn_id(server), "view_image_tool_call", call_id="call_1", path=item["path"]),
        item_notification("started", thread, turn_id(server), item),
        item_notification("completed", thread, turn_id(server), item),
    ]
    assert about(server, turn_id(server), "call_1") == these(server, wanted)


def test_view_image_that_is_not_there(app_server: AppServer) -> None:
    """If view_image names a missing file, the server sends no item; the model gets an error text."""
    server = app_server([{"items": [function_call("view_image", {"path": "none.png"})]}, {"items": [text("Pity.")]}])
    thread = open_thread(server)
    assert run(server, thread)["status"] == "completed"
    assert items_of(server, "imageView", "started") == []
    assert last_words(server) == ["Pity."]


def test_output_schema(app_server: AppServer) -> None:
    """The model gets an output schema as a strict json_schema; the answer is an ordinary message. (REAL-31)"""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
    wanted = {"type": "json_schema", "strict": True, "schema": schema, "name": "codex_output_schema"}
    server = app_server([{"items": [text('{"a":1}')], "expect": {"body": {"text": {"format": wanted}}}}])
    thread = open_thread(server)
    assert run(server, thread, outputSchema=schema)["status"] == "completed"
    assert [item["text"] for item in items_of(server, "agentMessage")] == ['{"a":1}']


def test_output_schema_is_for_one_turn(app_server: AppServer) -> None:
    """An output schema applies to one turn: the next turn has none. (REAL-31)"""
    schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    script = [{"items": [text("{}")]}, {"items": [text("Hello", id="msg_2")], "expect": {"absent": ["text"]}}]
    server = app_server(script)
    thread = open_thread(server)
    run(server, thread, outputSchema=schema)
    assert run(server, thread)["status"] == "completed"
    assert last_words(server) == ["{}", "Hello"]


def test_refusal(app_server: AppServer) -> None:
    """The client does not get the text of a refusal: the item never completes, and the turn ends without a last message."""
    server = app_server([{"items": [{"type": "refusal", "refusal": "I will not.", "id": "msg_1"}]}])
    thread = open_thread(server)
    assert run(server, thread)["status"] == "completed"
    wanted = [{"type": "agentMessage", "id": "msg_1", "text": ""}]
    assert items_of(server, "agentMessage", "started") == these(server, wanted)
    assert items_of(server, "agentMessage") == []
    assert last_words(server) == [None]


#: The messages that the server puts before the first one of the user.
PREAMBLE = {"0.0.0": ["developer", "user", "user"], "0.169.0": ["developer", "user"]}
#: What a raw item has beside its parts.
PASSED_ON = {"id", "status", "internal_chat_message_metadata_passthrough"}
#: The arguments of the call in the script below, under the name of the tool.
RAW_CALL = {"0.0.0": ("shell_command", {"command": "printf marker"}), "0.169.0": ("exec_command", {"cmd": "printf marker"})}


def test_raw_items(app_server: AppServer) -> None:
    """With experimentalRawEvents, an event and rawResponseItem/completed repeat every item of the model's input and output.

    Since 0.169.0 rawResponse/completed repeats the id and the usage of each response.
    """
    server = app_server([{"items": [shell_call("printf marker")]}, {"items": [text("Done")]}])
    thread = open_thread(server, **FREE, experimentalRawEvents=True)
    run(server, thread)
    raw = [params["item"] for params in all_of(server, "rawResponseItem/completed")]
    if has_events(server):
        assert raw == [msg["item"] for msg in msgs(server, "raw_response_item")]
    before = server.by_version(PREAMBLE)
    assert [(item["type"], item.get("role")) for item in raw] == [
        *(("message", role) for role in before),
        ("message", "user"),
        ("function_call", None),
        ("function_call_output", None),
        ("message", "assistant"),
    ]
    asked, called, _, answered = raw[len(before) :]
    assert asked["content"] == [{"type": "input_text", "text": "Go on."}]
    name, arguments = server.by_version(RAW_CALL)
    bare = {key: value for key, value in called.items() if has_events(server) or key not in PASSED_ON}
    assert {**bare, "arguments": json.loads(bare["arguments"])} == {
        "type": "function_call",
        "name": name,
        "arguments": arguments,
        "call_id": "call_1",
    }
    assert answered["content"] == these(server, [{"type": "output_text", "text": "Done"}])
    if not has_events(server):
        responses = all_of(server, "rawResponse/completed")
        assert len({each["responseId"] for each in responses}) == len(responses) == 2
        assert [each["usage"]["inputTokens"] for each in responses] == [10, 10]
