"""What has changed against the baseline is rerun before the verdict: nothing hides, and no race decides."""

from __future__ import annotations

import json
import os
import textwrap
from typing import Any

import pytest

from codex_replay.plugin.base.progress import BY_INIT
from codex_replay.plugin.reporting.baseline_file import UNEXPLAINED, Line, Rate, one_line, parse, render
from codex_replay.plugin.reporting.changes import MOST, Change, batches, plan, rerun
from codex_replay.report.data import Alone, read_report

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
            "1 new failure: rerunning with new processes: 1 case one after another.",
            "Rerun: 1 case; 1 with the same result, 0 with a different result.",
            "'one' failed in the run, and also when rerun.",
        ]
    )
    found = case(report, "one")
    assert (report["verdict"], found["outcome"]) == ("failed", "failed")
    assert [(each["outcome"], "one was to fail" in each["message"]) for each in found["alone"]] == [("failed", True)]


def test_a_race_without_a_baseline_is_not_to_be_listed_in_the_null_device(gate) -> None:
    result, _ = gate("", "--baseline", os.devnull, one="fp")
    line = "add to a file, and name this file with --baseline: - {check: one, reason: WHY, racy: 1/2}"
    assert f"(1 of 2 runs). Fix the race, or {line}" in result.stdout.str()
    result, _ = gate("", "--baseline", os.devnull, "--update-baseline")
    assert "--update-baseline: name the file with --baseline FILE." in result.stderr.str()


def test_a_failure_that_passes_alone_is_reported_as_racy_by_name(gate) -> None:
    result, report = gate("[]", one="fp")
    assert result.ret == 0
    told = result.stdout.str()
    assert "racy: 'one' failed in the run, but passed when rerun (1 of 2 runs). Fix the race, or add to " in told
    assert "known.yaml: - {check: one, reason: WHY, racy: 1/2}" in told
    assert "1 of them racy and not listed" in told
    found = case(report, "one")
    assert (report["verdict"], report["racy"], found["outcome"]) == ("verified", ["one"], "known")
    assert [each["outcome"] for each in found["alone"]] == ["passed"]
    assert "one was to fail" in found["message"], "the first result is kept"


def test_the_first_run_of_init_names_a_failure_that_failed_again(gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BY_INIT, "1")
    _, report = gate("[]", "--update-baseline", one="f", two1="fp", two2="fp")
    assert "one was to fail" in report["next"][0]
    assert "(1 of 1 failed case, without 2 that passed when rerun)" in report["next"][0]


@pytest.mark.parametrize(("name", "passed"), [("good", 1), ("two", 2), ("two[2]", 1), ("good or two[1]", 2)])
def test_the_name_of_a_check_chooses_its_cases(pytester: pytest.Pytester, name: str, passed: int) -> None:
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    suite = SUITE.replace('"good"', '"check-good"').replace('"two"', '"check-two"')
    pytester.makepyfile(**{"suites/test_it": suite})
    for file in ("two1", "two2"):
        (pytester.path / "suites" / file).write_text("p")
    chosen = name.replace("good", "check-good").replace("two", "check-two")
    pytester.runpytest_inprocess(*ALONE, "-p", "no:xdist", "-k", chosen).assert_outcomes(passed=passed, deselected=4 - passed)


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
    assert (
        "'one' is listed as racy (1/4), but failed in 4 of 4 runs. Fix the check, or correct the rate in " in result.stdout.str()
    )
    assert case(report, "one")["outcome"] == "failed"
    assert report["verdict"] == "failed"


def test_a_line_whose_case_passes_once_and_fails_alone_is_racy_and_not_stale(gate) -> None:
    known = "- {check: one, reason: x}\n"
    result, report = gate(known, one="pf")
    assert result.ret == 0
    assert (
        "racy: 'one' passed in the run, but failed when rerun (1 of 2 runs). Fix the race, or mark it in " in result.stdout.str()
    )
    assert report["racy"] == ["one"]
    result, report = gate(known, one="p")
    assert result.ret == 1
    assert "'one' passed in the run, and also when rerun." in result.stdout.str()
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


