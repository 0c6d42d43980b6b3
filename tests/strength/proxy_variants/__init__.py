"""Broken variants of the reference proxy, one small wrong behaviour each.

`python -m tests.strength.proxy_variants NAME` runs one, from the root of the checkout. They prove the checks of the suite for
proxies: the checks that a variant's line in the table names must find it (docs/strength.md). A variant patches functions of the
honest proxy before the proxy starts; the honest proxy does not know the variants.

    table       the one table: name, profile, what is wrong, which checks must see it
    patching    how a patch is entered under its name
    wrong_*     the patches, by what they spoil
"""

from __future__ import annotations

import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[3]


def command(name: str) -> list[str]:
    """Return the command that runs a variant from any working directory."""
    return ["env", f"PYTHONPATH={_ROOT}", sys.executable, "-P", "-m", __name__, name]
