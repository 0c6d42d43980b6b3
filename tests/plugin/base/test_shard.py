"""Shards: together they run every case once, and a baseline is judged by the cases that ran."""

from __future__ import annotations

import json

import pytest

pytest_plugins = ["pytester"]
ALONE = [word for name in ("cacheprovider", "asyncio", "syrupy", "hypothesispytest") for word in ("-p", f"no:{name}")]
SUITE = """
import pytest
@pytest.mark.parametrize("n", range(7))
@pytest.mark.spec("bad", "PAY-01")
def test_it(n):
    assert n != 2
"""


def run(pytester: pytest.Pytester, shard: str, *options: str) -> pytest.RunResult:
    folder = pytester.path / "suites" / "mine"
    if not folder.exists():
        pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
        folder.mkdir(parents=True)
        (folder / "test_it.py").write_text(SUITE)
    out = shard.replace("/", "-")
    start = pytester.runpytest_subprocess if "-n" in options else pytester.runpytest_inprocess
    return start(*ALONE, "suites", "--shard", shard, "--report", out, *options)


def ran(pytester: pytest.Pytester, shard: str) -> set[str]:
    report = json.loads((pytester.path / shard.replace("/", "-") / "report.json").read_text())
    return {case["id"].rpartition("-")[2] for case in report["cases"]}


@pytest.mark.parametrize("workers", [("-p", "no:xdist"), ("-n", "2")], ids=["alone", "xdist"])
def test_the_shards_together_run_every_case_once(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    shards = ["1/3", "2/3", "3/3"]
    statuses = [run(pytester, shard, *workers).ret for shard in shards]
    found = [ran(pytester, shard) for shard in shards]
    assert statuses == [0, 0, 1]
    assert sorted(case for each in found for case in each) == [str(n) for n in range(7)]


@pytest.mark.parametrize("workers", [("-p", "no:xdist"), ("-n", "1")], ids=["alone", "xdist"])
def test_a_line_whose_failures_are_in_another_shard_is_not_stale(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    (pytester.path / "known.yaml").write_text("- {check: bad, reason: one is}\n")
    for shard in ("1/3", "2/3", "3/3"):
        assert run(pytester, shard, "--baseline", "known.yaml", *workers).ret == 0, shard
    assert run(pytester, "1/1", "--baseline", "known.yaml", "--deselect", "suites/mine/test_it.py::test_it[2]").ret == 0


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "x/2", "1/0", "1/2/3"])
def test_a_wrong_shard_is_a_usage_error(pytester: pytest.Pytester, text: str) -> None:
    result = run(pytester, text)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"--shard {text}: give I/N with I from 1 to N, such as 1/4." in result.stderr.str()


def test_a_baseline_is_not_updated_from_a_shard(pytester: pytest.Pytester) -> None:
    result = run(pytester, "1/2", "--baseline", "known.yaml", "--update-baseline")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--update-baseline needs every case: remove --shard." in result.stderr.str()
