"""The approvals of commands and file changes that the editor requests from the user.

Source: docs/contract/editor.md, section 3.
"""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin.editor_client.fixture import EditorClient
from suites.editor_client.exact import APPROVALS as METHODS
from suites.editor_client.exact import DECISIONS
from suites.editor_client.speech import (
    Step,
    approval_of,
    asks,
    conversation,
    delta,
    handshake,
    more,
    only_answer,
    settle,
    snake,
    thread,
    turn,
)

BOTH = pytest.mark.parametrize("kind", list(METHODS))


@BOTH
@pytest.mark.spec("approval-shown", "EDIT-22", "EDIT-23")
def test_the_user_is_asked(editor_client: EditorClient, kind: str) -> None:
    """The editor shows the user the kind of the approval and the server's reason."""
    editor = editor_client(server=conversation(asks(10, kind, reason="run tests"), {"expect_reply": 10}))
    editor.prompt("Hello")
    approval = editor.wait("approval")
    assert (approval["kind"], approval["reason"]) == (kind, "run tests")
    editor.decide(approval, "accept")
    assert editor.end().status == "completed"


@pytest.mark.spec("approval-command", "REAL-52")
def test_the_user_sees_the_command(editor_client: EditorClient) -> None:
    """The editor shows the user the command, so that the user never accepts an unseen command."""
    command = "/bin/bash -lc 'rm -rf build'"
    editor = editor_client(server=conversation(asks(0, command=command, cwd="/tmp", commandActions=[]), {"expect_reply": 0}))
    editor.prompt("Hello")
    approval = editor.wait("approval")
    assert "rm -rf build" in str(approval.get("command"))
    editor.decide(approval, "decline")
    editor.end()


@pytest.mark.parametrize("choice", DECISIONS)
@BOTH
@pytest.mark.spec("approval-reply", "EDIT-25", "EDIT-26", "EDIT-28")
def test_the_reply(editor_client: EditorClient, kind: str, choice: str) -> None:
    """The editor answers an approval with one reply, whose result has only the decision.

    If the user closes the approval dialog, the editor sends the decision `cancel`.
    """
    editor = editor_client(server=[*conversation(asks(10, kind), {"expect_reply": 10}), *more()])
    editor.prompt("Hello")
    editor.decide(editor.wait("approval"), choice)
    editor.end()
    settle(editor)
    answer = only_answer(editor)
    assert {key: value for key, value in answer.items() if key != "jsonrpc"} == {
        "id": 10,
        "result": {"decision": DECISIONS[choice]},
    }


@pytest.mark.parametrize("number", [0, 1, 9007199254740991, "12", ""], ids=["zero", "one", "large", "string", "empty"])
@pytest.mark.spec("approval-id", "REAL-36")
def test_the_id_comes_back(editor_client: EditorClient, number: Any) -> None:
    """The editor's reply has the id of the request, for every kind of id; the first id of the real server is 0."""
    editor = editor_client(server=conversation(asks(number), {"expect_reply": number}))
    editor.prompt("Hello")
    editor.decide(editor.wait("approval"), "accept")
    assert editor.end().status == "completed"


@BOTH
@pytest.mark.spec("approval-waits", "EDIT-22")
def test_nothing_is_decided_for_the_user(editor_client: EditorClient, kind: str) -> None:
    """The editor sends no reply to an approval before the user has decided."""
    asked: list[Step] = [asks(10, kind), delta("Well"), {"gate": "asked"}, {"quiet": 0.05}, delta("?"), {"expect_reply": 10}]
    editor = editor_client(server=conversation(*asked))
    editor.prompt("Hello")
    approval = editor.wait("approval")
    editor.wait_shown("Well")  # by now an automatic reply would have been sent
    editor.open_gate("asked")
    editor.wait_shown("Well?")  # and the server would have read it
    assert editor.answers() == []
    editor.decide(approval, "accept")
    editor.end()


@pytest.mark.spec("approval-both", "EDIT-22", "EDIT-26")
def test_several_at_once(editor_client: EditorClient) -> None:
    """If three approvals are open and the user decides them in another order, each request gets its own decision."""
    asked = [asks(5, "command"), asks(6, "fileChange"), asks(7, "command", itemId="cmd2")]
    replies: list[Step] = [{"expect_reply": 6}, {"expect_reply": 7}, {"expect_reply": 5}]
    editor = editor_client(server=conversation(*asked, *replies))
    editor.prompt("Hello")
    first, second, third = (editor.wait("approval") for _ in range(3))
    assert [each["kind"] for each in (first, second, third)] == ["command", "fileChange", "command"]
    editor.decide(second, "decline")
    editor.decide(third, "dismiss")
    editor.decide(first, "accept")
    assert editor.end().status == "completed"
    assert {answer["id"]: answer["result"]["decision"] for answer in editor.answers()} == {5: "accept", 6: "decline", 7: "cancel"}


