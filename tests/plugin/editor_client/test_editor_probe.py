"""What one turn shows of an editor client."""

from __future__ import annotations

import pytest

from codex_replay.plugin.editor_client.probe import ANSWER, judge

SENT = ("initialize", "initialized", "thread/start", "turn/start")


def test_an_editor_that_completes_a_turn_can_be_judged() -> None:
    found = judge("completed", ANSWER, "", ["text", "text", "end"], SENT, 0, 0.5)
    assert (found.wrong, found.methods, found.reports, found.status) == ("", SENT, ("text", "end"), 0)


@pytest.mark.parametrize(
    ("ended", "text", "errors", "methods", "sentence"),
    [
        ("failed", "", "no codex", (), "The editor reports that its first turn ended as failed: no codex. docs/editor-client.md"),
        ("interrupted", "", "", SENT, "The editor reports that its first turn ended as interrupted. docs/editor-client.md"),
        ("completed", "made up", "", (), "The editor never started the program whose path replaces {codex}."),
        ("completed", ANSWER * 2, "", SENT, f"The model said {ANSWER!r}, and the editor reports the text {ANSWER * 2!r}."),
    ],
)
def test_one_that_does_not_is_told_why(ended: str, text: str, errors: str, methods: tuple[str, ...], sentence: str) -> None:
    assert judge(ended, text, errors, [], methods, 0, 0.5).wrong.startswith(sentence)
