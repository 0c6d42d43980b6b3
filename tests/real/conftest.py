"""Tests that need the real Codex binary: run by `make real`, deselected (and counted as such) otherwise."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def _asked_for(config: pytest.Config) -> bool:
    if os.environ.get("CODEX_REPLAY_REAL") == "1":
        return True
    paths = [Path(config.invocation_params.dir, arg.split("::")[0]).resolve() for arg in config.args]
    return any(path == HERE or HERE in path.parents for path in paths)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if _asked_for(config):
        return
    real = [item for item in items if HERE in item.path.parents]
    if real:
        items[:] = [item for item in items if HERE not in item.path.parents]
        config.hook.pytest_deselected(items=real)
