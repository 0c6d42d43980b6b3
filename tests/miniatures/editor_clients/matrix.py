"""Which check of the editor client suite turns red on which broken editor: `tests.miniatures.matrix` has the rest.

A check is named by the id in its `spec` mark here. A variant names the modules that ought to find it, and only they are tried.
The reference is loaded once and forked for each variant, which is many times faster than starting it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from codex_replay.shell.process import subject
from tests.miniatures.editor_clients import broken
from tests.miniatures.matrix import FINE, Matrix, Table
from tests.support.forked import fork

PROGRAM = [sys.executable, broken.__file__]


def tried(variant: str) -> list[str]:
    """Return the modules whose checks are tried for a variant."""
    if variant == FINE:
        return sorted({module for modules in broken.MODULES.values() for module in modules})
    return list(broken.MODULES[variant])


#: How long a check waits for a broken client, in seconds: long enough for every one that is not.
TABLE = Table("editor_clients", broken.VARIANTS, tried, ("--wait", "3"))


def all_checks() -> set[str]:
    """Return the ids of all checks of the suite, from its text."""
    text = "\n".join(path.read_text() for path in sorted(TABLE.suite.glob("test_*.py")))
    return set(re.findall(r'mark\.spec\(\s*"([a-z-]+)"', text)) | set(re.findall(r'"(fault-[a-z-]+)"', text))


class EditorMatrix(Matrix):
    """A variant is a program that takes the place of the reference client."""

    fixture = "editor_client"
    parameter = "editor_client_command"

    def subject(self, name: str) -> object:
        """Return the command of a variant."""
        return f"{' '.join(PROGRAM)} {name} {{codex}}"

    def may_be_wanted(self, metafunc: pytest.Metafunc, variant: str) -> bool:
        """Return False where no pair has the id of the function, or its module; the ids of some are at their parameters."""
        ids = {str(mark.args[0]) for mark in getattr(metafunc.function, "pytestmark", ()) if mark.name == "spec"}
        names = {*ids, metafunc.module.__name__.rpartition("test_")[2]}
        return self.pairs is None or not ids or not names.isdisjoint(self.pairs[variant])

    def checks_of(self, item: pytest.Item) -> set[str]:
        """Return the id of the check and its module; nothing for a case without an id."""
        mark = item.get_closest_marker("spec")
        return {str(mark.args[0]), item.path.stem.removeprefix("test_")} if mark is not None else set()

    def check_of(self, report: pytest.TestReport) -> str:
        """Return the id of the check."""
        return str(dict(report.user_properties).get("check", ""))


@pytest.fixture(autouse=True, scope="session")
def _forked() -> Iterator[None]:
    """Fork the variants from this process."""

    def start(argv: list[str], **options: Any) -> subprocess.Popen[bytes]:
        if argv[:2] != PROGRAM:
            return subprocess.Popen(argv, **options)
        return fork(partial(broken.main, argv[2:]), options.pop("env"), **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subject, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": start}))
        yield


def pytest_configure(config: pytest.Config) -> None:
    """Bring in the hooks."""
    config.pluginmanager.register(EditorMatrix(broken.VARIANTS), "matrix-hooks")


if __name__ == "__main__":
    sys.exit(TABLE.measure(sys.argv[1:]))
