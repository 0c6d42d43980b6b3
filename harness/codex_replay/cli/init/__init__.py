"""`codex-replay init`: try a proxy or a client, and write its configuration, a CI workflow and the list of its known failures."""
