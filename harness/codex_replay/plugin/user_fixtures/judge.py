"""Fail a test at its end if the client did not follow the script or the recording."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from codex_replay.plugin.user_fixtures.codex_backend import CodexBackend
    from codex_replay.plugin.user_fixtures.fake_codex import FakeCodex


def fail_on_problems(fake: FakeCodex) -> None:
    """Fail if the model got a request that no turn of the script answers."""
    __tracebackhide__ = True
    if not fake.lenient and (problems := fake.problems):
        report = "\n    ".join(problems[:5])
        what = "The script of fake_codex has no turn for a request"
        pytest.fail(f"{what} (to allow it, set fake_codex.lenient = True):\n    {report}", pytrace=False)


def judge_backend(backend: CodexBackend, item: pytest.Item, failed: bool) -> None:
    """Fail a test that passed so far, but whose client did not follow the script.

    If the test has already `failed`, add the problems to its report, below the captured output. After a failure, unused turns are
    not reported, because the test ended early. After a failed test, pytest stores the exception in `sys.last_value`.
    """
    __tracebackhide__ = True
    raised = getattr(sys, "last_value", None)  # also of a test that was expected to fail
    if not failed and raised is None:
        if complaints := backend.complaints:
            report = "\n    ".join(_first(complaints))
            meant = "to allow refused requests, set codex_backend.lenient = True"
            pytest.fail(f"The client differs from the script of codex_backend ({meant}):\n    {report}", pytrace=False)
        return
    untold = [line for line in backend.problems if line.partition(": ")[2].partition(" (")[0] not in str(raised)]
    if untold and not backend.lenient:
        item.add_report_section("teardown", "codex_backend", "\n".join(_first(untold)))


def _first(lines: list[str], most: int = 5) -> list[str]:
    return [*lines[:most], *([f"... and {len(lines) - most} more"] if len(lines) > most else [])]


def fail_on_unplayed(fake: FakeCodex) -> None:
    """Fail the test if the client left out recorded messages, or sent messages that were not recorded."""
    __tracebackhide__ = True
    if not fake.lenient and (found := fake.unplayed):
        report = "\n    ".join(_first(found))
        meant = "to allow missing messages, use cassette(path, partial=True); to allow any difference, fake_codex.lenient = True"
        pytest.fail(f"The client differs from the recording ({meant}):\n    {report}", pytrace=False)
