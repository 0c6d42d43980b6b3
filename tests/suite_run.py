"""How tests run a suite as its users do: pytest in a process of its own, without this project's options for its own tests."""

from __future__ import annotations

import sys

#: The command; what to run, on what and where the report goes follow.
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts="]
