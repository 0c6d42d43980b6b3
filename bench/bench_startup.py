"""Start-up: from spawn to the initialize response, fake-codex as installed against the real binary, alternating, medians.

0.92.0 replays a recording, 0.169.0 answers from a script.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from bench.common import CASSETTE, FAKE, INITIALIZE, Row, real_codex
from codex_replay.shell.codex.home import HermeticHome

ROUNDS = 25


def once(command: list[str], env: dict[str, str], cwd: Path) -> float:
    """Return the seconds from spawning `command` to its first line."""
    begin = time.perf_counter()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, cwd=cwd, bufsize=0
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(INITIALIZE)
        line = process.stdout.readline()
        took = time.perf_counter() - begin
        process.stdin.close()
        process.stdout.read()
    assert b"userAgent" in line, f"{command[0]} answered initialize with {line!r}"
    return took


def rows() -> list[Row]:
    """Measure; the ratio of medians must stay at or below 0.3."""
    return [_row("0.92.0", {"FAKE_CODEX_CASSETTE": str(CASSETTE)}), _row("0.169.0", {"FAKE_CODEX_VERSION": "0.169.0"})]


def _row(version: str, settings: dict[str, str]) -> Row:
    with tempfile.TemporaryDirectory(prefix="codex-replay-bench-") as root:
        home = HermeticHome(Path(root), "http://127.0.0.1:9", version=version)  # nothing listens: initialize asks for nothing
        commands = {
            "real": ([real_codex(version), "app-server"], home.env),
            "fake": ([FAKE, "app-server"], {"PATH": os.environ["PATH"], "HOME": str(home.home), **settings}),
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(ROUNDS):
            for name, (command, env) in commands.items():
                times[name].append(once(command, env, home.work))
    real, fake = (statistics.median(times[name]) for name in ("real", "fake"))
    detail = f"fake-codex {fake * 1000:.1f} ms, codex {version} {real * 1000:.1f} ms, medians of {ROUNDS} alternating runs"
    return Row(f"start-up to the initialize response, {version}", fake / real, "of the real one", 0.3, True, detail)
