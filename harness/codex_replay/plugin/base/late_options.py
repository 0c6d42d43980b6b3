"""Add the suites' options to pytest after the options of all installed plugins, and name the plugin if one option already exists.

If two plugins add the same option, `argparse` raises an error with a traceback in the second plugin. A plugin that is named
by `-p` is loaded before the installed plugins.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import pytest

from codex_replay.plugin.base.options import GROUP, add_options, option_names

if TYPE_CHECKING:
    from collections.abc import Iterator


def add_options_late(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the options now if the installed plugins are loaded (in a conftest.py or a pytest-xdist worker).

    Otherwise add them later.

    Raises `pytest.UsageError` if another plugin already has one of the options.
    """
    known = getattr(pluginmanager.get_plugin("pytestconfig"), "known_args_namespace", None)
    late = LateOptions(parser)
    if getattr(known, "confcutdir", None) is not None:  # pytest sets it just before it loads the first conftest.py
        late.add()
    else:
        pluginmanager.register(late, "codex-replay-options")


class LateOptions:
    """Notes which plugin adds which option, until the suites' options are added."""

    def __init__(self, parser: pytest.Parser) -> None:
        self._parser = parser
        self._count = self._options()
        self._owners = dict.fromkeys((name for name, _ in self._others()), "")

    def _others(self) -> Iterator[tuple[str, str]]:
        """Yield the options of all other plugins, each with its group in `--help`."""
        for group in self._parser._groups:
            if group.name != GROUP:
                for option in group.options:
                    yield from ((name, group.name) for name in option.names())

    def _options(self) -> int:
        return sum(len(group.options) for group in self._parser._groups)

    def pytest_plugin_registered(self, plugin_name: str) -> None:
        """Record which options a newly loaded plugin has added."""
        if self._count == (count := self._options()):  # most plugins add none
            return
        self._count = count
        for name, _ in self._others():
            self._owners.setdefault(name, plugin_name)

    def pytest_load_initial_conftests(self, early_config: pytest.Config, args: list[str]) -> None:
        """Add the options, and parse the command line again, so that pytest does not take the values of the options for paths."""
        self.add()
        given = self._parser.parse_known_args(args, namespace=copy.copy(early_config.option))
        given.confcutdir = early_config.known_args_namespace.confcutdir
        early_config.known_args_namespace = given

    def add(self) -> None:
        """Add the options of the suites; raises `pytest.UsageError` if another plugin already has one of them."""
        taken = {name: group for name, group in self._others() if name in option_names()}
        for name, group in taken.items():
            owner = self._owners.get(name)
            plugin = f"the pytest plugin {owner!r}" if owner else f"another pytest plugin (its options are {group!r} in --help)"
            raise pytest.UsageError(
                f"The suites of codex-replay and {plugin} both have the option {name}. "
                f"Turn that plugin off for this run: add `-p no:{owner or 'NAME'}` to the command, or to PYTEST_ADDOPTS."
            )
        add_options(self._parser)
