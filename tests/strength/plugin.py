"""Measure the suite for proxies: run its checks on broken proxies, each with one small mistake.

`python -m pytest suites/proxy -p tests.strength.plugin` (or `make strength`) loads this plugin, which takes the run over. Each
variant is a program, `python -m tests.strength.proxy_variants NAME`. One table names for each variant its mistake and the checks
that must find it. The table chooses what runs, never the verdict: a variant is killed if a case of one of its checks is red on
it and green on the honest proxy in the same run, and if the variant started and did not crash. A check that kills no variant is
idle. The cases run as with `--proxy COMMAND` (docs/strength.md).
"""

from __future__ import annotations

import json
import sys
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import pytest

from codex_replay.plugin.base.options import settings_of
from codex_replay.plugin.reporting.session import SESSION
from tests.strength.fork import PROXY, Job, Told, run_jobs
from tests.strength.proxy_variants import command
from tests.strength.proxy_variants.table import TABLE, Row
from tests.strength.report import Result, Strength, lines

if TYPE_CHECKING:
    from collections.abc import Iterable

HONEST = "codex_replay.reference.proxy"
BOTH = "both"
#: How long one variant may take, in seconds, and how many run at a time.
SECONDS, JOBS = 120.0, 2
#: Settings that a measurement decides itself, with their usual values.
_USUAL = {
    "proxy": (None, "reference"),
    "app_server": ("fake",),
    "profile": ("default",),
    "baseline": (None,),
    "record": ("none",),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("codex-replay")
    group.addoption("--variants", metavar="GLOB", default=None, help="Only the variants of these names.")
    text = f"How many variants run at a time. Default: -n, else {JOBS}."
    group.addoption("--strength-jobs", metavar="N", type=int, default=None, help=text)
    text = f"How long one variant may take. Default: {SECONDS:g}."
    group.addoption("--variant-seconds", metavar="SECONDS", type=float, default=SECONDS, help=text)
    group.addoption("--strength-report", metavar="FILE", default=None, help="Write the result to this file, as JSON.")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Check the options, and take the run over. The variants are what runs side by side: `-n` counts them."""
    settings = settings_of(config)
    for key, usual in _USUAL.items():
        if getattr(settings, key) not in usual:
            raise pytest.UsageError(
                f"A measurement has its own proxies, on the fake and in all profiles: leave out --{key.replace('_', '-')}."
            )
    jobs = int(config.getoption("--strength-jobs") or getattr(config.option, "numprocesses", None) or JOBS)
    if jobs < 1:
        raise pytest.UsageError(f"--strength-jobs {jobs}: give a number of variants.")
    if hasattr(config.option, "numprocesses"):
        config.option.numprocesses, config.option.dist, config.option.tx = 0, "no", []
    config.pluginmanager.register(Measure(config, jobs), "codex-replay-strength-run")


class Measure:
    """One measurement, in place of the run of the cases."""

    def __init__(self, config: pytest.Config, jobs: int) -> None:
        self._config, self._jobs = config, jobs
        self.found: Strength | None = None
        self._deselected = 0

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Count the cases that were left out (-k, -m, --deselect): without them nothing is complete."""
        self._deselected += len(items)

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Collect no traces: there is no report of the cases."""
        session.config.stash[SESSION].tells = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the variants against the collected checks."""
        if session.config.option.collectonly:
            return True
        checks = by_check(session.items)
        rows = self._rows(set(checks))
        self._report_on(collected=len(rows))
        self.found = found = Strength(sorted(_looked_at(rows, checks, bool(self._config.getoption("--variants")))))
        found.complete = self._complete(rows, set(checks))
        seconds = float(self._config.getoption("--variant-seconds"))

        def ended(job: Job, told: list[Told], why: str | None, took: float) -> None:
            row = next(row for row in rows if row.name == job.name)
            result = Result(row.name, row.wrong, row.checks, told, why, took)
            found.results.append(result)
            self._write_out(found, result, len(rows))

        run_jobs(session, [variant_job(row, checks, seconds) for row in rows], self._jobs, ended)
        again = {result.name for result in found.results if result.incomplete}
        if again:  # a port that another program took, a machine that was too busy: whoever is really broken is so twice
            self._tell_again(again)
            found.results = [result for result in found.results if result.name not in again]
            run_jobs(session, [variant_job(row, checks, seconds) for row in rows if row.name in again], self._jobs, ended)
        honest: list[Told] = []
        broken: list[str] = []

        def agreed(job: Job, told: list[Told], why: str | None, took: float) -> None:
            honest.extend(told)
            if why:
                broken.append(why)

        run_jobs(session, honest_jobs(found.red_cases(), session.items, self._jobs), self._jobs, agreed)
        found.settle({(one.case, one.profile) for one in honest if one.outcome == "green"}, broken)
        session.testsfailed = len(found.survivors) + len(found.idle) + len(found.broken)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Keep the proxy of a case for the verdict."""
        if call.when == "call":
            item.stash[PROXY] = getattr(item, "funcargs", {}).get("proxy")

    def _rows(self, checks: set[str]) -> list[Row]:
        if not checks:
            raise pytest.UsageError("A measurement needs cases of the suite for proxies; none was selected.")
        pattern = self._config.getoption("--variants")
        rows = [row for row in TABLE if pattern is None or fnmatchcase(row.name, pattern)]
        if not rows:
            raise pytest.UsageError(
                f"--variants {pattern}: there is no such variant; tests/strength/proxy_variants/table.txt has them."
            )
        rows = [row for row in rows if checks & set(row.checks)]
        if not rows:
            raise pytest.UsageError("None of the selected checks belongs to these variants.")
        return rows

    def _complete(self, rows: list[Row], checks: set[str]) -> bool:
        """Whether every variant is tried, and by all cases of all checks that must see it."""
        some = self._deselected or any("::" in arg for arg in self._config.args)
        return not some and len(rows) == len(TABLE) and all(checks >= set(row.checks) for row in rows)

    def _write_out(self, found: Strength, result: Result, of: int) -> None:
        killers = result.killers
        self._report_on(case=f"suites/proxy/{result.name}", outcome="passed" if killers else "failed")
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if reporter is None:
            return
        reporter.stats.setdefault("killed" if killers else "not killed", []).append(result)
        if self._config.option.verbose >= 0:
            said = f"killed by {', '.join(killers)}" if killers else f"NOT KILLED: {result.reason}"
            reporter.write_line(f"[{len(found.results):3}/{of}] {result.name}: {said} ({result.seconds:.1f} s)")

    def _tell_again(self, names: set[str]) -> None:
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None:
            reporter.write_line(f"once more, because they did not run to their end: {', '.join(sorted(names))}")
            for stat in ("killed", "not killed"):
                reporter.stats[stat] = [result for result in reporter.stats.get(stat, []) if result.name not in names]

    def _report_on(self, **said: Any) -> None:
        progress = self._config.pluginmanager.getplugin("codex-replay-progress")
        if progress is not None:
            progress.report_on(**said)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Write the result where it was asked for, and, of a measurement of everything, beside the other reports."""
        if self.found is None or not self.found.settled:
            return
        paths = (
            [self._config.stash[SESSION].report_folder / "strength.json"]
            if SESSION in self._config.stash and self.found.complete
            else []
        )
        if asked := self._config.getoption("--strength-report"):
            paths.append(self._config.invocation_params.dir / asked)
        for path in paths:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(self.found.report(), indent=1) + "\n", encoding="utf-8")
            except OSError as error:
                raise pytest.UsageError(f"{path}: the result cannot be written ({error.strerror}).") from None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print which check kills which, who was not killed, and what kills nothing."""
        if self.found is None or not self.found.settled:
            return
        terminalreporter.section("strength")
        for line in lines(self.found):
            terminalreporter.write_line(line)
        terminalreporter.write_line(
            self.found.sentence(), bold=True, green=not self.found.problems, red=bool(self.found.problems)
        )


def by_check(items: Iterable[pytest.Item]) -> dict[str, list[pytest.Item]]:
    """Return the cases of the suite for proxies by the id of their check."""
    found: dict[str, list[pytest.Item]] = {}
    for item in items:
        mark = item.get_closest_marker("spec")
        if mark is not None and "proxy" in getattr(item, "fixturenames", ()):
            found.setdefault(mark.args[0], []).append(item)
    return found


def _looked_at(rows: list[Row], checks: dict[str, list[pytest.Item]], some: bool) -> set[str]:
    """The checks that are measured: all that were collected, but when only some variants are tried."""
    return {check for row in rows for check in row.checks if check in checks} if some else set(checks)


def in_order(cases: list[pytest.Item], row: Row, check: str) -> list[pytest.Item]:
    """The cases of a check that hold for the variant's profile, those first that its row names."""
    globs = [name[len(check) + 1 : -1] for name in row.hit_by if name.startswith(f"{check}[")]
    fit = [case for case in cases if row.profile == BOTH or _holds(case, row.profile)]
    return sorted(fit, key=lambda case: not any(fnmatchcase(_parameters(case), glob) for glob in globs))


