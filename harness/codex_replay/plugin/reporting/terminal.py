"""Remove secrets and control characters from pytest's output in a run of suites.

Failure reports quote the output of the program under test, which may contain secrets. pytest writes all its text with one
`TerminalWriter` object: this module replaces the method `write` of this object. If pytest runs no case of a suite, its
output stays unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codex_replay.core.redact.redactor import Redactor
from codex_replay.core.redact.sentence import sentence
from codex_replay.core.text.visible import visible

if TYPE_CHECKING:
    import pytest

_SHORT = 8  # characters: less is no secret


def escape_error(error: pytest.UsageError) -> None:
    """Remove secrets and control characters from the text of a usage error, which pytest writes after the run."""
    error.args = tuple(sentence(str(text)) for text in error.args)


def clean_lines(report: pytest.TestReport, redactor: Redactor) -> None:
    """Redact the texts of several lines in a report as a whole, because pytest writes each line alone, and a secret key may have
    many lines.
    """
    report.sections = [(name, redactor.text(text)) for name, text in report.sections]
    if isinstance(report.longrepr, str):
        report.longrepr = redactor.text(report.longrepr)
        return
    for entries, _, _ in getattr(report.longrepr, "chain", ()):
        for entry in entries.reprentries:
            entry.lines[:] = redactor.text("\n".join(entry.lines)).split("\n")


def guard(out: pytest.TerminalReporter) -> Redactor:
    """From now on, remove secrets and control characters from all output of the reporter; return the redactor."""
    writer: Any = out._tw
    write, redactor = writer.write, Redactor(homes=False)

    def plain(msg: str, *args: Any, **options: Any) -> None:
        text = redactor.text(msg) if len(msg) > _SHORT else msg
        write(visible(text, terminal=bool(writer.hasmarkup or out.isatty)), *args, **options)

    writer.write = plain
    return redactor
