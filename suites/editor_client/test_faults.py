"""If the server has a fault, the user gets the whole answer or an error; docs/fake-codex.md lists the faults.

Each fault happens once, in the first turn; the seed chooses its place. The server is fake-codex in every run, because a
real server has no faults on request. The cases check three rules: the editor ignores harmless faults; if the server dies or
refuses a request, the prompt ends as failed with an error, and the next prompt works; if the server stops sending, the
editor can still shut down.
"""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin.editor_client.fixture import EditorClient
from suites.editor_client.speech import DRIVER

CHUNKS = ["Grüße, ", "世界! ", "😀 ", "One ", "two ", "three ", "four ", "five ", "six."]
FIRST, SECOND = "".join(CHUNKS), "And the second answer."
SCRIPT: list[Any] = [
    {"items": [{"type": "text", "text": FIRST, "deltas": CHUNKS}]},
    {"items": [{"type": "text", "text": SECOND, "deltas": ["And the second ", "answer."]}]},
]
ANSWER = "the whole answer is shown once"
END = "every prompt ends in exactly one `end`"
FAILURE = "`failed`, after an `error`, if the server refused a request, died or did not start"
LEAVE = "`shutdown` ends the server, then exits with status 0"
#: These faults are the same for every seed.
EVERYWHERE = {"slow-start", "crlf", "blank-lines", "jsonrpc-member", "snake-case", "doubled-response", "missing-turn-started"}
EVERYWHERE |= {"missing-item-completed", "missing-deltas", "missing-turn-completed", "exit-at-handshake", "error-at-handshake"}
EVERYWHERE |= {"wrong-id", "id-of-other-type", "no-response", "split-bytes", "huge-line"}


def faults(statements: str, says: str, *checks: str) -> pytest.MarkDecorator:
    """Return the cases of some faults: one check for each fault, with two seeds if the seed matters."""
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
    """If the server behaves unusually but correctly, the editor shows both answers completely and reports no error."""
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
    """If the server sends an invalid line or answers twice, the editor may report an error, but shows both answers completely."""
    editor = editor_client(script=SCRIPT, fault=fault)
    for answer in (FIRST, SECOND):
        turn = editor.turn()
        assert (turn.status, turn.text) == ("completed", answer)


@faults("EDIT-36", "an unknown request is refused", "fault-unknown-request")
def test_a_request_that_nobody_knows(editor_client: EditorClient, fault: str) -> None:
    """The editor answers an unknown request with an error that has the id of the request, and the turn continues."""
    editor = editor_client(script=SCRIPT, fault=fault)
    turn = editor.turn()
    assert (turn.status, turn.text) == ("completed", FIRST)
    editor.answer_to(9999)
    assert ["error" in answer for answer in editor.answers() if answer["id"] == 9999] == [True]


@faults("EDIT-20 EDIT-21", END, "fault-doubled-event")
def test_one_notification_comes_twice(editor_client: EditorClient, fault: str) -> None:
    """The editor shows each text once, except a repeated delta, because a repeated delta looks like a new one."""
    editor = editor_client(script=SCRIPT, fault=fault)
    turn = editor.turn()
    doubled = ["".join(CHUNKS[: i + 1] + CHUNKS[i:]) for i in range(len(CHUNKS))]
    assert turn.status == "completed"
    assert turn.text in (FIRST, *doubled)
    second = editor.turn()
    assert (second.status, second.text) == ("completed", SECOND)
    assert len([report for report in editor.reports if report["report"] == "end"]) == 2


@faults("EDIT-20", END, "fault-early-turn-completed")
def test_a_turn_that_ends_twice(editor_client: EditorClient, fault: str) -> None:
    """The first turn/completed ends the turn; the editor ignores a second turn/completed."""
    editor = editor_client(script=SCRIPT, fault=fault)
    assert editor.turn().status == "completed"
    editor.wait_said("turn/completed", 2)
    # The editor may still read the rest of the first answer, so this rest may come before the second answer.
    text = editor.turn().text
    assert text.endswith(SECOND), f"expected a text that ends with the second answer, got {text!r}"
    assert FIRST.endswith(text.removesuffix(SECOND).rstrip()), f"unexpected text before the second answer: {text!r}"
    assert len([report for report in editor.reports if report["report"] == "end"]) == 2


@faults("EDIT-40", FAILURE, "fault-dies-in-turn", "fault-killed-in-turn", "fault-dies-in-line")
def test_the_server_dies(editor_client: EditorClient, fault: str) -> None:
    """After the server dies, the editor keeps the text so far, reports an error, and starts a new server for the next prompt."""
    editor = editor_client(script=SCRIPT, fault=fault)
    for number in (1, 2):
        turn = editor.turn()
        assert turn.status == "failed"
        assert FIRST.startswith(turn.text)
        assert turn.errors.strip()
        assert len(editor.server_pids()) == number


@faults("EDIT-39", FAILURE, "fault-exit-at-handshake", "fault-error-at-handshake")
def test_the_server_does_not_start(editor_client: EditorClient, fault: str) -> None:
    """If the server does not start, the editor reports an error, with the error text of the server if there is one."""
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
    """If the server stops sending, the editor shows exactly the text so far, and can still shut down together with its server.

    The prompt need not end, because no document states a time limit, and a turn may take hours. An editor may have a time
    limit of its own.
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
