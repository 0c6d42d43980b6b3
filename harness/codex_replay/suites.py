"""The pytest plugin of the suites: options, fixtures and reports for cases. Load it with `pytest -p codex_replay.suites`.

`codex-replay run` loads it automatically. The plugin that is installed for every run has only the fixtures `fake_codex`,
`codex_backend` and `codex_snapshot`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the hooks module here. If an option named it, pytest would rewrite its assertions."""
    from codex_replay.plugin import hooks

    pluginmanager.register(hooks, "codex-replay-hooks")
