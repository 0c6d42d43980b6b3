"""Of many failures the terminal tells the first of each check in whole; of few, and of tests that are no cases, each."""

from __future__ import annotations

import json

import pytest

from codex_replay.plugin.reporting.failure_limit import WHOLE

pytest_plugins = ["pytester"]
ALONE = [word for name in ("cacheprovider", "asyncio", "syrupy", "hypothesispytest") for word in ("-p", f"no:{name}")]
SUITE = """
    import pytest

    @pytest.mark.parametrize("n", range(MANY))
    @pytest.mark.spec("bad-often", "PAY-01")
    def test_often(n):
        assert False, f"the often one {n}"

    @pytest.mark.spec("bad-once", "PAY-01")
    def test_once():
        assert False, "the single one"

    @pytest.mark.parametrize("n", range(DIFFERENT))
    def test_of_its_own(n):
        assert False, f"another one {n}"
"""
OTHERS = """
    import pytest

    @pytest.mark.parametrize("n", range(40))
    def test_of_somebody_else(n):
        assert False, f"no case {n}"
"""


def run(pytester: pytest.Pytester, many: int, different: int, *options: str) -> str:
    """Run a suite with so many failures of one check, one of another and so many of checks of their own."""
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    folder = pytester.mkdir("suites").joinpath("mine")
    folder.mkdir()
    folder.joinpath("test_it.py").write_text(
        "\n".join(line[4:] for line in SUITE.splitlines()).replace("MANY", str(many)).replace("DIFFERENT", str(different))
    )
    found = pytester.runpytest_subprocess(*ALONE, "suites", "--report", "out", "--no-early-stop", *options)
    assert found.ret == 1
    failed = [
        case
        for case in json.loads(pytester.path.joinpath("out", "report.json").read_text())["cases"]
        if case["outcome"] == "failed"
    ]
    assert len(failed) == many + different + 1
    return found.stdout.str()


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_the_first_of_each_check_is_told_in_whole(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    said = run(pytester, 60, 3, *workers)
    assert said.count("E       AssertionError: the often one") == 1
    assert said.count("E       AssertionError: the single one") == 1
    assert said.count("E       AssertionError: another one") == 3
    assert "59 failures more" in said
    assert "   59  bad-often, as above" in said
    assert said.count("\nFAILED suites/mine/test_it.py::") == 64  # the list has each, and the sum counts it
    assert "64 failed" in said.splitlines()[-1]


def test_no_more_than_so_many_are_told_in_whole(pytester: pytest.Pytester) -> None:
    said = run(pytester, 2, 40)
    assert said.count("E       AssertionError: ") == WHOLE
    assert f"{43 - WHOLE} failures more" in said
    assert "    1  mine/test_it/of_its_own-39\n" in said


def test_few_are_told_in_whole_each(pytester: pytest.Pytester) -> None:
    said = run(pytester, WHOLE - 1, 0)
    assert said.count("E       AssertionError: ") == WHOLE
    assert "failures more" not in said


def test_all_are_told_to_whoever_asks_for_more(pytester: pytest.Pytester) -> None:
    assert run(pytester, 60, 0, "-v").count("E       AssertionError: ") == 61


def test_tests_that_are_no_cases_are_left_alone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_others=OTHERS)
    said = run(pytester, 60, 0, "test_others.py")
    assert said.count("E       AssertionError: no case") == 40
    assert said.count("E       AssertionError: the often one") == 1
