"""Hostile lines to a scripted fake-codex: none ends it, and a whole request after each still gets an answer."""

from __future__ import annotations

from tests.fuzz.targets import fake_replaying


class Target(fake_replaying.Target):
    """The same lines, to the server that runs turns itself."""

    def _settings(self) -> dict[str, str]:
        return {}
