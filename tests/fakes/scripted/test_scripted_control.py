"""A client that breaks into a turn: interrupts at once, late replies, a command that takes its time, a resume in mid-turn.

Each statement was watched on the real binary, with which tests/real/differential/test_control.py compares the fake.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from codex_replay.core.wire.json_text import dumps
from codex_replay.core.wire.jsonrpc import is_reply
from codex_replay.shell.rpc.client import Client
from tests.fakes.scripted.test_scripted import Started, of, start

__all__ = ["start"]  # the fixture

Start = Callable[..., Started]
OUTPUT = "item/commandExecution/outputDelta"
ASKED = "item/commandExecution/requestApproval"
LONG = 60_000  # milliseconds: a test that waited for it would fail


def command(call: str, **result: Any) -> dict[str, Any]:
    arguments = {"command": "make"}
    result = {"stdout": "begun", **result}
    return {"type": "function_call", "name": "shell_command", "arguments": arguments, "call_id": call, "result": result}


def post(client: Client, thread: str, text: str = "Go.", **params: Any) -> Any:
    return client.post("turn/start", {"threadId": thread, "input": [{"type": "text", "text": text}], **params})


def begin(client: Client, thread: str, text: str = "Go.", **params: Any) -> str:
    turn: str = client.reply_to(post(client, thread, text, **params))["result"]["turn"]["id"]
    return turn


def together(client: Client, *messages: Any) -> None:
    """Send messages in one write."""
    client.process.write(b"".join(dumps(message) + b"\n" for message in messages))


def interrupt(number: int, thread: str) -> dict[str, Any]:
    return {"id": number, "method": "turn/interrupt", "params": {"threadId": thread, "turnId": "0"}}


def order(client: Client, begin_: int) -> list[Any]:
    """Return the ids of the replies and the methods of the notifications."""
    frames = [frame.value for frame in client.timeline[begin_:] if frame.sender == "server"]
    return [frame["id"] if is_reply(frame) else frame["method"] for frame in frames]


# -- interrupts ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("result", [{"hang": True}, {"duration_ms": LONG}])
def test_interrupts_that_come_together_are_all_answered(start: Start, result: dict[str, Any]) -> None:
    fake = start([{"items": [command("c1", **result)]}, "next"])
    thread = fake.thread()
    begin(fake.client, thread)
    fake.client.notification(OUTPUT)
    before = len(fake.client.timeline)
    together(fake.client, *(interrupt(number, thread) for number in (101, 102, 103)))
    fake.client.notification("turn/completed", threadId=thread)
    assert order(fake.client, before) == ["codex/event/turn_aborted", 101, 102, 103, "turn/completed"]
    assert begin(fake.client, thread) == "4"  # each interrupt has taken a number


def test_a_turn_that_comes_with_an_interrupt_is_the_next(start: Start) -> None:
    fake = start([{"items": [command("c1", duration_ms=LONG)]}, "next"])
    thread = fake.thread()
    begin(fake.client, thread)
    fake.client.notification(OUTPUT)
    params = {"threadId": thread, "input": [{"type": "text", "text": "Next."}]}
    together(fake.client, interrupt(101, thread), {"id": 102, "method": "turn/start", "params": params})
    assert fake.client.reply_to(101)["result"] == {}
    assert fake.client.reply_to(102)["result"]["turn"]["id"] == "2"
    ended = [fake.client.notification("turn/completed", threadId=thread)["turn"] for _ in range(2)]
    assert [(turn["id"], turn["status"]) for turn in ended] == [("0", "interrupted"), ("2", "completed")]


def test_a_review_that_replaces_a_turn_answers_the_interrupts_before_it(start: Start) -> None:
    fake = start([{"items": [command("c1", hang=True)]}, "fine"])
    thread = fake.thread()
    early = fake.client.post("turn/interrupt", {"threadId": thread, "turnId": "0"})  # nothing runs
    begin(fake.client, thread)
    fake.client.notification(OUTPUT)
    before = len(fake.client.timeline)
    fake.client.request("review/start", {"threadId": thread, "target": {"type": "custom", "instructions": "Look."}})
    fake.client.notification("codex/event/entered_review_mode")
    found = order(fake.client, before)
    at = found.index("codex/event/turn_aborted")
    assert found[at : at + 3] == ["codex/event/turn_aborted", early, "turn/completed"]


# -- late replies ---------------------------------------------------------------------------------------------------------------


def late(start: Start, reply: Any, *, wait: bool = True) -> tuple[Started, str, str, int]:
    """Interrupt a turn that asks for an approval, and answer then; return the id of the next turn, and where the reply was."""
    fake = start([{"items": [command("c1")]}, "next"])
    thread = fake.thread(approvalPolicy="untrusted")
    begin(fake.client, thread)
    request = fake.client.server_request(ASKED)
    fake.client.request("turn/interrupt", {"threadId": thread, "turnId": "0"})
    before = len(fake.client.timeline)
    params = {"threadId": thread, "input": [{"type": "text", "text": "Next."}]}
    messages = [{"id": request["id"], **reply}, {"id": 200, "method": "turn/start", "params": params}]
    if wait:
        fake.client.send(messages[0])
        fake.client.request("thread/loaded/list", {})
        time.sleep(0.1)  # until nothing more comes
        fake.client.send(messages[1])
    else:
        together(fake.client, *messages)
    return fake, thread, fake.client.reply_to(200)["result"]["turn"]["id"], before


@pytest.mark.parametrize(
    ("reply", "number", "declined"),
    [
        ({"result": {"decision": "accept"}}, "3", False),
        ({"result": {"decision": "decline"}}, "3", True),
        ({"result": {"decision": "cancel"}}, "3", True),
        ({"result": {"nonsense": 1}}, "3", True),
        ({"error": {"code": -1, "message": "x"}}, "2", False),
    ],
)
def test_a_late_reply_takes_a_number(start: Start, reply: Any, number: str, declined: bool) -> None:
    fake, thread, turn, before = late(start, reply)
    assert turn == number
    fake.client.notification("turn/completed", threadId=thread)
    first = next(f.value["params"] for f in fake.client.timeline[before:] if of(f.value, "item/completed"))
    assert (first["item"].get("status"), first["turnId"]) == (("declined", "0") if declined else (None, number))


def test_a_late_reply_does_not_count_in_a_thread_that_was_loaded_since(start: Start) -> None:
    fake = start([{"items": [command("c1")]}, "next"])
    thread = fake.thread(approvalPolicy="untrusted")
    begin(fake.client, thread)
    request = fake.client.server_request(ASKED)
    fake.client.request("turn/interrupt", {"threadId": thread, "turnId": "0"})
    fake.client.request("thread/resume", {"threadId": thread})
    fake.client.reply(request, {"decision": "accept"})
    fake.client.request("thread/loaded/list", {})
    time.sleep(0.1)
    assert begin(fake.client, thread) == "0"


def test_what_comes_with_a_late_reply_overtakes_it(start: Start) -> None:
    assert late(start, {"result": {"decision": "accept"}}, wait=False)[2] == "2"


def test_a_late_cancel_ends_what_runs_then(start: Start) -> None:
    fake = start([{"items": [command("c1")]}, {"items": [command("c2", duration_ms=LONG)]}])
    thread = fake.thread(approvalPolicy="untrusted")
    begin(fake.client, thread)
    request = fake.client.server_request(ASKED)
    fake.client.request("turn/interrupt", {"threadId": thread, "turnId": "0"})
    fake.client.notification("turn/completed", threadId=thread)
    turn = begin(fake.client, thread, approvalPolicy="never")
    fake.client.notification(OUTPUT)
    fake.client.reply(request, {"decision": "cancel"})
    ended = fake.client.notification("turn/completed", threadId=thread)["turn"]
    assert (ended["id"], ended["status"]) == (turn, "interrupted")


def test_an_error_in_place_of_an_answer_takes_no_number(start: Start) -> None:
    fake = start([{"items": [command("c1")]}, "next"])
    thread = fake.thread(approvalPolicy="untrusted")
    begin(fake.client, thread)
    request = fake.client.server_request(ASKED)
    fake.client.send({"id": request["id"], "error": {"code": -1, "message": "x"}})
    fake.client.request("turn/interrupt", {"threadId": thread, "turnId": "0"})
    assert begin(fake.client, thread) == "2"


# -- a command takes its time ---------------------------------------------------------------------------------------------------


def test_a_command_takes_as_long_as_the_script_says(start: Start) -> None:
    fake = start([{"items": [command("c1", duration_ms=300)]}, "done"])
    thread = fake.thread()
    fake.turn(thread)
    frames = fake.client.timeline
    begun = next(frame.t for frame in frames if of(frame.value, OUTPUT))
    ended = next(frame.t for frame in frames if of(frame.value, "codex/event/exec_command_end"))
    assert ended - begun >= 0.2


def test_a_running_command_can_be_steered(start: Start) -> None:
    fake = start([{"items": [command("c1", duration_ms=300)]}, "both"])
    thread = fake.thread()
    begin(fake.client, thread)
    fake.client.notification(OUTPUT)
    assert begin(fake.client, thread, "More.") == "1"
    assert fake.client.notification("turn/completed", threadId=thread)["turn"]["id"] == "0"
    last = fake.ledger()[-1]["body"]["input"]
    assert [item.get("type") for item in last[-2:]] == ["function_call_output", "message"]
    assert len(fake.ledger()) == 2


# -- resume in mid-turn ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["thread/resume", "resumeConversation"])
def test_a_turn_goes_on_beside_a_thread_that_is_loaded_again(start: Start, method: str) -> None:
    """Both count from 0, and the loaded thread does not know how the call ended."""
    script = [{"match": "Next.", "items": ["next"]}, {"items": [command("c1", duration_ms=400)]}, "after"]
    fake = start(script)
    thread = fake.thread()
    begin(fake.client, thread)
    fake.client.notification(OUTPUT)
    v1 = method == "resumeConversation"
    fake.client.request(method, {"conversationId" if v1 else "threadId": thread})
    if v1:
        fake.client.request("addConversationListener", {"conversationId": thread})
    assert begin(fake.client, thread, "Next.") == "0"
    ended = [fake.client.notification("codex/event/task_complete", conversationId=thread) for _ in range(2)]
    assert [each["msg"]["last_agent_message"] for each in ended] == ["next", "after"]
    bodies = [entry["body"]["input"] for entry in fake.ledger()]
    outputs = [[item["output"] for item in body if item.get("type") == "function_call_output"] for body in bodies]
    assert outputs[1] == ["aborted"]
    assert "begun" in outputs[2][0]
    fake.client.notification("turn/completed", threadId=thread)
    shown = fake.client.request("thread/read", {"threadId": thread, "includeTurns": True})["thread"]["turns"]
    assert [[item.get("text") for item in each["items"]] for each in shown] == [[None], [None, "next", "after"]]


def test_an_interrupt_after_a_resume_is_not_for_the_turn_before(start: Start) -> None:
    fake = start([{"items": [command("c1", duration_ms=300)]}, "after", {"items": [command("c2", hang=True)]}])
    thread = fake.thread()
    begin(fake.client, thread)
    fake.client.notification(OUTPUT)
    fake.client.request("thread/resume", {"threadId": thread})
    number = fake.client.post("turn/interrupt", {"threadId": thread, "turnId": "0"})
    assert fake.client.notification("turn/completed", threadId=thread)["turn"]["status"] == "completed"
    assert not any(is_reply(f.value) and f.value["id"] == number for f in fake.client.timeline if f.sender == "server")
    assert begin(fake.client, thread) == "1"
    fake.client.notification(OUTPUT)
    fake.client.request("turn/interrupt", {"threadId": thread, "turnId": "1"})
    assert fake.client.reply_to(number)["result"] == {}
