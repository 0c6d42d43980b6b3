"""`replay` to a server that listens: `--app-server ws://HOST:PORT`; and a suite, which needs a server that it can start."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.fakes.listening.test_listening import running
from tests.fakes.listening.test_listening_replay import recording
from tests.support.suite_run import PYTEST, ROOT

PROGRAM = str(Path(sys.executable).with_name("codex-replay"))


def test_a_recording_to_a_server_that_listens(tmp_path: Path) -> None:
    cassette = recording(tmp_path)
    with running(tmp_path, FAKE_CODEX_CASSETTE=cassette) as server:
        argv = [PROGRAM, "replay", cassette, "--app-server", server.url, "--commands-ok", "--json"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        assert server.stop() == (0, "")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["identical"] is True


def test_a_suite_refuses_it() -> None:
    argv = [*PYTEST, "suites/app_server", "--app-server", "ws://127.0.0.1:9"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 4
    assert "each case starts a server with its own home and model" in done.stderr
