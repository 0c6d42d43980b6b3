"""The program `codex-replay`; an interrupt ends the program with one sentence, even while modules are still loading."""

from __future__ import annotations

import gc
import sys

from codex_replay.cli.io.interrupted import SENTENCE, STATUS


def main() -> None:
    """Load the commands and run the requested command."""
    gc.disable()  # until the command is loaded: imports leave no garbage, and looking for it is a twelfth of their time
    try:
        from codex_replay.cli.main import main as command

        command()
    except KeyboardInterrupt:
        sys.stderr.write(f"{SENTENCE}\n")
        raise SystemExit(STATUS) from None
