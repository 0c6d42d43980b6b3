"""Start the small programs of codex-replay fast, because a run starts hundreds of them.

The small programs are the taps, the byte server, the reference programs and the fake backend. `python -m MODULE` would
start the same programs more slowly.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path


def _roots(names: Iterable[str]) -> list[str]:
    """Return the folders that contain the given packages or modules, without importing them."""
    specs = [spec for name in names if (spec := find_spec(name)) is not None]
    places = [place for spec in specs for place in (spec.submodule_search_locations or [spec.origin or ""])]
    return list(dict.fromkeys(str(Path(place).resolve().parent) for place in places))


#: The folders of our packages: two in a checkout, else one (site-packages).
ROOTS = _roots(["codex_replay", "codex_fakes"])


def program(module: str, *, packages: bool = False, using: Iterable[str] = ()) -> list[str]:
    """Return the command that runs a module with a function `main(argv)`.

    The module may import the packages in `using`; with `packages`, it may import all installed packages. Without
    `packages`, Python runs isolated and without site, in the same way as for fake-codex. The command works in any working
    directory. The command does not use `-m`, because `-m` takes longer to load than the module itself.
    """
    roots = list(dict.fromkeys([*ROOTS, *_roots(using)]))
    code = f"import sys; sys.path += {roots!r}; from {module} import main; sys.exit(main(sys.argv[1:]))"
    return [sys.executable, *(["-P"] if packages else ["-I", "-S"]), "-c", code]
