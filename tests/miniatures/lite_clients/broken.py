"""Lite clients that are wrong in one small way each: `python broken.py NAME PROMPT` is the reference with NAME done to it.

Every variant is a function in one of the modules `wrong_*`, whose docstring says what it does wrong; it patches the reference by
name. matrix.py tells which checks of the suite see it.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from codex_replay.reference.lite_client import __main__ as program
from tests.miniatures.lite_clients import (
    wrong_body,
    wrong_faults,
    wrong_follow_ups,
    wrong_identity,
    wrong_refresh,
    wrong_streams,
    wrong_websockets,
)
from tests.miniatures.lite_clients.patching import VARIANTS

#: Importing them has filled the table.
MODULES = (wrong_identity, wrong_body, wrong_streams, wrong_follow_ups, wrong_refresh, wrong_faults, wrong_websockets)


def main(argv: list[str]) -> int:
    if not argv or argv[0] not in VARIANTS:
        sys.stderr.write(f"Give one of these, and a prompt: {', '.join(VARIANTS)}.\n")
        return 2
    VARIANTS[argv[0]]()
    return program.main(argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
