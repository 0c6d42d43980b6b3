"""The steps after a run: a stale line is removed, a failure is fixed, and listed failures are left alone."""

from __future__ import annotations

from typing import Any, cast

import pytest

from codex_replay.report.data import Report
from codex_replay.report.next_steps import next_steps


def case(outcome: str, message: str = "") -> dict[str, Any]:
    return {"outcome": outcome, "message": message, "again": f"codex-replay run {message[:1]}", "nodeid": message[:1]}


def report(*cases: dict[str, Any], **more: Any) -> Report:
    return cast("Report", {"cases": list(cases), **more})


def test_a_stale_line_is_removed_and_not_fixed() -> None:
    found = next_steps(report(case("failed", "Stale: 'bad' passes now; remove its line."), stale=["bad"]))
    assert found == ["Remove from the baseline what passes now, or add --update-baseline: 'bad'."]


def test_many_stale_lines_are_counted() -> None:
    assert next_steps(report(case("passed"), stale=list("abcde")))[0].endswith("'a', 'b', 'c' and 2 more.")


@pytest.mark.parametrize(
    ("messages", "cause"),
    [
        (["A is missing.", "A is missing.", "B is wrong."], "most common cause (2 of 3 failed cases): A is missing."),
        (["A is missing.", "B is wrong."], "first of 2 failed cases, which have different causes: A is missing."),
        (["A is missing."], "most common cause (1 of 1 failed case): A is missing."),
    ],
)
def test_the_cause_to_fix_first(messages: list[str], cause: str) -> None:
    found = next_steps(report(case("passed"), *(case("failed", message) for message in messages)))
    assert found == [f"Fix the {cause}", "Rerun one of these cases: codex-replay run A"]


def test_a_failure_that_passed_when_rerun_is_not_to_be_fixed_first() -> None:
    cases = [case("failed", message) for message in ("A is late.", "A is late.", "B is wrong.")]
    first = "Fix the most common cause (1 of 1 failed case, without 2 that passed when rerun): B is wrong."
    assert next_steps(report(*cases), racy={"A"}) == [first, "Rerun one of these cases: codex-replay run B"]
    assert next_steps(report(*cases[:2]), racy={"A"})[0] == "Fix the one cause of every failure: A is late."


def test_listed_failures_are_not_to_be_fixed() -> None:
    assert next_steps(report(case("failed", "A is missing.")), ["Run the gate."], listed=True) == ["Run the gate."]
