"""Add data to pytest's report on one phase (set-up, call or teardown) of a case, in the process that runs the case.

The plugin pytest-xdist sends the result from the worker to the controller as JSON, as a user property of the report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codex_replay.plugin.base.naming import CaseName

if TYPE_CHECKING:
    import pytest

    from codex_replay.report.data import Spec

#: The name of the user property.
PROPERTY = "codex-replay"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of one phase (set-up, call or teardown) of a case.

    `role` is the role of the program under test, or None if the suite determines the role. `title` and `spec` are set in
    the set-up phase only. `recorded` are the paths of the cassettes that the case wrote. `shown` is the part of the
    protocol that a passed case covers (see `coverage.seen`). `compared` has the expected and the actual value as text, if a
    comparison failed.
    """

    name: CaseName
    role: str | None = None
    title: str = ""
    spec: Spec | None = None
    recorded: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    compared: tuple[str, str] | None = None

    def attach(self, report: pytest.TestReport) -> None:
        """Add the result to a pytest report as JSON, without its empty fields."""
        message: dict[str, Any] = {"suite": self.name.suite, "module": self.name.module, "case": self.name.case}
        for key in ("role", "title", "spec", "recorded", "shown", "compared"):
            value = getattr(self, key)
            if value:
                message[key] = list(value) if isinstance(value, tuple) else value
        report.user_properties.append((PROPERTY, message))

    @classmethod
    def of(cls, report: pytest.TestReport) -> CaseResult | None:
        """Return the `CaseResult` that is attached to a report of pytest.

        Return None for a report that belongs to no case, and for the report on a worker that died.
        """
        message = dict(report.user_properties).get(PROPERTY)
        if not isinstance(message, dict):
            return None
        compared = message.get("compared")
        return cls(
            CaseName(message["suite"], message["module"], message["case"]),
            message.get("role"),
            message.get("title", ""),
            message.get("spec"),
            tuple(message.get("recorded", ())),
            tuple(message.get("shown", ())),
            (compared[0], compared[1]) if compared else None,
        )
