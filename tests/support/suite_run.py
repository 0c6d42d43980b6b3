"""How tests run a suite as its users do: pytest in a process of its own, without this project's options for its own tests."""

from __future__ import annotations

import sys

#: The command; what to run, on what and where the report goes follow. A broken subject must not end a run before its check.
PYTEST = [
    *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=-p codex_replay.suites"),
    "--no-early-stop",
]
#: The suites and the projects of pytester use none of this plugin, which takes three times as long to load as pytest itself.
LEAN = "-p no:hypothesispytest"
