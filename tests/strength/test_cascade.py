"""A proxy that hangs in one case is red in this case, and in no other."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from codex_replay.plugin.proxy.script import marker_of
from tests.strength.defects.__main__ import run
from tests.strength.defects.table import ROOT

#: The case in which the proxy hangs, and those around it, which share its process.
HANGS = "suites/proxy/replies/test_behaviour.py::test_one_request_is_one_model_call[whole-chat]"
CASES = "test_chat_shape or test_behaviour and (one_request or many_clients or a_fault and chat)"
#: A plugin that leaves a process in use that has not ended an answer.
UNRETIRED = """
from codex_replay.plugin.proxy import fixture, process

fixture.WAIT = 1.0
process.Pool.retire = lambda *_: None
"""


def red(way: str, chosen: str) -> tuple[list[str], int]:
    """Return the failed cases of a proxy that hangs in this way, and the number of all cases."""
    argv = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "tests.strength.hanging_proxy", way, marker_of(HANGS)]
    found = run("hanging", argv, chosen)
    return [case["nodeid"] for case in found if case["outcome"] == "failed"], len(found)


@pytest.mark.parametrize("way", ["process", "answer"])
def test_exactly_the_case_in_which_a_proxy_hangs_is_red(way: str) -> None:
    failed, number = red(way, CASES)
    assert failed == [HANGS]
    assert number >= 20


def test_a_process_that_stays_in_use_makes_other_cases_red(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the pool, which ends such a process, is what the test above tests."""
    (tmp_path / "unretired.py").write_text(UNRETIRED, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p unretired")
    failed, number = red("process", "one_request_is_one_model_call")
    assert HANGS in failed
    assert len(failed) > 1, f"{number} cases"
