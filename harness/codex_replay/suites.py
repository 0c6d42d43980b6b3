"""The pytest plugin of the suites: options, fixtures and reports for cases. Load it with `pytest -p codex_replay.suites`.

`codex-replay run` loads it by itself. The plugin that is installed for every run has the fixtures `fake_codex` and
`codex_backend` alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the hooks here: pytest would rewrite the assertions of a module that an option names."""
    from codex_replay.plugin import hooks

    pluginmanager.register(hooks, "codex-replay-hooks")
