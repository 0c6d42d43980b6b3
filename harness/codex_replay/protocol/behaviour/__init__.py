"""Find the differences in behaviour between two Codex versions: each case runs on both versions."""
