"""`--baseline FILE`: the checks that are known to fail, so that a gate is red only when something changes.

    - check: message-limit            # the id of a check, one case of it (id[parameter]), suite/module/case, or a glob (* and ?)
      reason: the limit is not passed on yet
    - check: tool-calls-*
      reason: depends on the load of the machine
      flaky: true                     # may pass as well as fail

A listed failure passes (as pytest's xfail). A listed check that passes, all cases of its line, is stale and fails the run, for a
baseline that only grows hides what it should show. A line that matches no check that was collected is a usage error, unless
modules or cases were named: a part of the suites may have the list of all.
`--update-baseline` writes the file again from what fails: reasons of lines that stay are kept.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from codex_replay.core.text.plural import plural
from codex_replay.plugin.base.options import settings_of
from codex_replay.plugin.base.shard import shard_of
from codex_replay.plugin.reporting.session import SESSION

if TYPE_CHECKING:
    from collections.abc import Generator

PROPERTY = "codex-replay-baseline"
UNEXPLAINED = "failed when --update-baseline was run; add a reason"
_KEYS = ("check", "reason", "flaky")
#: How many checks a sentence names.
_LISTED = 5
#: The key under which a worker of pytest-xdist reports to the controller why nothing may run.
REFUSED = "codex_replay_refused"


class BadBaseline(ValueError):
    """The file cannot be used; the text is a sentence."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a baseline."""

    check: str
    reason: str
    flaky: bool = False

    def matches(self, names: Iterable[str]) -> bool:
        """Whether the line means the case that has these names."""
        pattern = "".join({"*": ".*", "?": "."}.get(c, re.escape(c)) for c in self.check)
        return any(re.fullmatch(pattern, name) for name in names)


def parse(text: str, where: str) -> list[Line]:
    """Read a baseline; raises `BadBaseline`."""
    try:
        rows = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadBaseline(f"{where} is not YAML: {str(error).splitlines()[0]}.") from None
    if rows is None:
        return []
    if not isinstance(rows, list):
        raise BadBaseline(f"{where} must be a list of lines, each with check and reason.")
    return [_line(row, f"{where}, line {i}") for i, row in enumerate(rows, 1)]


def _line(row: Any, where: str) -> Line:
    if not isinstance(row, Mapping):
        raise BadBaseline(f"{where}: it must be an object with check and reason.")
    if unknown := [key for key in row if key not in _KEYS]:
        raise BadBaseline(f"{where}: unknown key {unknown[0]!r}; the keys are {', '.join(_KEYS)}.")
    for key in ("check", "reason"):
        if not isinstance(row.get(key), str) or not row[key].strip():
            raise BadBaseline(f"{where}: it has no {key}.")
    if not isinstance(row.get("flaky", False), bool):
        raise BadBaseline(f"{where}: flaky must be true or false.")
    return Line(row["check"].strip(), row["reason"].strip(), row.get("flaky", False))


def _some(checks: list[str]) -> str:
    """Return the names of checks for a sentence: a few, and how many more there are."""
    listed = ", ".join(map(repr, checks[:_LISTED]))
    return listed if len(checks) <= _LISTED else f"{listed} and {len(checks) - _LISTED} more"


def _a_part(config: pytest.Config) -> bool:
    """Whether modules or cases were asked for by name, and not folders alone: then lines are of what does not run here."""
    return any(word.partition("::")[0].endswith(".py") for word in config.args)


def names_of(item: pytest.Item) -> list[str]:
    """Return the names by which a baseline may call a case, the shortest first."""
    from codex_replay.plugin.base.naming import case_name

    found = []
    mark = item.get_closest_marker("spec")
    callspec = getattr(item, "callspec", None)
    if mark is not None:
        found.append(mark.args[0])
        if callspec is not None:
            found.append(f"{mark.args[0]}[{callspec.id}]")
    name = case_name(item, item.config.rootpath)
    return [*found, f"{name.suite}/{name.module}/{name.case}"]


