"""The options that `codex-replay serve` prints for Codex bring the oldest and the newest packaged version to it."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from codex_replay.cli.serve import welcome
from codex_replay.shell.codex.home import HermeticHome
from codex_replay.shell.codex.install import ensure
from codex_replay.shell.http.backend_process import BackendProcess

NOWHERE = "http://127.0.0.1:9"


@pytest.mark.parametrize("version", ["0.92.0", "0.169.0"])
def test_each_version_comes_by_the_printed_options(version: str, tmp_path: Path) -> None:
    """Whatever the rest of its configuration names: here a port on which nobody listens."""
    codex = ensure(version)
    with BackendProcess() as backend:
        session = backend.session("default", ["Hello from the script."])
        printed = next(line for line in welcome(backend.url, "t").splitlines() if "codex -c" in line)
        options = shlex.split(printed.partition("codex -c")[2])
        home = HermeticHome(tmp_path, NOWHERE, version=version)
        argv = [str(codex), "exec", "--skip-git-repo-check", "-c", *options, "Hi"]
        done = subprocess.run(
            argv, env=home.env, cwd=home.work, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
        )
        assert "Hello from the script." in done.stdout, done.stderr[-2000:]
        assert [entry["path"] for entry in session.ledger()] == ["/v1/responses"]
