"""Derive the tables of a Codex version from repeated runs of the same scenarios."""
