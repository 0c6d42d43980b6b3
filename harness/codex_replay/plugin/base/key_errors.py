"""If an answer lacks a key that a case reads, blame the program under test, instead of showing Python's `KeyError: 'output'`.

A case reads members that the specification promises, such as `events[0]["response"]["output"]`, without first checking that they
exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from codex_replay.core.text.error_text import describe
from codex_replay.core.text.truncate import truncate

#: What Python raises where a value does not have the form in which it is read.
KEY_ERRORS = (KeyError, IndexError, ValueError, TypeError, AttributeError)
LONGEST = 200
_OURS = "codex_replay"


def sentence(error: BaseException, statement: str) -> str | None:
    """Return a sentence if `error` was raised because an answer of the program under test lacks a key or an item.

    Otherwise return None.
    """
    line, text = truncate(" ".join(statement.split()), LONGEST), truncate(describe(error, str), LONGEST)
    if isinstance(error, KeyError):
        return f"The subject sent no {describe(error.args[0] if error.args else '')}, which the case reads in `{line}`"
    if isinstance(error, IndexError):
        return f"The subject sent fewer items than the case reads in `{line}`"
    if isinstance(error, TypeError | AttributeError):
        return f"The subject sent a value of another type than the case reads in `{line}`: {text}"
    if isinstance(error, ValueError):
        return f"The subject sent a value that cannot be read in `{line}`: {text}"
    return None


def reading(paths: Sequence[Path]) -> int | None:
    """Return the index of the last file in `paths` that belongs to the suite.

    `paths` are the files of the calls that led to an error, from the outermost call to the innermost.

    Return None if the harness raised the error, because a bug of the harness is not a failure of the program under test.
    """
    for index, path in reversed(list(enumerate(paths))):
        if "suites" in path.parts[:-1]:
            return index
        if _OURS in path.parts:
            return None
    return None


def report_on(report: pytest.TestReport, call: pytest.CallInfo[Any]) -> None:
    """If `sentence` can explain the error of a case, replace the message in pytest's report by that explanation."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is None or call.excinfo is None or not isinstance(call.excinfo.value, KEY_ERRORS):
        return
    calls = call.excinfo.traceback
    found = reading([Path(str(entry.path)) for entry in calls])
    # A statement costs a parse of its whole file, so only this one is asked for.
    if found is not None and (text := sentence(call.excinfo.value, str(calls[found].statement))) is not None:
        crash.message = text
