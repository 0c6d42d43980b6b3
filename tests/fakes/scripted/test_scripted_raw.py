"""Raw items of the scripted fake: who hears them, where they stand, and in which form; as the real 0.92.0 was seen to tell them.

The recording test_items/raw_items and the differential test's classes with raw items hold the whole to the real binary; here is
what each of them rests on, one thing a test.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codex_replay.core.wire.json_text import dumps, loads
from tests.fakes.scripted.conversing import Conversation, initialize
from tests.fakes.scripted.in_process import InProcess
from tests.real.differential.scenarios import FREE, GATE, TOOL, conversation, dynamic, numbered, shell

RAW = "codex/event/raw_response_item"
PATCH = "*** Begin Patch\n*** Add File: n\n+x\n*** End Patch\n"
Start = Callable[[list[Any]], InProcess]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    def started(script: list[Any]) -> InProcess:
        path = tmp_path / "script.json"
        path.write_bytes(dumps(script))
        client = InProcess(path, tmp_path, "/work")
        initialize(client)
        return client

    return started


def played(start: Start, scenario: dict[str, Any]) -> InProcess:
    """Play a scenario of the differential test for a client that asks for raw items."""
    client = start(scenario["script"])
    Conversation(client, {**scenario["conversation"], "raw": True}, "/work").play()
    return client


def told(client: InProcess) -> list[tuple[str, str]]:
    """Return (turn, what it is) of each raw item: its type, or what of its text tells it from others."""
    values = [frame.value for frame in client.timeline if frame.sender == "server"]
    return [(v["params"]["id"], shown(v["params"]["msg"]["item"])) for v in values if v.get("method") == RAW]


def shown(item: dict[str, Any]) -> str:
    if item["type"] != "message":
        return str(item["type"])
    text = "".join(part.get("text", "") for part in item["content"])
    for name in ("permissions", "AGENTS.md", "environment", "user_action"):
        if name in text[:20]:
            return name
    return text


def outputs(client: InProcess) -> list[str]:
    """Return the outputs of calls, as raw items tell them."""
    values = [frame.value for frame in client.timeline if frame.sender == "server"]
    items = [v["params"]["msg"]["item"] for v in values if v.get("method") == RAW]
    return [item["output"] for item in items if item["type"].endswith("_call_output")]


OPENING = [("auto-compact-0", name) for name in ("permissions", "AGENTS.md", "environment")]
DEVELOPER = [OPENING[0], ("auto-compact-0", "Dev."), *OPENING[1:]]


# -- who hears them -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", ["v1", "v2"])
def test_who_asks_hears_the_opening_and_every_item(api: str, start: Start) -> None:
    scenario = conversation([{"items": ["Hello."]}], [{"text": "Go."}], api, settings={"developerInstructions": "Dev."})
    client = played(start, scenario)
    assert told(client) == [*DEVELOPER, ("0", "Go."), ("0", "Hello.")]
    methods = [frame.value.get("method") for frame in client.timeline]
    assert methods.count("rawResponseItem/completed") == (len(DEVELOPER) + 2 if api == "v2" else 0)


@pytest.mark.parametrize("api", ["v1", "v2"])
def test_who_does_not_ask_hears_none(api: str, start: Start) -> None:
    client = start([{"items": ["Hello."]}])
    Conversation(client, conversation([], [{"text": "Go."}], api)["conversation"], "/work").play()
    assert told(client) == []


def test_a_listener_that_comes_late_hears_what_was_kept(start: Start) -> None:
    client = start([{"items": ["Hello."]}])
    opened = client.request("newConversation", {"cwd": "/work"})["conversationId"]
    items = [{"type": "text", "data": {"text": "Go."}}]
    client.request("sendUserMessage", {"conversationId": opened, "items": items})
    client.session.advance()
    client.request("addConversationListener", {"conversationId": opened, "experimentalRawEvents": True})
    client.wait("the end", lambda m: m.get("method") == "turn/completed")
    assert told(client) == [*OPENING, ("0", "Go."), ("0", "Hello.")]


def test_a_resumed_thread_tells_none_until_it_is_asked_again(start: Start) -> None:
    client = start([{"items": ["Hello."], "times": 3}])
    thread = client.request("thread/start", {"cwd": "/work", "experimentalRawEvents": True})["thread"]["id"]

    def turn() -> list[tuple[str, str]]:
        before = len(told(client))
        client.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "Go."}]})
        client.wait("the end", lambda m: m.get("method") == "turn/completed")
        return told(client)[before:]

    assert turn() == [("0", "Go."), ("0", "Hello.")]
    client.request("thread/resume", {"threadId": thread})
    assert turn() == []
    before = len(told(client))
    client.request("resumeConversation", {"conversationId": thread})
    client.request("addConversationListener", {"conversationId": thread, "experimentalRawEvents": True})
    assert told(client)[before:] == OPENING
    assert turn() == [("0", "Go."), ("0", "Hello.")]


# -- settings that change -------------------------------------------------------------------------------------------------


def test_an_override_is_told_by_itself_and_again_by_its_turn(start: Start) -> None:
    script = [{"items": ["Hello."], "times": 3}]
    params = {"cwd": "/other", "approvalPolicy": "untrusted"}
    client = played(
        start, conversation(script, [{"text": "a", "params": params}, {"text": "b", "params": params}, {"text": "c"}])
    )
    changed = [(turn, name) for turn in ("0", "1") for name in ("environment", "permissions")]
    rest = [("1", "a"), ("1", "Hello."), ("3", "b"), ("3", "Hello."), ("4", "c"), ("4", "Hello.")]
    assert told(client) == [*OPENING, *changed, *rest]


def test_the_settings_of_a_turn_of_v1_are_told_once(start: Start) -> None:
    params = {
        "cwd": "/work",
        "approvalPolicy": "on-request",
        "sandboxPolicy": {"type": "read-only"},
        "model": "m",
        "summary": "auto",
    }
    steps = [{"text": "a", "params": {**params, "approvalPolicy": "never"}}, {"text": "b", "params": params}]
    client = played(start, conversation([{"items": ["Hello."], "times": 2}], steps, "v1", settings={"approvalPolicy": "never"}))
    assert told(client)[3:] == [("0", "a"), ("0", "Hello."), ("1", "permissions"), ("1", "b"), ("1", "Hello.")]


def test_an_override_that_steers_is_told_by_itself_and_by_the_next_turn(start: Start) -> None:
    script = [{"items": ["One.", {"type": "gate", "name": GATE}]}, {"items": ["Both."]}, {"items": ["Next."]}]
    step = {
        "text": "a",
        "steer": "b",
        "steer_after": "codex/event/agent_message",
        "steer_params": {"approvalPolicy": "untrusted"},
    }
    client = played(start, numbered(conversation(script, [step, {"text": "c"}]), 1))
    steered = [("0", "a"), ("0", "One."), ("1", "permissions"), ("0", "b"), ("0", "Both.")]
    assert told(client)[3:] == [*steered, ("3", "permissions"), ("3", "c"), ("3", "Next.")]


@pytest.mark.parametrize(
    ("sandbox", "words"),
    [
        ({"type": "readOnly"}, "`read-only`: The sandbox only permits reading files. Network access is restricted."),
        ({"type": "dangerFullAccess"}, "all commands are permitted. Network access is enabled."),
        ({"type": "externalSandbox"}, "all commands are permitted. Network access is restricted."),
        ({"type": "workspaceWrite", "excludeSlashTmp": True, "excludeTmpdirEnvVar": True}, "The writable root is `/work`.<"),
        (
            {"type": "workspaceWrite", "writableRoots": ["/opt"], "networkAccess": True, "excludeTmpdirEnvVar": True},
            "The writable roots are `/opt`, `/work`, `/tmp`.<",
        ),
    ],
)
def test_the_permissions_are_those_of_the_sandbox(sandbox: Any, words: str, start: Start) -> None:
    client = played(
        start, conversation(["Hello."], [{"text": "a", "params": {"approvalPolicy": "never", "sandboxPolicy": sandbox}}])
    )
    items = [f.value["params"]["msg"]["item"] for f in client.timeline if f.value.get("method") == RAW]
    permissions = [item["content"][0]["text"] for item in items if item["role"] == "developer"]
    assert words in permissions[-1]


# -- calls ----------------------------------------------------------------------------------------------------------------


def test_an_output_is_told_when_the_reply_has_been_read(start: Start) -> None:
    """Tools run while the stream stands still; what they gave is told behind the end of the stream."""
    items = [shell("call_1", "printf marker"), {"type": "wait", "ms": 1}, "After.", shell("call_2", "true")]
    client = played(start, conversation([{"items": items}, {"items": ["Done."]}], [{"text": "a"}], settings=FREE))
    calls = ["function_call", "After.", "function_call", "function_call_output", "function_call_output", "Done."]
    assert [name for _, name in told(client)[4:]] == calls


def test_only_a_shell_command_s_output_is_plain(start: Start) -> None:
    call = {"type": "custom_tool_call", "name": "apply_patch", "call_id": "call_2", "input": PATCH}
    listed = {"type": "function_call", "name": "shell", "call_id": "call_3", "arguments": {"command": ["sh", "-c", "exit 3"]}}
    items = [shell("call_1", "printf marker"), call, {**listed, "result": {"exit_code": 3, "duration_ms": 260}}]
    client = played(start, conversation([{"items": items}, {"items": ["Done."]}], [{"text": "a"}], settings=FREE))
    plain, patched, commanded = outputs(client)
    assert plain == "Exit code: 0\nWall time: 0 seconds\nOutput:\nmarker"
    metadata = {"exit_code": 0, "duration_seconds": 0.0}
    assert loads(patched.encode()) == {"output": "Success. Updated the following files:\nA n\n", "metadata": metadata}
    assert commanded == '{"output":"","metadata":{"exit_code":3,"duration_seconds":0.3}}'


def test_an_interrupted_call_has_an_output_before_the_abort(start: Start) -> None:
    items = [shell("call_0", "true"), dynamic("call_1", "Oslo")]
    step = {"text": "a", "interrupt": "item/tool/call"}
    script = [{"items": items}]
    client = played(start, conversation(script, [step], settings={**FREE, "dynamicTools": [TOOL]}))
    assert outputs(client)[-1] == "aborted by user after 0.1s"
    methods = [frame.value.get("method") for frame in client.timeline]
    last = max(n for n, method in enumerate(methods) if method == RAW)
    assert last < methods.index("codex/event/turn_aborted")


# -- reviews --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("said", "result"), [("Fine.", "Fine."), (" ", "")])
def test_the_model_is_told_of_a_review_before_it_is_left(said: str, result: str, start: Start) -> None:
    """A review that says nothing is told as one: the sentence that stands for it is for the client alone."""
    target = {"type": "custom", "instructions": "Look."}
    client = played(start, conversation([{"items": [said]}], [{"review": target}]))
    opening = [("0", name) for _, name in OPENING]
    answer = said if result else "Reviewer failed to output a response."
    assert told(client)[3:] == [*opening, ("0", "Look."), ("0", said), ("0", "user_action"), ("0", answer)]
    methods = [frame.value.get("method") for frame in client.timeline]
    assert methods[methods.index("codex/event/exited_review_mode") - 2] == RAW
    action = [frame.value for frame in client.timeline if frame.value.get("method") == RAW][-2]
    assert f"<results>\n  {result}\n  </results>" in action["params"]["msg"]["item"]["content"][0]["text"]