def test_an_update_keeps_a_line_whose_case_fails_when_rerun(gate, pytester: pytest.Pytester) -> None:
    known = "- {checks: [one, good], reason: slow}\n"
    result, _ = gate(known, "--update-baseline", one="pf")
    assert "known.yaml lists it with racy: 1/2." in result.stdout.str()
    assert parse(pytester.path.joinpath("known.yaml").read_text(), "it") == [Line("one", "slow", Rate(1, 2))]
    gate(known, "--update-baseline", one="p")
    assert parse(pytester.path.joinpath("known.yaml").read_text(), "it") == []


def test_without_a_change_nothing_runs_again(gate) -> None:
    result, _ = gate("- {check: one, reason: x}\n", one="f")
    assert result.ret == 0
    assert "gain alone" not in result.stdout.str()


@pytest.fixture(params=[(), ("-n", "2")], ids=["one process", "xdist"])
def many(request: pytest.FixtureRequest, pytester: pytest.Pytester):
    """Run more cases than the gate reruns one after another; `plans` are the results of each case, run by run."""
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    folder = pytester.mkdir("suites")

    def runs(*options: str, plans: list[str], text: str = "[]") -> tuple[pytest.RunResult, Any, list[str]]:
        cases = "".join(
            f"\n\n@pytest.mark.spec('c{i}', 'PAY-01')\ndef test_c{i}():\n    run('c{i}')\n" for i in range(len(plans))
        )
        head = SUITE.partition("@pytest.mark.spec")[0]
        pytester.makepyfile(**{"suites/test_it": textwrap.dedent(head) + cases})
        pytester.path.joinpath("known.yaml").write_text(text)
        for i, outcomes in enumerate(plans):
            (folder / f"c{i}").write_text(outcomes + ".")
        words = [*ALONE, *(request.param or ("-p", "no:xdist")), "--baseline", "known.yaml", "--report", "out", *options]
        result = pytester.runpytest_subprocess(*words)
        return result, read_report(pytester.path / "out"), [(folder / f"c{i}").read_text() for i in range(len(plans))]

    return runs


def test_an_update_plays_every_failure_a_second_time(many, pytester: pytest.Pytester) -> None:
    result, _, left = many("--update-baseline", plans=["fp", "p", *["ff"] * MOST])
    assert result.ret == 1
    assert left == ["."] * len(left), "each failed case is rerun once"
    lines = {line.check: line.racy for line in parse(pytester.path.joinpath("known.yaml").read_text(), "it")}
    assert lines == {"c0": Rate(1, 2), **{f"c{i + 2}": None for i in range(MOST)}}
    told = result.stdout.str()
    assert f"{MOST + 1} new failures: rerunning with new processes: {MOST + 1} cases " in told
    assert f"Rerun: {MOST + 1} cases; {MOST} with the same result, 1 with a different result." in told
    assert "racy: 'c0' failed in the run, but passed when rerun (1 of 2 runs)." in told
    assert "known.yaml lists it with racy: 1/2." in told
    assert "'c5' failed in the run, and also" not in told, "only what differs is named"
    text = pytester.path.joinpath("known.yaml").read_text().replace(UNEXPLAINED, "slow")
    assert many(plans=["fp", "p", *["f"] * MOST], text=text)[0].ret == 0


@pytest.mark.parametrize(
    ("quick", "slow", "workers", "expected"),
    [
        (3, 2, 2, [(3, 0), (2, 2)]),
        (0, 9, 2, [(9, 4)]),
        (MOST, 9, 2, [(MOST, 2), (9, 4)]),
        (MOST, 9, 6, [(MOST, 6), (9, 6)]),
        (3, 1, 2, [(4, 0)]),
        (3, 9, 1, [(12, 0)]),
        (MOST + 1, 0, 2, [(MOST + 1, 2)]),
    ],
)
def test_cases_that_waited_are_rerun_several_at_a_time(quick: int, slow: int, workers: int, expected: Any) -> None:
    seconds = {**{f"quick{i}": 1.9 for i in range(quick)}, **{f"slow{i}": 2.0 for i in range(slow)}}
    made = batches(list(seconds), seconds.__getitem__, workers)
    assert [(len(chosen), at_a_time) for chosen, at_a_time in made] == expected
    assert [nodeid for chosen, _ in made for nodeid in chosen] == list(seconds)


