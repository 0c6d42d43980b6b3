"""Runs cases on a mutant, on their recordings, up to the first red one: those first whose check has killed most of late."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest
from _pytest.outcomes import Exit, OutcomeException, Skipped

from codex_replay.plugin.proxy.fixture import marker_of
from codex_replay.plugin.proxy.http import Exchange
from tests.mutants.answers import answer_kind
from tests.mutants.calls import CALLS
from tests.mutants.recording import NotReplayable, Recording, Replayed
from tests.mutants.sites import Mutant


class Case:
    """One case of the suite, with its recording."""

    def __init__(self, item: Any, recording: Recording) -> None:
        self.item, self.recording = item, recording
        mark = item.get_closest_marker("spec")
        self.check: str = mark.args[0] if mark else item.name
        callspec = getattr(item, "callspec", None)
        params = dict(callspec.params) if callspec is not None else {}
        self.given = {name: params[name] for name in item._fixtureinfo.argnames if name != "proxy" and name in params}
        self.whole = set(item._fixtureinfo.argnames) == {*self.given, "proxy"}
        sent = [
            f for f in [*recording.handshake, *(f for done in recording.exchanges for f in done.frames)] if f.sender == "client"
        ]
        methods = {str(f.value.get("method")) for f in sent if isinstance(f.value, dict)}
        specified = recording.profile == "as-specified"
        answers = {answer_kind(done) for done in recording.exchanges if done.status}
        self.passes = answers | (methods & {*CALLS, "initialize", "initialized"} if specified else set())

    def run(self, mutant: Mutant | None) -> str | None:
        """Return why the case is red on the mutant, "" if it is green, None if the mutant changes nothing in it."""
        handshake, answers = self.recording.handshake, self.recording.exchanges
        if mutant is not None:
            answers = [mutant.mutation(done) for done in answers]
            hands = Exchange("", "", None, frames=handshake)
            changed = mutant.mutation(hands) if mutant.passes.startswith("initialize") else hands
            if changed is hands and all(a is b for a, b in zip(answers, self.recording.exchanges, strict=True)):
                return None
            handshake = changed.frames
        proxy = Replayed(self.recording, marker_of(self.item.nodeid), handshake, answers)
        try:
            self.item.obj(proxy=proxy, **self.given)
        except (NotReplayable, Skipped):
            return None
        except Exit:
            raise
        except (Exception, OutcomeException) as error:
            return f"{type(error).__name__}: {error}"[:300]
        return ""


class Judge:
    """Judges mutants; the order of the cases follows what has killed before."""

    def __init__(self, items: list[pytest.Item], recordings: dict[str, Recording]) -> None:
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
        cases = []
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
