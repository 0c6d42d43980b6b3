"""Several calls in one answer of the model run one at a time, in any order.

The model gets the outputs in the order of the calls.

Source: docs/contract/real-0.92.md, section 4, "Turns, tools and approvals". The server chooses the first call at random, so
each recording shows one order, and the cases reply to the requests in the order of their arrival.
"""

from __future__ import annotations

from typing import Any

from codex_replay.plugin import AppServer, Server
from suites.app_server.dialect import AT_ONCE, DECLINED, PATCHES, tool_output, tool_spec
from suites.app_server.expected import all_of, shell_call, text
from suites.app_server.turns import (
    ASKS,
    FREE,
    asked,
    ended,
    items_of,
    judge_ran,
    last_words,
    methods,
    msgs,
    open_thread,
    ran,
    run,
    start,
    wait_usage,
)

APPROVAL = "item/commandExecution/requestApproval"
WHIM = "the calls run in any order"
RAN = "Exit code: 0\nWall time: 0 seconds\nOutput:\n"
ADD = "*** Begin Patch\n*** Add File: new.txt\n+one\n*** End Patch\n"
CLOCK = {"name": "get_time", "description": "Tells the time.", "inputSchema": {"type": "object"}}


def script(outputs: dict[str, str], *items: Any) -> list[dict[str, Any]]:
    """Return a script: the model makes the given calls, expects the given outputs, and sends a message."""
    return [{"items": list(items)}, {"items": [text("Done")], "expect": {"outputs": outputs}}]


def spans(server: Server) -> list[tuple[str, str]]:
    """Return the start and the end of each command, in the order of arrival."""
    found = []
    for message in server.messages():
        method = message.get("method", "") if isinstance(message, dict) else ""
        if method in ("codex/event/exec_command_begin", "codex/event/exec_command_end"):
            found.append((method.rpartition("_")[2], message["params"]["msg"]["call_id"]))
    return found


def told_in_order(server: Server, calls: int) -> None:
    """On a live server, check that the model's next input has all calls, and then their outputs in the same order."""
    if server.upstream is None:
        return
    last = [entry["body"]["input"] for entry in server.upstream.ledger() if entry["method"] == "POST"][-1]
    ids = [item["call_id"] for item in last if "call_id" in item]
    assert ids == [f"call_{n}" for n in range(1, calls + 1)] * 2


def test_commands_run_one_after_the_other(app_server: AppServer) -> None:
    """A command starts only after the previous command has ended.

    (REAL-68) Since 0.169.0 all commands start at the same time; each has its own end and output.
    """
    calls = [shell_call(f"printf {n}", f"call_{n}") for n in (1, 2, 3)]
    outputs = ran(app_server, call_1="1", call_2="2", call_3="3").get("outputs", {})
    server = app_server(script(outputs, *calls), racy=WHIM)
    thread = open_thread(server, **FREE)
    assert run(server, thread)["status"] == "completed"
    if not server.by_version(AT_ONCE):
        seen = spans(server)
        assert sorted(call for what, call in seen if what == "begin") == ["call_1", "call_2", "call_3"]
        assert [what for what, _ in seen] == ["begin", "end"] * 3
        assert [seen[n][1] for n in (0, 2, 4)] == [seen[n][1] for n in (1, 3, 5)]
    done = {item["id"]: (item["status"], item["aggregatedOutput"]) for item in items_of(server, "commandExecution")}
    assert done == {f"call_{n}": ("completed", str(n)) for n in (1, 2, 3)}
    told_in_order(server, 3)
    judge_ran(server, call_1="1", call_2="2", call_3="3")


