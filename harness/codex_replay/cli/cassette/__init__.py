"""`codex-replay cassette`: a module for each verb."""
