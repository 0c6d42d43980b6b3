"""What happens in a turn, as frames of one Codex version."""
