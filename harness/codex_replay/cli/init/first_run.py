"""Run a suite on a new proxy or client for the first time; the cases that fail become its baseline, the list of known failures.

The configuration for the first run is in a temporary folder, so that the project is not changed before all results are
known.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from codex_replay.cli.io.console import Unable, aside, progress
from codex_replay.cli.run.child import started, wait
from codex_replay.cli.run.parts import Part, default_jobs
from codex_replay.core.redact.sentence import sentence
from codex_replay.core.text.numbers import plural
from codex_replay.plugin.base.configuration import SUITE_OF, read
from codex_replay.plugin.base.option_table import KEYS
from codex_replay.plugin.base.places import PACKAGED, installed_suites
from codex_replay.plugin.base.progress import BY_INIT, VARIABLE


@dataclass(frozen=True, slots=True)
class FirstRun:
    """The result of the first run of a suite in `init`.

    `baseline` is the text of the baseline (the list of known failures), or None if the run stopped early. `causes` are
    sentences that explain the failures, and `steps` are the next steps that the report recommends.
    """

    verdict: str
    cases: int
    passed: int
    failed: int
    skipped: int
    baseline: str | None
    entries: int
    report: Path
    causes: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)


def first_run(role: str, table: str, file: str, profile: str | None, report: Path) -> FirstRun:
    """Run the suite of a role on the program that `table` configures.

    `table` is the text of the configuration table that `init` will write to `file`. Raises `Unable` if pytest could not run the
    suite.
    """
    suite = SUITE_OF[role]
    with tempfile.TemporaryDirectory(prefix="codex-replay-init-") as made:
        folder = Path(made)
        (folder / file).write_text(table, encoding="utf-8")
        known = folder / "known.yaml"
        jobs = default_jobs(Part((suite,)), {}, read(folder, KEYS))
        words = [sys.executable, "-P", "-m", "pytest", str(installed_suites() / suite), "-c", str(PACKAGED), "--rootdir", made]
        words += ["-q", "-n", str(jobs), f"--report={report}", f"--baseline={known}", "--update-baseline"]
        words += [f"--profile={profile}"] if profile else []
        status, printed = _run(words, suite)
        try:
            found = json.loads((report / "report.json").read_bytes())
        except (OSError, ValueError):
            found = {}
        if status not in (0, 1) or not found:
            raise Unable(f"The suite {suite} could not run (status {status}): {_kept(printed, report)}")
        baseline = None if found.get("stopped_early") or not known.exists() else known.read_text(encoding="utf-8")
    passed, failed, skipped = (
        sum(case["outcome"] == outcome for case in found["cases"]) for outcome in ("passed", "failed", "skipped")
    )
    entries = 0 if baseline is None else sum(line.startswith(("- check:", "- checks:")) for line in baseline.splitlines())
    from codex_replay.report.group_failures import sentences

    causes, steps = sentences(found["cases"]), list(found.get("next", []))
    return FirstRun(found["verdict"], len(found["cases"]), passed, failed, skipped, baseline, entries, report, causes, steps)


def _kept(printed: bytes, report: Path) -> str:
    """Return the last line of pytest's output, and the path of the whole output: a traceback does not fit in a message."""
    text = sentence(printed.decode("utf-8", "replace")).strip()
    if not text:
        return "it printed nothing"
    report.mkdir(parents=True, exist_ok=True)
    file = report / "pytest.txt"
    file.write_text(text + "\n", encoding="utf-8")
    return f"{text.splitlines()[-1]}\nThe whole output of pytest is in {file}."


def complete_report(folder: Path, steps: list[str], command: str) -> None:
    """Write the next steps of `init`, and the command for a new run, into the report of the first run.

    The command of the first run itself cannot be repeated, because its temporary configuration no longer exists. Raises `OSError`
    if the report cannot be written.
    """
    from codex_replay.report.data import read_report
    from codex_replay.report.files import rewrite

    report = read_report(folder)
    report["command"], report["next"] = command, steps
    rewrite(folder, report)


def _run(words: list[str], suite: str) -> tuple[int, bytes]:
    """Run pytest, and print the number of finished cases on stderr; return pytest's exit status and output."""
    read, write = os.pipe()
    with tempfile.TemporaryFile() as printed:
        environment = {**os.environ, VARIABLE: str(write), BY_INIT: "1"}
        with started(words, env=environment, stdout=printed, stderr=subprocess.STDOUT, pass_fds=(write,)) as child:
            os.close(write)
            with open(read, encoding="utf-8") as events:
                _count(events, suite)
            status = wait(child)
        if status in (2, 130, 143):
            raise SystemExit(status)
        printed.seek(0)
        return status, printed.read()


def _count(events: Iterable[str], suite: str) -> None:
    with progress(f"running the suite {suite}, case") as shown:
        for line in events:
            event = json.loads(line)
            if "collected" in event:
                shown.expect(event["collected"])
            elif "case" in event:
                shown.step()
            elif "rerunning" in event:
                shown.clear()
                aside(f"rerunning {plural(event['rerunning'], 'failed case')}, each for as long as the full time limit")
