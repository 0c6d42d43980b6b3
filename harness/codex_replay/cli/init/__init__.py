"""`codex-replay init`: try a subject, and write its configuration, a CI workflow and the list of its known failures."""
