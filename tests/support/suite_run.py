"""How tests run a suite as its users do: pytest in a process of its own, without this project's options for its own tests."""

from __future__ import annotations

import sys

import pytest

#: The command; what to run, on what and where the report goes follow. A broken subject must not end a run before its check.
PYTEST = [
    *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=-p codex_replay.suites"),
    "--no-early-stop",
]
#: The suites and the projects of pytester use none of this plugin, which takes three times as long to load as pytest itself.
LEAN = "-p no:hypothesispytest"


def prepare_pytester(request: pytest.FixtureRequest, options: str) -> None:
    """Give these options to every pytest that a test starts by `pytester`."""
    if "pytester" not in request.fixturenames:
        return
    request.getfixturevalue("pytester")  # which forgets PYTEST_ADDOPTS
    patch = request.getfixturevalue("monkeypatch")
    patch.setenv("PYTEST_ADDOPTS", options)
    # Bytecode is stale only if the size or the second differs: a test may write its project anew within a second.
    patch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    patch.setattr(sys, "dont_write_bytecode", True)
