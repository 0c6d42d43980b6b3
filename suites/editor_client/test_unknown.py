"""Notifications and requests of a newer server, which an editor does not know.

Source: docs/contract/editor.md, section 4 (the closed lists of the messages that the editor knows), and REAL-34, by
which the real server has 29 notifications and 6 requests; later versions have more (section 7).
"""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin.editor_client.fixture import EditorClient
from suites.editor_client.speech import (
    IDS,
    Step,
    asks,
    conversation,
    delta,
    item_completed,
    more,
    notification,
    only_answer,
    settle,
)


@pytest.mark.spec("unknown-notification", "REAL-116")
def test_unknown_notifications(editor_client: EditorClient) -> None:
    """The editor ignores notifications of later versions, with params of any shape."""
    odd: list[Any] = [{}, {"threadId": THREAD_OF_NOBODY}, [1, 2], None, "text", 7]
    steps: list[Step] = [{"send": {"method": f"thread/novelty{n}/updated", "params": params}} for n, params in enumerate(odd)]
    steps = conversation(*steps, {"send": {"method": "thread/bare"}}, delta("Still here."))
    editor = editor_client(server=[*steps, *more()])
    turn = editor.turn()
    assert (turn.text, turn.status) == ("Still here.", "completed")
    settle(editor)
    assert editor.answers() == []


THREAD_OF_NOBODY = "thr_nobody"


@pytest.mark.spec("unknown-item", "EDIT-31")
def test_unknown_items(editor_client: EditorClient) -> None:
    """The editor ignores items of unknown types."""
    item = {"type": "holographicProjection", "id": "h1", "beam": {"text": "not the answer"}}
    steps = [notification("item/started", item=item), item_completed(**item), delta("Still here.")]
    editor = editor_client(server=conversation(*steps))
    assert editor.turn().text == "Still here."


@pytest.mark.parametrize("number", [0, 3, "q-1"], ids=["zero", "number", "string"])
@pytest.mark.parametrize("method", ["item/tool/requestUserInput", "item/tool/call", "holodeck/start"])
@pytest.mark.spec("unknown-request", "EDIT-36")
def test_unknown_requests_are_refused(editor_client: EditorClient, method: str, number: Any) -> None:
    """An unknown request gets one JSON-RPC error with its id, a code and a message; without a reply the turn would hang.

    (An editor that knows item/tool/call or item/tool/requestUserInput may answer those with a result.)
    """
    step: Step = {"send": {"id": number, "method": method, "params": dict(IDS)}}
    editor = editor_client(server=[*conversation(step, {"expect_reply": number}, delta("Still here.")), *more()])
    turn = editor.turn()
    assert (turn.text, turn.status) == ("Still here.", "completed")
    settle(editor)
    answer = only_answer(editor)
    assert answer["id"] == number
    assert type(answer["id"]) is type(number)
    if "result" not in answer or not method.startswith("item/tool/"):
        assert "error" in answer, f"The editor must refuse the unknown request {method} with an error, but answered {answer}"
        assert type(answer["error"]["code"]) is int
        assert isinstance(answer["error"]["message"], str)
        assert answer["error"]["message"].strip(), "the error has no message"
        assert "result" not in answer


@pytest.mark.spec("unknown-among-approvals", "EDIT-36")
def test_an_unknown_request_beside_an_approval(editor_client: EditorClient) -> None:
    """The editor refuses an unknown request immediately, while an open approval still waits for the user."""
    unknown: Step = {"send": {"id": 1, "method": "holodeck/start", "params": {}}}
    steps = [asks(0), unknown, {"expect_reply": 1}, delta("Refused."), {"expect_reply": 0}]
    editor = editor_client(server=conversation(*steps))
    editor.prompt("Hello")
    editor.wait_shown("Refused.")
    editor.decide(editor.wait("approval"), "accept")
    assert editor.end().status == "completed"
    assert [("error" in answer, answer["id"]) for answer in editor.answers()] == [(True, 1), (False, 0)]
