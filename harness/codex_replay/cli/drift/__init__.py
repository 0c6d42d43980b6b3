"""`codex-replay drift`, and the published table of the drift between many Codex versions."""
