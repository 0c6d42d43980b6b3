"""Scenarios that differ are played once more; a rare race of the real server is counted, printed and bounded."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

#: Of all scenarios of a run, at most so many in a hundred may be equal at the second try only; one may always.
RARE = 2


class SecondTries:
    """The scenarios of one process by class (`played`), and those that were equal at the second try only (`raced`)."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.played: Counter[str] = Counter()
        self.raced: Counter[str] = Counter()
        self.first: list[str] = []

    def differences(self, kind: str, play: Callable[[], list[str]]) -> list[str]:
        """Return the differences of a scenario that `play` plays on both sides; those of the second try if the first differs."""
        self.played[kind] += 1
        if not (first := play()):
            return []
        if found := play():
            return found
        self.raced[kind] += 1
        self.first.append(f"{kind}: {first[0][:300]}")
        return []

    def rare(self) -> bool:
        """Return False if too many scenarios were equal at the second try only."""
        return self.raced.total() <= max(1, self.played.total() * RARE // 100)

    @contextmanager
    def reported(self, config: pytest.Config) -> Iterator[None]:
        """Print the counts at the end, and fail if the races are not rare. A worker of pytest-xdist has no stdout but stderr."""
        yield
        with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            told = ", ".join(f"{kind} {number}" for kind, number in self.raced.items()) or "none"
            lines = [f"{self.name}: {self.played.total()} scenarios; equal at the second try only: {told}", *self.first]
            sys.stderr.write("\n" + "\n".join(lines) + "\n")
        assert self.rare(), f"{self.name}: too many scenarios were equal at the second try only: {self.first}"
