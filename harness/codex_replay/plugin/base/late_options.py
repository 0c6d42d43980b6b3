"""Add the suites' options after those of all installed plugins, and name the plugin that has one of them already.

argparse refuses an option that is added twice, and the second plugin to add it fails with a traceback. A plugin that is loaded
with `-p` comes before the installed ones. So its options wait until those are loaded.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import pytest

from codex_replay.plugin.base.options import GROUP, add_options, option_names

if TYPE_CHECKING:
    from collections.abc import Iterator


def add_options_late(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the options when the installed plugins are loaded: at once if they are, as for a conftest.py or a pytest-xdist worker.

    Raises `pytest.UsageError` if another plugin has one of them.
    """
    known = getattr(pluginmanager.get_plugin("pytestconfig"), "known_args_namespace", None)
    late = LateOptions(parser)
    if getattr(known, "confcutdir", None) is not None:  # pytest sets it just before it loads the first conftest.py
        late.add()
    else:
        pluginmanager.register(late, "codex-replay-options")


class LateOptions:
    """Watches which plugin adds which option until it adds those of the suites."""

    def __init__(self, parser: pytest.Parser) -> None:
        self._parser = parser
        self._owners = dict.fromkeys((name for name, _ in self._others()), "")

    def _others(self) -> Iterator[tuple[str, str]]:
        """Yield the options of all other plugins, each with its group in `--help`."""
        for group in self._parser._groups:
            if group.name != GROUP:
                for option in group.options:
                    yield from ((name, group.name) for name in option.names())

    def pytest_plugin_registered(self, plugin_name: str) -> None:
        """Note which options came with this plugin."""
        for name, _ in self._others():
            self._owners.setdefault(name, plugin_name)

    def pytest_load_initial_conftests(self, early_config: pytest.Config, args: list[str]) -> None:
        """Add the options, and read the command line with them: their values are not paths."""
        self.add()
        given = self._parser.parse_known_args(args, namespace=copy.copy(early_config.option))
        given.confcutdir = early_config.known_args_namespace.confcutdir
        early_config.known_args_namespace = given

    def add(self) -> None:
        """Add the options; raises `pytest.UsageError` if another plugin has one of them."""
        taken = {name: group for name, group in self._others() if name in option_names()}
        for name, group in taken.items():
            owner = self._owners.get(name)
            plugin = f"the pytest plugin {owner!r}" if owner else f"another pytest plugin (its options are {group!r} in --help)"
            raise pytest.UsageError(
                f"The suites of codex-replay and {plugin} both have the option {name}. "
                f"Turn that plugin off for this run: add `-p no:{owner or 'NAME'}` to the command, or to PYTEST_ADDOPTS."
            )
        add_options(self._parser)