@pytest.mark.spec("approval-each", "EDIT-22")
def test_each_request_is_asked(editor_client: EditorClient) -> None:
    """The editor asks the user for each approval, even if the same command or change occurs again in this or the next turn.

    A decision of the user is valid only for one request. Codex itself remembers a decision for the session.
    """
    command = {"command": "rm -rf build", "reason": "clean up"}
    choices = ["accept", "decline", "accept"]

    def asked(*numbers: int) -> list[Step]:
        return [
            step
            for number in numbers
            for kind, params in (("command", command), ("fileChange", {"reason": "clean up"}))
            for step in (asks(f"{kind} {number}", kind, **params), {"expect_reply": f"{kind} {number}"})
        ]

    steps = [*handshake(), *thread(), *turn(*asked(1, 2)), *turn(*asked(3), name="turn_457")]
    editor = editor_client(server=steps)
    for prompt, numbers in (("one", (1, 2)), ("two", (3,))):
        editor.prompt(prompt)
        for number in numbers:
            for kind in METHODS:
                approval = editor.wait("approval")
                assert approval["kind"] == kind
                editor.decide(approval, choices[number - 1])
        editor.end()
    report = {answer["id"]: answer["result"]["decision"] for answer in editor.answers()}
    assert report == {f"{kind} {number}": choice for number, choice in enumerate(choices, 1) for kind in METHODS}


@BOTH
@pytest.mark.spec("approval-snake", "EDIT-23")
def test_a_request_in_snake_case(editor_client: EditorClient, kind: str) -> None:
    """The editor also replies to an approval request with snake_case fields."""
    editor = editor_client(server=snake(conversation(asks(10, kind, reason="run tests"), {"expect_reply": 10})))
    editor.prompt("Hello")
    approval = editor.wait("approval")
    assert (approval["kind"], approval["reason"]) == (kind, "run tests")
    editor.decide(approval, "accept")
    assert editor.end().status == "completed"
    assert editor.answers()[0]["result"] == {"decision": "accept"}


#: The action of the model. A fake takes its outcome from `result`; the real Codex runs the action.
SHELL = {
    "type": "function_call",
    "name": "shell_command",
    "call_id": "call_1",
    "arguments": {"command": "printf marker", "sandbox_permissions": "require_escalated", "justification": "To see it."},
    "result": {"stdout": "marker"},
}
#: A change outside the project: the server requests an approval also if the editor has opened the thread with workspace-write.
PATCH = {
    "type": "custom_tool_call",
    "name": "apply_patch",
    "call_id": "call_1",
    "input": "*** Begin Patch\n*** Add File: ../new.txt\n+one\n*** End Patch\n",
}


@pytest.mark.parametrize("choice", DECISIONS)
@BOTH
@pytest.mark.spec("approval-live", "EDIT-22", "EDIT-25")
def test_a_decision_on_the_app_server(editor_client: EditorClient, kind: str, choice: str) -> None:
    """The app-server under test requests an approval; the turn ends as in the real Codex after the same decision."""
    call = SHELL if kind == "command" else PATCH
    rest = ["Bye."] if choice == "dismiss" else ["Done.", "Bye."]
    editor = editor_client(script=[{"items": [call]}, *({"items": [text]} for text in rest)])
    editor.prompt("Go on.")
    approval = approval_of(editor)
    assert approval["kind"] == kind
    editor.decide(approval, choice)
    ended = editor.end()
    assert (ended.status, ended.text) == (("interrupted", "") if choice == "dismiss" else ("completed", "Done."))
    if kind == "command":
        seen = f"The editor reported this output of the command to the user: {ended.output!r}."
        if choice == "accept":
            more = "The output is in item/commandExecution/outputDelta, in aggregatedOutput of item/completed, or in both."
            assert "marker" in ended.output, f"The accepted command printed 'marker', but not to the user. {seen} {more}"
            assert ended.output.count("marker") == 1, f"The command printed 'marker' once. {seen} {more}"
        else:
            assert "marker" not in ended.output, f"The command was not accepted, but the user sees its output. {seen}"
    settle(editor)
    assert [answer["result"] for answer in editor.answers()] == [{"decision": DECISIONS[choice]}]
    assert editor.violations() == []
