"""What has changed against the baseline is run again alone before the verdict: nothing hides, and no race decides."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_replay.plugin.reporting.baseline_file import Line, Rate, one_line, parse, render
from codex_replay.plugin.reporting.changes import MOST, Change, plan, rerun
from codex_replay.report.data import read_report

pytest_plugins = ["pytester"]
ALONE = [word for name in ("cacheprovider", "asyncio", "syrupy", "hypothesispytest") for word in ("-p", f"no:{name}")]
#: Each case has a file with one letter for each of its runs: p for passed, f for failed. The last letter goes on.
SUITE = """
    from pathlib import Path
    import pytest

    def run(name):
        path = Path(__file__).with_name(name)
        plan = path.read_text()
        path.write_text(plan[1:] or plan)
        assert plan[0] == "p", f"{name} was to fail"

    @pytest.mark.spec("good", "PAY-01")
    def test_good():
        pass

    @pytest.mark.spec("one", "PAY-01")
    def test_one():
        run("one")

    @pytest.mark.parametrize("n", [1, 2])
    @pytest.mark.spec("two", "PAY-01")
    def test_two(n):
        run(f"two{n}")
"""


def runner(pytester: pytest.Pytester, *workers: str):
    """Run the gate on a baseline; `plans` are the results of each case, run by run."""
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    folder = pytester.mkdir("suites")
    pytester.makepyfile(**{"suites/test_it": SUITE})

    def runs(text: str, *options: str, **plans: str) -> tuple[pytest.RunResult, Any]:
        pytester.path.joinpath("known.yaml").write_text(text, encoding="utf-8")
        for name in ("one", "two1", "two2"):
            (folder / name).write_text(plans.get(name, "p"))
        words = [*ALONE, *(workers or ("-p", "no:xdist")), "--baseline", "known.yaml", "--report", "out", *options]
        run = pytester.runpytest_subprocess if workers else pytester.runpytest_inprocess
        return run(*words), read_report(pytester.path / "out")

    return runs


@pytest.fixture
def gate(pytester: pytest.Pytester):
    return runner(pytester)


@pytest.fixture(params=[(), ("-n", "2")], ids=["alone", "xdist"])
def gate_both(request: pytest.FixtureRequest, pytester: pytest.Pytester):
    return runner(pytester, *request.param)


def case(report: Any, name: str) -> Any:
    return next(case for case in report["cases"] if case["case"] == name)


def test_a_failure_that_fails_again_alone_is_red(gate_both) -> None:
    result, report = gate_both("[]", one="f")
    assert result.ret == 1
    result.assert_outcomes(failed=1, passed=3)
    result.stdout.fnmatch_lines(
        [
            "1 new failure: rerunning these cases alone, one after another.",
            "Rerun alone: 1 case; 1 with the same result, 0 with a different result.",
            "'one' failed in the run, and also when rerun alone.",
        ]
    )
    found = case(report, "one")
    assert (report["verdict"], found["outcome"]) == ("failed", "failed")
    assert [(each["outcome"], "one was to fail" in each["message"]) for each in found["alone"]] == [("failed", True)]


def test_a_failure_that_passes_alone_is_reported_as_racy_by_name(gate) -> None:
    result, report = gate("[]", one="fp")
    assert result.ret == 0
    told = result.stdout.str()
    assert "racy: 'one' failed in the run, but passed when rerun alone (1 of 2 runs). Fix the race, or add to " in told
    assert "known.yaml: - {check: one, reason: WHY, racy: 1/2}" in told
    assert "1 of them racy and not listed" in told
    found = case(report, "one")
    assert (report["verdict"], report["racy"], found["outcome"]) == ("verified", ["one"], "known")
    assert [each["outcome"] for each in found["alone"]] == ["passed"]
    assert "one was to fail" in found["message"], "the first result is kept"


def test_one_race_does_not_hide_a_failure(gate_both) -> None:
    result, report = gate_both("[]", one="fp", two2="f")
    assert result.ret == 1
    result.assert_outcomes(failed=1, passed=2)
    assert (case(report, "two-2")["outcome"], case(report, "one")["outcome"]) == ("failed", "known")


def test_a_racy_line_must_pass_once_alone(gate) -> None:
    racy = "- {check: one, reason: load, racy: 1/4}\n"  # 0.25 ** 4 is below 0.01: three runs alone
    assert gate(racy, one="p")[0].ret == 0
    result, report = gate(racy, one="fffp")
    assert result.ret == 0
    assert "'one' is listed as racy (1/4): it failed in 3 of 4 runs." in result.stdout.str()
    assert [each["outcome"] for each in case(report, "one")["alone"]] == ["failed", "failed", "passed"]
    assert "racy" not in report
    result, report = gate(racy, one="f")
    assert result.ret == 1
    assert "'one' is listed as racy (1/4), but failed in 4 of 4 runs. Fix it, or correct the rate in " in result.stdout.str()
    assert case(report, "one")["outcome"] == "failed"
    assert report["verdict"] == "failed"


def test_a_line_whose_case_passes_once_and_fails_alone_is_racy_and_not_stale(gate) -> None:
    known = "- {check: one, reason: x}\n"
    result, report = gate(known, one="pf")
    assert result.ret == 0
    assert (
        "racy: 'one' passed in the run, but failed when rerun alone (1 of 2 runs). Fix the race, or mark it in "
        in result.stdout.str()
    )
    assert report["racy"] == ["one"]
    result, report = gate(known, one="p")
    assert result.ret == 1
    assert "'one' passed in the run, and also when rerun alone." in result.stdout.str()
    assert report["stale"] == ["one"]


def test_a_line_of_many_cases_is_stale_only_if_all_pass_again(gate) -> None:
    known = "- {check: two, reason: x}\n"
    assert gate(known, two1="p", two2="pf")[0].ret == 0
    result, report = gate(known)
    assert result.ret == 1
    assert report["stale"] == ["two"]


def test_a_new_list_marks_what_passes_alone(gate, pytester: pytest.Pytester) -> None:
    result, _ = gate("[]", "--update-baseline", one="fp", two1="f")
    assert result.ret == 1
    lines = {line.check: line.racy for line in parse(pytester.path.joinpath("known.yaml").read_text(), "it")}
    assert lines == {"one": Rate(1, 2), "two[1]": None}


def test_without_a_change_nothing_runs_again(gate) -> None:
    result, _ = gate("- {check: one, reason: x}\n", one="f")
    assert result.ret == 0
    assert "gain alone" not in result.stdout.str()


def test_many_changes_are_no_races(pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    pytester.makepyfile(f"import pytest\n@pytest.mark.parametrize('n', range({MOST + 1}))\ndef test_it(n):\n    assert n < 0\n")
    pytester.path.joinpath("known.yaml").write_text("[]")
    result = pytester.runpytest_inprocess(*ALONE, "-p", "no:xdist", "--baseline", "known.yaml")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [f"{MOST + 1} new failures: too many changes to be races (at most {MOST}), so the cases were not rerun alone."]
    )


def test_a_case_without_a_result_keeps_its_verdict() -> None:
    changes = [Change("a", "a", "new"), Change("b", "b", "stale", 0)]
    rerun(changes, lambda nodeids: {})
    assert all(change.confirmed for change in changes)


def test_what_is_planned() -> None:
    lines = [Line("known", "x"), Line("racy", "x", Rate(1, 20)), Line("often", "x", Rate(9, 10)), Line("old", "x")]
    seen = {
        "n1": (True, ["new"], []),
        "n2": (True, ["known"], [0]),
        "n3": (True, ["racy"], [1]),
        "n4": (True, ["often"], [2]),
        "n5": (False, ["old"], [3]),
        "n6": (False, ["good"], []),
    }
    assert [(change.nodeid, change.kind) for change in plan(lines, seen, [3])] == [("n1", "new"), ("n3", "racy"), ("n5", "stale")]
    assert [change.nodeid for change in plan(lines, seen, [3], update=True)] == ["n1"]


@pytest.mark.parametrize(("rate", "tries"), [((1, 1000), 1), ((1, 10), 1), ((1, 9), 2), ((1, 4), 3), ((1, 2), 6), ((2, 3), 0)])
def test_how_often_a_racy_case_is_tried(rate: tuple[int, int], tries: int) -> None:
    assert Rate(*rate).tries == tries


def test_a_line_can_be_pasted() -> None:
    line = Line("two[a: b, c]", "WHY", Rate(1, 2))
    assert parse(f"- {one_line(line)}\n", "it") == [line]


def test_a_file_reads_as_it_was_written() -> None:
    lines = [Line("a", "x", None, "it is: late", 0), Line("b", "x", None, "it is: late", 0), Line("c", "y", Rate(1, 20), "", 1)]
    assert parse(render(lines), "it") == lines
    assert json.dumps(render([])) == '"[]\\n"'
