"""Commands that need the client's approval: the request, each decision, and its consequences.

Source: docs/contract/real-0.92.md, section 4, "Turns, tools and approvals". All cases share one
prompt: in a replay the client's decision selects the recording that continues the turn.
"""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin import AppServer, Server
from suites.app_server.expected import (
    MARKER,
    Events,
    all_of,
    command_item,
    event,
    events,
    item_notification,
    shell_call,
    text,
    turn_notification,
)

REJECTED = "exec command rejected by user"


def start_turn(server: Server) -> str:
    """Start a thread in which a command needs an approval, and a turn that calls such a command; return the thread's id."""
    server.initialize()
    settings = {"cwd": server.work, "approvalPolicy": "untrusted", "sandbox": "danger-full-access"}
    thread: str = server.request("thread/start", settings)["thread"]["id"]
    server.notification("thread/started")
    server.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "Print the marker."}]})
    return thread


def of_command(server: Server) -> Events:
    """Return the turn's events about the command, from exec_command_begin on."""
    seen = events(server, "0")
    return [(method, params) for method, params in seen if "exec" in method or "commandExecution" in f"{method} {params}"]


def ended(thread: str, shell: list[str], cwd: str, output: str, error: str, status: int, duration: Any) -> tuple[str, Any]:
    """The exec_command_end of the call."""
    return event(
        thread,
        "0",
        "exec_command_end",
        call_id="call_1",
        turn_id="0",
        command=shell,
        cwd=cwd,
        parsed_cmd=[{"type": "unknown", "cmd": MARKER}],
        source="agent",
        stdout=output,
        stderr=error,
        aggregated_output=output + error,
        exit_code=status,
        duration=duration,
        formatted_output=output + error,
    )


def test_request(app_server: AppServer) -> None:
    """The frames before the request come in a fixed order; the request is exact, and its id is an integer that starts at 0.

    Source: REAL-36, REAL-51, REAL-52.
    """
    server = app_server([{"items": [shell_call(MARKER)]}, {"items": [text("Done")]}])
    thread = start_turn(server)
    request = server.server_request("item/commandExecution/requestApproval")
    asked = of_command(server)
    server.reply(request, {"decision": "accept"})
    server.notification("turn/completed")
    shell = asked[0][1]["msg"]["command"]
    assert shell[1:] == ["-lc", MARKER]
    call = {"call_id": "call_1", "turn_id": "0", "command": shell, "cwd": server.work}
    parsed = [{"type": "unknown", "cmd": MARKER}]
    amendment = MARKER.split()
    assert asked == [
        event(thread, "0", "exec_command_begin", **call, parsed_cmd=parsed, source="agent"),
        item_notification("started", thread, "0", command_item(shell, server.work, "inProgress")),
        event(thread, "0", "exec_approval_request", **call, proposed_execpolicy_amendment=amendment, parsed_cmd=parsed),
    ]
    assert request == {
        "method": "item/commandExecution/requestApproval",
        "id": 0,
        "params": {
            "threadId": thread,
            "turnId": "0",
            "itemId": "call_1",
            "reason": None,
            "command": f"{shell[0]} -lc '{MARKER}'",
            "cwd": server.work,
            "commandActions": [{"type": "unknown", "command": MARKER}],
            "proposedExecpolicyAmendment": amendment,
        },
    }


def test_accept(app_server: AppServer) -> None:
    """accept: output, exec_command_end and one item/completed follow, and the model continues. (REAL-53)"""
    server = app_server([{"items": [shell_call(MARKER)]}, {"items": [text("Done")]}])
    thread = start_turn(server)
    server.reply(server.server_request("item/commandExecution/requestApproval"), {"decision": "accept"})
    server.notification("turn/completed")
    assert server.close() == 0
    seen = of_command(server)
    shell = seen[0][1]["msg"]["command"]
    deltas = [params["delta"] for method, params in seen if method == "item/commandExecution/outputDelta"]
    assert "".join(deltas) == "marker"
    assert seen[-2:] == [
        ended(thread, shell, server.work, "marker", "", 0, seen[-2][1]["msg"]["duration"]),
        item_notification("completed", thread, "0", command_item(shell, server.work, "completed", "marker", 0)),
    ]
    assert all_of(server, "codex/event/task_complete")[0]["msg"]["last_agent_message"] == "Done"
    assert turn_notification("completed", thread, "0", "completed") == events(server, "0")[-1]


