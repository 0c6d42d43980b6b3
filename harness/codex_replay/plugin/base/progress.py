"""Tells another process how a run goes: one JSON object a line, on the descriptor that CODEX_REPLAY_PROGRESS names.

`{"collected": N}` once, then `{"case": "suite/module/case", "outcome": "passed"}` for each finished test. What reads it is
`codex-replay run`.
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


class Progress:
    """The plugin that tells; registered in the process that sees all reports."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._failed: set[str] = set()

    def tell(self, **said: object) -> None:
        """Write one line of JSON."""
        with contextlib.suppress(OSError):  # nobody looks any more
            os.write(self._descriptor, json.dumps(said).encode() + b"\n")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Tell how many tests there will be (without pytest-xdist)."""
        if session.items:
            self.tell(collected=len(session.items))

    def pytest_xdist_node_collection_finished(self, node: object, ids: list[str]) -> None:
        """Tell how many tests there will be (with pytest-xdist)."""
        self.tell(collected=len(ids))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell how a test ended, once."""
        if report.failed:
            self._failed.add(report.nodeid)
        if report.when == "teardown":
            outcome = "failed" if report.nodeid in self._failed else "passed"
            self.tell(case=report.nodeid, outcome=outcome)
