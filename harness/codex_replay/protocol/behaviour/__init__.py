"""Compute the differences in behaviour between two Codex versions, from the same cases run on both."""
