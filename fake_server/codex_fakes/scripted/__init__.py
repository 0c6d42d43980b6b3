"""fake-codex with a script."""
