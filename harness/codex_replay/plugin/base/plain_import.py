"""Make pytest import this package without assertion rewriting: pytest would rewrite every module of a package that contains a
plugin.

Rewriting would cost each process of a run a second if nothing is compiled yet, or if Python must not write bytecode. Rewriting
would have no benefit, because the assertions of a case are in the suites. pytest has no public way to turn it off; if the
private way is
missing, rewriting stays on."""

from __future__ import annotations

import sys


def import_plainly(package: str) -> None:
    """Exclude the modules of `package` that are not imported yet from rewriting."""
    for finder in sys.meta_path:
        marked = getattr(finder, "_must_rewrite", None)
        if isinstance(marked, set):
            marked.discard(package)


import_plainly(__name__.partition(".")[0])
