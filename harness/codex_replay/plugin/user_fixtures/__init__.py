"""The fixtures for the tests of other projects: `fake_codex` and `codex_backend`."""
