"""The first sentence of pytest's report of a case: what failed, or why the case was skipped."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

#: What Python and pytest write before the text of an exception of our own, of `pytest.fail` and of an assertion with a text.
_CLASS = re.compile(rf"\A(?:{__name__.partition('.')[0]}(?:\.\w+)+: |Failed: |AssertionError: (?!assert ))")


def message_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return why a case was skipped, or the message of its exception."""
    if report.outcome == "skipped" and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message) if crash is not None else ("" if report.longrepr is None else str(report.longrepr))
    return _CLASS.sub("", text, count=1)
