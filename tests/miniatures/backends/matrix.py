"""Which check of the backend suite turns red on which broken backend: `tests.miniatures.matrix` has the rest.

The fake is loaded once and forked for each variant, which is ten times faster than starting it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from codex_replay.shell.http import backend_process
from tests.miniatures.backends import broken
from tests.miniatures.matrix import FINE, Matrix, Table
from tests.support.forked import fork

PROGRAM = (sys.executable, broken.__file__)
#: A broken backend may never answer; the wait is far longer than an answer of the fake takes.
TABLE = Table("backends", broken.VARIANTS, options=("--wait", "4"))


class BackendMatrix(Matrix):
    """A variant is a program that takes the place of the fake backend."""

    fixture = "backend"
    parameter = "backend_subject"

    def subject(self, name: str) -> object:
        """Return the command of a variant; the fake itself needs none."""
        return () if name == FINE else (*PROGRAM, name)


@pytest.fixture(autouse=True, scope="session")
def _forked() -> Iterator[None]:
    """Fork the variants from this process."""
    for name in broken.MODULES:
        getattr(broken.server, name)  # loaded before the first fork

    def start(argv: list[str], **options: Any) -> subprocess.Popen[bytes]:
        if tuple(argv[:2]) != PROGRAM:
            return subprocess.Popen(argv, **options)
        unused = ("env", "start_new_session")
        return fork(partial(broken.main, argv[2:]), **{key: each for key, each in options.items() if key not in unused})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend_process, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": start}))
        yield


def pytest_configure(config: pytest.Config) -> None:
    """Bring in the hooks."""
    config.pluginmanager.register(BackendMatrix(broken.VARIANTS), "matrix-hooks")


if __name__ == "__main__":
    sys.exit(TABLE.measure(sys.argv[1:]))
