"""How the server ends: at the end of stdin, by a signal, with a closed stdout; and the case in which it does not end.

Source: docs/contract/real-0.92.md, section 4, end of "Bad input". A recording has no signals and no ends of
pipes, so the cases that need them are live only; on a fake they are skipped.
"""

from __future__ import annotations

import signal

import pytest

from codex_replay.plugin import AppServer
from suites.app_server.expected import all_of, shell_call, text
from suites.app_server.turns import ASKS, FREE, asked, items_of, methods, open_thread, run, start

#: The model sends "Hello" and then nothing more.
GATED = {"items": [text("Hello"), {"type": "gate", "name": "never"}]}
#: How long a case watches a server that must not end, in seconds.
WATCH = 1.0


def test_end_of_input_of_an_idle_thread(app_server: AppServer) -> None:
    """With idle threads, the end of stdin ends the server with status 0; the server writes nothing more. (REAL-92)"""
    server = app_server([{"items": [text("Hello")]}])
    thread = open_thread(server)
    run(server, thread)
    seen = len(server.messages())
    assert server.close() == 0
    assert [method for method in methods(server) if "turn" in method][-1] == "turn/completed"
    assert len(server.messages()) == seen


def test_end_of_input_in_a_turn(app_server: AppServer) -> None:
    """During a turn the server ends with status 0 at once: the turn is neither completed nor interrupted. (REAL-92)"""
    server = app_server([GATED])
    thread = open_thread(server)
    start(server, thread)
    server.notification("codex/event/agent_message")
    assert server.close() == 0
    assert all_of(server, "turn/completed") == []
    assert all_of(server, "codex/event/turn_aborted") == []


def test_end_of_input_in_a_command(app_server: AppServer) -> None:
    """While a command runs, the end of stdin ends the server with status 0; the command's item stays open. (REAL-92)"""
    server = app_server([{"items": [shell_call("echo begun; exec sleep 60")]}])
    thread = open_thread(server, **FREE)
    start(server, thread)
    server.notification("thread/tokenUsage/updated")
    server.notification("item/commandExecution/outputDelta", delta="begun\n")
    assert server.close() == 0
    assert items_of(server, "commandExecution") == []
    assert all_of(server, "turn/completed") == []


@pytest.mark.live_only("a recording cannot show that a server does not end")
def test_end_of_input_with_a_pending_approval(app_server: AppServer) -> None:
    """While an approval is open, the server does not end at the end of stdin. (REAL-93)"""
    server = app_server([{"items": [shell_call("printf marker")]}], ends=None)
    thread = open_thread(server, **ASKS)
    start(server, thread)
    server.server_request("item/commandExecution/requestApproval")
    server.end_input()
    assert server.still_runs(WATCH)
    assert all_of(server, "turn/completed") == []
    assert asked(server) == ["item/commandExecution/requestApproval"]


def test_unterminated_last_line(app_server: AppServer) -> None:
    """When stdin ends, the server processes a last line without a newline and still answers it.

    The real server sometimes ends before it has written the response (about one run in sixty), so the case retries.

    Source: REAL-95.
    """
    for _ in range(5):
        server = app_server(racy="the server may end before it has written its last answer")
        open_thread(server)
        server.send(b'{"id":"last","method":"thread/loaded/list","params":{}}')
        assert server.close() == 0
        answers = [message for message in server.messages() if message.get("id") == "last"]
        if answers or not server.live:
            break
    assert [len(answer["result"]["data"]) for answer in answers] == [1]


@pytest.mark.live_only("a recording has no signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_signal(app_server: AppServer, number: signal.Signals) -> None:
    """A signal ends the server at once; the signal is its exit status. (REAL-94)"""
    server = app_server(ends=-number)
    server.initialize()
    server.signal(number)
    assert server.wait_exit() == -number


@pytest.mark.live_only("a recording has no signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_signal_in_a_turn(app_server: AppServer, number: signal.Signals) -> None:
    """A signal during a turn ends the server at once; the server sends nothing about the turn. (REAL-94)"""
    server = app_server([GATED], ends=-number)
    thread = open_thread(server)
    start(server, thread)
    server.notification("codex/event/agent_message")
    server.signal(number)
    assert server.wait_exit() == -number
    assert all_of(server, "turn/completed") == []


@pytest.mark.live_only("a recording has no signals")
def test_signal_with_a_pending_approval(app_server: AppServer) -> None:
    """While an approval is open, a signal ends the server, although the end of stdin does not. (REAL-94)"""
    server = app_server([{"items": [shell_call("printf marker")]}], ends=-signal.SIGTERM)
    thread = open_thread(server, **ASKS)
    start(server, thread)
    server.server_request("item/commandExecution/requestApproval")
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == -signal.SIGTERM


@pytest.mark.live_only("a recording cannot show a write to a closed pipe")
def test_closed_stdout(app_server: AppServer) -> None:
    """With a closed stdout the server continues, and ends with status 0 at the end of stdin."""
    server = app_server()
    server.initialize()
    server.close_stdout()
    server.post("account/read", {})
    assert server.still_runs(WATCH)
    server.post("account/read", {})  # the first write's failure shows with the second
    assert server.still_runs(WATCH)
    assert server.close() == 0
    assert any("Broken pipe" in line for line in server.process.stderr_tail())
