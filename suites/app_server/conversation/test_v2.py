"""The exact frames of threads and turns of the v2 API, in their order.

Source: docs/contract/real-0.92.md, section 4, "JSON-RPC surface" and "Turns, tools and approvals"; section 6 lists the allowed
differences.
"""

from __future__ import annotations

from typing import Any

from codex_replay.plugin import AppServer, Server
from suites.app_server.dialect import after_opening, has_events, in_events, these, turn_id
from suites.app_server.expected import (
    MARKER,
    all_of,
    answer,
    begin,
    command_item,
    end,
    event,
    events,
    item_notification,
    prompt,
    shell_call,
    text,
    usage,
)
from suites.app_server.turns import prompt_id, wait_message


def start_thread(server: Server, **params: Any) -> str:
    """Do the handshake and start a thread; return its id."""
    server.initialize()
    thread: str = server.request("thread/start", {"cwd": server.work, **params})["thread"]["id"]
    server.notification("thread/started")
    return thread


def run_turn(server: Server, thread: str, words: str) -> Any:
    """Start a turn and wait for its end; return the response to turn/start."""
    turn = server.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": words}]})["turn"]
    server.notification("turn/completed", threadId=thread)
    return turn


def test_thread_start(app_server: AppServer) -> None:
    """The result has the thread and the settings in force; `thread/started` has the same thread. (REAL-44)"""
    server = app_server()
    server.initialize()
    result = server.request("thread/start", {"cwd": server.work, "approvalPolicy": "never", "sandbox": "read-only"})
    thread = result.pop("thread")
    wanted = {
        "model": "gpt-5.2-codex",
        "modelProvider": "mock",
        "cwd": server.work,
        "approvalPolicy": "never",
        "sandbox": {"type": "readOnly"},
        "reasoningEffort": None,
    }
    assert result == these(server, wanted)
    assert server.notification("thread/started") == {"thread": thread}
    assert thread["path"].endswith(f"-{thread['id']}.jsonl")
    assert thread["createdAt"] == thread["updatedAt"] > 0
    kept = {key: value for key, value in thread.items() if key not in ("id", "path", "createdAt", "updatedAt", "cliVersion")}
    shown: dict[str, Any] = {
        "preview": "",
        "modelProvider": "mock",
        "cwd": server.work,
        "source": "vscode",
        "gitInfo": None,
        "turns": [],
    }
    assert kept == these(server, shown)


def test_mcp_startup_complete(app_server: AppServer) -> None:
    """Without MCP servers, mcp_startup_complete comes immediately, with an empty turn id.

    Later versions do not send mcp_startup_complete.
    """
    server = app_server()
    thread = start_thread(server)
    if not has_events(server):
        server.request("account/read", {})
        assert all_of(server, "mcpServer/startupStatus/updated") == []
        return
    assert (
        server.notification("codex/event/mcp_startup_complete")
        == event(thread, "", "mcp_startup_complete", ready=[], failed=[], cancelled=[])[1]
    )


def test_text_turn(app_server: AppServer) -> None:
    """A turn with one message of the model has exactly these frames, in order. (REAL-38, REAL-39, REAL-40, REAL-43)"""
    server = app_server([{"items": [text("Hello", "Hel", "lo")], "usage": usage(10, 2)}])
    thread = start_thread(server)
    turn = run_turn(server, thread, "Say hello.")
    first = turn_id(server)
    assert turn == these(server, {"id": first, "items": [], "status": "inProgress", "error": None})
    assert server.close() == 0
    item = prompt_id(server, first)
    wanted = [
        *begin(thread, first),
        *prompt(thread, first, item, "Say hello."),
        *answer(thread, first, "msg_1", "Hel", "lo"),
        *end(thread, first, "Hello"),
    ]
    assert events(server, first) == these(server, wanted)


