"""Remove secrets and control characters from pytest's output in a run of suites.

Failures quote what a subject said. pytest writes all of its text through one `TerminalWriter`, so the rule is applied there.
The tests of users' own projects are left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codex_replay.core.redact.redactor import Redactor
from codex_replay.core.text.visible import visible

if TYPE_CHECKING:
    import pytest

_SHORT = 8  # characters: less is no secret


def guard(out: pytest.TerminalReporter) -> None:
    """From now on, redact and escape what the reporter writes."""
    writer: Any = out._tw
    write, redactor = writer.write, Redactor(homes=False)

    def plain(msg: str, *args: Any, **options: Any) -> None:
        text = redactor.text(msg) if len(msg) > _SHORT else msg
        write(visible(text, terminal=bool(writer.hasmarkup or out.isatty)), *args, **options)

    writer.write = plain