def test_waiting_failures_are_rerun_in_workers(pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    pytester.mkdir("suites")
    pytester.makepyfile(
        **{
            "suites/test_it": """
        import os, time
        import pytest

        @pytest.mark.parametrize("n", range(4))
        @pytest.mark.spec("slow", "PAY-01")
        def test_slow(n):
            open(f"ran-in-{os.environ['PYTEST_XDIST_WORKER']}", "w").close()
            time.sleep(2)
            assert False
    """
        }
    )
    words = [*ALONE, "-n", "2", "--baseline", "known.yaml", "--report", "out", "--update-baseline", "--no-early-stop"]
    result = pytester.runpytest_subprocess(*words)
    assert "4 new failures: rerunning with new processes: 4 cases 4 at a time." in result.stdout.str()
    assert sorted(path.name for path in pytester.path.glob("ran-in-*")) == [f"ran-in-gw{i}" for i in range(4)]


@pytest.mark.parametrize("many", [()], ids=["one process"], indirect=True)
def test_many_new_failures_that_all_pass_when_rerun_are_not_red(many) -> None:
    result, report, _ = many(plans=["p", *["fp"] * (MOST + 1)])
    assert result.ret == 0
    assert report["verdict"] == "verified"
    assert f"racy: {MOST + 1} cases failed in the run, but passed when rerun; report.json names them." in result.stdout.str()
    assert sorted(report["racy"]) == sorted(f"c{i + 1}" for i in range(MOST + 1))


def test_a_broken_subject_is_red_after_the_first_reruns(many) -> None:
    result, report, left = many(plans=["p", *["ff"] * (MOST + 5)])
    assert result.ret == 1
    assert sum(each["outcome"] == "failed" for each in report["cases"]) == MOST + 5
    assert (left.count("."), left.count("f.")) == (MOST + 1, 5), "five cases are not rerun"
    assert "5 more changed cases were not rerun, because the verdict is already red." in result.stdout.str()


def many_changes(number: int, *, racy: int, every: bool = False) -> tuple[list[Change], list[list[str]]]:
    """Rerun so many new failures, of which the first `racy` pass; return them, and the node ids of each call."""
    changes = [Change(str(i), str(i), "new") for i in range(number)]
    calls: list[list[str]] = []

    def run(nodeids: list[str]) -> dict[str, Alone]:
        calls.append(nodeids)
        return {each: {"outcome": "passed" if int(each) < racy else "failed", "seconds": 0, "message": ""} for each in nodeids}

    rerun(changes, run, every)
    return changes, calls


def test_the_reruns_of_a_broken_subject_end_at_the_first_red_result() -> None:
    changes, calls = many_changes(10 * MOST, racy=0)
    assert [len(call) for call in calls] == [MOST]
    assert all(change.confirmed for change in changes), "a case that was not rerun stays red"


def test_a_true_failure_behind_many_races_is_red() -> None:
    changes, calls = many_changes(2 * MOST + 5, racy=2 * MOST + 4)
    assert [len(call) for call in calls] == [MOST, MOST, 5]
    assert [change.nodeid for change in changes if change.confirmed] == [str(2 * MOST + 4)]


def test_an_update_reruns_every_failure_in_one_pass() -> None:
    changes, calls = many_changes(10 * MOST, racy=7, every=True)
    assert [len(call) for call in calls] == [10 * MOST]
    assert sum(not change.confirmed for change in changes) == 7


def test_nothing_to_rerun() -> None:
    assert many_changes(0, racy=0, every=True) == many_changes(0, racy=0) == ([], [])


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
    assert [change.nodeid for change in plan(lines, seen, [3], update=True)] == ["n1", "n5"]


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
