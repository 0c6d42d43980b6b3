"""The option `--baseline FILE`: a list of the checks that are known to fail.

A listed failure does not fail the run, like an `xfail` of pytest. If all cases of a listed check pass, the line is stale
and fails the run, because stale lines would hide later failures. A line that matches no collected check is a usage error,
except in a run of named modules or cases. The module `baseline_file` describes the format of a baseline.

Before the run fails, each case whose result differs from the baseline is rerun (see `alone`). If a new failure passes when
it is rerun, the case is reported as racy and does not fail the run. If a new failure fails again, the run fails. The cases
of a line with the mark racy may pass or fail. A racy case that fails is rerun several times, depending on its failure rate,
and must pass once. `--update-baseline` reruns each new failure, and writes all failures of the run to FILE, with one entry
for each cause and the reasons that FILE already has.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from codex_replay.core.text.numbers import plural
from codex_replay.plugin.base.options import settings_of
from codex_replay.plugin.base.progress import BY_INIT
from codex_replay.plugin.base.shard import shard_of
from codex_replay.plugin.reporting.alone import Results, is_alone, rerun_changes
from codex_replay.plugin.reporting.baseline_file import UNEXPLAINED, BadBaseline, Line, parse, render
from codex_replay.plugin.reporting.changes import ONCE, Change, new_lines, plan, results
from codex_replay.plugin.reporting.message import message_of
from codex_replay.plugin.reporting.selection import a_part, looked_at, selected
from codex_replay.plugin.reporting.session import SESSION, UNCLAIMED
from codex_replay.report.next_steps import STALE

if TYPE_CHECKING:
    from collections.abc import Generator

PROPERTY = "codex-replay-baseline"
#: The same of a case that was skipped; whether its subject lacks a capability is known once the report is complete.
SKIPPED = "codex-replay-baseline-skipped"
#: How many checks a sentence names.
_LISTED = 5
_STOPPED_EARLY = "the run stopped early. Add --no-early-stop to update the baseline."
#: Why a run of this exit status does not update the baseline: cases that did not run might fail, too.
_NOT_ALL_RAN: dict[int, str] = {
    pytest.ExitCode.INTERRUPTED: "the run was interrupted.",
    pytest.ExitCode.INTERNAL_ERROR: "pytest had an internal error.",
}
#: The key under which a worker of pytest-xdist reports to the controller why nothing may run.
REFUSED = "codex_replay_refused"


def _some(checks: list[str]) -> str:
    """Return a list of checks for a sentence: the names of the first few checks, and the number of the others."""
    listed = ", ".join(map(repr, checks[:_LISTED]))
    return listed if len(checks) <= _LISTED else f"{listed} and {len(checks) - _LISTED} more"


def _checks_in_entries(lines: list[Line]) -> str:
    """Return the number of checks, and of the entries of the file that list them."""
    entries = len({line.entry for line in lines})
    return f"{plural(len(lines), 'check')} in {'1 entry' if entries == 1 else f'{entries} entries'}"


def names_of(item: pytest.Item) -> list[str]:
    """Return the names that a baseline may use for a case, the shortest name first."""
    from codex_replay.plugin.base.naming import case_name, check_names

    name = case_name(item, item.config.rootpath)
    return [*check_names(item), f"{name.suite}/{name.module}/{name.case}"]


def refuse(config: pytest.Config, items: list[pytest.Item], sentence: str) -> None:
    """End the run with a usage error before its first case.

    A worker of pytest-xdist only stops without running cases: the controller reports the error.
    """
    output = getattr(config, "workeroutput", None)
    if output is None:
        raise pytest.UsageError(sentence)
    output.setdefault(REFUSED, sentence)
    items.clear()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """End the run if a worker of pytest-xdist reports a usage error."""
    if found := getattr(node, "workeroutput", {}).get(REFUSED):
        raise pytest.UsageError(found)


def pytest_configure(config: pytest.Config) -> None:
    """Read the baseline file before pytest collects cases."""
    if is_alone() and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Results(config), "codex-replay-alone")
    path, update = settings_of(config).baseline, bool(config.getoption("update_baseline"))
    if update and shard_of(config) is not None:
        raise pytest.UsageError("--update-baseline needs every case: remove --shard.")
    if update and (path is None or str(path) == os.devnull):
        raise pytest.UsageError("--update-baseline: name the file with --baseline FILE.")
    if path is None:
        return
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        if not update or not isinstance(error, FileNotFoundError):
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            make = "; --update-baseline creates it from the failures" if isinstance(error, FileNotFoundError) else ""
            raise pytest.UsageError(f"--baseline {path}: the file cannot be read ({why}){make}.") from None
        text = ""
    try:
        lines = parse(text, str(path))
    except BadBaseline as error:
        raise pytest.UsageError(f"--baseline: {error}") from None
    unexplained = [line for line in lines if line.reason == UNEXPLAINED]
    if unexplained and not update and not selected(config):
        have = "has" if len(unexplained) == 1 else "have"
        checks = _some([line.check for line in unexplained])
        raise pytest.UsageError(
            f"--baseline {path}: {_checks_in_entries(unexplained)} {have} no reason yet: {checks}. Write each reason in place of "
            f"{UNEXPLAINED!r}. To see only the effect of a fix, run some cases with -k WORDS, or all cases without the list: "
            f"--baseline {os.devnull}."
        )
    gate = Gate(path, lines, update, selected(config), shard_of(config) is not None)
    config.pluginmanager.register(gate, "codex-replay-baseline-gate")


class Gate:
    """Apply a baseline to a run.

    With pytest-xdist, each worker applies the baseline to its cases, and the controller applies it to all cases.
    """

    def __init__(self, path: Path, lines: list[Line], update: bool, partial: bool = False, sharded: bool = False) -> None:
        """`partial` is True if the run has only selected cases; `sharded` is True if it has only the cases of a shard."""
        self.path, self.lines, self.update, self._partial, self._sharded = path, lines, update, partial or sharded, sharded
        self._of: dict[str, list[int]] = {}
        self._names: dict[str, list[str]] = {}
        self._totals: Counter[int] = Counter()  # how many cases each line means, those of other shards included
        #: For each case of the run that has a verdict: whether it failed, its names and its lines.
        self.seen: dict[str, tuple[bool, list[str], list[int]]] = {}
        self.stale: list[str] = []
        self.changes: list[Change] = []
        self.unchecked = ""  # why the changes were not run again
        self.unexplained = 0
        self.written: list[Line] = []
        self.listed = ("", 0)  # the file that --update-baseline wrote, and how many failed cases of the run it lists
        self.stopped = ""  # why the run does not update the baseline
        self.added: list[str] = []  # the checks that --update-baseline listed anew
        self.dropped = 0  # the entries whose cases all need a capability that the subject lacks
        self._skipped: Counter[int] = Counter()  # how many cases of each line were skipped for that
        self._messages: dict[str, str] = {}
        self._failed: dict[str, list[pytest.TestReport]] = {}  # the reports of each case that count as failures, or as known

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Record every case of a module, even if the user selected only a few: a baseline line may match the unselected cases."""
        report = yield
        for item in report.result:
            if isinstance(item, pytest.Function):
                self._note(item)
        return report

    def _note(self, item: pytest.Item) -> None:
        names = self._names[item.nodeid] = names_of(item)
        self._of[item.nodeid] = [i for i, line in enumerate(self.lines) if line.matches(names)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Find the baseline lines for every case, even for cases that are deselected later."""
        for item in items:
            self._note(item)
        self._totals = Counter(i for found in self._of.values() for i in found)
        used = set(self._totals)
        unmatched = [line.check for i, line in enumerate(self.lines) if i not in used]
        if unmatched and not self.update and not a_part(config):
            advice = "remove the line, or run the suite that has the check"
            refuse(config, items, f"--baseline {self.path}: this run has no check {_some(unmatched)}; {advice}.")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Let a failure pass if the baseline lists it; fail a passed case that is the only one of its baseline line."""
        report = yield
        mine = self._of.get(item.nodeid, [])
        if mine and report.skipped:
            report.user_properties.append((SKIPPED, [[i, self._totals[i]] for i in mine]))
        if report.when == "teardown" or (report.when == "setup" and report.passed) or report.skipped:
            return report
        failed = report.failed
        totals = [[i, self._totals[i]] for i in mine]
        report.user_properties.append((PROPERTY, [failed, self._names[item.nodeid], mine, totals]))
        if not mine or self.update:
            return report
        if failed:
            report.outcome = "skipped"
            report.wasxfail = f"known: {self.lines[mine[0]].reason}"
        elif single := [self.lines[i].check for i in mine if self.lines[i].racy is None and self._totals[i] == 1]:
            report.outcome = "failed"
            report.longrepr = f"{STALE}{self._passes_now(single[0])}"
        return report

    def _passes_now(self, check: str) -> str:
        """Return the sentence on a stale line, and what to do."""
        return f"{check!r} passes now; remove its line from {self.path}, or add --update-baseline."

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the result of each case, in the main process of the run."""
        for name, value in report.user_properties:
            if name == SKIPPED and isinstance(value, list) and UNCLAIMED in dict(report.user_properties):
                self._skipped.update(int(number) for number, _ in value)
                self._totals |= Counter({int(number): int(total) for number, total in value})
            if name == PROPERTY and isinstance(value, list):
                self.seen[report.nodeid] = (bool(value[0]), list(value[1]), list(value[2]))
                self._totals |= Counter({int(number): int(total) for number, total in value[3]})
                if report.failed or hasattr(report, "wasxfail"):
                    self._failed.setdefault(report.nodeid, []).append(report)
                    self._messages[report.nodeid] = message_of(report)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """After the last case, rerun the changed cases, before pytest and the other plugins read the exit status."""
        result = yield
        if not hasattr(session.config, "workerinput"):
            self.changes = plan(self.lines, self.seen, self._stale(), self.update)
            if self.changes:
                self.unchecked = rerun_changes(session, self.changes, self.update)
            if not self.update:
                self._judge(session)
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Compare the results of the run with the baseline; with `--update-baseline`, write the baseline instead."""
        if hasattr(session.config, "workerinput") or exitstatus == pytest.ExitCode.USAGE_ERROR:
            return
        if self.update:
            stopped = SESSION in session.config.stash and session.config.stash[SESSION].verdict.stopped_early
            self.stopped = _STOPPED_EARLY if stopped else _NOT_ALL_RAN.get(exitstatus, "")
            if not self.stopped:
                self.changes = self.changes or plan(self.lines, self.seen, (), True)  # the run may have ended before its loop did
                self._write(session.config)
                if SESSION in session.config.stash:
                    session.config.stash[SESSION].advisers.append(self._advice)
            return
        self.stale = [self.lines[i].check for i in self._stale() if i not in self._failed_again()]
        if self.stale and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _advice(self) -> list[str]:
        """Return the next steps of a run that wrote the baseline."""
        if BY_INIT in os.environ:
            return []
        many = "the new entry" if self.unexplained == 1 else f"each of the {self.unexplained} new entries"
        reasons = [f"Write a reason for {many} in {self.path}, in place of {UNEXPLAINED!r}."] if self.unexplained else []
        return [*reasons, "Run the gate: the same command without --update-baseline."]

    def _failed_again(self) -> set[int | None]:
        """Return the indexes of the lines whose cases all passed in the run, but one of them failed when it was rerun."""
        return {change.line for change in self.changes if change.kind == "stale" and not change.confirmed}

    def _stale(self) -> list[int]:
        return [i for i, line in enumerate(self.lines) if line.racy is None and self._passes(i)]

    def _judge(self, session: pytest.Session) -> None:
        """Set the final result of the rerun cases."""
        for change in self.changes:
            if not change.alone:
                continue
            worse, better = change.kind == "racy" and change.confirmed, change.kind != "racy" and not change.confirmed
            if worse:
                session.testsfailed += self._move(session, change, "xfailed", "failed")
            elif better:
                session.testsfailed -= self._move(session, change, "failed", "racy")
            if SESSION in session.config.stash:
                verdict = session.config.stash[SESSION].verdict
                verdict.run_again(change.nodeid, change.alone)
                if worse or better:
                    message, racy = change.sentence(self.path), change.check if better else None
                    verdict.judge_again(change.nodeid, "failed" if worse else "known", message, racy)

    def _move(self, session: pytest.Session, change: Change, old: str, new: str) -> int:
        """Move the reports of a case to another list of pytest's terminal reports; return the number of moved reports."""
        out = session.config.pluginmanager.get_plugin("terminalreporter")
        reports = self._failed.get(change.nodeid, [])
        for report in reports:
            report.outcome = "failed" if new == "failed" else "passed"
            if hasattr(report, "wasxfail"):
                del report.wasxfail
            if out is not None and report in out.stats.get(old, []):
                out.stats[old].remove(report)
                out.stats.setdefault(new, []).append(report)
        return len(reports)

    def _passes(self, number: int) -> bool:
        verdicts = self._verdicts(number)
        return bool(verdicts) and not any(verdicts) and not self._elsewhere(number, len(verdicts))

    def _verdicts(self, number: int) -> list[bool]:
        return [failed for failed, _, lines in self.seen.values() if number in lines]

    def _passing_here(self) -> list[str]:
        """Return a sentence for each baseline line of which some cases passed in this run and others did not run."""
        found = []
        for number, line in enumerate(self.lines):
            verdicts = self._verdicts(number)
            rest = self._elsewhere(number, len(verdicts))
            if verdicts and not any(verdicts) and rest and line.racy is None and not self._sharded:
                passed = "1 case passes" if len(verdicts) == 1 else f"{len(verdicts)} cases pass"
                others = plural(rest, "other case")
                found.append(f"{line.check!r}: {passed} now, {others} did not run. If the others pass, too, the line is stale.")
        return found

    def _elsewhere(self, number: int, ran: int) -> int:
        """Return how many cases of a line did not run, because they are in another shard or were not selected."""
        return self._totals[number] - self._skipped[number] - ran if self._partial else 0

    def _write(self, config: pytest.Config) -> None:
        whole = not selected(config)
        lost = {i for i, many in self._skipped.items() if whole and many == self._totals[i]}
        kept = [line for i, line in enumerate(self.lines) if i not in lost and (line.racy is not None or not self._passes(i))]
        kept += [
            replace(line, racy=ONCE, entry=len(self.lines) + i) for i, line in enumerate(self.lines) if i in self._failed_again()
        ]
        self.dropped = len({self.lines[i].entry for i in lost} - {line.entry for line in kept})
        clean = config.stash[SESSION].trace_collector().clean if SESSION in config.stash else str
        messages = {change.nodeid: clean(self._messages.get(change.nodeid, "")) for change in self.changes}
        new = new_lines(self.changes, self.seen, messages, 1 + max((line.entry for line in kept), default=0))
        self.added = [line.check for line in new]
        self.written = [*kept, *new]
        self.path.write_text(render(self.written), encoding="utf-8")
        self.listed = (self.path.name, sum(failed for failed, _, _ in self.seen.values()))
        self.unexplained = len({line.entry for line in self.written if line.reason == UNEXPLAINED})

    @pytest.hookimpl(wrapper=True, tryfirst=True, specname="pytest_terminal_summary")
    def pytest_terminal_summary_first(self, terminalreporter: pytest.TerminalReporter) -> Generator[None, object, object]:
        """Without `-v`, omit known failures from pytest's list of failures; one line below the list counts the known failures."""
        stats = terminalreporter.stats
        everything = stats.get("xfailed", [])
        if terminalreporter.verbosity <= 0 and everything:
            stats["xfailed"] = [each for each in everything if PROPERTY not in dict(each.user_properties)]
        try:
            return (yield)
        finally:
            if everything:
                stats["xfailed"] = everything

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config) -> None:
        """Print how the results compare with the baseline, and the known failures of cases that the user named by node id."""
        out = terminalreporter
        if exitstatus == pytest.ExitCode.USAGE_ERROR:
            return
        if looked_at(config):
            for report in (each for reports in self._failed.values() for each in reports if hasattr(each, "wasxfail")):
                out.section(f"{report.nodeid} ({report.wasxfail})", "_")
                for name, content in (("", report.longreprtext), *report.sections):
                    if name:
                        out.section(name, "-")
                    out.write_line(content)
        out.section("baseline")
        if self.stopped:
            out.write_line(f"{self.path} was not updated: {self.stopped}", red=True)
        elif self.update:
            for line in self._written():
                out.write_line(line)
        else:
            known = sum(failed and bool(lines) for failed, _, lines in self.seen.values())
            above = " (shown above)" if known and looked_at(config) else ""
            file = f"{self.path.name} lists {_checks_in_entries(self.lines)}, {len(self.stale)} of them stale."
            out.write_line(f"{plural(known, 'known failure')}{above}. {file}")
            for sentence in self._passing_here():
                out.write_line(sentence)
            for check in self.stale:
                out.write_line(f"stale: {self._passes_now(check)}", red=True)
        if self.unchecked:
            out.write_line(self.unchecked, red=True)
        for sentence, same in results(self.changes, self.path, self.update):
            out.write_line(sentence, red=same, yellow=not same)

    def _written(self) -> list[str]:
        """Return the lines of a run that wrote the baseline."""
        lines = [f"{self.path} lists {_checks_in_entries(self.written)} now."]
        if self.added:
            lines.append(f"New in the baseline: {_some(self.added)}.")
        if self.dropped:
            many = "1 entry was" if self.dropped == 1 else f"{self.dropped} entries were"
            why = "every case was skipped, because the program under test does not declare a capability"
            lines.append(f"{many} dropped from the baseline: {why}.")
        if self.unexplained:
            many = "1 entry still needs" if self.unexplained == 1 else f"{self.unexplained} entries still need"
            where = f"write the reason in place of {UNEXPLAINED!r}, because a run with --baseline refuses that text"
            lines.append(f"{many} a reason: {where}.")
        return lines
