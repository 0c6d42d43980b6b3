"""What a case could not read: a key that an answer does not have is the subject's failure, and is told as that.

A case reads what the specification promises, `events[0]["response"]["output"]`, without asking first whether it is there. Where
it is not, Python's own word for it, `KeyError: 'output'`, names neither the subject nor what was looked for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.core.brief import cut

#: What Python raises where a value has not the form in which it is read.
UNREAD = (KeyError, IndexError, ValueError, TypeError, AttributeError)
LONGEST = 200


def sentence(error: BaseException, path: Path, statement: str) -> str | None:
    """Return what to say of an error that a statement of the file at `path` raised; None unless a case of a suite reads there."""
    if not isinstance(error, UNREAD) or "suites" not in path.parts[:-1]:
        return None
    line = cut(" ".join(statement.split()), LONGEST)
    return f"What the subject said has not what the case reads in `{line}`: {type(error).__name__}: {error}"


def tell(report: pytest.TestReport, call: pytest.CallInfo[Any]) -> None:
    """Say it in the place of Python's word, where a report's message is taken from."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is None or call.excinfo is None:
        return
    last = call.excinfo.traceback[-1]
    said = sentence(call.excinfo.value, Path(str(last.path)), str(last.statement))
    if said is not None:
        crash.message = said
