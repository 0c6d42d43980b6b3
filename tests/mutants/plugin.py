"""The run of the mutants: record every case of the suites once, then judge every mutant on the recordings.

`python -m pytest suites/proxy -p tests.mutants.plugin` (or `make mutants`, all suites) loads this plugin. The first pass runs the
cases on the honest subjects as ever, and keeps what they sent. Then forks judge the mutants, `--mutants-jobs` at a time. Each
verdict is one line of the progress file, so that a run that was ended goes on where it was. The file begins anew when a source of
the suites, of the subjects or of the mutants has changed.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.answers import answer_mutants
from tests.mutants.calls import call_mutants
from tests.mutants.clients import EditorAdapter, LiteAdapter
from tests.mutants.fakes import AppServerAdapter, BackendAdapter
from tests.mutants.judge import Judge
from tests.mutants.messages import Adapter, Conversations, message_mutants
from tests.mutants.recording import Recording, record
from tests.mutants.sites import Mutant
from tests.mutants.table import Row, load

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("suites", "harness/codex_replay/reference", "harness/codex_replay/plugin", "fake_server", "tests/mutants")
ADAPTERS: tuple[Adapter, ...] = (LiteAdapter(), EditorAdapter(), BackendAdapter(), AppServerAdapter())
#: Progress is printed after so many mutants of one fork.
STEP = 250


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("codex-replay")
    text = "Only the mutants of such an id; repeatable."
    group.addoption("--mutants", metavar="PATTERN", action="append", default=[], help=text)
    text = "Only so many of each subject, chosen by --mutants-seed."
    group.addoption("--mutants-sample", metavar="N", type=int, default=0, help=text)
    group.addoption("--mutants-seed", metavar="N", type=int, default=0, help="The seed of the sample.")
    group.addoption("--mutants-jobs", metavar="N", type=int, default=2, help="How many forks judge at a time. Default: 2.")
    group.addoption("--mutants-report", metavar="FILE", default="reports/mutants.json", help="Where the result is written.")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Take the run over."""
    config.pluginmanager.register(Run(config), "codex-replay-mutants-run")


class Run:
    """One measurement, in place of the run of the cases."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.current = ""
        self.found: dict[str, Any] | None = None

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Collect no traces: there is no report of the cases."""
        from codex_replay.plugin.reporting.session import SESSION

        session.config.stash[SESSION].tells = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Record all cases, then judge all mutants."""
        recordings = self._record(session)
        judge = Judge(session.items, recordings)
        patterns = [Row(pattern, "") for pattern in self._option("mutants")]
        chosen = [one for one in mutants(recordings) if not patterns or any(row.fits(one.id) for row in patterns)]
        total = len(chosen)
        if sample := self._option("mutants_sample"):
            chosen = sampled(chosen, sample, random.Random(self._option("mutants_seed")))
        self._write_out(
            f"{judge.count} cases are replayed ({len(judge.left_out)} need the process itself); {len(chosen)} of {total} mutants."
        )
        verdicts = self._judge(judge, chosen)
        self.found = found = result(chosen, verdicts, total)
        path = Path(self._option("mutants_report"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**found, "left_out": judge.left_out}, indent=1) + "\n", encoding="utf-8")
        session.testsfailed += len(found["survivors"]) + len(self._stale)
        return True

    @property
    def _stale(self) -> list[str]:
        """The rows of the table that allow nothing; known only if every mutant was judged."""
        some = self._option("mutants") or self._option("mutants_sample")
        return [] if some or self.found is None else list(self.found["stale"])

    def _option(self, name: str) -> Any:
        return self._config.getoption(name)

    def _write_out(self, text: str) -> None:
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None:
            reporter.write_line(text)

    def _record(self, session: pytest.Session) -> dict[str, Any]:
        from _pytest.runner import runtestprotocol

        recordings: dict[str, Any] = {}

        def kept(adapter: Adapter) -> Callable[[], list[Any]]:
            return lambda: recordings.setdefault(self.current, Conversations(adapter)).found

        ends = [record(recordings, lambda: self.current), *(adapter.record(kept(adapter)) for adapter in ADAPTERS)]
        try:
            for item in session.items:
                self.current = item.nodeid
                for report in runtestprotocol(item, log=False, nextitem=session):  # type: ignore[arg-type]
                    if report.failed:
                        session.testsfailed += 1
                        self._write_out(f"RED ON THE HONEST SUBJECT  {item.nodeid}: {report.longreprtext[-300:]}")
        finally:
            for end in ends:
                end()
            session._setupstate.teardown_exact(None)
        return recordings

    # -- judging in forks --------------------------------------------------------------------------------------------------

    def _judge(self, judge: Judge, chosen: list[Mutant]) -> dict[str, Any]:
        path = Path(self._option("mutants_report")).with_suffix(".progress")
        path.parent.mkdir(parents=True, exist_ok=True)
        head = fingerprint()
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        verdicts: dict[str, Any] = {}
        if lines[:1] == [head]:
            verdicts = dict(json.loads(line) for line in lines[1:] if line.endswith("]"))
        else:
            path.write_text(head + "\n", encoding="utf-8")
        waiting = [one for one in chosen if one.id not in verdicts]
        jobs = self._option("mutants_jobs")
        children = []
        for job in range(jobs):
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    self._work(judge, waiting[job::jobs], path)
                    status = 0
                finally:
                    os._exit(status)
            children.append(pid)
        for pid in children:
            if os.waitpid(pid, 0)[1]:
                raise pytest.UsageError("A fork that judges mutants has failed; its error stands above.")
        return dict(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[1:])

    def _work(self, judge: Judge, mine: list[Mutant], path: Path) -> None:
        with open(path, "ab", buffering=0) as file:  # each line is one write, so that the forks' lines do not mix
            begun = time.monotonic()
            for count, mutant in enumerate(mine, 1):
                killed = judge.kill(mutant)
                file.write(json.dumps([mutant.id, killed]).encode() + b"\n")
                if count % STEP == 0:
                    self._write_out(f"{count} of {len(mine)} mutants of this fork, {time.monotonic() - begun:.0f} s")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the figures, the survivors in sentences, and the rows of the table that allow nothing."""
        if self.found is None:
            return
        found = self.found
        terminalreporter.section("mutants")
        for subject, count in found["subjects"].items():
            figures = "  ".join(f"{count[key]:6} {key}" for key in ("mutants", "killed", "allowed", "open"))
            terminalreporter.write_line(f"{subject:<14} {figures}")
        for one in found["survivors"]:
            terminalreporter.write_line(f"NO CHECK IS RED if {one}")
        for pattern in self._stale:
            terminalreporter.write_line(f"THE TABLE allows {pattern}, and no mutant that survives fits it: remove the row")
        terminalreporter.write_line(
            f"{found['killed']} of {found['mutants']} mutants killed, {found['allowed']} allowed, {len(found['survivors'])} open."
        )


