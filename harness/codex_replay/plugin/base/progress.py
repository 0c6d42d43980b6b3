"""Report the progress of a run to another process: one JSON object per line, on the file descriptor in CODEX_REPLAY_PROGRESS.

The first line is `{"collected": N}`; each finished test adds a line such as `{"case": "suite/module/case", "outcome": "passed"}`.
Before changed cases are rerun, a line `{"rerunning": N}` has their number.
`codex-replay run` reads the lines with the progress.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

VARIABLE = "CODEX_REPLAY_PROGRESS"
#: Set by `codex-replay run`, whose last lines are the verdict and the report: below pytest's own closing line.
LAST_WORDS = "CODEX_REPLAY_LAST_WORDS"
#: Set by `codex-replay init` for its run of the suite: `init` has its own next steps for the list of known failures.
BY_INIT = "CODEX_REPLAY_BY_INIT"


class Progress:
    """A pytest plugin that reports the progress of the run.

    Only the main process of a run registers the plugin, because the main process gets the reports of all workers.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._failed: set[str] = set()

    def report_on(self, **said: object) -> None:
        """Write one JSON object as a line to the file descriptor."""
        with contextlib.suppress(OSError):  # the reader has closed it
            os.write(self._descriptor, json.dumps(said).encode() + b"\n")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Report the number of tests (without pytest-xdist)."""
        if session.items:
            self.report_on(collected=len(session.items))

    def pytest_xdist_node_collection_finished(self, node: object, ids: list[str]) -> None:
        """Report the number of tests (with pytest-xdist)."""
        self.report_on(collected=len(ids))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Report the result of a test, once."""
        if report.failed:
            self._failed.add(report.nodeid)
        if report.when == "teardown":
            outcome = "failed" if report.nodeid in self._failed else "passed"
            self.report_on(case=report.nodeid, outcome=outcome)
