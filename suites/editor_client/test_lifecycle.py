"""What the editor does with servers that die, respond slowly or do not end. Source: docs/contract/editor.md, sections 1 and 5."""

from __future__ import annotations

import os

import pytest

from codex_replay.plugin.editor_client.fixture import EditorClient
from suites.editor_client.speech import Step, asks, conversation, delta, handshake, more, settle, thread, turn


@pytest.mark.parametrize("status", [0, 1, 101])
@pytest.mark.spec("death-in-turn", "EDIT-40")
def test_the_server_dies_in_a_turn(editor_client: EditorClient, status: int) -> None:
    """If the server dies during a turn, with any exit status, the editor reports an error and the prompt ends as failed."""
    editor = editor_client(server=conversation(delta("Half an"), {"exit": status}))
    turn_ = editor.turn()
    assert (turn_.status, turn_.text) == ("failed", "Half an")
    assert turn_.errors.strip()


@pytest.mark.spec("death-restart", "EDIT-40")
def test_the_next_prompt_starts_anew(editor_client: EditorClient) -> None:
    """After the server died, the next prompt starts a new server with a new handshake and a new thread."""
    after = [*handshake(), *thread("thr_new"), *turn(end=False), {"send": SPEC_END}]
    editor = editor_client(server=[conversation(delta("Half"), {"exit": 1}), after])
    assert editor.turn("one").status == "failed"
    assert editor.turn("two").status == "completed"
    assert len(editor.server_pids()) == 2
    assert len(editor.requests("initialize")) == len(editor.requests("initialized")) == 2
    last = editor.requests("turn/start")[-1]["params"]
    assert (last["threadId"], last["input"][0]["text"]) == ("thr_new", "two")


SPEC_END = {"method": "turn/completed", "params": {"turn": {"id": "turn_456", "status": "completed"}}}


@pytest.mark.spec("death-idle", "EDIT-40")
def test_the_server_dies_between_turns(editor_client: EditorClient) -> None:
    """If the server died between two turns, the next prompt still works."""
    editor = editor_client(server=[[*conversation(delta("One.")), {"gate": "die"}, {"exit": 0}], conversation(delta("Two."))])
    assert editor.turn("one").text == "One."
    editor.wait_gate("die")
    editor.open_gate("die")
    while editor.running_servers():
        os.sched_yield()
    editor.prompt("two")
    turn_ = editor.end()
    if turn_.status == "failed":  # the editor noticed the death only at this prompt, and the user retries
        assert turn_.errors.strip()
        turn_ = editor.turn("two")
    assert (turn_.text, turn_.status) == ("Two.", "completed")


@pytest.mark.spec("death-with-approval", "EDIT-40")
def test_the_server_dies_with_an_approval_open(editor_client: EditorClient) -> None:
    """After the server died, the editor sends no decision about an old approval to the next server.

    The user decides about one old approval before the next prompt, and about another one during the next turn.
    """
    asked = conversation(asks(0), asks(1), {"gate": "die"}, {"exit": 1})
    editor = editor_client(server=[asked, [*conversation(delta("Tw"), {"gate": "decided"}, delta("o.")), *more()]])
    editor.prompt("one")
    first, second = editor.wait("approval"), editor.wait("approval")
    editor.open_gate("die")
    assert editor.end().status == "failed"
    editor.decide(first, "accept")
    editor.prompt("two")
    editor.wait_shown("Tw")
    editor.decide(second, "accept")
    editor.open_gate("decided")
    assert editor.end().text == "Two."
    settle(editor)
    assert editor.answers() == []


@pytest.mark.parametrize("when", ["at once", "after initialize"])
@pytest.mark.spec("death-at-start", "EDIT-39")
def test_a_server_that_does_not_start(editor_client: EditorClient, when: str) -> None:
    """If the server exits at its start, the editor reports an error, and the user can send another prompt.

    The editor does not send the failed prompt later.
    """
    broken: list[Step] = [{"exit": 2}] if when == "at once" else [{"expect": "initialize"}, {"exit": 2}]
    editor = editor_client(server=[broken, conversation(delta("Better."))])
    turn_ = editor.turn("one")
    assert turn_.status == "failed"
    assert turn_.errors.strip()
    assert editor.turn("two").text == "Better."
    assert [message["params"]["input"][0]["text"] for message in editor.requests("turn/start")] == ["two"]


@pytest.mark.spec("no-codex", "EDIT-39")
def test_there_is_no_codex(editor_client: EditorClient) -> None:
    """If the configured codex does not exist, the editor names the path in its error and keeps running."""
    editor = editor_client(codex="/nowhere/at/all/codex")
    turn_ = editor.turn()
    assert turn_.status == "failed"
    assert "/nowhere/at/all/codex" in turn_.errors
    assert editor.close() == 0


@pytest.mark.spec("slow-server", "EDIT-05", "EDIT-11")
def test_a_slow_server(editor_client: EditorClient) -> None:
    """Every response is slow; the editor waits and does not repeat a request.

    (The check `fault-slow-start` delays the response to `initialize` by two seconds.)
    """
    pause: Step = {"quiet": 0.3}
    replies = [*thread(), *turn(pause, delta("At last."))]
    steps = [part for step in replies for part in ([pause, step] if "reply" in step else [step])]
    editor = editor_client(server=[*handshake(), *steps])
    turn_ = editor.turn()
    assert (turn_.text, turn_.status) == ("At last.", "completed")
    asked = [message["method"] for message in editor.sent() if "id" in message]
    assert asked == ["initialize", "thread/start", "turn/start"]


@pytest.mark.spec("stderr", "EDIT-02")
def test_a_talkative_stderr(editor_client: EditorClient) -> None:
    """If the server writes a megabyte to stderr, the conversation continues, and the text does not appear in it."""
    editor = editor_client(server=conversation({"stderr": 1 << 20}, delta("Here.")))
    turn_ = editor.turn()
    assert (turn_.text, turn_.errors) == ("Here.", "")


@pytest.mark.parametrize("how", ["shutdown", "end of input"])
@pytest.mark.parametrize("when", ["unused", "after a turn", "in a turn", "with an approval open"])
@pytest.mark.spec("shutdown", source="docs/editor-client.md", says="shutdown: end the server, then exit with status 0")
def test_the_editor_takes_its_server_with_it(editor_client: EditorClient, when: str, how: str) -> None:
    """The editor exits with status 0 and ends its server, even a server that does not end at the end of stdin.

    (The real server does not end while an approval is open: REAL-93.)
    """
    waits: list[Step] = [delta("Half"), {"expect": "nothing more"}]
    rest = {"in a turn": waits, "with an approval open": [{"stay": True}, asks(0), *waits]}.get(when, [delta("Half")])
    editor = editor_client(server=conversation(*rest))
    if when != "unused":
        editor.prompt("Hello")
        editor.wait_shown("Half")
    if when == "after a turn":
        editor.end()
    assert (editor.close() if how == "shutdown" else editor.hang_up()) == 0
    assert editor.running_servers() == []


@pytest.mark.spec("shutdown-gently", "REAL-92")
def test_the_server_sees_the_end_of_its_input(editor_client: EditorClient) -> None:
    """At its shutdown, the editor first closes the server's stdin, and kills only a server that does not end."""
    editor = editor_client(server=conversation(delta("Hello")))
    editor.turn()
    assert editor.close() == 0
    assert editor.ledger()[-1] == {"eof": True}
