"""Write the first sentence of pytest's report on a case.

The sentence describes the failure, or the reason why the case was skipped.

Without the title, pytest would report an assertion without a message as `assert '' == 'Two.'`. The sentence for a failed
assertion begins with the title of the case, because the title states the requirement.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from codex_replay.core.text.error_text import describe
from codex_replay.core.text.truncate import excerpts, truncate

if TYPE_CHECKING:
    import pytest

#: What Python and pytest write before the text of an exception of our own, of `pytest.fail` and of an assertion with a text.
_CLASS = re.compile(rf"\A(?:{__name__.partition('.')[0]}(?:\.\w+)+: |Failed: |AssertionError: (?!assert ))")
#: How many characters of a value are shown, and how many of them before the place where two values differ.
LONGEST_VALUE, BEFORE = 160, 40


def required(text: str, title: str, compared: tuple[Any, Any] | None) -> str | None:
    """Return the sentence for an assertion error with the given `text`, or None if the assertion already has a message.

    `title` is the title of the case. `compared` has the expected and the actual value, if the assertion compared two
    values.
    """
    line = text.partition("\n")[0]
    if not line.startswith("assert "):
        return None
    if compared is None:
        found = f"This is false: {truncate(line.removeprefix('assert '), LONGEST_VALUE)}"
    else:
        texts = [describe(value) for value in compared]
        if max(map(len, texts)) > LONGEST_VALUE:
            texts = [describe(value) for value in _differing(*compared)]
        expected, actual = excerpts(texts, LONGEST_VALUE, BEFORE)
        found = f"Expected {expected}, actual {actual}"
    return f"Not met: {title} {found}."


def _differing(expected: Any, actual: Any) -> tuple[Any, Any]:
    """Return two objects with only the members that differ, and any other values unchanged."""
    if not (type(expected) is type(actual) is dict):
        return expected, actual
    left: dict[Any, Any] = {}
    right: dict[Any, Any] = {}
    for key in expected | actual:
        if key not in actual:
            left[key] = expected[key]
        elif key not in expected:
            right[key] = actual[key]
        else:
            one, other = _differing(expected[key], actual[key])
            if describe(one) != describe(other):  # not `one != other`, because a case may compare values of any type
                left[key], right[key] = one, other
    return left, right


def explain(report: pytest.TestReport, error: BaseException, title: str, compared: tuple[Any, Any] | None) -> None:
    """If an assertion has no message, put a sentence about the failure before pytest's text."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is None or type(error) is not AssertionError:
        return
    text = describe(error, str)
    sentence = required(text, title, compared if " == " in text else None)
    if sentence is not None:
        crash.message = f"{sentence}\n{crash.message}"


def message_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return why a case was skipped, or the message of its exception."""
    if report.outcome == "skipped" and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message) if crash is not None else ("" if report.longrepr is None else str(report.longrepr))
    return _CLASS.sub("", text, count=1)
