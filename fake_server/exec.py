"""`fake-codex exec`."""

from __future__ import annotations


def run(words: list[str], overrides: list[tuple[str, str]]) -> int:
    """Run."""
    return 2
