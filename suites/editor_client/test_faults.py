"""A server with a fault (docs/fake-codex.md lists them): the user gets the whole answer, or is told that it did not come.

A fault strikes once, somewhere in the first turn: where, follows from the seed. The server is fake-codex in every run: a real
one has no faults to order. Three sentences hold of any client: what can be passed over is; a server that dies or
refuses ends the prompt as failed, with an error, and the next prompt works; and one that says nothing more can still be left.
"""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin.editor_client.fixture import EditorClient
from suites.editor_client.speech import DRIVER

PIECES = ["Grüße, ", "世界! ", "😀 ", "One ", "two ", "three ", "four ", "five ", "six."]
FIRST, SECOND = "".join(PIECES), "And the second answer."
SCRIPT: list[Any] = [
    {"items": [{"type": "text", "text": FIRST, "deltas": PIECES}]},
    {"items": [{"type": "text", "text": SECOND, "deltas": ["And the second ", "answer."]}]},
]
ANSWER = "the answer is shown, once and whole"
END = "every prompt ends in exactly one `end`"
TOLD = "`failed`, and an `error` before it, when a request was refused, the server died, or there is none"
LEAVE = "`shutdown` ends the server, then exits with status 0"
#: These are the same whatever the seed.
EVERYWHERE = {"slow-start", "crlf", "blank-lines", "jsonrpc-member", "snake-case", "doubled-response", "missing-turn-started"}
EVERYWHERE |= {"missing-item-completed", "missing-deltas", "missing-turn-completed", "exit-at-handshake", "error-at-handshake"}
EVERYWHERE |= {"wrong-id", "id-of-other-type", "no-response", "split-bytes", "huge-line"}


def faults(statements: str, says: str, *checks: str) -> pytest.MarkDecorator:
    """Return the cases of some faults: each is a check of its own, with two seeds if they matter."""
    cites = statements.split()
    cases = [
        pytest.param(f"{name}:{seed}", id=f"{name}.{seed}", marks=pytest.mark.spec(check, *cites, source=DRIVER, says=says))
        for check, name in ((check, check.removeprefix("fault-")) for check in checks)
        for seed in range(1 if name in EVERYWHERE else 2)
    ]
    return pytest.mark.parametrize("fault", cases)


@faults(
    "EDIT-02",
    ANSWER,
    "fault-slow-start",
    "fault-split-bytes",
    "fault-crlf",
    "fault-huge-line",
    "fault-unknown-notification",
    "fault-jsonrpc-member",
    "fault-snake-case",
    "fault-missing-turn-started",
    "fault-missing-item-completed",
    "fault-missing-deltas",
)
def test_what_a_client_may_not_notice(editor_client: EditorClient, fault: str) -> None:
    """The server is unusual but valid: both answers are shown whole, and no error is reported."""
    editor = editor_client(script=SCRIPT, fault=fault)
    for answer in (FIRST, SECOND):
        turn = editor.turn()
        assert (turn.status, turn.text, turn.errors) == ("completed", answer, "")


@faults(
    "REAL-82",
    ANSWER,
    "fault-garbage-line",
    "fault-half-line",
    "fault-blank-lines",
    "fault-stray-ready",
    "fault-doubled-response",
)
def test_what_a_client_passes_over(editor_client: EditorClient, fault: str) -> None:
    """The server says what is not a message, or answers twice: a client may complain, and still shows both answers whole."""
    editor = editor_client(script=SCRIPT, fault=fault)
    for answer in (FIRST, SECOND):
        turn = editor.turn()
        assert (turn.status, turn.text) == ("completed", answer)


@faults("EDIT-36", "a request that is not known is refused", "fault-unknown-request")
def test_a_request_that_nobody_knows(editor_client: EditorClient, fault: str) -> None:
    """It is refused with an error under its id, and the turn goes on."""
    editor = editor_client(script=SCRIPT, fault=fault)
    turn = editor.turn()
    assert (turn.status, turn.text) == ("completed", FIRST)
    editor.answer_to(9999)
    assert ["error" in answer for answer in editor.answers() if answer["id"] == 9999] == [True]


@faults("EDIT-20 EDIT-21", END, "fault-doubled-event")
def test_one_notification_comes_twice(editor_client: EditorClient, fault: str) -> None:
    """A repeated delta cannot be told from a new one, so that much may be twice; all else stands once."""
    editor = editor_client(script=SCRIPT, fault=fault)
    turn = editor.turn()
    doubled = ["".join(PIECES[: i + 1] + PIECES[i:]) for i in range(len(PIECES))]
    assert turn.status == "completed"
    assert turn.text in (FIRST, *doubled)
    second = editor.turn()
    assert (second.status, second.text) == ("completed", SECOND)
    assert len([report for report in editor.reports if report["report"] == "end"]) == 2


@faults("EDIT-20", END, "fault-early-turn-completed")
def test_a_turn_that_ends_twice(editor_client: EditorClient, fault: str) -> None:
    """The first end is the end; the second one is of no turn that runs, and the user does not hear of it."""
    editor = editor_client(script=SCRIPT, fault=fault)
    assert editor.turn().status == "completed"
    editor.wait_said("turn/completed", 2)
    # The wire has had the rest of the first answer, which the editor may still be reading: that much may stand before the second.
    text = editor.turn().text
    assert text.endswith(SECOND), "what came before the second answer is not its end"
    assert FIRST.endswith(text.removesuffix(SECOND).rstrip()), f"before the second answer stands what nobody sent: {text!r}"
    assert len([report for report in editor.reports if report["report"] == "end"]) == 2


@faults("EDIT-40", TOLD, "fault-dies-in-turn", "fault-killed-in-turn", "fault-dies-in-line")
def test_the_server_dies(editor_client: EditorClient, fault: str) -> None:
    """The user keeps what there is of the answer, is told, and may prompt again: another server is started for it."""
    editor = editor_client(script=SCRIPT, fault=fault)
    for number in (1, 2):
        turn = editor.turn()
        assert turn.status == "failed"
        assert FIRST.startswith(turn.text)
        assert turn.errors.strip()
        assert len(editor.server_pids()) == number


@faults("EDIT-39", TOLD, "fault-exit-at-handshake", "fault-error-at-handshake")
def test_the_server_does_not_start(editor_client: EditorClient, fault: str) -> None:
    """The user is told, in the server's own words where it has any."""
    editor = editor_client(script=SCRIPT, fault=fault)
    turn = editor.turn()
    assert (turn.status, turn.text) == ("failed", "")
    assert ("this server does not start" in turn.errors) is fault.startswith("error-")
    assert turn.errors.strip()


@faults(
    "",
    LEAVE,
    "fault-hangs-in-turn",
    "fault-missing-turn-completed",
    "fault-wrong-id",
    "fault-id-of-other-type",
    "fault-no-response",
)
def test_a_server_that_leaves_the_client_waiting(editor_client: EditorClient, fault: str) -> None:
    """What was said is shown, nothing is made up, and the editor still shuts down with its server.

    Nothing need end the prompt: neither document has a limit of time, and a turn may take hours. An editor may have one.
    """
    editor = editor_client(script=SCRIPT, fault=fault)
    editor.prompt("Hello")
    if fault.startswith("hangs"):
        editor.wait_said("turn/started")
    elif fault.startswith("missing"):
        editor.wait_shown(FIRST)
    else:
        editor.wait_sent("thread/start")
    assert FIRST.startswith(editor.shown)
    assert editor.close() == 0
    assert not [report for report in editor.reports if report.get("status") == "completed"]
