"""What one turn shows of an editor client."""

from __future__ import annotations

import sys

import pytest

from codex_replay.plugin.editor_client import probe
from codex_replay.plugin.editor_client.probe import ANSWER, judge, try_editor

SENT = ("initialize", "initialized", "thread/start", "turn/start")


def test_an_editor_that_completes_a_turn_can_be_judged() -> None:
    found = judge("completed", ANSWER, "", ["text", "text", "end"], SENT, 0.5)
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
    assert judge(ended, text, errors, [], methods, 0.5).wrong.startswith(sentence)


def test_an_editor_that_does_not_end_is_told_so_and_not_that_its_turn_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "EXIT", 0.5)
    found = try_editor(f"sh -c '{sys.executable} -m codex_replay.reference.editor_client {{codex}}; sleep 60'", 60)
    assert found.wrong.startswith("The editor completes a turn, but does not end within 0.5 s after the command shutdown: ")
    assert (found.methods, found.reports) == (SENT, ("text",))
    assert found.seconds > 0