def test_the_response_comes_before_the_turn(app_server: AppServer) -> None:
    """The response to `turn/start` comes before every notification of its turn."""
    server = app_server([{"items": [text("Hello")]}])
    thread = start_thread(server)
    run_turn(server, thread, "Say hello.")
    labels = [message.get("method", "response") for message in server.messages()]
    assert labels.index("turn/started") > [i for i, label in enumerate(labels) if label == "response"][2]


def test_usage(app_server: AppServer) -> None:
    """The server reports token usage twice: as an event in snake_case, and as thread/tokenUsage/updated in camelCase.

    Source: REAL-39, REAL-40.
    """
    server = app_server(
        [{"items": [text("Hello")], "usage": usage(10, 2)}, {"items": [text("Again", id="msg_2")], "usage": usage(30, 4)}]
    )
    thread = start_thread(server)
    run_turn(server, thread, "one")
    run_turn(server, thread, "two")
    assert server.close() == 0
    costs = all_of(server, "thread/tokenUsage/updated")
    # Until 0.107 the usage of the thread so far is sent when the next turn starts, too.
    assert [cost["turnId"] for cost in costs] == [turn_id(server, 0), *in_events(server, ["1"]), turn_id(server, 1)]
    last = costs[-1]["tokenUsage"]
    assert last["last"] == these(server, _tokens(30, 4))
    assert last["total"] == these(server, _tokens(40, 6))
    limits = {"primary": None, "secondary": None, "credits": None, "planType": None}
    assert all_of(server, "account/rateLimits/updated")[-1] == these(server, {"rateLimits": limits})
    if has_events(server):
        report = all_of(server, "codex/event/token_count")[-1]["msg"]["info"]
        assert report["last_token_usage"] == {
            "input_tokens": 30,
            "cached_input_tokens": 0,
            "output_tokens": 4,
            "reasoning_output_tokens": 0,
            "total_tokens": 34,
        }
        assert report["model_context_window"] == last["modelContextWindow"]


def _tokens(given: int, said: int) -> dict[str, int]:
    return {
        "totalTokens": given + said,
        "inputTokens": given,
        "cachedInputTokens": 0,
        "outputTokens": said,
        "reasoningOutputTokens": 0,
    }


def test_two_turns(app_server: AppServer) -> None:
    """Turn ids count up; each user message has a different id; both turns have all their frames. (REAL-78, REAL-113)"""
    server = app_server([{"items": [text("Hello")]}, {"items": [text("Bye", id="msg_2")]}])
    thread = start_thread(server)
    turns = [run_turn(server, thread, words)["id"] for words in ("Say hello.", "Say bye.")]
    assert turns == [turn_id(server, 0), turn_id(server, 1)]
    assert server.close() == 0
    items = []
    for turn, words, output, message in ((turns[0], "Say hello.", "Hello", "msg_1"), (turns[1], "Say bye.", "Bye", "msg_2")):
        items.append(prompt_id(server, turn))
        wanted = [
            *begin(thread, turn),
            *prompt(thread, turn, items[-1], words),
            *answer(thread, turn, message, output),
            *end(thread, turn, output),
        ]
        assert events(server, turn) == these(server, wanted)
    assert items[0] != items[1]


def test_two_threads(app_server: AppServer) -> None:
    """Two threads have two ids, and each counts its own turns. (REAL-78, REAL-113)"""
    server = app_server([{"items": [text("One")]}, {"items": [text("Two")]}])
    first = start_thread(server)
    second = server.request("thread/start", {"cwd": server.work})["thread"]["id"]
    assert first != second
    turns = [run_turn(server, first, "one")["id"], run_turn(server, second, "two")["id"]]
    assert turns == [turn_id(server, 0, first), turn_id(server, 0, second)]
    ended = [(params["threadId"], params["turn"]["id"]) for params in all_of(server, "turn/completed")]
    assert ended == [(first, turns[0]), (second, turns[1])]
    message = [params["item"]["text"] for params in all_of(server, "item/completed") if params["item"]["type"] == "agentMessage"]
    assert message == ["One", "Two"]


