"""The tests here run as in a project that has codex-replay installed and nothing else of it."""

from __future__ import annotations

import pytest

from tests.plugin.user_fixtures.projects import CLIENT
from tests.support.suite_run import QUICK, fork_pytester, prepare_pytester


@pytest.fixture(autouse=True)
def _suites_plugin(request: pytest.FixtureRequest) -> None:
    """Leave the suites' plugin out."""
    prepare_pytester(request, QUICK)
    fork_pytester(request)


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project beside ours, in which codex-replay is installed and nothing else is known of it."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.delenv("CI", raising=False)  # with CI, pytest prints whole messages in its short summary
    pytester.makepyfile(client=CLIENT)
    pytester.makeini("[pytest]\nfilterwarnings = error\nasyncio_default_fixture_loop_scope = function\n")
    return pytester
