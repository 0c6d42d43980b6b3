"""Run pytest, and run failed cases a second time only if `tests/racy.toml` lists them.

    python -m tests.gate [--racy FILE] PYTEST-ARGUMENT...

Real servers and browsers race. A case that was seen to race is listed with its reason. If only listed cases failed, exactly these
run once more. Everything else is red at once: a failed case that is not listed, a usage or internal error, a collection
error, a crashed worker, a killed run. The state of an earlier run (`.pytest_cache`) is never read. The last line counts cases:
`N passed, N failed`. The module is also the pytest plugin that writes what failed, and that selects the cases of the second run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import pytest

RACY = Path(__file__).with_name("racy.toml")
RESULTS, ONLY = "CODEX_REPLAY_GATE_RESULTS", "CODEX_REPLAY_GATE_ONLY"
KEYS = {"case", "races", "reason"}


class BadList(ValueError):
    """The list of racy cases is not valid."""


class Run(NamedTuple):
    """One run of pytest: its exit status, the ids of failed cases (None if it did not finish), and the counts by outcome."""

    status: int
    failed: list[str] | None
    counts: dict[str, int]


def read_racy(text: str) -> dict[str, str]:
    """Return glob of node ids -> reason. Raises `BadList`."""
    found = {}
    for entry in tomllib.loads(text).get("racy", []):
        if set(entry) != KEYS or not all(isinstance(value, str) and value.strip() for value in entry.values()):
            raise BadList(f"{RACY.name}: an entry needs the texts {', '.join(sorted(KEYS))}, not {entry}")
        if entry["races"] not in ("server", "browser"):
            raise BadList(f'{RACY.name}: races is "server" or "browser", not {entry["races"]!r}')
        if "::" not in entry["case"]:
            raise BadList(f"{RACY.name}: {entry['case']!r} must name a test function, not a whole module")
        found[entry["case"]] = entry["reason"]
    return found


def reason(case: str, racy: dict[str, str]) -> str | None:
    """Return why a case is listed as racy; None if it is not listed. `[` in a pattern is a plain character."""
    return next((why for pattern, why in racy.items() if fnmatchcase(case, pattern.replace("[", "[[]"))), None)


def run_pytest(arguments: list[str], only: list[str] | None = None) -> Run:
    """Run pytest in a process of its own, on all cases or on `only` these."""
    with tempfile.TemporaryDirectory() as folder:
        results, chosen = Path(folder, "results.json"), Path(folder, "only.json")
        env = {**os.environ, RESULTS: str(results)}
        if only is not None:
            chosen.write_text(json.dumps(only), encoding="utf-8")
            env[ONLY] = str(chosen)
        status = subprocess.run([sys.executable, "-m", "pytest", "-p", "tests.gate", *arguments], env=env, check=False).returncode
        if not results.exists():
            return Run(status, None, {})
        found = json.loads(results.read_text(encoding="utf-8"))
        return Run(status, found["failed"], found["counts"])


def main(arguments: list[str]) -> int:
    """Run pytest, and listed cases again; return 0, pytest's status, or 128 + the signal that killed it."""
    path = RACY
    if arguments[:1] == ["--racy"]:
        path, arguments = Path(arguments[1]), arguments[2:]
    try:
        racy = read_racy(path.read_text(encoding="utf-8"))
    except (BadList, tomllib.TOMLDecodeError) as error:
        print(f"gate: {error}")
        return 4
    first = run_pytest(arguments)
    if first.status == 0:
        return _end(0, first.counts, f"No case was run again ({len(racy)} listed as racy).")
    if first.status != 1 or first.failed is None:
        how = f"was killed by signal {-first.status}" if first.status < 0 else f"ended with status {first.status}"
        return _end(
            128 - first.status if first.status < 0 else first.status, first.counts, f"RED: pytest {how}; nothing runs again."
        )
    unlisted = [case for case in first.failed if reason(case, racy) is None]
    if unlisted or not first.failed:
        return _end(
            1, first.counts, f"RED: not listed as racy in {RACY.name}: {', '.join(unlisted) or 'what made the run fail'}."
        )
    print(f"\ngate: only racy cases failed; these run again: {', '.join(first.failed)}", flush=True)
    second = run_pytest(arguments, first.failed)
    ran = sum(second.counts.values())
    if second.status == 0 and ran != len(first.failed):
        return _end(1, first.counts, f"RED: {len(first.failed)} cases were to run again, {ran} did.")
    counts = dict(first.counts)
    if second.status == 0:
        counts["passed"] = counts.get("passed", 0) + ran
        counts["failed"] = counts["error"] = 0
    cases = "1 racy case was" if ran == 1 else f"{ran} racy cases were"
    said = "; ".join(f"{case} ({reason(case, racy)})" for case in first.failed)
    return _end(second.status if second.status >= 0 else 128 - second.status, counts, f"{cases} run again: {said}")


def _end(status: int, counts: dict[str, int], sentence: str) -> int:
    """Print the sentence and the closing line; return the status."""
    print(f"gate: {sentence}")
    failed = counts.get("failed", 0) + counts.get("error", 0)
    print(f"{counts.get('passed', 0)} passed, {failed} failed, {counts.get('skipped', 0)} skipped", flush=True)
    return status


# -- the plugin, in the run --------------------------------------------------------------------------------------------------


class _Results:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._failed: dict[str, None] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:  # a worker that crashed reports its case in a phase of its own: that is no race
            known = report.when in ("setup", "call", "teardown")
            self._failed[report.nodeid if known else f"a crash in {report.nodeid}"] = None

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._failed[f"the collection of {report.nodeid}"] = None

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        assert reporter is not None
        stats = reporter.stats
        counts = {kind: len(stats.get(kind, ())) for kind in ("passed", "failed", "error", "skipped", "xfailed", "xpassed")}
        self._path.write_text(json.dumps({"failed": sorted(self._failed), "counts": counts}), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Take down what fails, in the process that sees all reports."""
    path = os.environ.pop(RESULTS, None)  # not for the runs that the cases start
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Results(Path(path)), "codex-replay-gate")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select the cases that run again."""
    if path := os.environ.get(ONLY):
        only = set(json.loads(Path(path).read_text(encoding="utf-8")))
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in only])
        items[:] = [item for item in items if item.nodeid in only]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
