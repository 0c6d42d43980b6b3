"""`codex-replay run`: the command, the pytest process that does the work, and the live display."""
