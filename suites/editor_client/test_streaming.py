"""The messages during a turn, and the texts that the editor shows for them. Source: docs/contract/editor.md, sections 2 and 4."""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin.editor_client.fixture import EditorClient
from suites.editor_client.speech import (
    IDS,
    TEXT,
    THREAD,
    TURN,
    Step,
    completed,
    conversation,
    delta,
    handshake,
    item_completed,
    notification,
    started,
    thread,
    turn,
)


def event(type: str, **fields: Any) -> Step:  # noqa: A002 - the protocol's name
    """Return the step that sends a codex/event/* notification."""
    params = {"id": TURN, "msg": {"type": type, **fields}, "conversationId": THREAD}
    return {"send": {"method": f"codex/event/{type}", "params": params}}


@pytest.mark.parametrize("size", [1, 5, 1000], ids=["letters", "pieces", "whole"])
@pytest.mark.spec("stream-text", "EDIT-15")
def test_the_answer_is_put_together(editor_client: EditorClient, size: int) -> None:
    """The editor shows exactly the whole text of an answer, for deltas of any size, even if two deltas are equal."""
    pieces = [TEXT[at : at + size] for at in range(0, len(TEXT), size)]
    editor = editor_client(server=conversation(*map(delta, pieces)))
    assert editor.turn().text == TEXT


@pytest.mark.spec("stream-live-text", "EDIT-15")
def test_an_answer_of_the_app_server(editor_client: EditorClient) -> None:
    """The app-server under test streams an answer with the duplicates of the real server; the editor shows the answer once."""
    editor = editor_client(script=[{"items": [TEXT], "delta": 7}])
    answer = editor.turn()
    assert (answer.text, answer.status, answer.errors) == (TEXT, "completed", "")


@pytest.mark.spec("stream-while-it-runs", "EDIT-15")
def test_the_user_does_not_wait_for_the_end(editor_client: EditorClient) -> None:
    """The editor shows the first text before the server has sent the rest."""
    editor = editor_client(server=conversation(delta("The first half"), {"gate": "half"}, delta(" and the second.")))
    editor.prompt("Hello")
    editor.wait_shown("The first half")
    editor.open_gate("half")
    assert editor.end().text == "The first half and the second."


@pytest.mark.spec("stream-two-messages", "EDIT-21")
def test_a_turn_may_have_several_messages(editor_client: EditorClient) -> None:
    """The editor shows every message of a turn in order, with or without deltas, with any white space between them."""
    steps = [
        delta("First.", "a"),
        item_completed(type="agentMessage", id="a", text="First."),
        item_completed(type="agentMessage", id="b", text="Second."),
        delta("Third.", "c"),
        item_completed(type="agentMessage", id="c", text="Third."),
    ]
    editor = editor_client(server=conversation(*steps))
    assert "".join(editor.turn().text.split()) == "First.Second.Third."


@pytest.mark.spec("stream-item-completed", "EDIT-21", "EDIT-31")
def test_a_message_without_deltas(editor_client: EditorClient) -> None:
    """The editor shows a message without deltas from its item/completed."""
    editor = editor_client(server=conversation(item_completed(type="agentMessage", id="a", text=TEXT)))
    assert editor.turn().text == TEXT


@pytest.mark.spec("stream-not-twice", "EDIT-21")
def test_a_completed_message_is_not_shown_again(editor_client: EditorClient) -> None:
    """Although item/completed repeats the text of the deltas, the editor shows the text once."""
    item = {"type": "agentMessage", "id": "agent1", "text": ""}
    steps = [notification("item/started", item=item), delta("Once "), delta("only.")]
    editor = editor_client(server=conversation(*steps, item_completed(type="agentMessage", id="agent1", text="Once only.")))
    assert editor.turn().text == "Once only."


@pytest.mark.spec("stream-events", "REAL-38")
def test_v1_events_are_not_shown_again(editor_client: EditorClient) -> None:
    """Although the real server also sends each text as codex/event/*, the editor shows the text once."""
    ids = {"thread_id": THREAD, "turn_id": TURN, "item_id": "agent1"}
    steps = [
        event("task_started", model_context_window=258400),
        event("item_started", thread_id=THREAD, turn_id=TURN, item={"type": "AgentMessage", "id": "agent1", "content": []}),
        event("agent_message_content_delta", **ids, delta="Once only."),
        delta("Once only."),
        event("agent_message_delta", delta="Once only."),
        item_completed(type="agentMessage", id="agent1", text="Once only."),
        event("agent_message", message="Once only."),
        event("task_complete", last_agent_message="Once only."),
    ]
    editor = editor_client(server=[*conversation(*steps), *turn(delta("And again.", "b"), name="turn_457")])
    assert [editor.turn("one").text, editor.turn("two").text] == ["Once only.", "And again."]
    assert [report["status"] for report in editor.reports if report["report"] == "end"] == ["completed", "completed"]


