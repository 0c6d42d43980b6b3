"""Serve the fake Responses backend: `python -m codex_fakes.backend`."""

from __future__ import annotations

import sys

from codex_fakes.backend.server import main

if __name__ == "__main__":
    sys.exit(main())