@pytest.mark.parametrize("decision", ["decline", "anything"])
def test_decline(app_server: AppServer, decision: str) -> None:
    """decline, or an invalid decision: two item/completed for one id, `declined` and `failed`; the turn continues.

    Source: REAL-54, REAL-56.
    """
    server = app_server([{"items": [shell_call(MARKER)]}, {"items": [text("Then not.")]}], bad_input=decision == "anything")
    thread = start_turn(server)
    server.reply(server.server_request("item/commandExecution/requestApproval"), {"decision": decision})
    server.notification("turn/completed")
    assert server.close() == 0
    seen = of_command(server)
    shell = seen[0][1]["msg"]["command"]
    assert seen[3:] == [
        item_notification("completed", thread, "0", command_item(shell, server.work, "declined")),
        ended(thread, shell, server.work, "", REJECTED, -1, {"secs": 0, "nanos": 0}),
        item_notification("completed", thread, "0", command_item(shell, server.work, "failed", REJECTED, -1)),
    ]
    assert all_of(server, "codex/event/task_complete")[0]["msg"]["last_agent_message"] == "Then not."
    assert turn_notification("completed", thread, "0", "completed") == events(server, "0")[-1]


def test_cancel(app_server: AppServer) -> None:
    """cancel: the item is `declined`, turn_aborted comes, the turn is `interrupted`; no further model request. (REAL-55)"""
    server = app_server([{"items": [shell_call(MARKER)]}], racy="the abort may come before the end of the declined command")
    thread = start_turn(server)
    server.reply(server.server_request("item/commandExecution/requestApproval"), {"decision": "cancel"})
    server.notification("turn/completed")
    assert server.close() == 0
    seen = events(server, "0")
    shell = of_command(server)[0][1]["msg"]["command"]
    assert of_command(server)[3] == item_notification("completed", thread, "0", command_item(shell, server.work, "declined"))
    assert seen[-2:] == [
        event(thread, "0", "turn_aborted", reason="interrupted"),
        turn_notification("completed", thread, "0", "interrupted"),
    ]
    assert all_of(server, "codex/event/agent_message") == []


@pytest.mark.parametrize(("decision", "status"), [("approved", "completed"), ("denied", "failed")])
def test_v1(app_server: AppServer, decision: str, status: str) -> None:
    """A v1 client gets execCommandApproval with the command as a list, and replies approved or denied. (REAL-58)"""
    server = app_server([{"items": [shell_call(MARKER)]}, {"items": [text("Done")]}])
    server.initialize()
    settings = {"cwd": server.work, "approvalPolicy": "untrusted", "sandbox": "danger-full-access"}
    conversation = server.request("newConversation", settings)["conversationId"]
    server.request("addConversationListener", {"conversationId": conversation})
    items = [{"type": "text", "data": {"text": "Print the marker."}}]
    server.request("sendUserMessage", {"conversationId": conversation, "items": items})
    request = server.server_request("execCommandApproval")
    shell = request["params"]["command"]
    server.reply(request, {"decision": decision})
    server.notification("turn/completed")
    assert server.close() == 0
    assert shell[1:] == ["-lc", MARKER]
    assert request == {
        "method": "execCommandApproval",
        "id": 0,
        "params": {
            "conversationId": conversation,
            "callId": "call_1",
            "command": shell,
            "cwd": server.work,
            "reason": None,
            "parsedCmd": [{"type": "unknown", "cmd": MARKER}],
        },
    }
    done = [params["item"] for params in all_of(server, "item/completed") if params["item"]["type"] == "commandExecution"]
    output, code = ("marker", 0) if decision == "approved" else (REJECTED, -1)
    assert done == [command_item(shell, server.work, status, output, code)]
    assert all_of(server, "codex/event/task_complete")[0]["msg"]["last_agent_message"] == "Done"
