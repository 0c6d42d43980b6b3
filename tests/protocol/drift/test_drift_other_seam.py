"""Recordings of the Responses backend beside `drift --cassettes`: no drift of the app-server can hit them, and that is said."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from codex_replay.cli.drift.command import command
from codex_replay.shell.cassettes.file import CassetteReader, CassetteWriter

ROOT = Path(__file__).resolve().parents[3]
BOTH = ROOT / "cassettes" / "app_server" / "test_v2" / "text_turn.ndjson"


def run(folder: Path) -> Result:
    return CliRunner().invoke(command, ["0.92.0", "0.92.0", "--cassettes", str(folder)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a recording of the http seam alone."""
    folder = tmp_path / "mine"
    folder.mkdir()
    with CassetteReader(BOTH) as whole, CassetteWriter(folder / "backend.ndjson", whole.header) as written:
        for frame in whole:
            if frame.seam == "http":
                written.write(frame)
    return folder


def test_recordings_of_the_backend_alone_verify_nothing(folder: Path) -> None:
    """They are not hit, which is no news: exit status 0 would be a comfort that nobody has looked for."""
    done = run(folder)
    assert done.exit_code == 2
    assert f"No cassette in {folder} has frames of an app-server, so none can be affected" in done.stderr
    assert "`drift --behaviour` compares" in done.stderr
    assert done.stdout == ""


def test_a_recording_of_the_backend_among_others_is_counted_apart(folder: Path) -> None:
    shutil.copy(BOTH, folder)
    done = run(folder)
    assert done.exit_code == 0, done.stderr
    assert f"1 of the 2 cassettes in {folder} have no frames of an app-server: " in done.stderr
    assert "none of your 2 cases is affected" in done.stdout


def test_recordings_of_an_app_server_alone_need_no_word(tmp_path: Path) -> None:
    shutil.copy(BOTH, tmp_path)
    assert run(tmp_path).stderr == ""
