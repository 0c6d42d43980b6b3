"""`codex-replay replay`: send the messages of a recorded client to a server or a backend."""
