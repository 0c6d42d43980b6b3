"""`codex-replay cassette`: bad input is answered in a sentence; show."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from codex_replay.cli.io.console import TOO_DEEP, sentences
from codex_replay.report.cassette_trace import cassette_trace
from tests.cli.cassette.files import CASSETTES, SHELL, run, write


@pytest.fixture
def bad_files(tmp_path: Path) -> dict[str, Path]:
    whole = (CASSETTES / "v1-a.ndjson").read_bytes()
    files = {
        "missing": tmp_path / "missing.ndjson",
        "empty": tmp_path / "empty.ndjson",
        "not JSON": tmp_path / "text.ndjson",
        "foreign version": tmp_path / "foreign.ndjson",
        "broken in the middle": tmp_path / "broken.ndjson",
    }
    files["empty"].write_bytes(b"")
    files["not JSON"].write_bytes(b"hello\nworld\n")
    files["foreign version"].write_bytes(whole.replace(b'{"cassette":1', b'{"cassette":9', 1))
    lines = whole.splitlines(keepends=True)
    files["broken in the middle"].write_bytes(b"".join([*lines[:5], b"oops\n", *lines[5:]]))
    return files


@pytest.mark.parametrize("kind", ["missing", "empty", "not JSON", "foreign version", "broken in the middle", "folder"])
@pytest.mark.parametrize("verb", ["lint", "show", "diff", "stats", "redact"])
def test_a_bad_file_is_answered_in_a_sentence(verb: str, kind: str, bad_files: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    path = bad_files.get(kind, tmp_path / "folder")
    rest: list[str | Path] = {"diff": [SHELL], "redact": ["--out", tmp_path / "out.ndjson"]}.get(verb, [])  # type: ignore[assignment]
    result = run(verb, path, *rest)
    assert result.exit_code == (1 if (verb, kind) == ("lint", "broken in the middle") else 2)
    said = result.stderr or result.stdout
    assert str(path) in said
    assert "Traceback" not in result.output
    assert not list(tmp_path.glob("out*")), "nothing half-written stays behind"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_answered_in_a_sentence(tmp_path: Path) -> None:
    path = write(tmp_path / "c.ndjson")
    path.chmod(0)
    assert run("show", path).exit_code == 2


@pytest.mark.parametrize("verb", ["show", "diff", "stats", "redact", "lint"])
def test_a_truncated_cassette_is_read_to_its_end_and_said_so(verb: str, tmp_path: Path) -> None:
    path = tmp_path / "cut.ndjson"
    path.write_bytes(Path(SHELL).read_bytes()[:-200])
    rest = {"diff": [str(path)], "redact": ["--out", str(tmp_path / "out.ndjson")]}.get(verb, [])
    result = run(verb, path, *rest)
    assert result.exit_code == (1 if verb == "lint" else 0)
    assert "cut short" in result.output + result.stderr


def test_show_is_a_plain_timeline_in_a_pipe() -> None:
    result = run("show", SHELL)
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0] == "tests/shell: codex 0.92.0; rpc authored, http authored"
    assert lines[1].split()[:6] == ["1", "0.0032", "rpc", "->", "initialize", "#1"]
    assert any("<- result #2 of thread/start" in line for line in lines)
    assert any("-> POST /v1/responses" in line for line in lines)
    assert any("<- event response.completed" in line for line in lines)
    assert "\x1b" not in result.output
    assert all(len(line) <= 160 for line in lines)


def test_show_one_frame_and_only_some() -> None:
    result = run("show", SHELL, "--frame", "2")
    assert '"userAgent": "lab/0.92.0' in result.output
    assert result.output.count("rpc") == 1
    result = run("show", SHELL, "--grep", "turn/(start|completed)")
    assert len(result.output.splitlines()) >= 2
    for seam in ("^rpc  <-", "^rpc  ->"):
        assert run("show", SHELL, "--grep", seam).output.count("\n") >= 2
    assert run("show", SHELL, "--frame", "9999").exit_code == 2
    assert run("show", SHELL, "--grep", "(").exit_code == 2
    assert "no frame matches" in run("show", SHELL, "--grep", "nowhere to be seen").stderr


def test_show_never_lets_a_recording_speak_to_the_terminal(tmp_path: Path) -> None:
    evil = write(
        tmp_path / "c.ndjson",
        b"\x1b[2J\x07 garbage\n",
        '{"method":"a\\u001b[31m\u009b31m","params":{"x":"\\u001b]0;t\\u0007"}}\n'.encode(),
    )
    for mode in ([], ["--full"]):
        output = run("show", evil, *mode).output
        assert not {"\x1b", "\x07", "\x9b"} & set(output)
        assert "garbage" in output


def _program(*args: str) -> list[str]:
    return [sys.executable, "-c", "from codex_replay.cli.main import main; main()", "cassette", *args]


def test_a_closed_pipe_ends_show_in_silence(tmp_path: Path) -> None:
    path = write(tmp_path / "long.ndjson", *[b'{"method":"m","params":{"n":%d}}\n' % n for n in range(20_000)])
    with subprocess.Popen(_program("show", str(path)), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 0


@pytest.mark.parametrize(("verb", "status"), [("show", 0), ("stats", 0), ("lint", 0)])
def test_a_stdout_that_is_closed_from_the_start_leaves_the_status(tmp_path: Path, verb: str, status: int) -> None:
    path = write(tmp_path / "a.ndjson", b'{"method":"m"}\n')
    command = shlex.join(_program(verb, str(path))) + " >&-"
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (status, "")


def test_a_page_without_marks_says_why(tmp_path: Path) -> None:
    path = write(tmp_path / "a", b'{"method":"x","params":{"createdAt":1}}\n')
    assert "There is no" not in run("show", path, "--html", tmp_path / "a.html").output
    assert cassette_trace(path, "")["frames"][0]["masked"] == ["$.params.createdAt"]
    path.write_bytes(path.read_bytes().replace(b'"codex":"0.92.0"', b'"codex":"0.93.0"', 1))
    done = run("show", path, "--html", tmp_path / "b.html")
    assert (
        "There is no normalise table for Codex 0.93.0 (`codex-replay codex add 0.93.0` makes it): times, durations" in done.output
    )
    assert cassette_trace(path, "")["frames"][0]["masked"] == []


@pytest.mark.parametrize("verb", ["diff", "lint", "stats"])
def test_a_frame_that_is_nested_too_deeply_is_reported_in_a_sentence(verb: str, tmp_path: Path) -> None:
    """Each level is legal JSON, and more than one more can be walked."""
    deep = b'{"method":"x","params":' + b"[" * 900 + b"]" * 900 + b"}\n"
    other = deep.replace(b'"x"', b'"y"', 1)
    files = [str(write(tmp_path / name, line)) for name, line in (("a", deep), ("b", other))]
    done = run(verb, *files[: 2 if verb == "diff" else 1])
    assert done.exit_code in (0, 1, 2)
    assert "Traceback" not in done.output + done.stderr
    if done.exit_code == 2:
        assert done.stderr.endswith("read it with `codex-replay cassette show`.\n")


def test_no_command_ends_in_a_traceback_for_depth() -> None:
    @click.command()
    @sentences
    def walk() -> None:
        walk.callback()  # type: ignore[misc]

    done = CliRunner().invoke(walk)
    assert (done.exit_code, done.stderr) == (2, f"codex-replay: {TOO_DEEP}\n")
