"""Which broken recording, or broken server, turns which case of the app-server suite red.

    python -m tests.miniatures.app_server_matrix    searches, and writes a pair for each case and each variant into
                                                    app_server_kills.json: those that take the least time

The frames' validation is switched off here, so that it is the case's own assertions that bite.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from codex_fakes import fake_codex
from codex_fakes.replaying import app_server as _replaying  # noqa: F401  (loaded before the first fork)
from codex_replay.core.cassette.frames import Frame
from codex_replay.plugin.base.subjects import parse_app_server
from codex_replay.plugin.reporting.session import SESSION
from codex_replay.shell.cassettes.file import CassetteReader, CassetteWriter
from codex_replay.shell.process import subject
from tests.miniatures.broken_cassettes import VARIANTS, Line
from tests.miniatures.mutant import FAKE
from tests.support.forked import fork
from tests.support.suite_run import NoTraces, forget, forked_pytest, load_all

#: For each variant its name, the cases to run (case -> node), and the settings that differ from those of the run.
Work = list[tuple[str, dict[str, str], dict[str, Any]]]
#: Variant -> the cases that failed, each with its seconds.
Red = dict[str, dict[str, float]]
ROOT = Path(__file__).parents[2]
MUTANT = ROOT / "tests" / "miniatures" / "mutant.py"
CASSETTES = ROOT / "cassettes"
KILLS = Path(__file__).with_name("app_server_kills.json")
SUITE = "suites/app_server"
# Broken servers cost a process more per case, so each is shown only to the cases that are about it.
ABOUT = {
    "other-ids": "test_handshake",
    "answers-twice": "test_handshake",
    "one-answer-an-id": "test_handshake",
    "answers-out-of-order": "test_v2.py::test_requests_in_one_write",
    "exit-status": "test_handshake.py::test_end_of_input",
    "unterminated-line-lost": "test_bad_input.py::test_unterminated",
    "survives-invalid-utf8": "test_bad_input.py::test_invalid_utf8",
    "answers-what-it-should-pass-over": "test_bad_input.py::test_silent",
}
# Broken recordings that one case above all is there to catch.
AIMED = {
    "carriage-returns": "test_handshake/every_line_ends_in_one_newline",
    "pretty-printed": "test_handshake/every_line_ends_in_one_newline",
    "jsonrpc-key": "test_handshake/the_shape_of_answers",
    "user-agent-without-client": "test_handshake/initialize",
    "user-agent-changes": "test_methods/user_agent",
    "config-warning-elsewhere": "test_config/a_file_that_is_wrong",
    "user-agent-in-snake-case": "test_handshake/initialize",
    "results-with-a-further-key": "test_handshake/initialize",
    "other-error-code": "test_errors/unknown_method",
    "other-error-words": "test_errors/unknown_method",
    "error-with-data": "test_errors/unknown_method",
    "errors-become-results": "test_errors/unknown_method",
    "usage-of-nothing": "test_v2/usage",
    "no-account-ratelimits-updated": "test_v2/usage",
    "no-thread-tokenusage-updated": "test_v2/usage",
    "no-token-count": "test_v2/usage",
    "no-mcp-startup-complete": "test_v2/mcp_startup_complete",
    "no-thread-started": "test_v2/thread_start",
    "no-exec-command-begin": "test_approvals/request",
    "no-exec-approval-request": "test_approvals/request",
    "no-exec-command-end": "test_v2/shell_call",
    "no-item-commandexecution-outputdelta": "test_v2/shell_call",
    "no-turn-aborted": "test_approvals/cancel",
    "v1-with-v2-notifications": "test_v1/user_turn",
    "events-without-a-listener": "test_v1/no_listener_no_events",
    "completes-the-open-turn": "test_v2/end_of_input_in_a_turn",
    "approval-asked-twice": "test_approvals/request",
    "approval-without-command": "test_approvals/request",
    "turn-ids-stand-still": "test_v2/two_turns",
    "other-model": "test_v2/thread_start",
    "other-working-directory": "test_v2/thread_start",
    "no-user-message": "test_v1/user_message",
    "another-login": "test_login/a_key_wins_over_tokens-chatgpt",
    "body-of-a-401": "test_login/a_401_that_remains-chatgpt",
    "no-turn-started": "test_v2/text_turn",
    "turn-before-its-response": "test_v2/the_response_comes_before_the_turn",
}


def run_pytest(*arguments: str) -> subprocess.CompletedProcess[str]:
    return forked_pytest(["-p", "no:xdist", *arguments])


@cache
def nodes() -> Mapping[str, str]:
    """Return case name (`test_v2/text_turn`) -> node id; asked of pytest once a process. The cases of later versions only are
    left out: no recording has them.
    """
    listed = run_pytest("--collect-only", SUITE, "-m", "not since").stdout
    found = {}
    for line in listed.splitlines():
        match = re.fullmatch(rf"{SUITE}/(?:\w+/)*(\w+)\.py::test_(\w+)(?:\[(.+)\])?", line)
        if match:
            module, name, parameters = match.groups()
            found[f"{module}/{name}" + (f"-{parameters}" if parameters else "")] = line
    return found


def read(path: Path) -> tuple[list[Line], CassetteReader]:
    with CassetteReader(path) as reader:
        # What passed on the other seam stays as it is: its place is kept by a line of nobody's.
        return [("", frame, b"") if frame.seam == "http" else (frame.sender, frame.value, frame.raw) for frame in reader], reader


def write(path: Path, lines: list[Line], like: CassetteReader) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with CassetteWriter(path, like.header) as writer:
        for sender, message, raw in lines:
            writer.write(Frame(0, 0.0, "rpc", sender, "msg", raw) if sender else message)


def break_cassettes(name: str, folder: Path, cases: Mapping[str, str]) -> list[str]:
    """Write the broken cassettes below `folder`; return the node ids of the cases that they belong to."""
    broken = []
    for case, node in cases.items():
        changed = False
        paths = sorted((CASSETTES / "app_server" / case).parent.glob(f"{Path(case).name}.ndjson"))
        paths += sorted((CASSETTES / "app_server" / case).parent.glob(f"{Path(case).name}.[0-9].ndjson"))
        for path in paths:
            lines, reader = read(path)
            others = VARIANTS[name](lines)
            changed |= [line[2] for line in others] != [line[2] for line in lines]
            write(folder / path.relative_to(CASSETTES), others, reader)
        if changed:
            broken.append(node)
    return broken


class Variants(NoTraces):
    """A plugin that runs the cases of all variants, each with the settings of its variant, in one run of pytest."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.red: Red | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Take down the seconds of each case that failed."""
        shared = session.config.stash[SESSION]
        given = shared.settings
        items = {item.nodeid: item for item in session.items}
        red: Red = {}
        for name, nodes, settings in self.work:
            shared.settings = replace(given, **settings)
            shared.subject = parse_app_server(shared.settings.app_server)
            for case, node in nodes.items():
                reports = runtestprotocol(items[node], log=False, nextitem=session)  # type: ignore[arg-type]
                if any(report.failed for report in reports):
                    red.setdefault(name, {})[case] = sum(report.duration for report in reports)
        session._setupstate.teardown_exact(None)
        self.red = red
        return True


