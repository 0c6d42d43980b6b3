"""fake-codex with a cassette."""