def mutants(recordings: dict[str, Any]) -> list[Mutant]:
    """Return all mutants, each once, in a fixed order."""
    found: dict[str, Mutant] = {}
    proxies = [one for one in recordings.values() if isinstance(one, Recording)]
    others = [one for one in recordings.values() if isinstance(one, Conversations)]
    made: list[Iterable[Mutant]] = [call_mutants(proxies), answer_mutants(proxies)]
    made += [message_mutants(adapter, [one for one in others if one.adapter is adapter]) for adapter in ADAPTERS]
    for one in itertools.chain(*made):
        found.setdefault(one.id, one)
    return list(found.values())


def sampled(chosen: list[Mutant], size: int, rnd: random.Random) -> list[Mutant]:
    """Return at most `size` mutants of each subject."""
    subjects: dict[str, list[Mutant]] = {}
    for one in chosen:
        subjects.setdefault(one.subject, []).append(one)
    return [one for each in subjects.values() for one in rnd.sample(each, min(size, len(each)))]


def result(chosen: list[Mutant], verdicts: dict[str, Any], total: int) -> dict[str, Any]:
    """Return the figures: killed, allowed by the table, open; by subject; and which check killed which."""
    rows = load()
    used: Counter[str] = Counter()
    subjects: dict[str, Counter[str]] = {}
    kills: dict[str, list[str]] = {}
    survivors = []
    for one in chosen:
        killed = verdicts[one.id]
        if killed == 0:  # it is the honest proxy in all cases that can be replayed
            continue
        count = subjects.setdefault(one.subject, Counter(mutants=0, killed=0, allowed=0, open=0))
        count["mutants"] += 1
        if isinstance(killed, list):
            count["killed"] += 1
            kills.setdefault(killed[0], []).append(one.id)
        elif row := next((row for row in rows if row.fits(one.id)), None):
            count["allowed"] += 1
            used[row.pattern] += 1
        else:
            count["open"] += 1
            survivors.append(one.id)
    whole = {key: sum(count[key] for count in subjects.values()) for key in ("mutants", "killed", "allowed")}
    return {
        **whole,
        "of": total,
        "subjects": {name: dict(count) for name, count in subjects.items()},
        "survivors": survivors,
        "stale": [row.pattern for row in rows if not used[row.pattern]],
        "allowed_by": dict(used),
        "kills": {check: kills[check] for check in sorted(kills)},
    }


def fingerprint() -> str:
    """Return what the verdicts depend on: the sources, in one hash."""
    found = hashlib.sha256()
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path.name != "test_mutants.py":
                found.update(path.read_bytes())
    return found.hexdigest()
