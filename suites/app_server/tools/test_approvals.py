"""Commands that need the approval of the client: the server's request, and the effect of each decision.

Source: docs/contract/real-0.92.md, section 4, "Turns, tools and approvals". All cases share one
prompt: in a replay the client's decision selects the recording that continues the turn.
"""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin import AppServer, Server
from suites.app_server.dialect import UNDECIDED_ENDS, V1, has_events, these, turn_id
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
from suites.app_server.turns import UNHEARD, items_of, last_words

REFUSED = "exec command rejected by user"


def shell_of(server: Server, seen: Events) -> list[str]:
    """Return the argv of a command, from its event or from its item."""
    if has_events(server):
        found: list[str] = seen[0][1]["msg"]["command"]
        return found
    return [seen[0][1]["item"]["command"].partition(" ")[0], "-lc", MARKER]


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
    seen = events(server, turn_id(server))
    return [(method, params) for method, params in seen if "exec" in method or "commandExecution" in f"{method} {params}"]


def ended(server: Server, thread: str, shell: list[str], output: str, error: str, status: int, duration: Any) -> tuple[str, Any]:
    """Return the exec_command_end event of the call."""
    return event(
        thread,
        "0",
        "exec_command_end",
        call_id="call_1",
        turn_id="0",
        command=shell,
        cwd=server.work,
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
    """The frames before an approval request come in a fixed order, and the request has exact params; the ids are integers from 0.

    Source: REAL-36, REAL-51, REAL-52.
    """
    server = app_server([{"items": [shell_call(MARKER)]}, {"items": [text("Done")]}])
    thread = start_turn(server)
    request = server.server_request("item/commandExecution/requestApproval")
    asked = of_command(server)
    server.reply(request, {"decision": "accept"})
    server.notification("turn/completed")
    shell = shell_of(server, asked)
    assert shell[1:] == ["-lc", MARKER]
    call = {"call_id": "call_1", "turn_id": turn_id(server), "command": shell, "cwd": server.work}
    parsed = [{"type": "unknown", "cmd": MARKER}]
    amendment = MARKER.split()
    wanted = [
        event(thread, turn_id(server), "exec_command_begin", **call, parsed_cmd=parsed, source="agent"),
        item_notification("started", thread, turn_id(server), command_item(shell, server.work, "inProgress")),
        event(
            thread, turn_id(server), "exec_approval_request", **call, proposed_execpolicy_amendment=amendment, parsed_cmd=parsed
        ),
    ]
    assert asked == these(server, wanted)
    request_wanted = {
        "method": "item/commandExecution/requestApproval",
        "id": 0,
        "params": {
            "threadId": thread,
            "turnId": turn_id(server),
            "itemId": "call_1",
            "reason": None,
            "command": f"{shell[0]} -lc '{MARKER}'",
            "cwd": server.work,
            "commandActions": [{"type": "unknown", "command": MARKER}],
            "proposedExecpolicyAmendment": amendment,
        },
    }
    assert request == these(server, request_wanted)


def test_accept(app_server: AppServer) -> None:
    """accept: output, exec_command_end and one item/completed follow, and the model continues. (REAL-53)"""
    server = app_server([{"items": [shell_call(MARKER)]}, {"items": [text("Done")]}])
    thread = start_turn(server)
    server.reply(server.server_request("item/commandExecution/requestApproval"), {"decision": "accept"})
    server.notification("turn/completed")
    assert server.close() == 0
    seen = of_command(server)
    shell = shell_of(server, seen)
    deltas = [params["delta"] for method, params in seen if method == "item/commandExecution/outputDelta"]
    assert "".join(deltas) == "marker" or not (deltas or has_events(server))
    duration = seen[-2][1]["msg"]["duration"] if has_events(server) else None
    wanted = [
        ended(server, thread, shell, "marker", "", 0, duration),
        item_notification("completed", thread, turn_id(server), command_item(shell, server.work, "completed", "marker", 0)),
    ]
    wanted = these(server, wanted)
    assert seen[-len(wanted) :] == wanted
    assert last_words(server) == ["Done"]
    last = these(server, [turn_notification("completed", thread, turn_id(server), "completed")])
    assert events(server, turn_id(server))[-1:] == last


@pytest.mark.parametrize("decision", ["decline", "anything"])
def test_decline(app_server: AppServer, decision: str) -> None:
    """After decline or an invalid decision, the server sends two item/completed with one id, `declined` and `failed`.

    The turn continues.

    Source: REAL-54, REAL-56.
    """
    server = app_server([{"items": [shell_call(MARKER)]}, {"items": [text("Then not.")]}], bad_input=decision == "anything")
    thread = start_turn(server)
    server.reply(server.server_request("item/commandExecution/requestApproval"), {"decision": decision})
    server.notification("turn/completed")
    assert server.close() == 0
    seen = of_command(server)
    shell = shell_of(server, seen)
    wanted = [
        item_notification("completed", thread, turn_id(server), command_item(shell, server.work, "declined")),
        ended(server, thread, shell, "", REFUSED, -1, {"secs": 0, "nanos": 0}),
        item_notification("completed", thread, turn_id(server), command_item(shell, server.work, "failed", REFUSED, -1)),
    ]
    if not has_events(server):
        ((status, _),) = server.by_version(UNDECIDED_ENDS) if decision == "anything" else [("declined", None)]
        item = command_item(shell, server.work, status)
        wanted = these(server, [item_notification("completed", thread, turn_id(server), item)])
    assert seen[-len(wanted) :] == wanted
    assert len(seen) == len(wanted) + (3 if has_events(server) else 1)
    assert last_words(server) == ["Then not."]
    last = these(server, [turn_notification("completed", thread, turn_id(server), "completed")])
    assert events(server, turn_id(server))[-1:] == last


def test_cancel(app_server: AppServer) -> None:
    """cancel: the item is `declined`, the turn is aborted and `interrupted`. (REAL-55)"""
    script = [{"items": [shell_call(MARKER)]}, UNHEARD]
    server = app_server(script, racy="the abort may come before the end of the declined command")
    thread = start_turn(server)
    server.reply(server.server_request("item/commandExecution/requestApproval"), {"decision": "cancel"})
    server.notification("turn/completed")
    assert server.close() == 0
    seen = events(server, turn_id(server))
    shell = shell_of(server, of_command(server))
    done = item_notification("completed", thread, turn_id(server), command_item(shell, server.work, "declined"))
    assert of_command(server)[3 if has_events(server) else 1 :][:1] == these(server, [done])
    wanted = [
        event(thread, turn_id(server), "turn_aborted", reason="interrupted"),
        turn_notification("completed", thread, turn_id(server), "interrupted"),
    ]
    wanted = these(server, wanted)
    assert seen[-len(wanted) :] == wanted
    assert items_of(server, "agentMessage") == []
    assert all_of(server, "codex/event/agent_message") == []


@V1
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
    output, code = ("marker", 0) if decision == "approved" else (REFUSED, -1)
    assert done == [command_item(shell, server.work, status, output, code)]
    assert all_of(server, "codex/event/task_complete")[0]["msg"]["last_agent_message"] == "Done"
