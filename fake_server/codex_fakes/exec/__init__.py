"""`fake-codex exec`."""
