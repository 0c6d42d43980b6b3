"""A folder of cassettes that holds a report too, as `--report` may put it there: every reader takes the same files of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from codex_replay.cli.main import main
from codex_replay.shell.cassettes.file import CassetteError, cassettes_in

ROOT = Path(__file__).parents[3]
HANDSHAKE = ROOT / "cassettes" / "app_server" / "test_handshake" / "initialize.ndjson"
STORY = '{"case":"app_server/test_a/b","source":"this run","cassette":null,"truncated":false,"frames":[]}\n'


@pytest.fixture(params=[STORY, ""], ids=["stories", "no stories"])
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """One cassette, and beside and below it what two runs have left."""
    for report in (tmp_path, tmp_path / "reports" / "fake"):
        report.mkdir(parents=True, exist_ok=True)
        (report / "stories.ndjson").write_text(request.param)
        (report / "report.json").write_text("{}")
    shutil.copy(HANDSHAKE, tmp_path / "a.ndjson")
    return tmp_path


def test_the_rule(folder: Path) -> None:
    found, notes = cassettes_in(str(folder))
    assert found == [str(folder / "a.ndjson")]
    assert notes == [
        f"{path}: skipped; it holds the traces of a report and is not a cassette."
        for path in (folder / "reports" / "fake" / "stories.ndjson", folder / "stories.ndjson")
    ]


def test_a_cassette_of_that_name_is_one_and_what_is_neither_is_for_the_reader_to_complain_of(tmp_path: Path) -> None:
    files = {"a/stories.ndjson": HANDSHAKE.read_text(), "b/stories.ndjson": '{"cassette":2}\n', "c.ndjson": STORY}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "c.json").write_text("")
    found, notes = cassettes_in(str(tmp_path))
    assert [os.path.relpath(path, tmp_path) for path in found] == ["a/stories.ndjson", "b/stories.ndjson", "c.ndjson"]
    assert notes == []


def test_a_folder_that_cannot_be_read_is_a_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith("fake"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(CassetteError, match=r"fake: the folder cannot be read \(Permission denied\)"):
        cassettes_in(str(folder))


def verb(*words: str) -> Callable[[Path], tuple[int, str, str]]:
    def run(folder: Path) -> tuple[int, str, str]:
        done = CliRunner().invoke(main, [word.replace("DIR", str(folder)) for word in words])
        return done.exit_code, done.stdout, done.stderr

    return run


@pytest.mark.parametrize(
    ("run", "counted"),
    [
        (verb("cassette", "lint", "DIR", "--json"), lambda told: len(told["files"])),
        (verb("cassette", "stats", "DIR", "--json"), len),
        (verb("drift", "0.92.0", "0.92.0", "--cassettes", "DIR", "--json"), lambda told: told["cassettes"]["cases"]),
    ],
    ids=["lint", "stats", "drift"],
)
def test_a_verb_takes_the_cassette_and_says_what_it_leaves_out(
    folder: Path, run: Callable[[Path], tuple[int, str, str]], counted: Callable[[object], int]
) -> None:
    status, said, notes = run(folder)
    assert status == 0
    assert counted(json.loads(said)) == 1
    assert notes.count("skipped; it holds the traces of a report") == 2


@pytest.mark.parametrize(
    "run", [verb("cassette", "lint", "DIR"), verb("drift", "0.92.0", "0.92.0", "--cassettes", "DIR")], ids=["lint", "drift"]
)
def test_a_folder_with_nothing_but_a_report_holds_no_cassette(folder: Path, run: Callable[[Path], tuple[int, str, str]]) -> None:
    (folder / "a.ndjson").unlink()
    status, _, said = run(folder)
    assert status == 2
    assert "no cassette (*.ndjson) in" in said


def test_fake_codex_serves_the_cassette(folder: Path) -> None:
    client = [json.loads(line) for line in HANDSHAKE.read_text().splitlines()[1:-1]]
    sent = "".join(json.dumps(frame["msg"]) + "\n" for frame in client if frame["from"] == "client")
    done = subprocess.run(
        [str(Path(sys.executable).with_name("fake-codex")), "app-server"],
        input=sent,
        env={**os.environ, "FAKE_CODEX_CASSETTE": str(folder)},
        capture_output=True,
        text=True,
        timeout=30,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert '"userAgent"' in done.stdout
    assert done.stderr.count("skipped") == 2


def test_the_suite_over_cassettes_takes_the_cassette(folder: Path) -> None:
    words = ["schema/test_cassettes.py", "--cassettes", str(folder), "--plain", "--report", str(folder / "new"), "-n", "1"]
    done = subprocess.run(
        [str(Path(sys.executable).with_name("codex-replay")), "run", *words],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_pipes_and_devices_in_a_folder_are_skipped_and_reported(tmp_path: Path) -> None:
    shutil.copy(HANDSHAKE, tmp_path / "a.ndjson")
    os.mkfifo(tmp_path / "b.ndjson")  # without a writer: a program that opened the pipe would wait
    os.mkfifo(tmp_path / "stories.ndjson")
    (tmp_path / "zero.ndjson").symlink_to("/dev/zero")
    (tmp_path / "broken.ndjson").symlink_to("nowhere")  # the reader complains of it
    found, notes = cassettes_in(str(tmp_path))
    assert found == [str(tmp_path / "a.ndjson"), str(tmp_path / "broken.ndjson")]
    names = ("b.ndjson", "stories.ndjson", "zero.ndjson")
    assert notes == [f"{tmp_path / name}: skipped; it is a pipe or a device and not a file." for name in names]
