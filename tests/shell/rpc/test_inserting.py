"""Messages of a case's own among those of an app-server, and the two other things that a case does to a proxy's process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from codex_replay.shell.rpc import inserting

SERVER = "import sys\nfor line in sys.stdin:\n    print('got ' + line, end='', flush=True)\nsys.exit(3)\n"


def test_lines_follow_each_line_that_has_the_text() -> None:
    written: list[bytes] = []
    inserting.pass_on([b"a\n", b"b x\n", b"c\n", b"x\n"], written.append, b"x", b"1\n2\n")
    assert b"".join(written) == b"a\nb x\n1\n2\nc\nx\n1\n2\n"


def test_an_inserted_line_has_the_ids_of_the_line_before_it() -> None:
    written: list[bytes] = []
    line = b'{"method":"turn/started","params":{"threadId":"t1","turn":{"id":"u1","items":[]}}}\n'
    inserting.pass_on(
        [line, b"other\n"], written.append, b"turn/started", b'{"id":9,"params":{"threadId":"{threadId}","turnId":"{turnId}"}}\n'
    )
    assert written == [line + b'{"id":9,"params":{"threadId":"t1","turnId":"u1"}}\n', b"other\n"]


def test_a_command_runs_with_them_and_its_status_is_kept(tmp_path: Path) -> None:
    given = tmp_path / "insert.json"
    given.write_text(json.dumps({"after": "two", "lines": ['{"method":"é"}']}), encoding="utf-8")
    argv = [sys.executable, "-m", "codex_replay.shell.rpc.inserting", str(given), "--", sys.executable, "-c", SERVER]
    done = subprocess.run(argv, input="one\ntwo\nthree\n", capture_output=True, encoding="utf-8", timeout=60)
    assert done.stdout == 'got one\ngot two\n{"method":"é"}\ngot three\n'
    assert (done.returncode, done.stderr) == (3, "")


def test_a_signal_ends_the_command_too(tmp_path: Path) -> None:
    given = tmp_path / "insert.json"
    given.write_text(json.dumps({"after": "x", "lines": []}), encoding="utf-8")
    code = "import time\nprint('begun', flush=True)\ntime.sleep(60)\n"
    argv = [sys.executable, "-m", "codex_replay.shell.rpc.inserting", str(given), "--", sys.executable, "-c", code]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as lines:
        assert lines.readline() == b"begun\n"
        process.terminate()
        assert lines.read() == b""
    assert process.wait(30) != 0


@pytest.mark.parametrize("argv", [[], ["file"], ["file", "command", "more"]])
def test_arguments_that_do_not_fit(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert inserting.main(argv) == 2
    assert capsys.readouterr().err.startswith("Give a file and a command: python -m codex_replay.shell.rpc.inserting")


def test_a_line_with_one_of_the_texts_waits() -> None:
    seen: list[bytes] = []
    late = inserting.delayed([b"a\n", b"bx\n", b"c\n", b"dy\n"], [b"x", b"y"], lambda: seen.append(b"wait "))
    inserting.pass_on(late, seen.append, b"", b"")
    assert b"".join(seen) == b"a\nwait bx\nc\nwait dy\n"


def test_a_result_with_one_of_the_texts_becomes_an_error() -> None:
    lines = [b'{"method":"a"}\n', b'{"id":3,"result":{"thread":{}}}\n', b'{"id":4,"result":{}}\n']
    got = list(inserting.refused(lines, [b'"result":{"thread":'], {"code": -32600, "message": "no"}))
    assert got == [lines[0], b'{"id": 3, "error": {"code": -32600, "message": "no"}}\n', lines[2]]
