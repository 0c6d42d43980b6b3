"""How our own small programs are started, of which a run starts hundreds: the taps, and the server in the hand of a test."""

from __future__ import annotations

import sys
from pathlib import Path

#: Where `harness` and `fake_server` stand: a checkout, or site-packages.
ROOT = Path(__file__).resolve().parents[2]


def program(module: str) -> list[str]:
    """Return the command of a module with a `main(argv)` that imports the standard library and our own modules alone.

    Isolated and without site, as fake-codex is started, and past `-m`, whose machinery takes longer to load than the module.
    """
    code = f"import sys; sys.path.append({str(ROOT)!r}); from {module} import main; sys.exit(main(sys.argv[1:]))"
    return [sys.executable, "-I", "-S", "-c", code]
