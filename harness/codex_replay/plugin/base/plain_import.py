"""Stop pytest from rewriting the assertions of this package when pytest imports it.

Normally, pytest rewrites every module of a plugin's package.

If Python has no compiled modules, or must not write them, rewriting costs each process of a run one second. Rewriting would
have no benefit, because the assertions of the cases are in the suites. There is no public function of pytest that turns
rewriting off. The module uses a private attribute of pytest; if the attribute is missing, rewriting stays on.
"""

from __future__ import annotations

import sys

for _finder in sys.meta_path:
    _marked = getattr(_finder, "_must_rewrite", None)
    if isinstance(_marked, set):
        _marked.discard(__name__.partition(".")[0])
