"""Commands in terminals: a command that still runs after its call, and the model's later input to the command.

Source: the bundle's EventMsg (terminal_interaction), ExecCommandSource and item/commandExecution/terminalInteraction; they need
`[features] unified_exec = true`, which has the tools exec_command and write_stdin.
"""

from __future__ import annotations

from typing import Any

from codex_replay.plugin import AppServer, Server
from suites.app_server.dialect import has_events, in_events, turn_id
from suites.app_server.expected import all_of, text
from suites.app_server.turns import FREE, ended, items_of, last_words, msgs, open_thread, run, start, wait_item

#: The reason why a recording shows one of several correct orders.
CHUNKS = "the output of a terminal comes in chunks of any size, and the end of its command at any time"
CONFIG = {"features": {"unified_exec": True}, "suppress_unstable_features_warning": True}


def call(name: str, call_id: str, **arguments: Any) -> dict[str, Any]:
    """Return a script's item: the model calls one of the two tools for terminals."""
    return {"type": "function_call", "name": name, "call_id": call_id, "arguments": arguments}


def go_on(server: Server, *turns: dict[str, Any]) -> None:
    """Give the fake model another script; in a replay, this has no effect."""
    if server.upstream is not None:
        server.upstream.script(list(turns))


def test_a_command_to_its_end(app_server: AppServer) -> None:
    """If a command ends during its call, its item is like the item of any other command, but also has a process id."""
    item = call("exec_command", "call_1", cmd="printf marker")
    server = app_server([{"items": [item]}, {"items": [text("Done")]}], config=CONFIG)
    thread = open_thread(server, **FREE)
    assert run(server, thread)["status"] == "completed"
    (done,) = items_of(server, "commandExecution")
    assert (done["status"], done["exitCode"], done["aggregatedOutput"]) == ("completed", 0, "marker")
    if has_events(server):
        begin = msgs(server, "exec_command_begin")[0]
        assert begin["source"] == "unified_exec_startup"
        assert begin["process_id"].isdigit()
        assert done["processId"] == begin["process_id"]
    else:
        assert done["source"] == "unifiedExecStartup"
        assert done["processId"].isdigit()


def test_input(app_server: AppServer) -> None:
    """If a command waits in its terminal, the server reports the model's input as an interaction, and the command continues."""
    # The server drops what it has not read when the command ends: so the command ends a moment after its last words. The
    # second call waits long, because the turn could otherwise end before the command, and the server would kill it.
    waits = "read word; printf 'got %s' $word; sleep 0.3"
    begin = call("exec_command", "call_1", cmd=waits, tty=True, yield_time_ms=1500)
    server = app_server([{"items": [begin]}], config=CONFIG, racy=CHUNKS)
    thread = open_thread(server, **FREE)
    start(server, thread)
    if has_events(server):
        process = server.notification("codex/event/exec_command_begin")["msg"]["process_id"]
    else:
        process = wait_item(server, "commandExecution", "started")["processId"]
    answer = call("write_stdin", "call_2", session_id=int(process), chars="hello\n", yield_time_ms=10_000)
    go_on(server, {"items": [answer]}, {"items": [text("Done")]})  # while the first call still waits for output
    assert ended(server, thread)["status"] == "completed"
    assert msgs(server, "terminal_interaction") == in_events(
        server, [{"call_id": "call_1", "process_id": process, "stdin": "hello\n"}]
    )
    assert all_of(server, "item/commandExecution/terminalInteraction") == [
        {"threadId": thread, "turnId": turn_id(server), "itemId": "call_1", "processId": process, "stdin": "hello\n"}
    ]
    done = wait_item(server, "commandExecution")  # which may complete after the turn
    assert items_of(server, "commandExecution") == [done]
    assert (done["id"], done["status"], done["exitCode"]) == ("call_1", "completed", 0)
    assert "got hello" in done["aggregatedOutput"]
    assert last_words(server) == ["Done"]


#: Whether a command that still waits outlives the turn in which it began.
OUTLIVES = {"0.0.0": False, "0.169.0": True}


def test_a_terminal_ends_with_its_turn(app_server: AppServer) -> None:
    """At the end of a turn, the server ends a command that still waits; its item fails after the turn has completed.

    Since 0.169.0 the command continues after the turn, and its item stays open.
    """
    begin = call("exec_command", "call_1", cmd="read word", tty=True, yield_time_ms=250)
    server = app_server([{"items": [begin]}, {"items": [text("It runs.")]}], config=CONFIG, racy=CHUNKS)
    thread = open_thread(server, **FREE)
    assert run(server, thread)["status"] == "completed"
    if server.by_version(OUTLIVES):
        server.request("account/read", {})
        assert [item["id"] for item in items_of(server, "commandExecution", "started")] == ["call_1"]
        assert items_of(server, "commandExecution") == []
        return
    done = server.notification("item/completed", threadId=thread, turnId="0")["item"]
    while done["type"] != "commandExecution":
        done = server.notification("item/completed", threadId=thread, turnId="0")["item"]
    assert (done["id"], done["status"]) == ("call_1", "failed")


def test_no_such_terminal(app_server: AppServer) -> None:
    """If the model sends input to an unknown terminal, the server reports no interaction; only the model gets an error."""
    report = "write_stdin failed: Unknown process id 1"
    item = call("write_stdin", "call_1", session_id=1, chars="hello\n")
    script = [{"items": [item]}, {"items": [text("Pity.")], "expect": {"outputs": {"call_1": report}}}]
    server = app_server(script, config=CONFIG)
    thread = open_thread(server, **FREE)
    assert run(server, thread)["status"] == "completed"
    assert msgs(server, "terminal_interaction") == in_events(server, [])
    assert last_words(server) == ["Pity."]
