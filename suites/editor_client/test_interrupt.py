"""Interrupting a turn. Source: docs/contract/editor.md, section 4 (`turn/interrupt`)."""

from __future__ import annotations

import pytest

from codex_replay.plugin.editor_client.fixture import EditorClient
from suites.editor_client.exact import INTERRUPT, INTERRUPTED
from suites.editor_client.speech import (
    THREAD,
    TURN,
    Step,
    approval_of,
    asks,
    completed,
    conversation,
    delta,
    handshake,
    more,
    settle,
    started,
    thread,
    turn,
)
from suites.editor_client.test_approvals import SHELL

CUT_SHORT: list[Step] = [{"expect": "turn/interrupt"}, {"reply": {}}, completed("interrupted")]


@pytest.mark.spec("interrupt-params", "EDIT-30")
def test_what_is_interrupted(editor_client: EditorClient) -> None:
    """The editor sends turn/interrupt as a request whose params are only the thread id and the turn id."""
    editor = editor_client(server=conversation(delta("Once upon"), *CUT_SHORT, end=False))
    editor.prompt("Tell me a story.")
    editor.wait_shown("Once upon")
    editor.interrupt()
    turn = editor.end()
    assert (turn.status, turn.text) == ("interrupted", "Once upon")
    (request,) = editor.requests(INTERRUPT)
    assert request["params"] == dict(zip(INTERRUPTED, (THREAD, TURN), strict=True))
    assert "id" in request


@pytest.mark.spec("interrupt-late-end", "REAL-73")
def test_the_turn_ends_when_the_server_says_so(editor_client: EditorClient) -> None:
    """The prompt ends at turn/completed, not at the response to turn/interrupt.

    The editor shows text that comes between the response to turn/interrupt and turn/completed.
    """
    steps: list[Step] = [
        delta("Once"),
        {"expect": "turn/interrupt"},
        {"reply": {}},
        {"quiet": 0.05},
        delta(" upon"),
        completed("interrupted"),
    ]
    editor = editor_client(server=conversation(*steps, end=False))
    editor.prompt("Tell me a story.")
    editor.wait_shown("Once")
    editor.interrupt()
    assert editor.end().text == "Once upon"
    assert editor.close() == 0
    assert [report["report"] for report in editor.reports].count("end") == 1


@pytest.mark.spec("interrupt-later-turn", "EDIT-30")
def test_a_later_turn_is_interrupted(editor_client: EditorClient) -> None:
    """turn/interrupt has the id of the running turn, not of an earlier turn."""
    steps = [*handshake(), *thread(), *turn(delta("One.")), *turn(delta("Two.", "b"), name="turn_457")]
    late = [*CUT_SHORT[:2], completed("interrupted", turn="turn_458")]
    editor = editor_client(server=[*steps, *turn(delta("Once", "c"), *late, name="turn_458", end=False)])
    editor.turn("one")
    editor.turn("two")
    editor.prompt("Tell me a story.")
    editor.wait_shown("Once")
    editor.interrupt()
    assert editor.end().status == "interrupted"
    assert [message["params"] for message in editor.requests(INTERRUPT)] == [{"threadId": THREAD, "turnId": "turn_458"}]


@pytest.mark.spec("interrupt-then-prompt", "EDIT-30")
def test_the_next_prompt_after_an_interrupt(editor_client: EditorClient) -> None:
    """The editor shows text that comes between the response to turn/interrupt and turn/completed."""
    steps = [
        *handshake(),
        *thread(),
        *turn(delta("Once"), *CUT_SHORT, end=False),
        *turn(delta("Better.", "b"), name="turn_457"),
    ]
    editor = editor_client(server=steps)
    editor.prompt("Tell me a story.")
    editor.wait_shown("Once")
    editor.interrupt()
    editor.end()
    assert editor.turn("A better one.").text == "Better."
    assert len(editor.requests("thread/start")) == 1


@pytest.mark.spec("interrupt-idle", "REAL-76")
def test_an_interrupt_between_turns(editor_client: EditorClient) -> None:
    """An interrupt without a running turn does not block the editor and does not interrupt the next turn."""
    editor = editor_client(
        server=[*handshake(), *thread(), *turn(delta("One.")), *turn(delta("Two.", "b"), name="turn_457"), *more()]
    )
    editor.turn("one")
    editor.interrupt()
    assert editor.turn("two").text == "Two."
    settle(editor)
    assert [message["params"].get("turnId") for message in editor.requests("turn/interrupt")] in ([], [TURN])


@pytest.mark.spec("interrupt-early", "EDIT-30")
def test_an_interrupt_before_the_turn_is_known(editor_client: EditorClient) -> None:
    """If the user interrupts before the response to turn/start, the editor sends turn/interrupt once the turn id is known."""
    reply: Step = {"reply": {"turn": {"id": TURN, "items": [], "status": "inProgress", "error": None}}}
    steps: list[Step] = [{"expect": "turn/start"}, {"gate": "slow"}, reply, started(), *CUT_SHORT]
    editor = editor_client(server=[*handshake(), *thread(), *steps])
    editor.prompt("Hello")
    editor.wait_gate("slow")
    editor.interrupt()
    editor.open_gate("slow")
    assert editor.end().status == "interrupted"
    assert [message["params"]["turnId"] for message in editor.requests("turn/interrupt")] == [TURN]


@pytest.mark.spec("interrupt-pending-approval", "EDIT-30")
def test_an_interrupt_with_an_approval_open(editor_client: EditorClient) -> None:
    """An interrupt also ends an open approval; a later decision has no effect, and the next prompt works."""
    steps = [*handshake(), *thread(), *turn(asks(0), *CUT_SHORT, end=False), *turn(delta("Next."), name="turn_457")]
    editor = editor_client(server=steps)
    editor.prompt("Hello")
    approval = editor.wait("approval")
    editor.interrupt()
    assert editor.end().status == "interrupted"
    editor.decide(approval, "accept")
    assert editor.turn("two").text == "Next."


@pytest.mark.spec("interrupt-live", "EDIT-30")
def test_an_interrupt_on_the_app_server(editor_client: EditorClient) -> None:
    """The app-server under test waits for an approval; after the interrupt of that turn the next turn works normally."""
    editor = editor_client(script=[{"items": [SHELL]}, {"items": ["Here I am."]}])
    editor.prompt("Go on.")
    approval_of(editor)
    editor.interrupt()
    assert editor.end().status == "interrupted"
    assert editor.turn("Are you there?").text == "Here I am."
    assert editor.violations() == []
