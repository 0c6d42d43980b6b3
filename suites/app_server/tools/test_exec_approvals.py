"""Which commands need an approval, which decisions are valid, and what each decision causes.

Source: docs/contract/real-0.92.md, section 4, "Turns, tools and approvals", and the bundle's CommandExecutionApprovalDecision and
ReviewDecision. test_approvals has the cases of the exact request, accept, decline and cancel. On a live server the
script's `expect` also checks the output of a command for the model.
"""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin import AppServer, Server
from suites.app_server.dialect import HANGS, UNDECIDED, UNDECIDED_ENDS, V1, has_events, in_events, turn_id
from suites.app_server.expected import MARKER, all_of, shell_call, text
from suites.app_server.turns import (
    ABANDONED,
    ASKS,
    FREE,
    UNHEARD,
    asked,
    asked_upstream,
    conversation,
    ended,
    items_of,
    last_words,
    msgs,
    open_thread,
    run,
    send_words,
    start,
)

REQUEST = "item/commandExecution/requestApproval"
REFUSED = "exec command rejected by user"
TWICE = [{"items": [shell_call(MARKER)]}, {"items": [shell_call(MARKER, "call_2")]}, {"items": [text("Done")]}]


def expects(output: str, words: str = "Done") -> dict[str, Any]:
    """Return a turn of the script that expects the given output of call_1, and then sends a message."""
    return {"items": [text(words)], "expect": {"outputs": {"call_1": output}}}


def statuses(server: Server) -> list[tuple[str, str, int | None]]:
    """Return the id, status and exit code of every completed command."""
    return [(item["id"], item["status"], item["exitCode"]) for item in items_of(server, "commandExecution")]


def test_accept_for_session(app_server: AppServer) -> None:
    """acceptForSession: an identical command of the same session needs no further approval. (REAL-52)"""
    server = app_server(TWICE)
    thread = open_thread(server, **ASKS)
    start(server, thread)
    server.reply(server.server_request(REQUEST), {"decision": "acceptForSession"})
    assert ended(server, thread)["status"] == "completed"
    assert asked(server) == [REQUEST]
    assert statuses(server) == [("call_1", "completed", 0), ("call_2", "completed", 0)]


def test_accept_is_for_once(app_server: AppServer) -> None:
    """accept: the same command later needs another approval; the ids of the server's requests count up. (REAL-53)"""
    server = app_server(TWICE)
    thread = open_thread(server, **ASKS)
    start(server, thread)
    for number, call in enumerate(("call_1", "call_2")):
        request = server.server_request(REQUEST)
        assert (request["id"], request["params"]["itemId"]) == (number, call)
        server.reply(request, {"decision": "accept"})
    assert ended(server, thread)["status"] == "completed"
    assert statuses(server) == [("call_1", "completed", 0), ("call_2", "completed", 0)]