def _holds(case: pytest.Item, profile: str) -> bool:
    mark = case.get_closest_marker("proxy_profile")
    return mark is not None and profile in mark.args


def _parameters(case: pytest.Item) -> str:
    callspec = getattr(case, "callspec", None)
    return "" if callspec is None else str(callspec.id)


def variant_job(row: Row, checks: dict[str, list[pytest.Item]], seconds: float) -> Job:
    """A variant: all its checks, each to its first red case; when none is red, all other checks until one is."""
    named = [(check, in_order(checks[check], row, check)) for check in row.checks if check in checks]
    others = [(check, in_order(cases, row, check)) for check, cases in checks.items() if check not in row.checks]
    return Job(row.name, command(row.name), _profile(row), named, others, seconds)


def _profile(row: Row) -> str | None:
    return None if row.profile == BOTH else row.profile


def honest_jobs(cases: set[tuple[str, str | None]], items: list[pytest.Item], shares: int) -> list[Job]:
    """The cases that were red on some variant, on the honest proxy: every one of them, whatever the others say."""
    jobs = []
    for profile in sorted({profile for _, profile in cases}, key=str):
        wanted = [item for item in items if (item.nodeid, profile) in cases]
        size = -(-len(wanted) // shares)
        for at in range(0, len(wanted), size):
            named = [(item.nodeid, [item]) for item in wanted[at : at + size]]
            jobs.append(Job("the honest proxy", [sys.executable, "-P", "-m", HONEST], profile, named, [], 600.0))
    return jobs
