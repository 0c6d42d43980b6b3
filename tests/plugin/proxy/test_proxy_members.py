"""Members that 0.92 does not know, and what becomes of a process that left an answer open."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from codex_replay.plugin.proxy.fields import unknown_members

pytest_plugins = ["pytester"]
PROXIES = Path(__file__).parents[2] / "miniatures" / "proxies"
OPTIONS = ["-p", "no:xdist", "-p", "no:cacheprovider"]
CLIENT = {"name": "a", "version": "1"}


@pytest.mark.parametrize(
    ("method", "params", "unknown"),
    [
        ("initialize", {"clientInfo": CLIENT}, []),
        ("initialize", {"clientInfo": {**CLIENT, "build": 1}}, ["initialize.params.clientInfo.build"]),
        ("thread/start", {"model": "m", "stream": True, "ephemeral": True}, ["thread/start.params.stream"]),
        ("no/such", {}, ["no/such"]),
    ],
)
def test_the_members_that_092_does_not_know(method: str, params: dict[str, Any], unknown: list[str]) -> None:
    assert unknown_members({"method": method, "params": params}) == unknown


def test_after_an_answer_without_an_end_the_next_case_has_a_new_process(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_it="""
        import pytest
        from codex_replay.shell.rpc.client import SubjectFailure

        processes = []

        @pytest.mark.parametrize("number", range(2))
        def test_it(proxy, number):
            with pytest.raises(SubjectFailure, match="no complete answer"):
                proxy.chat()
            processes.append(proxy.running.process)

        def test_then():
            assert processes[0] is not processes[1]
            assert all(process.exited.is_set() for process in processes)
        """
    )
    proxy = shlex.join([sys.executable, str(PROXIES / "bad_proxy.py"), "hangs"])
    pytester.runpytest_subprocess(*OPTIONS, "--proxy", proxy, "--wait", "1").assert_outcomes(passed=3)
