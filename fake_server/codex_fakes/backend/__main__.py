"""Serve the fake Responses backend: `python -m codex_fakes.backend`."""

from __future__ import annotations

import gc
import sys


def main(argv: list[str] | None = None) -> int:
    """Run the program; return its exit status."""
    gc.disable()  # imports leave no garbage to look for; the server sets its own threshold
    from codex_fakes.backend.server import main as serve

    return serve(argv)


if __name__ == "__main__":
    sys.exit(main())