def test_accept_with_amendment(app_server: AppServer) -> None:
    """After acceptWithExecpolicyAmendment, commands that begin with the amended words need no approval, in later turns too.

    Source: REAL-52.
    """
    script = [{"items": [shell_call(MARKER)]}, {"items": [text("One")]}]
    script += [{"items": [shell_call(f"{MARKER} more", "call_2")]}, {"items": [text("Two", id="msg_2")]}]
    server = app_server(script)
    thread = open_thread(server, **ASKS)
    start(server, thread)
    request = server.server_request(REQUEST)
    amendment = request["params"]["proposedExecpolicyAmendment"]
    assert amendment == MARKER.split()
    server.reply(request, {"decision": {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": amendment}}})
    ended(server, thread)
    run(server, thread)
    assert asked(server) == [REQUEST]
    assert statuses(server) == [("call_1", "completed", 0), ("call_2", "completed", 0)]
    assert last_words(server) == ["One", "Two"]


#: The name of an invalid reply -> the result that the client sends.
NO_DECISION: dict[str, Any] = {"no-decision": {}, "null": None, "number": 5, "wrong-case": {"decision": "Accept"}}


@pytest.mark.parametrize("row", NO_DECISION)
def test_no_decision_is_a_decline(app_server: AppServer, row: str) -> None:
    """A reply without a valid decision counts as decline: the command does not run, and the turn continues. (REAL-56)"""
    script = [{"items": [shell_call(MARKER)]}, expects(app_server.by_version(UNDECIDED), "Then not.")]
    server = app_server(script, bad_input=True)
    thread = open_thread(server, **ASKS)
    start(server, thread)
    server.reply(server.server_request(REQUEST), NO_DECISION[row])
    assert ended(server, thread)["status"] == "completed"
    assert statuses(server) == [("call_1", *end) for end in server.by_version(UNDECIDED_ENDS)]
    if has_events(server):
        assert msgs(server, "exec_command_end")[0]["stderr"] == REFUSED
    assert last_words(server) == ["Then not."]


def test_error_reply_hangs_the_turn(app_server: AppServer) -> None:
    """If the client answers an approval with a JSON-RPC error, the turn hangs until turn/interrupt, and the server never ends.

    Since 0.169.0 the command fails without running, and the turn continues.

    Source: REAL-57, REAL-93.
    """
    turns = [{"items": [shell_call(MARKER)]}, expects(app_server.by_version(UNDECIDED), "Then not.")]
    hangs = app_server.by_version(HANGS)
    server = app_server([turns[0], UNHEARD], ends=None, racy=ABANDONED) if hangs else app_server(turns)
    thread = open_thread(server, **ASKS)
    start(server, thread)
    request = server.server_request(REQUEST)
    server.send({"id": request["id"], "error": {"code": -32000, "message": "The editor has no dialogs."}})
    if not hangs:
        assert ended(server, thread)["status"] == "completed"
        assert statuses(server) == [("call_1", "failed", None)]
        assert last_words(server) == ["Then not."]
        return
    server.request("account/read", {})
    assert all_of(server, "turn/completed") == []
    assert items_of(server, "commandExecution") == []
    assert server.request("turn/interrupt", {"threadId": thread, "turnId": turn_id(server)}) == {}
    assert ended(server, thread)["status"] == "interrupted"
    assert msgs(server, "turn_aborted") == in_events(server, [{"reason": "interrupted"}])
    assert statuses(server) in ([], [("call_1", "failed", -1)])


#: name -> (approval policy, sandbox, the call's arguments, reason of the request (False: no request), status, exit code)
POLICIES: dict[str, tuple[str, str, dict[str, Any], Any, str, int]] = {
    "untrusted-harmless": ("untrusted", "read-only", {"command": "ls"}, False, "completed", 0),
    "untrusted": ("untrusted", "danger-full-access", {"command": MARKER}, None, "completed", 0),
    "on-request": ("on-request", "danger-full-access", {"command": MARKER}, False, "completed", 0),
    "on-request-escalated": (
        "on-request",
        "read-only",
        {"command": MARKER, "sandbox_permissions": "require_escalated", "justification": "To see the marker."},
        "To see the marker.",
        "completed",
        0,
    ),
    "on-request-dangerous": ("on-request", "danger-full-access", {"command": "rm -rf nothing"}, None, "completed", 0),
    "on-failure": (
        "on-failure",
        "read-only",
        {"command": "touch marker"},
        "command failed; retry without sandbox?",
        "completed",
        0,
    ),
    "on-failure-good": ("on-failure", "danger-full-access", {"command": MARKER}, False, "completed", 0),
    "never": ("never", "danger-full-access", {"command": MARKER}, False, "completed", 0),
    "never-failing": ("never", "danger-full-access", {"command": "echo out; exit 3"}, False, "failed", 3),
    "never-dangerous": ("never", "danger-full-access", {"command": "rm -rf nothing"}, False, "failed", -1),
}


#: The rows in which a version differs: None if it refuses the policy, else reason, status and exit code as above; a command that
#: the server refuses is no item (status "").
OTHER_POLICIES: dict[str, dict[str, tuple[Any, str, int] | None]] = {
    "0.0.0": {},
    "0.169.0": {
        "untrusted-harmless": (None, "completed", 0),
        "on-failure": None,
        "on-failure-good": None,
        "never-dangerous": (False, "", 0),
    },
}


@pytest.mark.parametrize("row", POLICIES)
def test_policy(app_server: AppServer, row: str) -> None:
    """With each approval policy, the server requests an approval only for the commands that the policy names.

    (REAL-51) 0.169.0 has no policy `on-failure`, requests an approval for every command under `untrusted`, and sends no item for
    a refused command.
    """
    policy, sandbox, arguments, *usual = POLICIES[row]
    other = app_server.by_version(OTHER_POLICIES).get(row, tuple(usual))
    call = {"type": "function_call", "name": "shell_command", "call_id": "call_1", "arguments": arguments}
    if other is None:
        server = app_server(bad_input=True)
        server.initialize()
        params = {"cwd": server.work, "approvalPolicy": policy, "sandbox": sandbox}
        error = server.request_error("thread/start", params)
        assert error["code"] == -32600
        assert error["message"].startswith(f"Invalid request: unknown variant `{policy}`")
        return
    reason, status, code = other
    server = app_server([{"items": [call]}, {"items": [text("Done")]}])
    thread = open_thread(server, approvalPolicy=policy, sandbox=sandbox)
    start(server, thread)
    if reason is not False:
        request = server.server_request(REQUEST)
        assert request["params"].get("reason") == reason
        server.reply(request, {"decision": "accept"})
    assert ended(server, thread)["status"] == "completed"
    assert asked(server) == [REQUEST] * (reason is not False)
    assert statuses(server) == ([("call_1", status, code)] if status else [])
    assert last_words(server) == ["Done"]


def test_never_escalated(app_server: AppServer) -> None:
    """With the policy `never`, the server does not start a call with escalated permissions; only the model gets the reason."""
    arguments = {"command": MARKER, "sandbox_permissions": "require_escalated", "justification": "To see the marker."}
    call = {"type": "function_call", "name": "shell_command", "call_id": "call_1", "arguments": arguments}
    why = (
        "approval policy is Never; reject command \N{EM DASH} "
        "you {should not} ask for escalated permissions if the approval policy is Never"
    ).replace("{should not}", app_server.by_version({"0.0.0": "should not", "0.169.0": "cannot"}))
    server = app_server([{"items": [call]}, expects(why)])
    thread = open_thread(server, approvalPolicy="never", sandbox="read-only")
    assert run(server, thread)["status"] == "completed"
    assert asked(server) == []
    assert items_of(server, "commandExecution", "started") == []
    assert last_words(server) == ["Done"]


def test_blocked_by_policy(app_server: AppServer) -> None:
    """With the policy `never`, a dangerous command fails without running; the output of its item states the reason.

    Since 0.169.0 a dangerous command has no item, and only the model gets the reason.
    """
    server = app_server([{"items": [shell_call("rm -rf nothing")]}, {"items": [text("Done")]}])
    thread = open_thread(server, **FREE)
    run(server, thread)
    if not has_events(server):
        assert items_of(server, "commandExecution", "started") == []
        for given in asked_upstream(server)[1:]:
            assert "rejected: rm -f style commands are not permitted." in given[-1]["output"]
        return
    end = msgs(server, "exec_command_end")[0]
    shell = end["command"]
    why = f"`{shell[0]} -lc 'rm -rf nothing'` rejected: blocked by policy"
    assert (end["exit_code"], end["stderr"], end["aggregated_output"]) == (-1, why, why)
    assert items_of(server, "commandExecution")[0]["aggregatedOutput"] == why


@V1
@pytest.mark.parametrize("decision", ["abort", "approved_for_session"])
def test_v1_decision(app_server: AppServer, decision: str) -> None:
    """v1: abort ends the turn without the command; approved_for_session approves the next identical command. (REAL-58)"""
    aborts = decision == "abort"
    server = app_server([TWICE[0], UNHEARD] if aborts else TWICE, racy=ABANDONED if aborts else "")
    talk = conversation(server, **ASKS)
    send_words(server, talk)
    server.notification("thread/tokenUsage/updated")
    server.reply(server.server_request("execCommandApproval"), {"decision": decision})
    turn = ended(server, talk)
    assert asked(server) == ["execCommandApproval"]
    if aborts:
        assert turn["status"] == "interrupted"
        assert msgs(server, "turn_aborted") == [{"reason": "interrupted"}]
        assert last_words(server) == []
        assert msgs(server, "exec_command_output_delta") == []
    else:
        assert turn["status"] == "completed"
        assert statuses(server) == [("call_1", "completed", 0), ("call_2", "completed", 0)]


@V1
def test_v1_amendment(app_server: AppServer) -> None:
    """v1: approved_execpolicy_amendment approves all later commands that begin with the amended words. (REAL-58)"""
    server = app_server(TWICE)
    talk = conversation(server, **ASKS)
    send_words(server, talk)
    request = server.server_request("execCommandApproval")
    amendment = {"proposed_execpolicy_amendment": MARKER.split()}
    server.reply(request, {"decision": {"approved_execpolicy_amendment": amendment}})
    assert ended(server, talk)["status"] == "completed"
    assert asked(server) == ["execCommandApproval"]
    assert statuses(server) == [("call_1", "completed", 0), ("call_2", "completed", 0)]


@V1
def test_v1_invalid_decision(app_server: AppServer) -> None:
    """v1: the v2 decision `accept` is invalid and counts as denied. (REAL-58)"""
    server = app_server([{"items": [shell_call(MARKER)]}, expects(REFUSED)], bad_input=True)
    talk = conversation(server, **ASKS)
    send_words(server, talk)
    server.reply(server.server_request("execCommandApproval"), {"decision": "accept"})
    assert ended(server, talk)["status"] == "completed"
    assert statuses(server) == [("call_1", "failed", -1)]
    assert last_words(server) == ["Done"]
