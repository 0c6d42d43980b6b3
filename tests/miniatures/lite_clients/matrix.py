"""Which check of the lite client suite turns red on which broken client: `tests.miniatures.matrix` has the rest.

The reference is loaded once and forked for each run, which is twenty times faster than starting it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

import pytest

from codex_replay.plugin.lite_client.fixture import LiteClient
from codex_replay.reference.lite_client import __main__ as program
from tests.miniatures.lite_clients import broken
from tests.miniatures.matrix import FINE, Matrix, Table
from tests.support.forked import fork

#: Variants that never end, and the seconds after which that is certain.
ENDLESS = {"waits-for-ever": 3.0}
TABLE = Table("lite_clients", broken.VARIANTS)


class LiteMatrix(Matrix):
    """A variant is the first word of the command, which `execute` takes."""

    fixture = "lite_client"
    parameter = "lite_client_command"

    def subject(self, name: str) -> object:
        """Return the command of a variant."""
        return (name,)


def execute(argv: list[str], env: Mapping[str, str], cwd: str, seconds: float) -> tuple[int | None, bytes, str]:
    """Do what `LiteClient.execute` does, for `[variant, prompt]`, in a fork of this process."""

    def main() -> int:
        if argv[0] == FINE:
            return program.main(argv[1:])
        return broken.main(argv)

    pipe = subprocess.PIPE
    with fork(main, env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe) as process:
        try:
            stdout, stderr = process.communicate(timeout=ENDLESS.get(argv[0], seconds))
            status = process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            stdout, stderr = process.communicate()
            status = None
    return status, stdout, stderr.decode("utf-8", "replace").rstrip("\n")


@pytest.fixture(autouse=True)
def _forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LiteClient, "execute", staticmethod(execute))


def pytest_configure(config: pytest.Config) -> None:
    """Bring in the hooks."""
    config.pluginmanager.register(LiteMatrix(broken.VARIANTS), "matrix-hooks")


if __name__ == "__main__":
    sys.exit(TABLE.measure(sys.argv[1:]))
