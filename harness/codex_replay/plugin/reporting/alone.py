"""Rerun selected cases without other cases beside them: in a separate pytest process, one after another.

The environment variable CODEX_REPLAY_ALONE names the file for the results of the child process. Each line is the JSON result of
one case, without secrets. In the child process, fixtures do not share processes between cases: each case gets new processes
(`is_alone`).
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from codex_replay.core.text.truncate import shortened
from codex_replay.plugin.base.progress import LAST_WORDS
from codex_replay.plugin.base.progress import VARIABLE as PROGRESS
from codex_replay.plugin.base.rerun_command import RerunCommand
from codex_replay.plugin.base.signals import end_with
from codex_replay.plugin.reporting.message import message_of
from codex_replay.plugin.reporting.session import SESSION
from codex_replay.plugin.reporting.verdict import LONGEST_MESSAGE
from codex_replay.shell.process.subject import Process

if TYPE_CHECKING:
    import pytest

    from codex_replay.report.data import Alone

VARIABLE = "CODEX_REPLAY_ALONE"
_WORST = ("failed", "skipped", "passed")


def is_alone() -> bool:
    """Return True if this process is the child that reruns cases alone."""
    return VARIABLE in os.environ


def run_alone(config: pytest.Config, nodeids: Iterable[str]) -> dict[str, Alone]:
    """Rerun cases alone, in this order. Return the results by node id; cases that did not end are missing.

    If this process is interrupted, it ends the child process. Raises `CannotStart`.
    """
    with tempfile.TemporaryDirectory(prefix="codex-replay-alone-") as made:
        folder = Path(made)
        results = folder / "results.ndjson"
        words = RerunCommand(config, folder).in_process(nodeids)
        env = {name: value for name, value in os.environ.items() if name not in (LAST_WORDS, PROGRESS)}
        safe = ["-P"] if sys.flags.safe_path else []
        child = Process(
            [sys.executable, *safe, "-m", "pytest", *words],
            env={**env, VARIABLE: str(results)},
            cwd=str(config.invocation_params.dir),
        )
        try:
            child.close_stdin()
            child.exited.wait()
        finally:
            child.stop(grace=5.0)
        return read(results)


def read(path: Path) -> dict[str, Alone]:
    """Read the results that a child process wrote; empty if it wrote no file."""
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return {}
    rows = [json.loads(line) for line in lines if line.endswith(b"}")]
    return {row.pop("nodeid"): row for row in rows}


class Results:
    """In the child process, write the result of each case when the case has ended."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._path = Path(os.environ[VARIABLE])
        self._phases: dict[str, list[pytest.TestReport]] = {}
        threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record the result of one phase (set-up, call or teardown) of a case."""
        phases = self._phases.setdefault(report.nodeid, [])
        phases.append(report)
        if report.when == "teardown":
            del self._phases[report.nodeid]
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"nodeid": report.nodeid, **self._result(phases)}) + "\n")

    def _result(self, phases: Sequence[pytest.TestReport]) -> Alone:
        worst = min(phases, key=lambda phase: _WORST.index(phase.outcome))
        message = "" if worst.passed else message_of(worst)
        session = self._config.stash.get(SESSION, None)
        from codex_replay.core.redact.redactor import Redactor  # not needed where no case fails

        clean = session.trace_collector().clean if session is not None else Redactor().text
        return {
            "outcome": worst.outcome,
            "seconds": round(sum(phase.duration for phase in phases), 4),
            "message": shortened(clean(message), LONGEST_MESSAGE),
        }
