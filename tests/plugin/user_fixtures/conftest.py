"""The tests here run as in a project that has codex-replay installed and nothing else of it."""

from __future__ import annotations

import pytest

from tests.support.suite_run import LEAN


@pytest.fixture(autouse=True)
def _suites_plugin(request: pytest.FixtureRequest) -> None:
    """Leave the suites' plugin out."""
    if "pytester" in request.fixturenames:
        request.getfixturevalue("pytester")  # which forgets PYTEST_ADDOPTS
        request.getfixturevalue("monkeypatch").setenv("PYTEST_ADDOPTS", LEAN)
