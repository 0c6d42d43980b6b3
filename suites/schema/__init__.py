"""Checks of the schema files that Codex generates."""
