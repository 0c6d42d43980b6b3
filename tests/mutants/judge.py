"""Runs cases on a mutant, on their recordings, up to the first red one: those first whose check has killed most of late."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any, Protocol

import pytest
from _pytest.outcomes import Exit, OutcomeException, Skipped

from tests.mutants.recording import NotReplayable
from tests.mutants.sites import Mutant


class Recorded(Protocol):
    """What the subject of one case sent."""

    @property
    def fixture(self) -> str:
        """The fixture that a case sees it by."""

    @property
    def passes(self) -> set[str]:
        """The kinds of all that it sent."""

    def stand_in(self, nodeid: str, mutant: Mutant | None) -> Any:
        """Return what takes the fixture's place, None if the mutant changes nothing in this case."""

    def finish(self, stand_in: Any) -> None:
        """Check what the suite checks at the end of each case."""


class Case:
    """One case of a suite, with its recording."""

    def __init__(self, item: Any, recording: Recorded) -> None:
        self.item, self.recording = item, recording
        mark = item.get_closest_marker("spec")
        self.check: str = mark.args[0] if mark else item.name
        callspec = getattr(item, "callspec", None)
        params = dict(callspec.params) if callspec is not None else {}
        names = item._fixtureinfo.argnames
        self.given = {name: params[name] for name in names if name != recording.fixture and name in params}
        self.whole = set(names) == {*self.given, recording.fixture}
        self.passes = recording.passes

    def run(self, mutant: Mutant | None) -> str | None:
        """Return why the case is red on the mutant, "" if it is green, None if the mutant changes nothing in it."""
        try:
            subject = self.recording.stand_in(self.item.nodeid, mutant)
            if subject is None:
                return None
            self.item.obj(**{self.recording.fixture: subject}, **self.given)
            self.recording.finish(subject)
        except (NotReplayable, Skipped):
            return None
        except Exit:
            raise
        except (Exception, OutcomeException) as error:
            return f"{type(error).__name__}: {error}"[:300]
        return ""


class Judge:
    """Judges mutants; the order of the cases follows what has killed before."""

    def __init__(self, items: list[pytest.Item], recordings: Mapping[str, Recorded]) -> None:
        self.left_out: list[str] = []
        self._cases: dict[str, list[Case]] = defaultdict(list)
        for item in items:
            case = Case(item, recordings[item.nodeid]) if item.nodeid in recordings else None
            if case is None or not case.whole or case.run(None) != "":
                self.left_out.append(item.nodeid)
                continue
            for name in case.passes:
                self._cases[name].append(case)
        self.count = len(items) - len(self.left_out)
        self._kills: Counter[str] = Counter()

    def kill(self, mutant: Mutant) -> tuple[str, str, str] | int:
        """Return (check, case, why) of the first red case; else the number of green ones, 0 if nothing changes."""
        seen: Counter[str] = Counter()
        cases: list[tuple[int, int, int, Case]] = []
        for case in self._cases[mutant.passes]:
            cases.append((seen[case.check], -self._kills[case.check], len(cases), case))
            seen[case.check] += 1
        green = 0
        for _, _, _, case in sorted(cases, key=lambda each: each[:3]):
            why = case.run(mutant)
            if why:
                self._kills[case.check] += 1
                return case.check, case.item.nodeid, why
            green += why == ""
        return green
