"""What cannot be written is told by the path that the user gave, and never by the draft beside it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from codex_replay.shell.files.atomic import named, replacing

PROGRAM = str(Path(sys.executable).with_name("codex-replay"))
CASSETTE = Path(__file__).parents[2] / "cassettes" / "app_server" / "test_v2" / "text_turn.ndjson"
NOWHERE = Path("/proc")
not_here = pytest.mark.skipif(not NOWHERE.is_dir(), reason="a folder in which nobody can make a file is wanted")


@not_here
@pytest.mark.parametrize(
    "words",
    [
        ["cassette", "show", CASSETTE, "--html", NOWHERE / "x.out"],
        ["cassette", "redact", CASSETTE, "--out", NOWHERE / "x.out"],
        ["drift", "0.92.0", "0.92.0", "--html", NOWHERE / "x.out"],
    ],
)
def test_the_path_that_was_given_is_named(words: list[str | Path]) -> None:
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("codex-replay: /proc/x.out: ")
    assert "partial" not in done.stderr
    assert "draft" not in done.stderr


def test_a_file_in_a_draft_folder_is_named_in_its_place(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as found, replacing(tmp_path / "out") as draft:
        (Path(draft) / "none" / "x").write_text("")
    assert found.value.filename == str(tmp_path / "out" / "none" / "x")
    assert list(tmp_path.iterdir()) == []


def test_another_file_keeps_its_name() -> None:
    with pytest.raises(FileNotFoundError) as found, named("/a.draft", "/a"):
        raise FileNotFoundError(2, "No such file", "/other")
    assert found.value.filename == "/other"
