"""Start our own small programs fast, because a run starts hundreds of them.

They are the taps, the server in the hand of a test, and the references; `python -m MODULE` starts the same, only later.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path


def _roots() -> list[str]:
    """Return the folders that contain `codex_replay` and `codex_fakes`: two in a checkout, else one (site-packages)."""
    roots = [str(Path(__file__).resolve().parents[3])]
    fakes = find_spec("codex_fakes")  # found, not imported
    for place in (fakes.submodule_search_locations or ()) if fakes else ():
        if (root := str(Path(place).resolve().parent)) not in roots:
            roots.append(root)
    return roots


#: The folders of our packages.
ROOTS = _roots()


def program(module: str, *, packages: bool = False) -> list[str]:
    """Return the command of a module with a `main(argv)`, which may import installed packages only with `packages`.

    Without them it is isolated and without site, as fake-codex is started; in any case it is started past `-m`, whose
    machinery takes longer to load than the module, and the folder that it is started in does not matter.
    """
    code = f"import sys; sys.path += {ROOTS!r}; from {module} import main; sys.exit(main(sys.argv[1:]))"
    return [sys.executable, *(["-P"] if packages else ["-I", "-S"]), "-c", code]
