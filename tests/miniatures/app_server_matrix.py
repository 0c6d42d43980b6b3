"""Every case of the app-server suite is turned red by a named broken recording or broken server; the table is printed.

The frames' validation is switched off here, so that it is the case's own assertions that bite; that the validation bites is a
test of its own.
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import re
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from harness.core.frames import Frame
from harness.shell.cassette import CassetteReader, CassetteWriter
from tests.miniatures.broken_cassettes import VARIANTS, Line
from tests.miniatures.mutant import WAYS

ROOT = Path(__file__).parents[1]
MUTANT = ROOT / "tests" / "miniatures" / "mutant.py"
CASSETTES = ROOT / "cassettes"
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
    "no-turn-started": "test_v2/text_turn",
    "turn-before-its-response": "test_v2/the_response_comes_before_the_turn",
}


def run_pytest(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


def nodes() -> dict[str, str]:
    """Return case name (`test_v2/text_turn`) -> node id."""
    listed = run_pytest("--collect-only", SUITE).stdout
    found = {}
    for line in listed.splitlines():
        match = re.fullmatch(rf"{SUITE}/(\w+)\.py::test_(\w+)(?:\[(.+)\])?", line)
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


def break_cassettes(name: str, folder: Path, cases: dict[str, str]) -> list[str]:
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


def failures(report: str, arguments: list[str]) -> list[str]:
    """Run pytest in this process, one of a pool; return the names of the cases that failed."""
    os.chdir(ROOT)
    said = io.StringIO()
    options = ["-q", "--assert=plain", "--basetemp", f"{report}-tmp", "--report", report, "--wait", "1", "--validate", "no"]
    # Not this run's warnings: a failing run leaves more behind than a passing one.
    options += [word for plugin in ("cacheprovider", "xdist", "unraisableexception") for word in ("-p", f"no:{plugin}")]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        pytest.main([*arguments, *options])
    found = Path(report, "report.json")
    assert found.exists(), said.getvalue()
    cases = json.loads(found.read_text())["cases"]
    return [f"{case['module']}/{case['case']}" for case in cases if case["outcome"] == "failed"]


class Broken:
    """All variants and the cases that can see each: `seen_by` is variant -> {case: node}, `options` what pytest is told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cases = nodes()
        self.seen_by: dict[str, dict[str, str]] = {}
        self.options: dict[str, list[str]] = {}
        self.runs: list[str] = []
        for name in VARIANTS:
            cassettes = folder / name / "cassettes"
            broken = set(break_cassettes(name, cassettes, self.cases))
            self.seen_by[name] = {case: node for case, node in self.cases.items() if node in broken}
            self.options[name] = ["--cassettes", str(cassettes)]
        for way, about in ABOUT.items():
            self.seen_by[way] = {case: node for case, node in self.cases.items() if about in node}
            self.options[way] = ["--app-server", f"fake:{sys.executable} -I -S {MUTANT} {way}"]

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

    def run(self, plan: dict[str, list[str]], pool: ProcessPoolExecutor) -> dict[str, list[str]]:
        """Return case -> the variants of the plan that turn it red."""
        runs = {}
        for name, cases in plan.items():
            report = self.folder / name / f"report-{len(self.runs)}"
            self.runs.append(name)
            arguments = [*(self.seen_by[name][case] for case in cases), *self.options[name]]
            runs[name] = pool.submit(failures, str(report), arguments)
        kills: dict[str, list[str]] = {case: [] for case in self.cases}
        for name, run in runs.items():
            for case in run.result():
                kills[case].append(name)
        return kills


@pytest.fixture(scope="module")
def kills(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Return case name -> the variants that turn it red: each variant on a few cases, then more for the cases still green."""
    broken = Broken(tmp_path_factory.mktemp("broken"))
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("spawn")) as pool:
        plan = broken.plan(3)
        found = broken.run(plan, pool)
        tried = {(name, case) for name, cases in plan.items() for case in cases}
        while True:
            # The variants that have turned most cases red come first: they will most likely do it again.
            strength = {name: sum(name in variants for variants in found.values()) for name in plan}
            ranked = sorted(plan, key=lambda name: -strength[name])
            plan = {name: [] for name in plan}
            for case in (case for case, variants in found.items() if not variants):
                left = [name for name in ranked if case in broken.seen_by[name] and (name, case) not in tried]
                for name in left[:2]:
                    plan[name].append(case)
                    tried.add((name, case))
            if not any(plan.values()):
                return found
            for case, variants in broken.run({name: cases for name, cases in plan.items() if cases}, pool).items():
                found[case] += variants


#: What only a live server can show: tests/real/test_lifecycle_bites.py turns these red.
LIVE = {
    "test_lifecycle/closed_stdout",
    "test_lifecycle/end_of_input_with_a_pending_approval",
    "test_lifecycle/signal-SIGHUP",
    "test_lifecycle/signal-SIGINT",
    "test_lifecycle/signal-SIGTERM",
    "test_lifecycle/signal_in_a_turn-SIGINT",
    "test_lifecycle/signal_in_a_turn-SIGTERM",
    "test_lifecycle/signal_with_a_pending_approval",
}


def test_every_case_is_turned_red(kills: dict[str, list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    width = max(map(len, kills))
    with capsys.disabled():
        print("\n\ncheck" + " " * (width - 3) + "turned red by")
        for case, variants in sorted(kills.items()):
            print(f"{case.ljust(width)}  {', '.join(variants[:5]) or 'NOTHING'}")
        print(f"{len(kills)} checks, {len(VARIANTS) + len(ABOUT)} variants")
    assert {case for case, variants in kills.items() if not variants} == LIVE


def test_every_variant_is_caught(kills: dict[str, list[str]]) -> None:
    caught = {variant for variants in kills.values() for variant in variants}
    assert sorted({*VARIANTS, *ABOUT} - caught) == []
    assert set(ABOUT) == set(WAYS)


def test_a_frame_that_the_bundle_does_not_know_fails_its_case(tmp_path: Path) -> None:
    cases = {name: node for name, node in nodes().items() if name == "test_v1/items_need_data"}
    broken = break_cassettes("results-with-a-further-key", tmp_path / "cassettes", cases)
    done = run_pytest(*broken, "--cassettes", str(tmp_path / "cassettes"), "--report", str(tmp_path))
    assert done.returncode == 1
    assert "The server broke the protocol (subject)" in done.stdout
    assert "`ok`" in done.stdout
