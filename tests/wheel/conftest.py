"""The wheel, built once by each worker, and the line that names the Python versions that ran it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.wheel.environment import build_wheel


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("build"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    def versions(outcome: str) -> list[str]:
        names = [report.nodeid for report in terminalreporter.stats.get(outcome, [])]
        return [found[1] for name in names if (found := re.search(r"test_the_wheel_works_on\[(.+)\]$", name))]

    ran, absent = sorted(versions("passed") + versions("failed")), sorted(versions("skipped"))
    if ran or absent:
        terminalreporter.write_line(
            f"Python versions: ran on {', '.join(ran) or 'none'}; not on this machine: {', '.join(absent) or 'none'}."
        )
