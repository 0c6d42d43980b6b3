"""The wheel, built once, and the line that names the Python versions that ran it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wheel.environment import PYTHONS, build_wheel


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("build"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    found = config.stash.get(PYTHONS, {})
    if found:
        ran, absent = (", ".join(name for name, there in found.items() if there is which) or "none" for which in (True, False))
        terminalreporter.write_line(f"Python versions: ran on {ran}; not on this machine: {absent}.")
