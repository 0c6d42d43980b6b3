"""Collect more results of a proxy's cases: the fields that the proxy sent, and the capabilities that the cases need."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from codex_replay.plugin.base.configuration import TABLE
from codex_replay.plugin.base.options import configuration_of, settings_of
from codex_replay.plugin.base.subjects import usage_errors
from codex_replay.plugin.proxy.subject import ProxySubject, parse_proxy
from codex_replay.plugin.reporting.session import SESSION

if TYPE_CHECKING:
    import pytest

#: The user properties of a case: the fields that it saw, and the capabilities that it needs.
FIELDS = "codex-replay-proxy-fields"
NEEDS = "codex-replay-proxy-needs"


def subject_of(config: pytest.Config) -> ProxySubject:
    """Return the proxy under test, from the option `--proxy` or the configuration.

    Raises `pytest.UsageError` if the option or the configuration is invalid.
    """
    own = configuration_of(config)
    with usage_errors():
        subject = parse_proxy(settings_of(config).proxy, own.subjects("proxy"), str(own.path))
    clients = settings_of(config).clients
    return subject if clients is None else replace(subject, clients=clients)


def needs_of(item: pytest.Item) -> list[str]:
    """Return the capabilities that a case needs, each once: those of its markers, and the endpoint if it is a parameter."""
    marked = [each for mark in item.iter_markers("needs") for each in mark.args]
    callspec = getattr(item, "callspec", None)
    endpoint = [] if callspec is None else [each for name, each in callspec.params.items() if name == "endpoint"]
    return list(dict.fromkeys([*endpoint, *marked]))


class Fields:
    """Collects the fields that the proxy sent, in the main process of the run."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.rows: dict[str, list[list[Any]]] = {}
        self.needs: list[tuple[list[str], bool]] = []  # of each case that ran: its capabilities, and whether it passed

    def advice(self) -> list[str]:
        """Return sentences of advice for the part "next" of the report (the steps that the report recommends)."""
        from codex_replay.plugin.proxy.advice import missing_capabilities, not_ready, wrong_profile

        subject, session = subject_of(self.config), self.config.stash.get(SESSION, None)
        failed = [case["message"] for case in session.verdict.cases.values() if case["outcome"] == "failed"] if session else []
        if not failed:
            return wrong_profile(self.rows)
        own = configuration_of(self.config)
        table = (
            [f"[{TABLE}.proxy.{subject.name}] of {own.path.name}"] if own.path and subject.name in own.subjects("proxy") else []
        )
        return [
            *not_ready(subject, failed, *table),
            *wrong_profile(self.rows),
            *missing_capabilities(subject, self.needs, *table),
        ]

    def for_report(self) -> dict[str, Any]:
        """Return the fields that the proxy sent, for the report; return an empty list if the proxy sent none."""
        from codex_replay.plugin.proxy.fields import as_data

        return {"proxy_fields": as_data(self.rows, subject_of(self.config).name)} if self.rows else {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the fields that the proxy sent in one case, and the capabilities that the case needs."""
        for name, found in report.user_properties:
            if name == NEEDS and report.when == "call" and not report.skipped and isinstance(found, list):
                self.needs.append((found, report.passed))
            if name == FIELDS and isinstance(found, dict):
                for profile, rows in ((profile, rows) for profile, rows in found.items() if rows):
                    self.rows.setdefault(profile, []).extend(rows)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """For each profile, print the verdicts (specified, valid, known) on every field that the proxy sent, and write them to a
        JSON file.
        """
        from codex_replay.plugin.proxy.fields import as_data, table, write

        out = terminalreporter
        for profile in sorted(self.rows):
            out.section(f"Fields that the proxy sends to app-server ({profile})")
            for line in table(self.rows[profile]):
                out.write_line(line)
        session = self.config.stash.get(SESSION, None)
        if self.rows and session is not None:
            with contextlib.suppress(OSError):  # the verdict already reported that the folder cannot be written
                out.write_line(f"Fields: {write(as_data(self.rows, subject_of(self.config).name), session.report_folder)}")