def refuse(config: pytest.Config, items: list[pytest.Item], sentence: str) -> None:
    """End the run as a usage error before its first case; a worker of pytest-xdist runs nothing, the controller reports the
    error."""
    output = getattr(config, "workeroutput", None)
    if output is None:
        raise pytest.UsageError(sentence)
    output.setdefault(REFUSED, sentence)
    items.clear()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """End the run as a worker would have ended it."""
    found = getattr(node, "workeroutput", {}).get(REFUSED)
    if found:
        raise pytest.UsageError(found)


def pytest_configure(config: pytest.Config) -> None:
    """Read the baseline before anything is collected."""
    path, update = settings_of(config).baseline, bool(config.getoption("update_baseline"))
    if update and shard_of(config) is not None:
        raise pytest.UsageError("--update-baseline needs every case: remove --shard.")
    if path is None:
        if update:
            raise pytest.UsageError("--update-baseline: name the file with --baseline FILE.")
        return
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        if not update or not isinstance(error, FileNotFoundError):
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            make = "; --update-baseline creates it from the failures" if isinstance(error, FileNotFoundError) else ""
            raise pytest.UsageError(f"--baseline {path}: it cannot be read ({why}){make}.") from None
        text = ""
    try:
        lines = parse(text, str(path))
    except BadBaseline as error:
        raise pytest.UsageError(f"--baseline: {error}") from None
    unexplained = [line.check for line in lines if line.reason == UNEXPLAINED]
    if unexplained and not update:
        raise pytest.UsageError(
            f"--baseline {path}: {_some(unexplained)} has no reason yet; write it in place of {UNEXPLAINED!r}."
        )
    config.pluginmanager.register(Gate(path, lines, update, shard_of(config) is not None), "codex-replay-baseline-gate")


