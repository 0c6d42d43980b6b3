"""The diffs, plans and errors that the editor shows the user. Source: docs/contract/editor.md, sections 2 and 4."""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin.editor_client.fixture import EditorClient
from suites.editor_client.speech import (
    Step,
    approval_of,
    completed,
    conversation,
    delta,
    handshake,
    item_completed,
    notification,
    thread,
    turn,
)
from suites.editor_client.test_approvals import PATCH

DIFF = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"


@pytest.mark.parametrize("form", ["document", "real"])
@pytest.mark.spec("diff-shown", "EDIT-18")
def test_the_diff_is_shown(editor_client: EditorClient, form: str) -> None:
    """The editor shows the exact diff, whether the notification has the ids of the thread and the turn or not."""
    document: Step = {"send": {"method": "turn/diff/updated", "params": {"diff": DIFF}}}
    editor = editor_client(server=conversation(document if form == "document" else notification("turn/diff/updated", diff=DIFF)))
    assert [report["diff"] for report in editor.turn().of("diff")] == [DIFF]


@pytest.mark.spec("diff-last", "EDIT-18")
def test_the_last_diff_counts(editor_client: EditorClient) -> None:
    """Each turn/diff/updated has the whole diff of the turn so far, so the editor shows the last one."""
    longer = DIFF + DIFF.replace("x", "y")
    updates = [notification("turn/diff/updated", diff=each) for each in (DIFF, longer)]
    editor = editor_client(server=conversation(*updates))
    assert editor.turn().of("diff")[-1]["diff"] == longer


@pytest.mark.spec("plan-shown", "EDIT-34")
def test_the_plan_is_shown(editor_client: EditorClient) -> None:
    """The editor shows every step of the last plan with its status, in order, and no step that only an earlier plan has."""
    first = [{"step": "Look", "status": "inProgress"}, {"step": "Rest", "status": "pending"}]
    then = [{"step": "Look", "status": "completed"}, {"step": "Leap", "status": "inProgress"}]
    updates = [notification("turn/plan/updated", explanation=None, plan=plan) for plan in (first, then)]
    editor = editor_client(server=conversation(*updates))
    assert editor.turn().of("plan")[-1]["steps"] == then


@pytest.mark.spec("diff-live", "EDIT-18")
def test_a_diff_of_the_app_server(editor_client: EditorClient) -> None:
    """The app-server under test changes a file, and the editor shows the diff."""
    editor = editor_client(script=[{"items": [PATCH]}, {"items": ["Done."]}])
    editor.prompt("Go on.")
    editor.decide(approval_of(editor), "accept")
    assert "+one" in editor.end().of("diff")[-1]["diff"]


@pytest.mark.until("0.140.0", "0.169.0 gives a model that it does not know no tool update_plan")
@pytest.mark.spec("plan-live", "EDIT-34")
def test_a_plan_of_the_app_server(editor_client: EditorClient) -> None:
    """The app-server under test sends a plan, and the editor shows the plan."""
    plan = [{"step": "Look", "status": "in_progress"}, {"step": "Leap", "status": "pending"}]
    call = {"type": "function_call", "name": "update_plan", "call_id": "call_1", "arguments": {"plan": plan}}
    editor = editor_client(script=[{"items": [call]}, {"items": ["Planned."]}])
    turn = editor.turn()
    wanted = [{"step": "Look", "status": "inProgress"}, {"step": "Leap", "status": "pending"}]
    assert (turn.of("plan")[-1]["steps"], turn.text) == (wanted, "Planned.")


#: A text that the real 0.92.0 and 0.169.0 send after the `error` of a review, and before turn/completed.
AFTER_ERROR = "Review was interrupted. Please re-run /review and wait for it to complete."


@pytest.mark.parametrize("where", ["notification", "turn", "both"])
@pytest.mark.spec("error-turn", "REAL-98")
def test_a_turn_that_fails(editor_client: EditorClient, where: str) -> None:
    """The editor shows the reason from the `error` notification or from the turn, and the prompt ends as failed.

    The prompt ends at turn/completed, also after an `error` with willRetry false: the server may send more of the turn.
    """
    why = "Quota exceeded. Check your plan and billing details."
    error: dict[str, Any] = {"message": why, "codexErrorInfo": "usageLimitExceeded", "additionalDetails": None}
    late_text = item_completed(type="agentMessage", id="agent1", text=AFTER_ERROR)
    report = [] if where == "turn" else [notification("error", error=error, willRetry=False), late_text]
    end = completed("failed", None if where == "notification" else why)
    editor = editor_client(server=conversation(*report, end, end=False))
    turn = editor.turn()
    assert why in turn.errors
    assert turn.status == "failed"
    assert turn.text == (AFTER_ERROR if report else ""), (
        "The prompt ends at turn/completed, not at `error`. After the `error`, the server sent an item/completed of an "
        f"agentMessage with a text. Before the `end`, the editor reported the text {turn.text!r}"
    )


@pytest.mark.spec("error-retry", "REAL-97")
def test_an_error_that_is_retried(editor_client: EditorClient) -> None:
    """An `error` notification with willRetry does not end the turn."""
    error = {"message": "Reconnecting... 1/5", "codexErrorInfo": "other", "additionalDetails": None}
    steps = [delta("Half"), notification("error", error=error, willRetry=True), {"quiet": 0.05}, delta(" and whole.")]
    editor = editor_client(server=conversation(*steps))
    turn = editor.turn()
    assert (turn.text, turn.status) == ("Half and whole.", "completed")


@pytest.mark.parametrize("method", ["initialize", "thread/start", "turn/start"])
@pytest.mark.spec("error-refused", "EDIT-02")
def test_a_request_that_is_refused(editor_client: EditorClient, method: str) -> None:
    """If the server refuses a request, the editor shows the error message, and the prompt ends as failed."""
    steps = {"initialize": handshake(), "thread/start": thread(), "turn/start": turn()}
    before = [step for name, part in steps.items() for step in part if list(steps).index(name) < list(steps).index(method)]
    refusal: list[Step] = [{"expect": method}, {"refuse": {"code": -32600, "message": "Invalid request: no cows allowed"}}]
    editor = editor_client(server=[*before, *refusal])
    turn_ = editor.turn()
    assert "no cows allowed" in turn_.errors
    assert turn_.status == "failed"


@pytest.mark.spec("error-live", "REAL-103")
def test_a_failed_turn_of_the_app_server(editor_client: EditorClient) -> None:
    """If the model refuses, the editor shows Codex's error message, and the next prompt works."""
    editor = editor_client(script=[{"items": [], "fault": "failed_insufficient_quota"}, {"items": ["Paid."]}])
    turn_ = editor.turn()
    assert "Quota exceeded. Check your plan and billing details." in turn_.errors
    assert turn_.status == "failed"
    assert editor.turn().text == "Paid."
