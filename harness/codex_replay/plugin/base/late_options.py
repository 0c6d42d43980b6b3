"""Add the suites' options after those of all installed plugins, and name a plugin that already has one of them.

argparse refuses an option that is added twice, and the second plugin to add it fails with a traceback. A plugin that is loaded
with `-p` comes before the installed ones. The options of such a plugin must therefore wait until the installed plugins are
loaded.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import pytest

from codex_replay.plugin.base.options import GROUP, add_options, option_names

if TYPE_CHECKING:
    from collections.abc import Iterator


def add_options_late(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the options once the installed plugins are loaded; for a conftest.py or a pytest-xdist worker they are loaded already.

    Raises `pytest.UsageError` if another plugin already has one of the options.
    """
    known = getattr(pluginmanager.get_plugin("pytestconfig"), "known_args_namespace", None)
    late = LateOptions(parser)
    if getattr(known, "confcutdir", None) is not None:  # pytest sets it just before it loads the first conftest.py
        late.add()
    else:
        pluginmanager.register(late, "codex-replay-options")


class LateOptions:
    """Records which plugin adds which option, until the suites' options are added."""

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
        """Note the options that this plugin added."""
        for name, _ in self._others():
            self._owners.setdefault(name, plugin_name)

    def pytest_load_initial_conftests(self, early_config: pytest.Config, args: list[str]) -> None:
        """Add the options, and parse the command line with them, so that their values are not mistaken for paths."""
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
