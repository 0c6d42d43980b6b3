"""Lets pytest import our own package as Python does: it would rewrite the assertions of each module of whatever brings a plugin.

That costs each process of a run a second if nothing is compiled yet, or if Python must not write bytecode, and gains
nothing: the assertions of a case are in the suites. There is no public way to turn it off; without the private one nothing
changes.
"""

from __future__ import annotations

import sys


def import_plainly(package: str) -> None:
    """Leave the modules of `package` that are not imported yet unrewritten."""
    for finder in sys.meta_path:
        marked = getattr(finder, "_must_rewrite", None)
        if isinstance(marked, set):
            marked.discard(package)


import_plainly(__name__.partition(".")[0])
