"""Threads, prompts and the params that start them. Source: docs/contract/editor.md, section 2, 3 and 4."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_replay.plugin.editor_client.fixture import EditorClient
from suites.editor_client.exact import SANDBOXES, THREAD_START, TURN_START
from suites.editor_client.speech import (
    TEXT,
    THREAD,
    asks,
    conversation,
    delta,
    handshake,
    switched_off,
    thread,
    turn,
)


@pytest.mark.spec("thread-params", "EDIT-10")
def test_the_thread_is_started_in_the_project(editor_client: EditorClient) -> None:
    """In thread/start, cwd is the absolute path of the editor's working directory.

    The sandbox in thread/start is null, absent, or a mode that restricts Codex.
    """
    editor = editor_client(server=conversation())
    editor.turn()
    params = editor.requests("thread/start")[0]["params"]
    assert Path(params["cwd"]).is_absolute()
    assert Path(params["cwd"]).resolve() == editor.project.resolve()
    assert params.get("sandbox") in SANDBOXES


@pytest.mark.spec("thread-members", "EDIT-10")
def test_the_members_of_thread_start(editor_client: EditorClient) -> None:
    """thread/start has only cwd and a null sandbox, as in the example; the rest comes from the user's configuration."""
    editor = editor_client(server=conversation())
    editor.turn()
    params = editor.requests("thread/start")[0]["params"]
    assert params == {"cwd": params.get("cwd"), **THREAD_START}


@pytest.mark.spec("thread-on-demand", "EDIT-09")
def test_no_thread_without_a_prompt(editor_client: EditorClient) -> None:
    """An editor without a prompt starts no thread."""
    editor = editor_client(server=conversation())
    assert editor.close() == 0
    assert editor.requests("thread/start") == []


@pytest.mark.spec("safeguards-kept", "EDIT-10", "EDIT-22")
def test_nothing_is_switched_off(editor_client: EditorClient) -> None:
    """In the first and the second turn, the editor does not override the approval policy or the sandbox of the user."""
    editor = editor_client(server=[*handshake(), *thread(), *turn(), *turn(name="turn_457")])
    editor.turn("one")
    editor.turn("two")
    assert switched_off(editor) == []


@pytest.mark.spec("thread-lazy", "EDIT-09")
def test_a_thread_is_for_all_prompts(editor_client: EditorClient) -> None:
    """The first prompt starts the thread; the second prompt uses the same thread."""
    editor = editor_client(server=[*handshake(), *thread(), *turn(), *turn(name="turn_457")])
    assert [editor.turn("one").status, editor.turn("two").status] == ["completed", "completed"]
    assert len(editor.requests("thread/start")) == 1
    assert [message["params"]["threadId"] for message in editor.requests("turn/start")] == [THREAD, THREAD]


@pytest.mark.spec("turn-params", "EDIT-11", "EDIT-12")
def test_what_a_turn_is_started_with(editor_client: EditorClient) -> None:
    """turn/start has the thread id from the response to thread/start."""
    spec_form = {"turn": {"id": "turn_456", "status": "completed"}}
    editor = editor_client(
        server=[*handshake(), *thread("thr_ü/9"), *turn(end=False), {"send": {"method": "turn/completed", "params": spec_form}}]
    )
    editor.turn()
    assert editor.requests("turn/start")[0]["params"]["threadId"] == "thr_ü/9"


@pytest.mark.spec("turn-members", "EDIT-12", "EDIT-13", "EDIT-14")
def test_the_members_of_turn_start(editor_client: EditorClient) -> None:
    """Each turn/start has only threadId, input and cwd, as in the example; cwd is the absolute path of the project."""
    editor = editor_client(server=[*handshake(), *thread(), *turn(), *turn(name="turn_457")])
    editor.turn("one")
    editor.turn("two")
    for params in (message["params"] for message in editor.requests("turn/start")):
        assert sorted(params) == sorted(TURN_START)
        assert Path(params["cwd"]).is_absolute()
        assert Path(params["cwd"]).resolve() == editor.project.resolve()


@pytest.mark.parametrize(
    "prompt", ["Explain this: x = 1", TEXT, "  a\u2028b\u0085c\r\nd\x1b[0m\u0000e\n"], ids=["plain", "unicode", "odd"]
)
@pytest.mark.spec("turn-input", "EDIT-13")
def test_the_prompt_arrives_as_it_was_typed(editor_client: EditorClient, prompt: str) -> None:
    """turn/start has one text item with the exact prompt, with all white space, and the message is one line."""
    editor = editor_client(server=conversation())
    editor.turn(prompt)
    items = editor.requests("turn/start")[0]["params"]["input"]
    assert items == [{"type": "text", "text": prompt}]


@pytest.mark.spec("turns-in-order", "EDIT-12")
def test_each_prompt_is_one_turn(editor_client: EditorClient) -> None:
    """Three prompts lead to three turns, each with its own answer."""
    replies = [turn(delta(f"answer {n}", f"agent{n}"), name=f"turn_{n}") for n in range(3)]
    editor = editor_client(server=[*handshake(), *thread(), *(step for reply in replies for step in reply)])
    assert [editor.turn(f"prompt {n}").text for n in range(3)] == ["answer 0", "answer 1", "answer 2"]
    assert [message["params"]["input"][0]["text"] for message in editor.requests("turn/start")] == [
        "prompt 0",
        "prompt 1",
        "prompt 2",
    ]


@pytest.mark.spec("closed-world", "REAL-45")
def test_nothing_is_sent_that_codex_does_not_know(editor_client: EditorClient) -> None:
    """In a conversation with approvals and an interrupt, the editor sends valid messages with only the keys that Codex knows."""
    steps = conversation(
        asks(0), {"expect_reply": 0}, asks(1, "fileChange"), {"expect_reply": 1}, {"expect": "turn/interrupt"}, {"reply": {}}
    )
    editor = editor_client(server=steps)
    editor.prompt("Hello")
    editor.decide(editor.wait("approval"), "accept")
    editor.decide(editor.wait("approval"), "dismiss")
    editor.interrupt()
    editor.end()
    assert editor.violations() == []


@pytest.mark.spec("turn-live", "EDIT-12")
def test_two_turns_on_the_app_server(editor_client: EditorClient) -> None:
    """On the app-server under test, two prompts get two answers."""
    editor = editor_client(script=["The first answer.", "And the second."])
    assert [editor.turn("one").text, editor.turn("two").text] == ["The first answer.", "And the second."]
    assert editor.violations() == []