class Gate:
    """Apply a baseline to a run. With pytest-xdist the workers apply it to their cases, and the controller to all of them."""

    def __init__(self, path: Path, lines: list[Line], update: bool, sharded: bool = False) -> None:
        self.path, self.lines, self.update, self._sharded = path, lines, update, sharded
        self._of: dict[str, list[int]] = {}
        self._names: dict[str, list[str]] = {}
        self._totals: Counter[int] = Counter()  # how many cases each line means, those of other shards included
        #: For each case of the run that has a verdict: whether it failed, its names and its lines.
        self.seen: dict[str, tuple[bool, list[str], list[int]]] = {}
        self.stale: list[str] = []
        self.written = self.unexplained = 0
        self.stopped = False  # the run stopped early

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Find the lines of every case, those that are deselected later included."""
        for item in items:
            names = self._names[item.nodeid] = names_of(item)
            self._of[item.nodeid] = [i for i, line in enumerate(self.lines) if line.matches(names)]
        self._totals = Counter(i for found in self._of.values() for i in found)
        used = set(self._totals)
        unmatched = [line.check for i, line in enumerate(self.lines) if i not in used]
        if unmatched and not self.update and not _a_part(config):
            refuse(config, items, self._complaint(unmatched))

    def _complaint(self, unmatched: list[str]) -> str:
        return f"--baseline {self.path}: this run has no check {_some(unmatched)}; remove the line, or run the suite that has it."

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Let a listed failure pass; fail a listed check of one case that passes."""
        report = yield
        mine = self._of.get(item.nodeid, [])
        if report.when == "teardown" or (report.when == "setup" and report.passed) or report.skipped:
            return report
        failed = report.failed
        totals = [[i, self._totals[i]] for i in mine]
        report.user_properties.append((PROPERTY, [failed, self._names[item.nodeid], mine, totals]))
        if not mine or self.update:
            return report
        lines = [self.lines[i] for i in mine]
        if failed:
            report.outcome = "skipped"
            report.wasxfail = f"known: {lines[0].reason}"
        elif single := [line for line in lines if not line.flaky and self._alone(line)]:
            report.outcome = "failed"
            report.longrepr = f"Stale: {single[0].check!r} passes now; remove its line from {self.path}."
        return report

    def _alone(self, line: Line) -> bool:
        number = self.lines.index(line)
        return sum(number in found for found in self._of.values()) == 1

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the verdicts, in the process that ends the run."""
        for name, value in report.user_properties:
            if name == PROPERTY and isinstance(value, list):
                self.seen[report.nodeid] = (bool(value[0]), list(value[1]), list(value[2]))
                self._totals |= Counter({int(number): int(total) for number, total in value[3]})

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Judge the lines that mean many cases, or write the file."""
        if hasattr(session.config, "workerinput"):
            return
        if exitstatus == pytest.ExitCode.USAGE_ERROR:
            return
        if self.update:
            self.stopped = SESSION in session.config.stash and session.config.stash[SESSION].verdict.stopped_early
            if not self.stopped:
                self._write()
        else:
            self.stale = [line.check for i, line in enumerate(self.lines) if not line.flaky and self._passes(i)]
            if self.stale and exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _passes(self, number: int) -> bool:
        verdicts = [failed for failed, _, lines in self.seen.values() if number in lines]
        if self._sharded and len(verdicts) < self._totals.get(number, 0):
            return False  # other shards have the other cases of this line
        return bool(verdicts) and not any(verdicts)

    def _write(self) -> None:
        failed = [(names, lines) for bad, names, lines in self.seen.values() if bad]
        kept = [
            line
            for i, line in enumerate(self.lines)
            if line.flaky or any(i in lines for _, lines in failed) or not any(i in lines for _, _, lines in self.seen.values())
        ]
        passing = {name for bad, names, _ in self.seen.values() if not bad for name in names}
        new = {self._name(names, passing) for names, _ in failed if not any(line.matches(names) for line in kept)}
        rows = [{"check": line.check, "reason": line.reason, **({"flaky": True} if line.flaky else {})} for line in kept]
        rows += [{"check": check, "reason": UNEXPLAINED} for check in sorted(new)]
        text = yaml.safe_dump(rows, sort_keys=False, allow_unicode=True, width=130) if rows else "[]\n"
        self.path.write_text(text, encoding="utf-8")
        self.written, self.unexplained = len(rows), sum(row["reason"] == UNEXPLAINED for row in rows)

    @staticmethod
    def _name(names: list[str], passing: set[str]) -> str:
        """The shortest name that means no case that passes."""
        return next((name for name in names if name not in passing), names[-1])

    @pytest.hookimpl(wrapper=True, tryfirst=True, specname="pytest_terminal_summary")
    def pytest_terminal_summary_first(self, terminalreporter: pytest.TerminalReporter) -> Generator[None, object, object]:
        """Leave known failures out of pytest's own list, unless -v asks for them: `baseline` counts them in one line."""
        stats = terminalreporter.stats
        everything = stats.get("xfailed", [])
        if terminalreporter.verbosity <= 0 and everything:
            stats["xfailed"] = [each for each in everything if PROPERTY not in dict(each.user_properties)]
        try:
            return (yield)
        finally:
            if everything:
                stats["xfailed"] = everything

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
        """Report the results of the baseline."""
        out = terminalreporter
        if exitstatus == pytest.ExitCode.USAGE_ERROR:
            return
        out.section("baseline")
        if self.stopped:
            out.write_line(f"{self.path} was not updated: the run stopped early. Add --no-early-stop to update it.", red=True)
        elif self.update:
            out.write_line(f"{self.path} has {plural(self.written, 'line')} now.")
            if self.unexplained:
                out.write_line(
                    f"{plural(self.unexplained, 'line')} still need a reason in place of {UNEXPLAINED!r}; the gate refuses that "
                    f"text."
                )
        else:
            known = sum(failed and bool(lines) for failed, _, lines in self.seen.values())
            out.write_line(f"{plural(known, 'known failure')}, {plural(len(self.stale), 'stale line')} of {len(self.lines)}.")
            for check in self.stale:
                out.write_line(f"stale: {check!r} passes now; remove its line from {self.path}.", red=True)
