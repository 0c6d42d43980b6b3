"""An editor must accept field names in snake_case (documentation of codex.nvim) and in camelCase (real server).

Source: docs/contract/editor.md, section 4, Field naming: "the server generally uses `snake_case` ... The plugin normalizes or
forwards as-is"; REAL-39, REAL-40: item/* and turn/* are camelCase, the content of codex/event/* is snake_case.
"""

from __future__ import annotations

import pytest

from codex_replay.plugin.editor_client.fixture import EditorClient
from suites.editor_client.speech import (
    THREAD,
    TURN,
    Step,
    asks,
    completed,
    conversation,
    delta,
    notification,
    snake,
)

DIFF = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"


def whole() -> list[Step]:
    """Return the steps of a conversation with all kinds of messages."""
    return conversation(
        delta("Let me see. "),
        asks(0, reason="run tests"),
        {"expect_reply": 0},
        notification("item/commandExecution/outputDelta", itemId="cmd1", delta="ok\n"),
        asks(1, "fileChange"),
        {"expect_reply": 1},
        notification("turn/diff/updated", diff=DIFF),
        delta("Done."),
        {"expect": "turn/interrupt"},
        {"reply": {}},
        completed("interrupted"),
        end=False,
    )


@pytest.mark.parametrize("spelling", ["camelCase", "snake_case"])
@pytest.mark.spec("spelling-either", "EDIT-37")
def test_a_conversation_in_either_spelling(editor_client: EditorClient, spelling: str) -> None:
    """Text, approvals, output, diff and interrupt work the same with both spellings of the server's fields."""
    editor = editor_client(server=whole() if spelling == "camelCase" else snake(whole()))
    editor.prompt("Hello")
    editor.decide(editor.wait("approval"), "accept")
    editor.decide(editor.wait("approval"), "decline")
    editor.wait_shown("Let me see. Done.")
    editor.interrupt()
    turn = editor.end()
    assert (turn.status, turn.output, [report["diff"] for report in turn.of("diff")]) == ("interrupted", "ok\n", [DIFF])
    assert [answer["result"]["decision"] for answer in editor.answers()] == ["accept", "decline"]


@pytest.mark.parametrize("spelling", ["camelCase", "snake_case"])
@pytest.mark.spec("spelling-own", "EDIT-12", "REAL-40")
def test_the_editor_itself_spells_in_camel_case(editor_client: EditorClient, spelling: str) -> None:
    """The editor sends camelCase to every server, because Codex accepts no other spelling."""
    steps = conversation(delta("Once"), {"expect": "turn/interrupt"}, {"reply": {}}, completed("interrupted"), end=False)
    editor = editor_client(server=steps if spelling == "camelCase" else snake(steps))
    editor.prompt("Hello")
    editor.wait_shown("Once")
    editor.interrupt()
    editor.end()
    assert "clientInfo" in editor.requests("initialize")[0]["params"]
    assert editor.requests("turn/start")[0]["params"]["threadId"] == THREAD
    assert editor.requests("turn/interrupt")[0]["params"] == {"threadId": THREAD, "turnId": TURN}