def test_approvals_are_asked_one_after_the_other(app_server: AppServer) -> None:
    """The second approval request comes after the end of the first command; each decision applies to its own call. (REAL-68)

    Since 0.169.0 both requests come before any decision.
    """
    calls = [shell_call("printf 1"), shell_call("printf 2", "call_2")]
    at_once = app_server.by_version(AT_ONCE)
    outputs = {} if at_once else {"call_1": f"{RAN}1", "call_2": "exec command rejected by user"}
    server = app_server(script(outputs, *calls), racy=WHIM)
    thread = open_thread(server, **ASKS)
    start(server, thread)
    waiting = []
    for number in (0, 1):
        waiting.append(server.server_request(APPROVAL))
        if not at_once:
            assert waiting[-1]["id"] == number
            assert len(msgs(server, "exec_command_end")) == number
        while waiting and (number or not at_once):
            request = waiting.pop(0)
            server.reply(request, {"decision": "accept" if request["params"]["itemId"] == "call_1" else "decline"})
    assert ended(server, thread)["status"] == "completed"
    ends = sorted((item["id"], item["status"]) for item in items_of(server, "commandExecution"))
    assert ends == [("call_1", "completed"), *(("call_2", status) for status in server.by_version(DECLINED))]
    told_in_order(server, 2)
    judge_ran(server, call_1="1")


def test_cancel_ends_the_other_call_too(app_server: AppServer) -> None:
    """cancel interrupts the turn: the other call does not run, but its approval request may come before the abort. (REAL-55)"""
    calls = [shell_call("printf 1"), shell_call("printf 2", "call_2")]
    server = app_server([{"items": calls}], racy=WHIM, ends=None)  # the server does not end while a second approval is open
    thread = open_thread(server, **ASKS)
    start(server, thread)
    wait_usage(server)
    request = server.server_request(APPROVAL)
    server.reply(request, {"decision": "cancel"})
    assert ended(server, thread)["status"] == "interrupted"
    ends = [item["status"] for item in items_of(server, "commandExecution") if item["id"] == request["params"]["itemId"]]
    assert ends in (["declined"], ["declined", "failed"])
    assert asked(server) in ([APPROVAL], [APPROVAL, APPROVAL])
    assert all_of(server, "item/commandExecution/outputDelta") == []
    assert last_words(server) == []


def test_tools_of_all_sorts(app_server: AppServer) -> None:
    """If one answer calls a command, a patch and a dynamic tool, all three run.

    The model gets the outputs in the order of the calls.

    Source: REAL-70.
    """
    outputs = {
        **ran(app_server, call_1="1").get("outputs", {}),
        "call_2": f"{RAN}Success. Updated the following files:\nA new.txt\n",
        "call_3": "12:00",
    }
    patch = {"type": "custom_tool_call", "name": "apply_patch", "call_id": "call_2", "input": ADD}
    clock = {"type": "function_call", "name": "get_time", "call_id": "call_3", "arguments": {}}
    server = app_server(script(outputs, shell_call("printf 1"), patch, clock), racy=WHIM)
    thread = open_thread(server, **FREE, **server.by_version(PATCHES), dynamicTools=[tool_spec(server, CLOCK)])
    start(server, thread)
    server.reply(server.server_request("item/tool/call"), tool_output(server, "12:00"))
    assert ended(server, thread)["status"] == "completed"
    assert [item["status"] for item in items_of(server, "commandExecution")] == ["completed"]
    assert [item["status"] for item in items_of(server, "fileChange")] == ["completed"]
    assert asked(server) == ["item/tool/call"]
    assert "turn/diff/updated" in methods(server)
    assert last_words(server) == ["Done"]
    told_in_order(server, 3)


def test_words_before_calls(app_server: AppServer) -> None:
    """If an answer has text before its calls, the server first sends the text, as a separate item."""
    words = text("First this.", id="msg_0")
    server = app_server(script(ran(app_server, call_1="1").get("outputs", {}), words, shell_call("printf 1")))
    thread = open_thread(server, **FREE)
    assert run(server, thread)["status"] == "completed"
    types = [params["item"]["type"] for params in all_of(server, "item/completed")]
    assert types == ["userMessage", "agentMessage", "commandExecution", "agentMessage"]
    assert [item["text"] for item in items_of(server, "agentMessage")] == ["First this.", "Done"]
    assert last_words(server) == ["Done"]
