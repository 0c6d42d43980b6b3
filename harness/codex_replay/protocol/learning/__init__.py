"""Derive the data tables of a Codex version from recordings of the same scenarios, each run several times."""
