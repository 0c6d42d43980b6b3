"""The `fake_codex` and `codex_backend` fixtures."""
