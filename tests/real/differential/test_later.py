"""Random scenarios on the real 0.169.0 and on the scripted fake of it: their frames must be equal.

A scenario that differs is played once more, as for 0.92 (`second_tries`). `CODEX_REPLAY_SCENARIOS` asks for more of each
class, `CODEX_REPLAY_SEED` for others.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from codex_replay.core.cassette.frames import Frame
from codex_replay.shell.http.backend_process import BackendProcess
from tests.real.differential import later, later_commands, later_corners, later_lists
from tests.real.differential.later import Both
from tests.real.differential.later_differing import VERSION, differences
from tests.support import later_wrong
from tests.support.second_tries import SecondTries

FAKE = str(Path(sys.executable).with_name("fake-codex"))
SCENARIOS = int(os.environ.get("CODEX_REPLAY_SCENARIOS", "3"))
SEED = os.environ.get("CODEX_REPLAY_SEED")
#: The classes of scenarios.
KINDS = {**later.KINDS, **later_corners.KINDS, **later_lists.KINDS, **later_commands.KINDS, **later_wrong.KINDS}
TRIES = SecondTries(f"differential, {VERSION}")


@pytest.fixture(scope="module", autouse=True)
def counted(pytestconfig: pytest.Config) -> Iterator[None]:
    with TRIES.reported(pytestconfig):
        yield


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with BackendProcess() as backend:
        yield Both(tmp_path_factory.mktemp("later"), VERSION, backend, FAKE)


@pytest.mark.parametrize("kind", KINDS)
def test_the_fake_says_what_the_real_one_says(kind: str, both: Both) -> None:
    @(lambda test: test if SEED is None else seed(int(SEED))(test))
    @settings(
        max_examples=SCENARIOS,
        deadline=None,
        database=None,
        derandomize=SEED is None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(KINDS[kind])
    def check(scenario: dict[str, Any]) -> None:
        found = TRIES.differences(kind, lambda: differences(*both.play(scenario)))
        assert found == [], (scenario, "differs twice")

    check()


def test_a_changed_frame_is_found(both: Both) -> None:
    scenario = {"script": [{"items": ["Hello."]}], "conversation": {"api": "v2", "steps": [{"text": "Go."}]}}
    real, fake = both.play(scenario)
    assert differences(real, fake) == []
    changed = [
        Frame(f.n, f.t, f.seam, f.sender, f.kind, f.raw.replace(b'"itemsView":"summary"', b'"itemsView":"full"')) for f in fake
    ]
    assert differences(real, changed) != []
    assert differences(real, fake[:-1]) != []


def test_a_second_try_is_counted_and_must_be_rare() -> None:
    tries = SecondTries("")
    found = iter([["a"], [], [], ["b"], ["c"], ["d"], []])
    assert [tries.differences("kind", lambda: next(found)) for _ in range(4)] == [[], [], ["c"], []]
    assert (tries.played, tries.raced, tries.first) == ({"kind": 4}, {"kind": 2}, ["kind: a", "kind: d"])
    assert not tries.rare()
    tries.raced["kind"] = 1
    assert tries.rare()
