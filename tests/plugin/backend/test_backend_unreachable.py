"""A `--backend` that nobody answers at, or that does not start, is tried once, and told in a sentence without our own code."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from codex_replay.plugin.backend.conversation import Backend
from codex_replay.plugin.backend.fixture import Programs
from codex_replay.shell.rpc.client import SubjectFailure

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def silent() -> Iterator[str]:
    """A base URL on which every connection is refused."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"  # bound and not listening


def test_nobody_at_a_url_is_told_once_and_without_a_traceback(silent: str, tmp_path: Path) -> None:
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-o",
        "addopts=-p codex_replay.suites",
        "suites/backend/test_auth.py",
        "-k",
        "taken",
    ]
    done = subprocess.run(
        [*argv, "suites/backend/test_auth.py", "-k", "taken", "--backend", f"{silent}/v1", "--report", str(tmp_path / "report")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    sentence = f"--backend {silent}/v1 cannot be reached (Connection refused): check that it runs."
    assert done.stdout.splitlines().count(sentence) == 1
    assert f"\nNot retried. {sentence}\n" in done.stdout
    assert "Traceback" not in done.stdout
    assert "pytest_asyncio" not in done.stdout


def test_a_program_that_does_not_start_is_started_once(tmp_path: Path) -> None:
    """A second start would take as long, up to twenty seconds, for each of a hundred cases."""
    tally, program = tmp_path / "starts", tmp_path / "backend.py"
    program.write_text(f"open({str(tally)!r}, 'a').write('.')\nimport sys\nsys.exit('It has no settings.\\nAnd says so.')")
    programs = Programs()
    for told in ("^The backend did not start: It has no settings.\nAnd says so.$", "^Not retried. .*It has no settings.$"):
        with pytest.raises(pytest.fail.Exception, match=told):
            programs.get((sys.executable, str(program)))
    assert tally.read_text() == "."


def test_a_refused_connection_is_not_told_as_a_wait(silent: str) -> None:
    with pytest.raises(SubjectFailure, match=r"^POST /responses got no complete answer: Connection refused$"):
        Backend(silent, silent, None, {}, 120.0).ask({})


def test_a_silence_is_told_with_its_seconds() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(SubjectFailure, match=r"^POST /responses got no complete answer within 0.1 s$"):
            Backend(url, url, None, {}, 0.1).ask({})