def start(argv: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a program for the library; fake-codex, which this process has loaded, is forked."""
    if argv[0] != FAKE:
        return subprocess.Popen(argv, **options)
    return fork(partial(fake_codex.main, argv[1:]), options.pop("env"), **options)


def run_variants(folder: Path, work: Work) -> int:
    """Run pytest in this process, a fork; write what failed to red.json in `folder`."""
    forget("suites")  # a test may have loaded them with rewritten assertions
    os.environ.pop("PYTEST_XDIST_WORKER", None)  # of the run that this fork belongs to
    plugin = Variants(work)
    subject.subprocess = SimpleNamespace(**{**vars(subprocess), "Popen": start})  # type: ignore[attr-defined]
    options = ["-q", "--tb=no", "--assert=plain"]
    options += [
        "--basetemp",
        f"{folder}/tmp",
        "--report",
        f"{folder}/report",
        "--wait",
        "1",
        "--validate",
        "no",
        "--no-early-stop",
    ]
    # Not this run's warnings: a failing run leaves more behind than a passing one.
    options += [word for name in ("cacheprovider", "xdist", "unraisableexception") for word in ("-p", f"no:{name}")]
    pytest.main([*dict.fromkeys(node for _, nodes, _ in work for node in nodes.values()), *options], plugins=[plugin])
    if plugin.red is None:
        return 1
    (folder / "red.json").write_text(json.dumps(plugin.red))
    return 0


class Broken:
    """All variants and the cases that can see each: `seen_by` is variant -> {case: node}, `settings` what differs in its run."""

    def __init__(self, folder: Path, pairs: Mapping[str, list[str]] | None = None) -> None:
        """Write the broken cassettes below `folder`: all, or those of `pairs` (variant -> cases)."""
        self.folder = folder
        self.cases = nodes()
        self.seen_by: dict[str, dict[str, str]] = {}
        self.settings: dict[str, dict[str, Any]] = {}
        self.runs = 0
        for name in VARIANTS if pairs is None else [name for name in pairs if name in VARIANTS]:
            cassettes = folder / name / "cassettes"
            chosen = self.cases if pairs is None else {case: self.cases[case] for case in pairs[name]}
            broken = set(break_cassettes(name, cassettes, chosen))
            self.seen_by[name] = {case: node for case, node in chosen.items() if node in broken}
            self.settings[name] = {"cassettes": cassettes}
        for way, about in ABOUT.items():
            self.seen_by[way] = {case: node for case, node in self.cases.items() if about in node}
            self.settings[way] = {"app_server": f"fake:{sys.executable} -I -S {MUTANT} {way}"}

    def plan(self, most: int) -> dict[str, list[str]]:
        """Return variant -> cases: at most so many, those first that have been given to the fewest variants."""
        given = dict.fromkeys(self.cases, 0)
        plan = {}
        for name, seen_by in self.seen_by.items():
            chosen = sorted(seen_by, key=lambda case: (case != AIMED.get(name, "test_v2/text_turn"), given[case]))
            plan[name] = chosen if name in ABOUT else chosen[:most]
            for case in plan[name]:
                given[case] += 1
        return plan

    def run(self, plan: Mapping[str, list[str]], jobs: int = 1) -> Red:
        """Return variant -> the cases of the plan that it turns red, each with its seconds; `jobs` forks share the variants."""
        work = [(name, {case: self.seen_by[name][case] for case in cases}, self.settings[name]) for name, cases in plan.items()]
        load_all()
        children = []
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        for job in range(min(jobs, len(work))):
            self.runs += 1
            folder = self.folder / f"run-{self.runs}"
            folder.mkdir()
            children.append((folder, fork(partial(run_variants, folder, work[job::jobs]), cwd=ROOT, **pipes)))
        found: Red = {name: {} for name in plan}
        for folder, child in children:
            printed, _ = child.communicate()
            assert child.returncode == 0, printed.decode()
            found |= json.loads((folder / "red.json").read_text())
        return found


def table() -> dict[str, list[str]]:
    """The recorded pairs: variant -> cases that it turns red; every case and every variant is in one."""
    found: dict[str, list[str]] = json.loads(KILLS.read_text())
    return found


def share(pairs: Mapping[str, list[str]], number: int, of: int) -> dict[str, list[str]]:
    """Return one of `of` shares with equally many pairs; a variant with many pairs is in several."""
    listed = [(name, case) for name, cases in pairs.items() for case in cases]
    chosen: dict[str, list[str]] = {}
    for name, case in listed[len(listed) * number // of : len(listed) * (number + 1) // of]:
        chosen.setdefault(name, []).append(case)
    return chosen


def search(folder: Path) -> dict[str, dict[str, float]]:
    """Try each variant on a few cases, then more for the cases that are still green; return what turned red."""
    broken = Broken(folder)
    plan = broken.plan(3)
    found = broken.run(plan, jobs=3)
    tried = {(name, case) for name, cases in plan.items() for case in cases}
    while True:
        # The variants that have turned most cases red come first: they will most likely do it again.
        ranked = sorted(found, key=lambda name: -len(found[name]))
        plan = {name: [] for name in found}
        for case in broken.cases:
            if not any(case in cases for cases in found.values()):
                left = [name for name in ranked if case in broken.seen_by[name] and (name, case) not in tried]
                for name in left[:2]:
                    plan[name].append(case)
                    tried.add((name, case))
        plan = {name: cases for name, cases in plan.items() if cases}
        if not plan:
            return found
        for name, cases in broken.run(plan, jobs=3).items():
            found[name] |= cases


def cover(found: Mapping[str, Mapping[str, float]]) -> dict[str, list[str]]:
    """Choose the quickest pair for each case, and for each variant that is left."""
    chosen: dict[str, set[str]] = {}
    for case in {case for cases in found.values() for case in cases}:
        _, name = min((cases[case], name) for name, cases in found.items() if case in cases)
        chosen.setdefault(name, set()).add(case)
    for name, cases in found.items():
        if name not in chosen and cases:
            chosen[name] = {min(cases, key=lambda case: cases[case])}
    return {name: sorted(cases) for name, cases in sorted(chosen.items())}


def main() -> int:
    """Record the table."""
    with tempfile.TemporaryDirectory() as folder:
        chosen = cover(search(Path(folder)))
    KILLS.write_text(json.dumps(chosen, indent=1) + "\n")
    print(f"{len(chosen)} variants, {sum(map(len, chosen.values()))} pairs. Now run tests/plugin/app_server/test_checks_bite.py.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
