"""`python -m tests.strength.proxy_variants NAME` serves as that broken variant; `--list [--json]` prints the table.

Several names plant several mistakes into one proxy.
"""

from __future__ import annotations

import difflib
import importlib
import json
import pkgutil
import sys

from codex_replay.reference.proxy import __main__ as program
from tests.strength import proxy_variants
from tests.strength.proxy_variants.patching import PATCHES
from tests.strength.proxy_variants.table import TABLE, Row


def load() -> None:
    """Import all patches, so that they enter themselves."""
    for module in pkgutil.iter_modules(proxy_variants.__path__):
        if module.name.startswith("wrong_"):
            importlib.import_module(f"{proxy_variants.__name__}.{module.name}")


def main(argv: list[str]) -> int:
    """Do as the arguments say; 2 when they name no variant."""
    if argv[:1] == ["--list"]:
        print(json.dumps([row._asdict() for row in TABLE]) if "--json" in argv else "\n".join(map(_line, TABLE)))
        return 0
    load()
    for name in argv or [""]:
        if name not in PATCHES:
            near = difflib.get_close_matches(name, PATCHES, 1)
            hint = f"did you mean {near[0]}?" if near else "--list names them."
            print(f"There is no variant {name!r}; {hint}", file=sys.stderr)
            return 2
        PATCHES[name]()
    return program.main([])


def _line(row: Row) -> str:
    return f"{row.name:<36} {row.profile:<14} {row.wrong}  [{' '.join(row.hit_by)}]"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
