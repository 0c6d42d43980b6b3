"""`codex-replay replay`: play the recorded client to a server or a backend."""
