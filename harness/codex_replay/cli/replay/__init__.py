"""`codex-replay replay`: the recorded client played to a server or a backend."""
