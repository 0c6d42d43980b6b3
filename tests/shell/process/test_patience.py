"""A subject that hangs in several cases is waited for only briefly afterwards."""

from __future__ import annotations

from pathlib import Path

from codex_replay.shell.process.patience import CASES, KNOWN, PART, Patience


def patience(timeouts: int, given: float | None = None, alone: bool = False) -> Patience:
    made = Patience(given, alone=alone)
    for n in range(2 * timeouts):
        made.count(n % 2 == 0)
    return made


def test_the_limit_is_a_part_after_some_cases() -> None:
    assert patience(CASES - 1).limit(10.0) == 10.0
    assert patience(CASES).limit(10.0) == 10.0 * PART


def test_a_limit_of_the_user_stays() -> None:
    assert patience(CASES, given=7.0).limit(10.0) == 7.0


def test_a_case_that_is_rerun_alone_has_the_whole_limit() -> None:
    assert patience(CASES, alone=True).limit(10.0) == 10.0


def test_each_cause_has_its_own_limit() -> None:
    made = Patience(None, alone=False)
    for _ in range(KNOWN):
        assert made.part(5.0, "an interrupt") == 5.0
        made.count(True, "an interrupt")
    assert made.part(5.0, "an interrupt") == 5.0 * PART
    assert made.part(5.0, "an approval") == 5.0
    assert made.limit(10.0) == 10.0


def test_a_limit_of_the_user_is_for_answers_only() -> None:
    assert patience(0, given=7.0).limit(5.0, "the end of the turn") == 7.0
    assert patience(0, given=7.0).part(2.0, "the end of a failed turn") == 2.0


def test_the_workers_of_a_run_count_together(tmp_path: Path) -> None:
    one, other = (Patience(None, alone=False, shared=tmp_path / "waits") for _ in range(2))
    assert one.limit(10.0) == 10.0  # nobody has waited yet
    for worker in (one, other, one):
        worker.count(False)
        worker.count(True)
    assert one.limit(10.0) == other.limit(10.0) == 10.0 * PART
    assert other.part(5.0, "an interrupt") == 5.0


def test_a_part_is_no_shorter_than_the_least_limit() -> None:
    """A proxy that always ends its answer after a second of silence is slow, and does not hang."""
    patience = Patience(None, alone=False)
    for _ in range(KNOWN):
        patience.count(True, "the end of the turn")
    assert patience.limit(3.0, "the end of the turn", least=1.6) == 1.6
    assert patience.limit(1.0, "the end of the turn", least=1.6) == 1.0
    assert patience.limit(30.0, "the end of the turn", least=1.6) == 9.0
    assert Patience(0.5, alone=False).limit(3.0, "the end of the turn", least=1.6) == 0.5
