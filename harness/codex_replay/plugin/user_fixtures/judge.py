"""Fail a test at its end if the client differs from the script or the recording.

If the test has already failed, only report the differences.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def judge(
    item: pytest.Item,
    failed: bool,
    fixture: str,
    headline: str,
    complaints: Sequence[str],
    notes: Callable[[], list[str]] = list,
) -> None:
    """Fail a test that passed so far, but whose client did not follow the script or the recording.

    `complaints` are the differences that fail the test; `notes` returns the differences that do not fail the test. If the
    test has `failed` already, add complaints and notes to its report, in a section named after the fixture, below the
    captured output. A complaint that is already part of the test's error is not repeated.
    """
    __tracebackhide__ = True
    raised = getattr(sys, "last_value", None)  # also of a test that was expected to fail
    failed = failed or raised is not None
    if not failed and not complaints:
        return
    untold = [line for line in complaints if _sentence(line) not in str(raised)] if failed else []
    if section := _first(untold) + _first([f"note: {note}" for note in notes()]):
        item.add_report_section("teardown", fixture, "\n".join(section))
    if not failed:
        report = "\n    ".join(_first(complaints))
        pytest.fail(f"{headline}:\n    {report}", pytrace=False)


def _sentence(complaint: str) -> str:
    """Return a complaint without the request line before it and the number of retries behind it."""
    method, _, rest = complaint.partition(" /")
    return rest.partition(": ")[2].partition(" (")[0] if method.isupper() else complaint


def _first(lines: Sequence[str], most: int = 5) -> list[str]:
    return [*lines[:most], *([f"... and {len(lines) - most} more"] if len(lines) > most else [])]
