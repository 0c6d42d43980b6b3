"""What the tests of the plugin share."""

from __future__ import annotations

import pytest

from tests.plugin.app_server.miniature import MINIATURE


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with a copy of the miniature server, whose path no other process has in its command line."""
    pytester.path.joinpath("server.py").write_bytes(MINIATURE.read_bytes())
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    return pytester
