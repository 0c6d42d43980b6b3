"""How a replay ended is read from fake-codex's JSON: the words on its stderr are for people and may change."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from codex_replay.plugin.user_fixtures.replayed import Replays

ENDING: dict[str, Any] = {
    "pid": 7,
    "cassette": "c.ndjson",
    "left_out": [{"n": 6, "message": "turn/start", "refused": False}],
    "otherwise": [{"n": 3, "text": "note"}],
    "unmatched": [],
}


def unplayed(folder: Path, ending: dict[str, Any] | None, *, status: int = 1, partial: bool = False) -> list[str]:
    """What is found for one start of a program that ends so."""
    program = folder / "program"
    program.write_text(
        f"#!{sys.executable}\nimport os, sys\nprint('fake-codex: other words', file=sys.stderr)\nending = {ending!r}\n"
        "import json\n"
        "if ending: open(os.environ['FAKE_CODEX_ENDING'], 'a').write(json.dumps(ending) + '\\n')\n"
        f"sys.exit({status})\n"
    )
    program.chmod(0o755)
    replays = Replays(str(program), folder)
    replays.add("start", {}, partial)
    run = {"run": 1, "argv": ["-c", "start", str(program), "app-server"], "pid": 1 << 22, "of": 1 << 22}
    found = replays.differences(lambda: [run], "start")
    assert found.notes == (["note"] if ending else [])
    return found.problems


def test_a_frame_that_never_came_is_found_whatever_stderr_says(tmp_path: Path) -> None:
    assert unplayed(tmp_path, ENDING) == ["frame 6 of c.ndjson never came from the client: turn/start"]


def test_a_frame_that_came_in_another_form_is_not_called_missing(tmp_path: Path) -> None:
    left_out = [{"n": 6, "message": "turn/start", "refused": True}]
    found = unplayed(tmp_path, {**ENDING, "left_out": left_out, "unmatched": ["another text"]})
    assert found == ["another text", "frame 6 of c.ndjson came from the client, but did not match (see above): turn/start"]


def test_a_client_that_may_leave_out_frames_may(tmp_path: Path) -> None:
    assert unplayed(tmp_path, ENDING, partial=True) == []


@pytest.mark.parametrize("partial", [False, True])
def test_a_frame_that_matches_nothing_is_found(tmp_path: Path, partial: bool) -> None:
    found = unplayed(tmp_path, {**ENDING, "left_out": [], "unmatched": ["no frame is next:\n  turn/stop"]}, partial=partial)
    assert found == ["no frame is next:", "  turn/stop"]


def test_a_program_that_cannot_replay_is_told_in_its_own_words(tmp_path: Path) -> None:
    assert unplayed(tmp_path, None, status=2, partial=True) == ["other words"]


def test_a_replay_that_differs_in_content_alone_is_in_order(tmp_path: Path) -> None:
    assert unplayed(tmp_path, {**ENDING, "left_out": []}, status=0) == []
