"""The pytest plugin of the suites: options, fixtures and reports for cases.

Load this plugin with `pytest -p codex_replay.suites`.

`codex-replay run` loads it automatically. Without the plugin, pytest loads only codex-replay's fixtures `fake_codex`,
`codex_backend` and `codex_snapshot`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the module that contains the pytest hooks.

    If `-p` named the module with the hooks directly, pytest would rewrite its assertions.
    """
    from codex_replay.plugin import hooks

    pluginmanager.register(hooks, "codex-replay-hooks")
