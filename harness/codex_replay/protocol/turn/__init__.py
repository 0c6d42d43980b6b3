"""The events of a turn, as frames of one Codex version."""
