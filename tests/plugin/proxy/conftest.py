"""A project with one case for a proxy."""

from __future__ import annotations

import pytest

from tests.plugin.proxy.runs import CASE, PROXIES


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    pytester.makepyfile(test_it=CASE)
    pytester.path.joinpath("bad_proxy.py").write_bytes((PROXIES / "bad_proxy.py").read_bytes())
    return pytester
