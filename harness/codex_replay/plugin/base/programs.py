"""How our own small programs are started, of which a run starts hundreds.

They are the taps, the server in the hand of a test, and the references; `python -m MODULE` starts the same, only later.
"""

from __future__ import annotations

import sys
from pathlib import Path

#: Where `harness` and `fake_server` stand: a checkout, or site-packages.
ROOT = Path(__file__).resolve().parents[2]


def program(module: str, *, packages: bool = False) -> list[str]:
    """Return the command of a module with a `main(argv)`, which may import installed packages only with `packages`.

    Without them it is isolated and without site, as fake-codex is started; in any case it is started past `-m`, whose
    machinery takes longer to load than the module, and the folder that it is started in does not matter.
    """
    code = f"import sys; sys.path.append({str(ROOT)!r}); from {module} import main; sys.exit(main(sys.argv[1:]))"
    return [sys.executable, *(["-P"] if packages else ["-I", "-S"]), "-c", code]
