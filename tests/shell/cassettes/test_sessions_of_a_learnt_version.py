"""Recordings of a packaged version that took no part in the learning of its tables: sound, replayed identically, and equal
in two runs. Each was recorded with `codex-replay record` in front of the real binary, twice (data/sessions-<version>)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from codex_replay import diff, lint

FOLDERS = sorted((Path(__file__).parents[2] / "data").glob("sessions-*"))
SESSIONS = sorted(path for folder in FOLDERS for path in folder.glob("*.1.ndjson"))
REPLAY = [str(Path(sys.executable).with_name("codex-replay")), "replay"]


def test_there_are_sessions() -> None:
    assert len(SESSIONS) >= 7


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.name.partition(".")[0])
def test_two_runs_are_sound_and_equal(path: Path) -> None:
    other = path.with_name(path.name.replace(".1.", ".2."))
    for each in (path, other):
        assert not [found for found in lint(str(each)).findings if found.level == "error"]
    assert diff(str(path), str(other)).differences == ()


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.name.partition(".")[0])
def test_a_session_replays_identically(path: Path) -> None:
    """By causes: no frame comes before the request that it follows."""
    done = subprocess.run([*REPLAY, str(path), "--app-server", "fake"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.partition(":")[0]) == (0, "identical"), done.stdout


@pytest.mark.parametrize(
    ("old", "new"),
    [('"status":"completed"', '"status":"failed"'), ('"delta":"H', '"delta":"h'), ('"method":"turn/completed"', '"method":"x"')],
)
def test_a_changed_session_differs(old: str, new: str, tmp_path: Path) -> None:
    source = next(path for path in SESSIONS if path.name.startswith("text"))
    text = source.read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "changed.ndjson").write_text(text.replace(old, new, 1), encoding="utf-8")
    assert diff(str(source), str(tmp_path / "changed.ndjson")).differences
