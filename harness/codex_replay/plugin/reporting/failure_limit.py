"""At the terminal, print only the first failure of each check in full, and count the other failures.

For example, a proxy with a wrong profile fails eight hundred cases, and each failure quotes forty frames. Nobody can read
eight megabytes of failures, and a CI system truncates so long an output. The report contains the details of all failures,
even of those that are not printed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from codex_replay.core.text.numbers import plural

if TYPE_CHECKING:
    from collections.abc import Generator

    from codex_replay.plugin.reporting.session import Session

#: The maximum number of failures that are always printed in full.
WHOLE = 25
#: The same, of a run that stopped early: most of its failures have one cause.
WHOLE_OF_ONE_CAUSE = 3
_KINDS = ("error", "failed")


class FailureLimit:
    """A pytest plugin that removes failures from pytest's list before pytest prints them in full."""

    def __init__(self, config: pytest.Config, session: Session) -> None:
        self._verdict = session.verdict
        self._limit = WHOLE
        self._kept_back: dict[str, list[Any]] = {}
        self._told: set[str] = set()
        self._more: dict[str, int] = {}
        config.pluginmanager.register(_Between(self), "codex-replay-failure-limit-between")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None, object, object]:
        """Before anything is printed, choose the failures to print in full; with -v, choose all failures."""
        stats = terminalreporter.stats
        checks = [check for kind in _KINDS for report in stats.get(kind, ()) if (check := self._check(report)) is not None]
        if self._verdict.stopped_early:
            self._limit = WHOLE_OF_ONE_CAUSE
        if terminalreporter.verbosity <= 0 and len(checks) > self._limit:
            self._kept_back = {kind: stats[kind] for kind in _KINDS if kind in stats}
            for kind, reports in self._kept_back.items():
                stats[kind] = [report for report in reports if self._whole(self._check(report))]
        return (yield)

    def _check(self, report: Any) -> str | None:
        """Return the check that a report of pytest belongs to, or None if the report belongs to no case of a suite."""
        case = self._verdict.case_of(getattr(report, "nodeid", ""))
        if case is None:
            return None
        return case["spec"]["check"] if case["spec"] is not None else case["id"]

    def _whole(self, check: str | None) -> bool:
        if check is None:  # no case of ours: whoever has other tests in this run looks for them here
            return True
        if check not in self._told and len(self._told) < self._limit:
            self._told.add(check)
            return True
        self._more[check] = self._more.get(check, 0) + 1
        return False

    def between(self, out: pytest.TerminalReporter) -> None:
        """Put the hidden failures back into pytest's list for the short summary, and print their number."""
        out.stats.update(self._kept_back)
        if not self._more:
            return
        out.section(f"{plural(sum(self._more.values()), 'failure')} more")
        for check, number in sorted(self._more.items()):
            out.write_line(f"{number:5}  {check}" + (", as above" if check in self._told else ""))
        out.write_line("The report shows these failures in full, each with the command that reruns it.")


class _Between:
    """A plugin with a hook that runs after pytest has printed the failures, and before pytest prints its short summary."""

    def __init__(self, limit: FailureLimit) -> None:
        self._limit = limit

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        self._limit.between(terminalreporter)
