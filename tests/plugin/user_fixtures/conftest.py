"""The tests here run as in a project that has codex-replay installed and nothing else of it."""

from __future__ import annotations

import pytest

from tests.support.suite_run import QUICK, fork_pytester, prepare_pytester


@pytest.fixture(autouse=True)
def _suites_plugin(request: pytest.FixtureRequest) -> None:
    """Leave the suites' plugin out."""
    prepare_pytester(request, QUICK)
    fork_pytester(request)
