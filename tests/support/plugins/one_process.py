"""A plugin for runs of pytest of which the results count: the cases run in the process of pytest itself, whatever -n says.

A worker of pytest-xdist takes longer to start than the few cases that such a run chooses.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, Any, Any]:
    """Take the number back before pytest-xdist reads it."""
    if getattr(config.option, "numprocesses", None):
        config.option.numprocesses = 0
    return (yield)