@pytest.mark.spec("stream-reasoning", "EDIT-32")
def test_reasoning_is_not_the_answer(editor_client: EditorClient) -> None:
    """The editor may show reasoning, but not as part of the answer."""
    steps = [
        notification("item/reasoning/summaryTextDelta", itemId="r1", summaryIndex=0, delta="**Thinking**"),
        notification("item/reasoning/textDelta", itemId="r1", contentIndex=0, delta="raw thoughts"),
        item_completed(type="reasoning", id="r1", summary=["**Thinking**"], content=["raw thoughts"]),
        delta("The answer."),
    ]
    editor = editor_client(server=conversation(*steps))
    assert editor.turn().text == "The answer."


@pytest.mark.spec("stream-own-words", "EDIT-31")
def test_the_prompt_is_not_the_answer(editor_client: EditorClient) -> None:
    """The server repeats the user's message as an item; the editor does not show this item as a part of the answer."""
    message = {"type": "userMessage", "id": "u1", "content": [{"type": "text", "text": "Hello", "text_elements": []}]}
    steps = [notification("item/started", item=message), item_completed(**message), delta("Good day.")]
    editor = editor_client(server=conversation(*steps))
    assert editor.turn("Hello").text == "Good day."


@pytest.mark.parametrize("kind", ["commandExecution", "fileChange"])
@pytest.mark.spec("stream-output", "EDIT-17", "EDIT-33")
def test_output_is_shown_as_output(editor_client: EditorClient, kind: str) -> None:
    """The editor shows the output of a command or a change in order, separate from the answer.

    Although `aggregatedOutput` of item/completed repeats the output of a command, the editor shows the output once.
    """
    steps = [notification(f"item/{kind}/outputDelta", itemId="i1", delta=piece) for piece in ("3 passed", ", 1 failed\n")]
    if kind == "commandExecution":
        steps.append(item_completed(type=kind, id="i1", status="completed", aggregatedOutput="3 passed, 1 failed\n"))
    editor = editor_client(server=conversation(*steps, delta("One fails.")))
    answer = editor.turn()
    assert (answer.output, answer.text) == ("3 passed, 1 failed\n", "One fails.")


@pytest.mark.spec("stream-early", "EDIT-15")
def test_notifications_before_the_response(editor_client: EditorClient) -> None:
    """If all notifications of a turn come before the response to turn/start, the editor still shows the answer."""
    reply: Step = {"turn": {"id": TURN, "items": [], "status": "inProgress", "error": None}}
    late: list[Step] = [{"expect": "turn/start"}, started(), delta("Early."), completed(), {"reply": reply}]
    editor = editor_client(server=[*handshake(), *thread(), *late, *turn(delta("And again.", "b"), name="turn_457")])
    assert [editor.turn("one").text, editor.turn("two").text] == ["Early.", "And again."]


@pytest.mark.spec("stream-old-end", "EDIT-20")
def test_the_end_of_a_turn_that_has_ended(editor_client: EditorClient) -> None:
    """If turn/completed has the id of an earlier turn, it does not end the running turn."""
    steps = [*handshake(), *thread(), *turn(delta("One.")), *turn(completed(), delta("Two.", "b"), name="turn_457")]
    editor = editor_client(server=steps)
    assert [editor.turn("one").text, editor.turn("two").text] == ["One.", "Two."]


@pytest.mark.spec("stream-with-response", "EDIT-15")
def test_notifications_in_one_read_with_the_response(editor_client: EditorClient) -> None:
    """If the response and the whole turn come in one read, the editor still shows the answer."""
    response: Step = {"result": {"turn": {"id": TURN, "items": [], "status": "inProgress", "error": None}}}
    parts = [response, started()["send"], delta("All at ")["send"], delta("once.")["send"], completed()["send"]]
    editor = editor_client(server=[*handshake(), *thread(), {"expect": "turn/start"}, {"together": parts}])
    answer = editor.turn()
    assert (answer.text, answer.status) == ("All at once.", "completed")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.spec("stream-race", "REAL-115")
def test_what_the_server_may_permute(editor_client: EditorClient, seed: int) -> None:
    """The editor accepts every order of frames that the real server may produce; a seed selects the order."""
    editor = editor_client(script=["One.", "Two."], env={"FAKE_CODEX_PACE": f"race:{seed}"})
    assert [editor.turn("one").text, editor.turn("two").text] == ["One.", "Two."]


@pytest.mark.spec("stream-own-thread", "EDIT-16")
def test_another_thread_is_not_mixed_in(editor_client: EditorClient) -> None:
    """The text and the turn/completed of another thread do not affect the editor's turn."""
    other = {**IDS, "threadId": "thr_999", "turnId": "turn_9", "itemId": "x"}
    elsewhere: list[Step] = [
        {"send": {"method": "item/agentMessage/delta", "params": {**other, "delta": "Not for you."}}},
        {
            "send": {
                "method": "turn/completed",
                "params": {"threadId": "thr_999", "turn": {"id": "turn_9", "status": "completed"}},
            }
        },
    ]
    editor = editor_client(server=conversation(delta("For "), *elsewhere, delta("you.")))
    assert editor.turn().text == "For you."
