"""The program `codex-replay`: an interrupt ends it with one sentence, also while it still loads."""

from __future__ import annotations

import sys

from codex_replay.cli.io.interrupted import SENTENCE, STATUS


def main() -> None:
    """Load the commands and run the one that was asked for."""
    try:
        from codex_replay.cli.main import main as command

        command()
    except KeyboardInterrupt:
        sys.stderr.write(f"{SENTENCE}\n")
        raise SystemExit(STATUS) from None
