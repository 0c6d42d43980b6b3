"""Threads, prompts and what they are started with. Source: codex-nvim-integration.txt, section 2, 3 and 4."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.plugin.editor_client import EditorClient
from suites.editor_client.exact import SANDBOXES
from suites.editor_client.speech import (
    REAL,
    SPEC,
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

LIFECYCLE = f"{SPEC}, 2. Lifecycle"


@pytest.mark.spec("thread-params", LIFECYCLE, '"thread/start", "params": { "cwd": "/path/to/project", "sandbox": null }')
def test_the_thread_is_started_in_the_project(editor_client: EditorClient) -> None:
    """cwd is the absolute path of the folder that the editor runs in; sandbox is null, left out, or a mode that confines."""
    editor = editor_client(server=conversation())
    editor.turn()
    params = editor.requests("thread/start")[0]["params"]
    assert Path(params["cwd"]).is_absolute()
    assert Path(params["cwd"]).resolve() == editor.project.resolve()
    assert params.get("sandbox") in SANDBOXES


@pytest.mark.spec(
    "safeguards-kept", f"{SPEC}, 2. Lifecycle, 3. Approvals", '"sandbox": null ... Codex may request approvals ... must respond'
)
def test_nothing_is_switched_off(editor_client: EditorClient) -> None:
    """Whether Codex asks, and what it may do, is the user's to say: in a first and a second turn the editor overrules neither."""
    editor = editor_client(server=[*handshake(), *thread(), *turn(), *turn(name="turn_457")])
    editor.turn("one")
    editor.turn("two")
    assert switched_off(editor) == []


@pytest.mark.spec("thread-lazy", LIFECYCLE, "when you first prompt, plugin sends `thread/start`")
def test_a_thread_is_for_all_prompts(editor_client: EditorClient) -> None:
    """The first prompt starts the thread; the second goes into the same one."""
    editor = editor_client(server=[*handshake(), *thread(), *turn(), *turn(name="turn_457")])
    assert [editor.turn("one").status, editor.turn("two").status] == ["completed", "completed"]
    assert len(editor.requests("thread/start")) == 1
    assert [message["params"]["threadId"] for message in editor.requests("turn/start")] == [THREAD, THREAD]


@pytest.mark.spec("turn-params", LIFECYCLE, '"threadId": "thr_123", "input": [...], "cwd": "/path/to/project"')
def test_what_a_turn_is_started_with(editor_client: EditorClient) -> None:
    """The thread's id is the one that thread/start answered; a cwd, when there is one, is the project's."""
    spec_form = {"turn": {"id": "turn_456", "status": "completed"}}
    editor = editor_client(
        server=[*handshake(), *thread("thr_ü/9"), *turn(end=False), {"send": {"method": "turn/completed", "params": spec_form}}]
    )
    editor.turn()
    params = editor.requests("turn/start")[0]["params"]
    assert params["threadId"] == "thr_ü/9"
    assert params.get("cwd") is None or Path(params["cwd"]).resolve() == editor.project.resolve()


@pytest.mark.parametrize(
    "prompt", ["Explain this: x = 1", TEXT, "a\u2028b\u0085c\r\nd\x1b[0m\u0000e"], ids=["plain", "unicode", "odd"]
)
@pytest.mark.spec("turn-input", LIFECYCLE, '"input": [ { "type": "text", "text": "Explain @this: <expanded text>" } ]')
def test_the_prompt_arrives_as_it_was_typed(editor_client: EditorClient, prompt: str) -> None:
    """The prompt's text is in one text item, to the letter, and its message is one line."""
    editor = editor_client(server=conversation())
    editor.turn(prompt)
    items = editor.requests("turn/start")[0]["params"]["input"]
    assert "".join(item["text"] for item in items if item["type"] == "text") == prompt
    assert {item["type"] for item in items} == {"text"}


@pytest.mark.spec("turns-in-order", LIFECYCLE, "a user prompt becomes `turn/start`")
def test_each_prompt_is_one_turn(editor_client: EditorClient) -> None:
    """Three prompts are three turns with three answers, each with its own."""
    replies = [turn(delta(f"answer {n}", f"agent{n}"), name=f"turn_{n}") for n in range(3)]
    editor = editor_client(server=[*handshake(), *thread(), *(step for reply in replies for step in reply)])
    assert [editor.turn(f"prompt {n}").text for n in range(3)] == ["answer 0", "answer 1", "answer 2"]
    assert [message["params"]["input"][0]["text"] for message in editor.requests("turn/start")] == [
        "prompt 0",
        "prompt 1",
        "prompt 2",
    ]


@pytest.mark.spec(
    "closed-world", f"{REAL}: unknown fields validate and are silently ignored", "Only a closed-world check finds them"
)
def test_nothing_is_sent_that_codex_does_not_know(editor_client: EditorClient) -> None:
    """Every message of a conversation with approvals and an interrupt is valid in 0.92, and every key is one that 0.92 has."""
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


@pytest.mark.spec("turn-live", f"{SPEC}, 1. Overview", "then issues requests (e.g., `thread/start`, `turn/start`) and listens")
def test_two_turns_on_the_app_server(editor_client: EditorClient) -> None:
    """Two prompts and two answers on the app-server under test."""
    editor = editor_client(script=["The first answer.", "And the second."])
    assert [editor.turn("one").text, editor.turn("two").text] == ["The first answer.", "And the second."]
    assert editor.violations() == []
