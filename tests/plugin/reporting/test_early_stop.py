"""A run whose first cases all fail, most of them for one cause, stops early; every other run goes on to its end."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codex_replay.plugin.reporting.early_stop import FAILURES, WAITED

pytest_plugins = ["pytester"]
ALONE = [word for name in ("cacheprovider", "asyncio", "syrupy", "hypothesispytest") for word in ("-p", f"no:{name}")]
MANY = 200
WORKERS = pytest.mark.parametrize("workers", [("-p", "no:xdist"), ("-n", "2")], ids=["alone", "xdist"])


def suite(pytester: pytest.Pytester, body: str, count: int = MANY) -> None:
    """Make a suite of `count` cases with this body, in which `n` is the number of the case."""
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    folder = pytester.mkdir("suites") / "mine"
    folder.mkdir()
    (folder / "test_it.py").write_text(
        f"import pytest\n@pytest.mark.parametrize('n', range({count}))\n@pytest.mark.spec('bad', 'PAY-01')\n"
        f"def test_it(n):\n    {body}\n"
    )


def run(pytester: pytest.Pytester, *options: str, of: str = "suites") -> tuple[pytest.RunResult, dict[str, Any]]:
    """Run the suite; return the result and the report."""
    result = pytester.runpytest_subprocess(*ALONE, of, "--report", "out", *options)
    report: dict[str, Any] = json.loads((pytester.path / "out" / "report.json").read_text())
    return result, report


@WORKERS
def test_one_cause_from_the_first_case_on_stops_the_run(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    suite(pytester, "assert False, f'answer {n} is wrong'")
    result, report = run(pytester, *workers)
    assert result.ret == 1
    ran = len(report["cases"])
    assert FAILURES <= ran < MANY
    assert (report["verdict"], report["stopped_early"], "interrupted" in report) == ("failed", MANY, False)
    cause = "They all failed for one cause: answer \u2026 is wrong."
    result.stdout.fnmatch_lines([f"FAILED: stopped early after {ran} cases of {MANY}. {cause} Subject: *"])
    said = result.stdout.str()
    assert said.count("E       AssertionError: answer") == 1  # of one check, in full
    assert "  1. Fix the one cause of every failure: answer \u2026 is wrong\n" in said
    assert "  3. Run every case despite the failures: add --no-early-stop.\n" in said
    summary = (pytester.path / "out" / "summary.md").read_text()
    assert "The run stopped early" in summary
    assert summary.index("### Do this next\n\n1. Fix the one cause of every failure") < summary.index("### Failed: ")


@WORKERS
def test_most_failures_with_one_cause_stop_the_run(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    """Each worker starts in another part of the suite, where a wrong subject fails with another message."""
    suite(pytester, "assert False, ('no case is right' if n % 4 else 'nothing came')")
    result, report = run(pytester, *workers)
    ran = len(report["cases"])
    assert (result.ret, report["stopped_early"]) == (1, MANY)
    assert FAILURES < ran < 2 * FAILURES
    most = sum(case["message"].startswith("no case") for case in report["cases"])
    assert (
        f"FAILED: stopped early after {ran} cases of {MANY}. {most} of them failed for one cause: no case" in result.stdout.str()
    )


def test_the_option_lets_every_case_run(pytester: pytest.Pytester) -> None:
    suite(pytester, "assert False, 'wrong'", 2 * FAILURES)
    result, report = run(pytester, "--no-early-stop")
    assert (result.ret, len(report["cases"]), "stopped_early" in report) == (1, 2 * FAILURES, False)


@pytest.mark.parametrize(
    "body",
    [
        "assert n == 3, 'wrong'",
        "assert False, 'abc'[n % 3]",
        "assert False, 'ab'[n % 2]",
        "n == 3 and pytest.xfail('known by itself'); assert False, 'wrong'",
    ],
    ids=["one-passed", "three-causes", "two-causes", "one-known"],
)
def test_a_run_in_which_something_else_happened_goes_on(pytester: pytest.Pytester, body: str) -> None:
    suite(pytester, body, 3 * FAILURES)
    _, report = run(pytester)
    assert len(report["cases"]) == 3 * FAILURES


@WORKERS
def test_a_case_that_expects_a_failure_shows_nothing_by_its_pass(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    suite(pytester, "assert n % 5 == 0, 'wrong'")
    path = pytester.path / "suites" / "mine" / "test_it.py"
    each = "[pytest.param(n, marks=[pytest.mark.expects_failure] * (n % 5 == 0)) for n in range(200)]"
    path.write_text(path.read_text().replace("range(200)", each))
    _, report = run(pytester, *workers)
    assert FAILURES <= len(report["cases"]) < MANY
    assert {case["outcome"] for case in report["cases"]} == {"passed", "failed"}


def test_a_run_with_few_cases_left_goes_on(pytester: pytest.Pytester) -> None:
    suite(pytester, "assert False, 'wrong'", 2 * FAILURES - 1)
    _, report = run(pytester)
    assert len(report["cases"]) == 2 * FAILURES - 1


def test_skipped_cases_change_nothing(pytester: pytest.Pytester) -> None:
    suite(pytester, "n % 2 and pytest.skip('not now'); assert False, 'wrong'")
    result, report = run(pytester)
    assert (result.ret, len(report["cases"])) == (1, 2 * FAILURES - 1)


def test_cases_that_waited_count_more(pytester: pytest.Pytester) -> None:
    suite(pytester, "assert False, 'POST /v1/responses: no complete answer within 10 s.'")
    _, report = run(pytester)
    assert len(report["cases"]) == FAILURES // WAITED


@WORKERS
def test_failures_that_a_baseline_lists_let_a_run_go_on(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    suite(pytester, "assert False, 'wrong'", 2 * FAILURES)
    (pytester.path / "known.yaml").write_text("- {check: bad, reason: all are}\n")
    result, report = run(pytester, "--baseline", "known.yaml", *workers)
    assert {case["outcome"] for case in report["cases"]} == {"known"}
    assert (len(report["cases"]), result.ret) == (2 * FAILURES, 5)  # nothing passed


@WORKERS
def test_stale_lines_let_a_run_go_on(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    """A mended subject passes every listed case; a run that stopped early would name only some of the stale lines."""
    suite(pytester, "pass", 2 * FAILURES)
    path = pytester.path / "suites" / "mine" / "test_it.py"
    each = f"[pytest.param(n, marks=pytest.mark.spec(f'bad-{{n}}', 'PAY-01')) for n in range({2 * FAILURES})]"
    text = path.read_text().replace("@pytest.mark.spec('bad', 'PAY-01')\n", "").replace(f"range({2 * FAILURES})", each)
    path.write_text(text)
    lines = "".join(f"- {{check: bad-{n}, reason: all are}}\n" for n in range(2 * FAILURES))
    (pytester.path / "known.yaml").write_text(lines)
    result, report = run(pytester, "--baseline", "known.yaml", *workers)
    assert (result.ret, len(report["cases"]), len(report["stale"])) == (1, 2 * FAILURES, 2 * FAILURES)
    assert "stopped_early" not in report


def test_a_baseline_is_not_updated_from_a_run_that_stopped(pytester: pytest.Pytester) -> None:
    suite(pytester, "assert False, 'wrong'")
    (pytester.path / "known.yaml").write_text("- {check: 'bad[[]7]', reason: mine}\n")
    result, report = run(pytester, "--baseline", "known.yaml", "--update-baseline")
    assert (result.ret, report["stopped_early"]) == (1, MANY)
    assert (pytester.path / "known.yaml").read_text() == "- {check: 'bad[[]7]', reason: mine}\n"
    result.stdout.fnmatch_lines(["*known.yaml was not updated: the run stopped early. Add --no-early-stop to update the *"])


def test_tests_of_the_users_own_are_never_stopped(pytester: pytest.Pytester) -> None:
    """They use our fixtures, and are no suite."""
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    pytester.makepyfile(
        test_mine=f"import pytest\n@pytest.mark.parametrize('n', range({2 * FAILURES}))\n"
        "def test_it(n, fake_codex): assert False, 'wrong'\n"
    )
    result, report = run(pytester, of="test_mine.py")
    assert (result.ret, len(report["cases"])) == (1, 2 * FAILURES)


NAIVE = """\
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Naive(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()
    do_POST = do_OPTIONS = do_GET

ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Naive).serve_forever()
"""


def test_a_proxy_that_answers_404_to_everything_stops_the_run_with_its_cause(tmp_path: Path) -> None:
    """The suite has more than a thousand cases for it."""
    (tmp_path / "naive.py").write_text(NAIVE)
    replay = str(Path(sys.executable).with_name("codex-replay"))
    command = [replay, "run", "proxy", "-n", "1", "--proxy", f"{shlex.quote(sys.executable)} naive.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stderr
    verdict = next(line for line in done.stdout.splitlines() if line.startswith("FAILED: "))
    found = re.match(
        r"FAILED: stopped early after (\d+) cases of (\d+)\. (?:They all|\d+ of them) failed for one cause: (.*)", verdict
    )
    assert found is not None, verdict
    assert FAILURES <= int(found[1]) <= 2 * FAILURES
    assert int(found[2]) > 1000
    assert re.match(r"Requests got the status 404 instead of (?:401, )?a success, ", found[3]), found[3]
