"""`codex-replay drift`, and the published matrix of drift."""
