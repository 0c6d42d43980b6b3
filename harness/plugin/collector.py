"""Collects what the cases of a run came to, in the process that ends the run: verdict, coverage, report."""

from __future__ import annotations

import os
import re
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.plugin.naming import name_of_node
from harness.plugin.progress import LAST_WORDS, Progress
from harness.plugin.session import PROPERTY, STORIES, Session

if TYPE_CHECKING:
    from collections.abc import Generator

#: What Python writes before the text of an exception of the harness's own.
_OWN = re.compile(r"\Aharness(?:\.\w+)+: ")


class Collector:
    """Collects the verdict in the process that prints it (the controller, when pytest-xdist distributes)."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.run: pytest.Session | None = None
        self._last: str | None = None  # where the report is, until it is said
        self._waits = os.environ.pop(LAST_WORDS, "") != ""  # not for the runs that this one's cases may start

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker of pytest-xdist where stories go."""
        if self.session.tells:
            node.workerinput[STORIES] = str(self.session.need_spool().folder)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A module of a suite that cannot be collected is a failure: its cases have not been verified."""
        path = Path(report.nodeid.partition("::")[0])
        if report.failed and "suites" in path.parts[:-1]:
            said = asdict(name_of_node(f"{path}::(collection)", self.session.root))
            clean = self.session.taker().clean
            self.session.hold()
            self.session.verdict.add(report.nodeid, said, "failed", 0.0, clean(_message(report)), clean(report.longreprtext))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take in one phase of a case."""
        verdict = self.session.verdict
        said = dict(report.user_properties).get(PROPERTY)
        if not isinstance(said, dict):
            if not report.failed or (verdict.case_of(report.nodeid) is None and "suites" not in report.nodeid.split("/")[:-1]):
                return
            said = asdict(name_of_node(report.nodeid, self.session.root))  # a worker died in it
        if report.outcome not in ("passed", "failed", "skipped"):
            return  # another plugin runs it again
        self.session.hold()
        known = getattr(report, "wasxfail", None) if report.skipped else None
        outcome = report.outcome if known is None else "known"
        if report.passed:
            verdict.add(report.nodeid, said, "passed", report.duration)
        else:
            clean = self.session.taker().clean
            message = (known or "").removeprefix("known: ") or _message(report)
            verdict.add(report.nodeid, said, outcome, report.duration, clean(message), clean(_details(report)))
        if said.get("shown"):
            self.session.coverage().add("{suite}/{module}/{case}".format(**said), said["shown"])

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """A run of cases of which none was verified is not green."""
        self.run = session
        verdict = self.session.verdict
        verdict.seconds = time.monotonic() - self.session.started
        verdict.interrupted = exitstatus in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR)
        verdict.stale = getattr(session.config.pluginmanager.get_plugin("codex-replay-baseline-gate"), "stale", [])
        if verdict.cases and verdict.word == "nothing verified" and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None, object, object]:
        """Print the verdict table and say where the report is, below all that pytest and other plugins have to say."""
        result = yield
        verdict = self.session.verdict
        if not verdict.cases:
            return result
        out = terminalreporter
        out.section("codex-replay")
        for line in verdict.table():
            out.write_line(line)
        if verdict.count("failed"):
            from harness.report.alike import sentences

            for i, line in enumerate(sentences(verdict.cases.values())):
                out.write_line(line if i else f"What several failed cases say:\n{line}")
        for line in verdict.coverage.table() if verdict.coverage is not None else ():
            out.write_line(line)
        for path in sorted(path for case in verdict.cases.values() for path in case["recorded"]):
            out.write_line(f"recorded {path}")
        self._last = self._write(out)
        if not self._waits:
            self._end(out)
        return result

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Under `codex-replay run`, end with the verdict and the report, below pytest's own closing line."""
        out = config.pluginmanager.get_plugin("terminalreporter")
        if out is None:
            return
        self._end(out)
        chose_none = self.run is not None and self.run.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED
        if self._waits and chose_none and not self.session.verdict.cases and self.session.tells:
            out.write_line("NOTHING VERIFIED: no case was chosen.", bold=True, red=True)

    def _end(self, out: pytest.TerminalReporter) -> None:
        if self._last is not None:
            good = self.session.verdict.word == "verified"
            out.write_line(self.session.verdict.sentence(), bold=True, green=good, red=not good)
            out.write_line(self._last)
            self._last = None

    def _write(self, out: pytest.TerminalReporter) -> str:
        """Write the report and return where it is, or why it is not."""
        from harness.plugin.report import Reporter

        folder = self.session.report_folder
        try:
            path, *others = Reporter(out.config, folder, self.session.began).write(self.session.verdict, self.session.spool)
        except OSError as error:
            run = self.run
            if self.session.settings.report is not None and run is not None and run.exitstatus == pytest.ExitCode.OK:
                run.exitstatus = pytest.ExitCode.TESTS_FAILED  # it was asked for, and whoever waits for it must hear of it
            return f"The report cannot be written to {folder} ({error.strerror}); give --report DIR."
        out.write_line(f"Beside the report: {', '.join(sorted(each.name for each in others))}")
        progress = out.config.pluginmanager.get_plugin("codex-replay-progress")
        if isinstance(progress, Progress):
            progress.tell(report=str(path), verdict=self.session.verdict.word)
        instead = f" (another run holds {self.session.instead_of})" if self.session.instead_of is not None else ""
        return f"Report: {path}{instead}"


def _details(report: pytest.TestReport) -> str:
    return "\n".join([report.longreprtext, *(f"--- {name}\n{content}" for name, content in report.sections)])


def _message(report: pytest.TestReport | pytest.CollectReport) -> str:
    if report.outcome == "skipped" and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    crash = getattr(report.longrepr, "reprcrash", None)
    said = str(crash.message) if crash is not None else ("" if report.longrepr is None else str(report.longrepr))
    return _OWN.sub("", said, count=1)  # our own failures are sentences, and begin with what went wrong
