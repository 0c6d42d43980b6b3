"""What cannot be written is told by the path that the user gave, and never by the draft beside it."""

from __future__ import annotations

import os
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


def test_what_reads_twice_refuses_a_pipe_and_what_reads_once_takes_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # Without a writer: a program that opened the pipe would wait.
    for words in (["lint", pipe], ["show", pipe, "--html", tmp_path / "page.html"]):
        done = subprocess.run([PROGRAM, "cassette", *map(str, words)], capture_output=True, text=True, timeout=60)
        assert (done.returncode, "this is a pipe or a device" in done.stderr) == (2, True)
    for words in (["stats", pipe], ["show", pipe], ["diff", CASSETTE, pipe], ["redact", pipe, "--out", tmp_path / "copy.ndjson"]):
        with subprocess.Popen(["sh", "-c", 'exec cat "$1" > "$2"', "sh", CASSETTE, pipe]) as writer:
            done = subprocess.run([PROGRAM, "cassette", *map(str, words)], capture_output=True, text=True, timeout=60)
            writer.kill()
        assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="the system has no /dev/zero")
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("codex-replay cassette lint /dev/zero", "a pipe or a device"),
        ("codex-replay cassette show /dev/zero", "this is a device, which may never end"),
        ("codex-replay cassette diff /dev/zero /dev/zero", "this is a device, which may never end"),
        ("codex-replay replay /dev/zero --app-server fake", "this is a device, which may never end"),
        ("codex-replay serve --script /dev/zero", "longer than 64 MB"),
        ("env FAKE_CODEX_SCRIPT=/dev/zero fake-codex app-server", "longer than 64 MB"),
        ("env FAKE_CODEX_CASSETTE=/dev/zero fake-codex app-server", "this is a device, which may never end"),
    ],
)
def test_a_file_without_end_is_a_sentence(words: str, reason: str) -> None:
    environ = {**os.environ, "PATH": f"{Path(PROGRAM).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(words.split(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, env=environ)
    assert (done.returncode, done.stderr.count("\n"), reason in done.stderr) == (2, 1, True), done.stderr


def test_a_file_for_which_there_is_no_space_is_named(tmp_path: Path) -> None:
    """The error of a write names no file by itself."""
    words = ["bash", "-c", 'ulimit -f 1; exec "$@"', "-", PROGRAM, "cassette", "show", str(CASSETTE), "--html", "x.html"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "codex-replay: x.html: File too large; check the path and its permissions.\n"
    assert not list(tmp_path.iterdir())
