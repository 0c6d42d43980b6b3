"""Collect the results of all cases in the main process of the run, for the verdict, the coverage and the report."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from codex_replay.plugin.base.naming import name_of_node
from codex_replay.plugin.base.progress import LAST_WORDS, Progress
from codex_replay.plugin.base.signals import Interrupts, block, unblock
from codex_replay.plugin.reporting.case_result import CaseResult
from codex_replay.plugin.reporting.message import message_of
from codex_replay.plugin.reporting.session import TRACES, UNCLAIMED, Session
from codex_replay.protocol.versions import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Generator

    from codex_replay.core.redact.redactor import Redactor


_INTERRUPTED = pytest.ExitCode.INTERRUPTED


class Collector:
    """A pytest plugin that collects the verdict, in the main process of the run (with pytest-xdist, the controller)."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.run: pytest.Session | None = None
        self._summarised = False
        self._redactor: Redactor | None = None  # of what pytest prints
        self._interrupted = False
        self._workers: list[int] = []
        self._signals = Interrupts()
        self._last: str | None = None  # where the report is, until it is printed
        self._answers = threading.current_thread() is threading.main_thread()
        self._next: list[str] = []  # what to do next, printed with it
        self._waits = os.environ.pop(LAST_WORDS, "") != ""  # not for the runs that this one's cases may start

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send the path of the folder for traces to a worker of pytest-xdist.

        Remember the process id of the worker, so that the controller can end the worker.
        """
        self._workers.append(node.gateway._rinfo().pid)
        if self.session.tells:
            node.workerinput[TRACES] = str(self.session.need_spool().folder)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """If pytest cannot collect a module of a suite, count a failure, because the cases of the module were not verified."""
        path = Path(report.nodeid.partition("::")[0])
        if report.failed and "suites" in path.parts[:-1]:
            result = CaseResult(name_of_node(f"{path}::(collection)", self.session.root))
            clean = self.session.trace_collector().clean
            self.session.lock_report_folder()
            self.session.verdict.add(report.nodeid, result, "failed", 0.0, clean(message_of(report)), clean(report.longreprtext))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """With `-v`, pytest prints the id of a case before the case has a result."""
        if "suites" in nodeid.split("/")[:-1]:
            self._guard()

    def _guard(self) -> None:
        """From now on, redact secrets and escape control characters in all output of pytest."""
        out = self.session.config.pluginmanager.get_plugin("terminalreporter")
        if out is not None and self._redactor is None:
            from codex_replay.plugin.reporting.terminal import guard  # with the redactor: the workers need no guard

            self._redactor = guard(out)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record the result of one phase (set-up, call or teardown) of a case."""
        verdict = self.session.verdict
        result = CaseResult.of(report)
        if result is None:
            if not report.failed or (verdict.case_of(report.nodeid) is None and "suites" not in report.nodeid.split("/")[:-1]):
                return
            result = CaseResult(name_of_node(report.nodeid, self.session.root))  # a worker died in it
        if result.role is None:
            self._guard()
        if report.outcome not in ("passed", "failed", "skipped"):
            return  # another plugin runs it again
        self.session.lock_report_folder()
        known = getattr(report, "wasxfail", None) if report.skipped else None
        outcome = report.outcome if known is None else "known"
        verdict.unclaimed += report.skipped and UNCLAIMED in dict(report.user_properties)
        if report.passed:
            verdict.add(report.nodeid, result, "passed", report.duration)
        else:
            clean = self.session.trace_collector().clean
            message = (known or "").removeprefix("known: ") or message_of(report)
            verdict.add(report.nodeid, result, outcome, report.duration, clean(message), clean(_details(report)))
        if report.when == "teardown":
            verdict.end(report.nodeid)
        if self._redactor is not None and report.failed:
            from codex_replay.plugin.reporting.terminal import clean_lines

            clean_lines(report, self._redactor)
        if result.shown:
            self.session.coverage().add(str(result.name), result.shown)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Remember the pytest session, which has the exit status of the run.

        Workers start with blocked signals, until they can handle signals.
        """
        self.run = session
        if self._answers:
            self._signals.install(self._waits)
            block()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Unblock the signals, because from now on pytest can end an interrupted run with a report."""
        if self._answers:
            unblock()

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Record the interrupt, because a second interrupt may come before pytest has set the exit status for the first
        interrupt.

        End the workers after an interrupt; after an early stop, pytest-xdist has already ended them.
        """
        excinfo.traceback = excinfo.traceback.filter(_has_line)
        if self.session.verdict.stopped_early and type(excinfo.value) is not KeyboardInterrupt:
            return
        self._interrupted = True
        for pid in self._workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    @property
    def _asked(self) -> bool:
        """Return True if `codex-replay run` or `--report` asked for a report, even for a run without cases."""
        return self._waits or self.session.settings.report is not None

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Make the run fail if cases ran and none of them passed."""
        verdict = self.session.verdict
        self._judge(exitstatus)
        if verdict.cases and verdict.word == "nothing verified" and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
        if self._signals.ended_by:
            session.exitstatus = 128 + self._signals.ended_by

    def _judge(self, exitstatus: int) -> None:
        verdict = self.session.verdict
        verdict.seconds = time.monotonic() - self.session.started
        ended = (pytest.ExitCode.INTERNAL_ERROR,) if verdict.stopped_early else (_INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR)
        if self._interrupted or exitstatus in ended:
            verdict.interrupt()
        gate = self.session.config.pluginmanager.get_plugin("codex-replay-baseline-gate")
        verdict.stale, verdict.listed = getattr(gate, "stale", []), getattr(gate, "listed", ("", 0))
        verdict.passed_again = {each.nodeid for each in getattr(gate, "changes", ()) if each.kind == "new" and not each.confirmed}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None, object, object]:
        """Print the summary below all other output of pytest and its plugins, even if a plugin fails."""
        try:
            return (yield)
        finally:
            self._summarise(terminalreporter)

    def _summarise(self, out: pytest.TerminalReporter) -> None:
        """Print the verdict table, write the report and print the path of the report; a second call does nothing."""
        verdict = self.session.verdict
        if self._summarised or not (verdict.cases or (verdict.interrupted and self._asked)):
            return
        self._summarised = True
        self.session.lock_report_folder()
        out.section("codex-replay")
        for line in verdict.table():
            out.write_line(line)
        from codex_replay.report.group_failures import sentences, skip_reasons

        failed = sentences(verdict.cases.values()) if verdict.count("failed") else []
        skipped = skip_reasons(verdict.cases.values()) if verdict.count("skipped") else []
        for title, lines in (("Most common failures", failed), ("Skipped", skipped)):
            for i, line in enumerate(lines):
                out.write_line(line if i else f"{title}:\n{line}")
        for line in verdict.coverage.table() if verdict.coverage is not None else ():
            out.write_line(line)
        for path in sorted(path for case in verdict.cases.values() for path in case["recorded"]):
            out.write_line(f"recorded {path}")
        self._last = self._write(out)
        if not self._waits:
            self._end(out)

    @pytest.hookimpl(tryfirst=True, specname="pytest_unconfigure")
    def pytest_unconfigure_first(self, config: pytest.Config) -> None:
        """Write the report if pytest could not print the summary, because a plugin or pytest itself failed at the end of the run.

        With pytest's option `-W error`, a warning of any plugin makes pytest fail at the end of a run.
        """
        out = config.pluginmanager.get_plugin("terminalreporter")
        if out is not None and not self._summarised and self.run is not None:
            self._judge(self.run.exitstatus)
            self._summarise(out)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """In `codex-replay run`, print the verdict and the path of the report last, below the closing line of pytest."""
        out = config.pluginmanager.get_plugin("terminalreporter")
        if out is None:
            return
        self._end(out)
        chose_none = self.run is not None and self.run.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED
        if self._waits and chose_none and not self.session.verdict.cases and self.session.tells:
            out.write_line("NOTHING VERIFIED: no case was selected.", bold=True, red=True)

    def _end(self, out: pytest.TerminalReporter) -> None:
        if self._last is not None:
            good = self.session.verdict.word == "verified"
            out.write_line(self.session.verdict.sentence(), bold=True, green=good, red=not good)
            if self.session.settings.validate and not self.session.verdict.validated:
                version = self.session.subject.version
                missing = "an unknown version" if version == "unknown" else version
                out.write_line(
                    f"No frame was validated: codex-replay has the schema bundle of Codex {DEFAULT}, not of {missing}."
                )
            for line in ["Do this next:", *(f"  {n}. {step}" for n, step in enumerate(self._next, 1))] if self._next else ():
                out.write_line(line)
            out.write_line(self._last)
            self._last = None

    def _write(self, out: pytest.TerminalReporter) -> str:
        """Write the report; return its path, or the reason why writing failed."""
        from codex_replay.plugin.reporting.report import Reporter

        folder = self.session.report_folder
        try:
            advice = [sentence for each in self.session.advisers for sentence in each()]
            more = {name: value for each in self.session.additions for name, value in each().items()}
            reporter = Reporter(out.config, folder, self.session.began, advice, more)
            path, *others = reporter.write(self.session.verdict, self.session.spool)
            self._next = reporter.next
        except OSError as error:
            run = self.run
            if self.session.settings.report is not None and run is not None and run.exitstatus == pytest.ExitCode.OK:
                run.exitstatus = pytest.ExitCode.TESTS_FAILED  # it was asked for, and whoever waits for it must hear of it
            return f"The report cannot be written to {folder} ({error.strerror}); give --report DIR."
        out.write_line(f"Also in the report folder: {', '.join(sorted(each.name for each in others))}")
        progress = out.config.pluginmanager.get_plugin("codex-replay-progress")
        if isinstance(progress, Progress):
            progress.report_on(report=str(path), verdict=self.session.verdict.word)
        instead = f" (another run uses {self.session.instead_of})" if self.session.instead_of is not None else ""
        return f"Report: {path}{instead}"


def _details(report: pytest.TestReport) -> str:
    return "\n".join([report.longreprtext, *(f"--- {name}\n{content}" for name, content in report.sections)])


def _has_line(entry: Any) -> bool:
    """Return False for a traceback entry without a line number: pytest cannot show such an entry, which a signal can cause."""
    try:
        return isinstance(entry.lineno, int)
    except TypeError:  # pytest subtracts 1 from the line
        return False
