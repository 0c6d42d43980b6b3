"""Rerun selected cases in a separate pytest process, where each proxy process serves only one case (`is_alone`).

A few cases run one after another; more than `MOST` cases, and cases that waited long, run several at a time (`batches`).

The environment variable CODEX_REPLAY_ALONE names the file for the results of the child process. Each line of the file is
the JSON result of one case, without secrets.
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

from codex_replay.core.text.numbers import plural
from codex_replay.core.text.truncate import shortened
from codex_replay.plugin.base.progress import LAST_WORDS
from codex_replay.plugin.base.progress import VARIABLE as PROGRESS
from codex_replay.plugin.base.rerun_command import RerunCommand
from codex_replay.plugin.base.signals import end_with
from codex_replay.plugin.reporting.changes import Change, batches, headline, rerun
from codex_replay.plugin.reporting.message import message_of
from codex_replay.plugin.reporting.session import SESSION
from codex_replay.plugin.reporting.verdict import LONGEST_MESSAGE
from codex_replay.shell.process.subject import CannotStart, Process

if TYPE_CHECKING:
    import pytest

    from codex_replay.report.data import Alone

VARIABLE = "CODEX_REPLAY_ALONE"
_WORST = ("failed", "skipped", "passed")


def is_alone() -> bool:
    """Return True if this process reruns selected cases."""
    return VARIABLE in os.environ


def rerun_changes(session: pytest.Session, changes: Sequence[Change], update: bool) -> str:
    """Rerun the cases whose result differs from the baseline; return a sentence about the cases that were not rerun, or "".

    If the run writes the baseline (`update`), all changed cases are rerun.
    """
    config, verdict = session.config, session.config.stash[SESSION].verdict if SESSION in session.config.stash else None
    workers = getattr(config.option, "numprocesses", None) or 0

    def duration(nodeid: str) -> float:
        case = verdict.case_of(nodeid) if verdict is not None else None
        return case["seconds"] if case is not None else 0.0

    def run(nodeids: list[str]) -> dict[str, Alone]:
        found: dict[str, Alone] = {}
        for chosen, at_a_time in batches(nodeids, duration, workers):
            found |= run_alone(config, chosen, at_a_time)
        return found

    out = config.pluginmanager.get_plugin("terminalreporter")
    if out is not None:
        out.ensure_newline()
        out.write_line("")
        how = [
            f"{plural(len(chosen), 'case')} {f'{at_a_time} at a time' if at_a_time else 'one after another'}"
            for chosen, at_a_time in batches([change.nodeid for change in changes], duration, workers)
        ]
        out.write_line(f"{headline(changes)}: rerunning with new processes: {', '.join(how)}.")

    watcher = config.pluginmanager.get_plugin("codex-replay-progress")
    if watcher is not None:
        watcher.report_on(rerunning=len(changes))

    try:
        # The fast cases first: the reruns of a broken subject then end early.
        rerun(sorted(changes, key=lambda change: duration(change.nodeid)), run, every=update)
    except CannotStart as error:
        return f"The changes were not rerun: {error}"
    left = sum(not change.alone for change in changes)
    more = "1 more changed case was" if left == 1 else f"{left} more changed cases were"
    return f"{more} not rerun, because the verdict is already red." if left else ""


def run_alone(config: pytest.Config, nodeids: Iterable[str], workers: int = 0) -> dict[str, Alone]:
    """Rerun the cases `nodeids`: one after another in this order, or in `workers` workers of pytest-xdist.

    Return the results by node id, without the cases that did not end. If this process is interrupted, it ends the child
    process. Raises `CannotStart` if pytest cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="codex-replay-alone-") as made:
        folder = Path(made)
        results = folder / "results.ndjson"
        words = RerunCommand(config, folder).in_process(nodeids, workers)
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
