"""What the tests of the `proxy` fixture share: a suite of one case, and its run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.processes import left_over

LEAN = ["-p", "no:cacheprovider"]


ALONE = [*LEAN, "-p", "no:xdist"]


PROXIES = Path(__file__).parents[2] / "miniatures" / "proxies"


CASE = """
    import pytest

    @pytest.mark.model("Hello there.")
    @pytest.mark.parametrize("endpoint", ["chat", "responses"])
    def test_it(proxy, endpoint):
        done = proxy.post(endpoint)
        assert "Hello there." in str(done.json)
        assert len(proxy.model_calls()) == 1
"""


def run(suite: pytest.Pytester, *options: str) -> pytest.RunResult:
    result = suite.runpytest_inprocess(*ALONE, *options)
    assert left_over(suite.path) == []
    return result
