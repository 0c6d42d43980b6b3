"""Small suites with the miniature server as their app-server."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.support.processes import left_over

MINIATURE = Path(__file__).parents[2] / "miniatures" / "server.py"
# Other plugins of this environment have no part in it.
ALONE = [word for name in ("xdist", "cacheprovider", "asyncio", "syrupy", "hypothesispytest") for word in ("-p", f"no:{name}")]
GOOD = """
    def test_hello(app_server):
        server = app_server()
        assert server.initialize() == {"userAgent": "miniature/1"}
        assert server.request("turn/start", {}) == {}
"""


def subject(suite: pytest.Pytester, way: str = "") -> str:
    return f"{sys.executable} -I {suite.path / 'server.py'} {way}".strip()


def run(suite: pytest.Pytester, *options: str, way: str = "") -> pytest.RunResult:
    """Run on the miniature server, in this process; nothing of it may be left."""
    if not any(option.startswith("--app-server") for option in options):
        options = ("--app-server", subject(suite, way), *options)
    result = suite.runpytest_inprocess(*ALONE, *options)
    assert left_over(suite.path / "server.py") == []
    return result


def report(suite: pytest.Pytester) -> dict:
    (path,) = suite.path.glob("reports/*/report.json")
    return json.loads(path.read_text())