def test_shell_call(app_server: AppServer) -> None:
    """A command without approval: its start, its output and its end come first, then the model's answer. (REAL-53)"""
    server = app_server([{"items": [shell_call(MARKER)]}, {"items": [text("Done")]}])
    thread = start_thread(server, approvalPolicy="never", sandbox="danger-full-access")
    run_turn(server, thread, "Print the marker.")
    assert server.close() == 0
    turn = turn_id(server)
    seen = events(server, turn)
    first = these(server, [*begin(thread, turn), *prompt(thread, turn, prompt_id(server, turn), "Print the marker.")])
    last = these(server, [*answer(thread, turn, "msg_1", "Done"), *end(thread, turn, "Done")])[-8:]
    assert (seen[: len(first)], seen[-len(last) :]) == (first, last)
    ran = [(method, params) for method, params in seen if "exec_command" in method or "commandExecution" in f"{method} {params}"]
    if has_events(server):
        shell = ran[0][1]["msg"]["command"]
        assert shell[1:] == ["-lc", MARKER]
        ended = ran[-2][1]["msg"]["duration"]
        assert list(ended) == ["secs", "nanos"]
    else:
        shell, ended = [ran[0][1]["item"]["command"].partition(" ")[0], "-lc", MARKER], {}
    of = {
        "call_id": "call_1",
        "turn_id": turn,
        "command": shell,
        "cwd": server.work,
        "parsed_cmd": [{"type": "unknown", "cmd": MARKER}],
        "source": "agent",
    }
    begun = [
        event(thread, turn, "exec_command_begin", **of),
        item_notification("started", thread, turn, command_item(shell, server.work, "inProgress")),
    ]
    end_of = {"stdout": "marker", "stderr": "", "aggregated_output": "marker", "exit_code": 0, "formatted_output": "marker"}
    done = [
        event(thread, turn, "exec_command_end", **of, **end_of, duration=ended),
        item_notification("completed", thread, turn, command_item(shell, server.work, "completed", "marker", 0)),
    ]
    begun, done = these(server, begun), these(server, done)
    assert (ran[: len(begun)], ran[-len(done) :]) == (begun, done)
    deltas = [params["delta"] for method, params in ran if method == "item/commandExecution/outputDelta"]
    assert "".join(deltas) == "marker" or not (deltas or has_events(server))


def test_unknown_fields_are_ignored(app_server: AppServer) -> None:
    """The server ignores unknown fields without an error; only a check that refuses unknown members finds them. (REAL-45)"""
    server = app_server([{"items": [text("Hello")]}], bad_input=True)
    server.initialize()
    thread = server.request("thread/start", {"cwd": server.work, "tools": [], "stream": True})["thread"]["id"]
    given = {"threadId": thread, "input": [{"type": "text", "text": "x"}], "choiceCount": 1, "reasoning": {"effort": "low"}}
    turn = server.request("turn/start", given)["turn"]["id"]
    assert server.notification("turn/completed")["turn"]["status"] == "completed"
    assert turn == turn_id(server)


def test_requests_in_one_write(app_server: AppServer) -> None:
    """If a client sends requests before the first response, the responses come in the order of the requests."""
    server = app_server()
    server.send(
        b'{"id":"a","method":"initialize","params":{"clientInfo":{"name":"c","version":"1"}}}\n'
        b'{"method":"initialized"}\n{"id":"b","method":"account/read","params":{}}\n{"id":"c","method":"account/read","params":{}}\n'
    )
    server.reply_to("c")
    assert [message["id"] for message in after_opening(server)] == ["a", "b", "c"]


def test_end_of_input_in_a_turn(app_server: AppServer) -> None:
    """When stdin ends during a turn, the server exits with status 0 and leaves the turn open. (REAL-92)"""
    server = app_server([{"items": [text("Hello"), {"type": "gate", "name": "never"}]}])
    thread = start_thread(server)
    server.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "x"}]})
    wait_message(server)
    assert server.close() == 0
    assert all_of(server, "turn/completed") == []
