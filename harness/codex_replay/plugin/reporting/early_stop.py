"""Stop a run whose first cases all fail, most of them for one cause: a wrong proxy then fails in seconds and not in minutes.

A run stops early only if no case has worked so far. After a passed case, a known failure of the baseline, a stale line of the
baseline (its case passed), a test of the user's own or a dead worker, the run does not stop early. A passed case that expects
a failure does not count, because a subject that always fails passes such a case. A run also continues if fewer than
`FAILURES` cases are left. Some of the failures may have other causes: each worker begins in another part of the suite, where
the same mistake fails with another message.

The controller of pytest-xdist decides whether the run stops. Workers of pytest-xdist read no messages from the controller
between two cases. To stop the workers of pytest-xdist, the controller creates a stop file in the folder of the traces.
After each case, each worker checks whether the stop file exists.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from codex_replay.plugin.reporting.case_result import CaseResult
from codex_replay.plugin.reporting.message import message_of
from codex_replay.report.group_failures import cause
from codex_replay.report.next_steps import STALE

if TYPE_CHECKING:
    from pathlib import Path

    from codex_replay.plugin.reporting.session import Session

#: The number of failures of one cause that stops a run, if at most a third of all failures have other causes.
FAILURES = 20
#: A timeout counts as so many failures: a subject that hangs costs ten seconds per case.
WAITED = 4
_WAITED = re.compile(r"\bwithin [\d.]+ s\b")
#: The marker of a case that passes if the subject fails. With pytest-xdist, such cases may be among the first ones.
EXPECTS_FAILURE = "expects_failure"
#: The file that stops the workers.
STOP = "stop"


class EarlyStop:
    """A pytest plugin that watches the results of the first cases, in the main process of the run."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._run: pytest.Session | None = None
        self._watching = True
        self._weights: Counter[str] = Counter()
        self._failed: set[str] = set()

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Remember the pytest session, because the plugin can end the run only through the session."""
        self._run = session

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Count the collected cases in a run without pytest-xdist."""
        self._session.verdict.planned = len(session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: list[str]) -> None:
        """Count the collected cases in a run with pytest-xdist."""
        self._session.verdict.planned = len(ids)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record the result of one phase of a case; the first failure of a case counts."""
        if not self._watching or not self._session.tells:
            return
        result = CaseResult.of(report)
        if result is None or result.role is not None:
            self._watching = False
        elif report.failed:
            self._failure(report.nodeid, message_of(report))
        elif hasattr(report, "wasxfail") or (report.passed and report.when == "call" and EXPECTS_FAILURE not in report.keywords):
            self._watching = False

    def _failure(self, nodeid: str, message: str) -> None:
        if nodeid in self._failed:
            return
        self._failed.add(nodeid)
        if message.startswith(STALE) or not (found := cause(message)):
            self._watching = False
            return
        self._weights[found] += WAITED if _WAITED.search(message.partition("\n")[0]) else 1
        left = self._session.verdict.planned - len(self._failed)
        if max(self._weights.values()) >= max(FAILURES, self._weights.total() * 2 / 3) and left >= FAILURES:
            self._stop()

    def _stop(self) -> None:
        self._watching = False
        self._session.verdict.stopped_early = True
        text = f"stopped early: the first {len(self._failed)} cases failed, most of them for one cause"
        with contextlib.suppress(OSError):  # then the workers run what they have, and the verdict is the same
            (self._session.need_spool().folder / STOP).touch()
        distributed: Any = self._session.config.pluginmanager.get_plugin("dsession")
        if distributed is not None:
            distributed.shouldstop = text
        elif self._run is not None:
            self._run.shouldfail = text

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """End the run with the exit status of a failed run; otherwise pytest-xdist would exit like an interrupted run."""
        if self._session.verdict.stopped_early and session.exitstatus == pytest.ExitCode.INTERRUPTED:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


class WorkerStop:
    """A pytest plugin that ends a worker of pytest-xdist after its current case, once the stop file is in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / STOP
        self._run: pytest.Session | None = None

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Remember the pytest session, because the plugin can end the worker only through the session."""
        self._run = session

    def pytest_runtest_logfinish(self) -> None:
        """After each case, look for the stop file, which ends the run."""
        if self._run is not None and self._file.exists():
            self._run.shouldfail = "stopped early"
