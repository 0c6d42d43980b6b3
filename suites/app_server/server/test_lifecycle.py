"""How the server ends: at the end of stdin, after a signal, and with a closed stdout; and when the server does not end.

Source: docs/contract/real-0.92.md, section 4, end of "Bad input". A recording has no signals and no ends of
pipes, so the cases that need them are live only; on a fake they are skipped.
"""

from __future__ import annotations

import signal

import pytest

from codex_replay.plugin import AppServer
from suites.app_server.dialect import COUNTED_FIRST, LAST_LINE
from suites.app_server.expected import all_of, shell_call, text
from suites.app_server.turns import ASKS, FREE, asked, items_of, methods, open_thread, run, start, wait_item, wait_message

#: The model sends "Hello" and then nothing more.
GATED = {"items": [text("Hello"), {"type": "gate", "name": "never"}]}
#: SIGTERM ends a version by its default action, or as the end of stdin does.
STATUS = {"0.0.0": -signal.SIGTERM, "0.169.0": 0}
#: How long a case watches a server that must not end, in seconds.
WATCH = 1.0


def test_end_of_input_of_an_idle_thread(app_server: AppServer) -> None:
    """With idle threads, the end of stdin ends the server with status 0; the server stops writing. (REAL-92)"""
    server = app_server([{"items": [text("Hello")]}])
    thread = open_thread(server)
    run(server, thread)
    seen = len(server.messages())
    assert server.close() == 0
    assert [method for method in methods(server) if "turn" in method][-1] == "turn/completed"
    assert len(server.messages()) == seen


def test_end_of_input_in_a_turn(app_server: AppServer) -> None:
    """During a turn the server ends with status 0 immediately: the turn is neither completed nor interrupted. (REAL-92)"""
    server = app_server([GATED])
    thread = open_thread(server)
    start(server, thread)
    wait_message(server)
    assert server.close() == 0
    assert all_of(server, "turn/completed") == []
    assert all_of(server, "codex/event/turn_aborted") == []


def test_end_of_input_in_a_command(app_server: AppServer) -> None:
    """While a command runs, the end of stdin ends the server with status 0; the command's item stays open. (REAL-92)"""
    server = app_server([{"items": [shell_call("echo begun; exec sleep 60")]}])
    thread = open_thread(server, **FREE)
    start(server, thread)
    if server.by_version(COUNTED_FIRST):
        server.notification("thread/tokenUsage/updated")
        server.notification("item/commandExecution/outputDelta", delta="begun\n")
    else:
        wait_item(server, "commandExecution", "started")
    assert server.close() == 0
    assert items_of(server, "commandExecution") == []
    assert all_of(server, "turn/completed") == []


#: Whether the end of stdin ends the server while an approval is open.
ENDS_IN_AN_APPROVAL = {"0.0.0": False, "0.169.0": True}


@pytest.mark.live_only("a recording cannot show that a server does not end")
def test_end_of_input_with_a_pending_approval(app_server: AppServer) -> None:
    """If an approval is open when stdin ends, the server keeps running.

    (REAL-93) Since 0.169.0 the server ends with status 0 in this situation, before the turn has ended.
    """
    script = [{"items": [shell_call("printf marker")]}]
    server = app_server(script) if (ends := app_server.by_version(ENDS_IN_AN_APPROVAL)) else app_server(script, ends=None)
    thread = open_thread(server, **ASKS)
    start(server, thread)
    server.server_request("item/commandExecution/requestApproval")
    if ends:
        assert server.close() == 0
        assert items_of(server, "commandExecution") == []
    else:
        server.end_input()
        assert server.still_runs(WATCH)
    assert all_of(server, "turn/completed") == []
    assert asked(server) == ["item/commandExecution/requestApproval"]


def test_unterminated_last_line(app_server: AppServer) -> None:
    """When stdin ends, the server processes a last line without a newline and still answers it.

    In about one of sixty runs, the real server ends before it has written the response, so the case retries.
    0.169.0 rarely writes the response, so for that version the case requires only the end with status 0, and no other answer.

    Source: REAL-95.
    """
    answered = app_server.by_version(LAST_LINE)
    for _ in range(5):
        server = app_server(racy="the server may end before it has written its last answer")
        open_thread(server)
        server.send(b'{"id":"last","method":"thread/loaded/list","params":{}}')
        assert server.close() == 0
        answers = [message for message in server.messages() if message.get("id") == "last"]
        if answers or not (server.live and answered):
            break
    assert [len(answer["result"]["data"]) for answer in answers] in ([1], *([] if answered else [[]]))


@pytest.mark.live_only("a recording has no signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_signal(app_server: AppServer, number: signal.Signals) -> None:
    """A signal ends the server immediately; the signal is its exit status. (REAL-94)"""
    status = app_server.by_version(STATUS) if number == signal.SIGTERM else -number
    server = app_server(ends=status)
    server.initialize()
    server.signal(number)
    assert server.wait_exit() == status


@pytest.mark.live_only("a recording has no signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_signal_in_a_turn(app_server: AppServer, number: signal.Signals) -> None:
    """A signal during a turn ends the server immediately; the server sends no message about the turn. (REAL-94)"""
    status = app_server.by_version(STATUS) if number == signal.SIGTERM else -number
    server = app_server([GATED], ends=status)
    thread = open_thread(server)
    start(server, thread)
    wait_message(server)
    server.signal(number)
    assert server.wait_exit() == status
    assert all_of(server, "turn/completed") == []


@pytest.mark.live_only("a recording has no signals")
def test_signal_with_a_pending_approval(app_server: AppServer) -> None:
    """While an approval is open, a signal ends the server, although the end of stdin does not. (REAL-94)"""
    status = app_server.by_version(STATUS)
    server = app_server([{"items": [shell_call("printf marker")]}], ends=status)
    thread = open_thread(server, **ASKS)
    start(server, thread)
    server.server_request("item/commandExecution/requestApproval")
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == status


@pytest.mark.live_only("a recording cannot show a write to a closed pipe")
def test_closed_stdout(app_server: AppServer) -> None:
    """If the client closes the server's stdout, the server continues, and ends with status 0 at the end of stdin."""
    server = app_server()
    server.initialize()
    server.close_stdout()
    server.post("account/read", {})
    assert server.still_runs(WATCH)
    server.post("account/read", {})  # the first write's failure shows with the second
    assert server.still_runs(WATCH)
    assert server.close() == 0
    assert any("Broken pipe" in line for line in server.process.stderr_tail())
