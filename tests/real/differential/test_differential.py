"""Differential test: random scripts and clients, on the real binary and on the scripted fake; what both say must be equal.

One real server and one backend for all; the fake is started anew for each scenario, from its file. Compared is the normalised
form, in which the declared races of the real server make no difference (`tests.fakes.scripted.differing`).

The scenarios are the same in every run (derandomised), unless CODEX_REPLAY_SEED names a seed: a fixed set, small in the usual
lane and large by `make differential`. The requests to the model are compared, too (`tests.real.differential.asking`).

What the real server decides by chance is declared where it is known (`tests.fakes.scripted.differing`); there may be rarer
races. So a scenario that differs is played once more, on both sides. Equal then: a rare race, which is counted, printed and
bounded (`second_tries`). Unequal twice: a counterexample, which is shrunk and kept:
reports/differential/CLASS.{real,fake}.ndjson and CLASS.json.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.core.wire.json_text import dumps
from codex_replay.protocol.turn.frames import load_table
from codex_replay.shell.cassettes.file import CassetteWriter
from codex_replay.shell.codex.cache import find_installed
from codex_replay.shell.codex.home import HermeticHome
from codex_replay.shell.codex.origin import bundle_of
from codex_replay.shell.http.backend_process import BackendProcess
from codex_replay.shell.rpc.client import Client
from tests.fakes.scripted.conversing import Conversation, initialize
from tests.fakes.scripted.differing import differences
from tests.fakes.scripted.in_process import InProcess
from tests.real.differential import asking, corners, lives, vocabulary
from tests.real.differential.scenarios import KINDS as PLAIN
from tests.real.differential.scenarios import numbered
from tests.support.second_tries import SecondTries

FAKE = str(Path(sys.executable).with_name("fake-codex"))
REPORTS = Path(__file__).parents[3] / "reports" / "differential"
#: The classes of scenarios.
KINDS = {**PLAIN, **corners.KINDS, **lives.KINDS}
#: So many scenarios of each class, of which there are 38, and of lives of threads half as many: each is several turns long. `make
#: differential` asks for 40.
USUAL = 12
SCENARIOS = int(os.environ.get("CODEX_REPLAY_SCENARIOS", USUAL))
#: What differs from run to run: ids and times.
NAMES = re.compile(rb'[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{10}|\d{4}-\d\d-\d\dT[^"]*')
WAIT = 60.0
#: Another seed gives other scenarios; without one they are the same in every run.
SEED = os.environ.get("CODEX_REPLAY_SEED")
TRIES = SecondTries("differential, 0.92.0")


class Real:
    """The real server, with our backend as its model; `play` runs a scenario in a directory of its own."""

    def __init__(self, root: Path, backend: BackendProcess) -> None:
        self.session = backend.session("differential", [])
        self.home = HermeticHome(root / "real", self.session.url)
        self.client = Client(
            [str(find_installed("0.92.0")), "app-server"], env=self.home.env, cwd=str(self.home.work), timeout=WAIT
        )
        initialize(self.client)
        self._numbers = itertools.count()
        self.since = 0

    def asked(self) -> list[dict[str, Any]]:
        """Return the requests to the model of the scenario that was played last."""
        return [entry for entry in self.session.ledger(since=self.since) if entry["path"].endswith("/responses")]

    def play(self, scenario: dict[str, Any]) -> list[Frame]:
        self.since = max([entry["n"] for entry in self.session.ledger(since=self.since)], default=self.since)
        number = next(self._numbers)
        scenario = numbered(scenario, number)
        self.session.script(scenario["script"])
        work = self.home.work / str(number)
        work.mkdir()
        vocabulary.fill(work)
        begin = len(self.client.timeline)
        Conversation(self.client, scenario["conversation"], str(work), self.session).play()
        # An amendment is a rule for every thread to come, and a thread that is kept is listed beside every thread to come.
        for folder in ("rules", "sessions", "archived_sessions"):
            shutil.rmtree(self.home.home / folder, ignore_errors=True)
        return self.client.timeline[begin:]


def play_fake(root: Path, url: str, scenario: dict[str, Any]) -> tuple[list[Frame], list[dict[str, Any]]]:
    """Run a scenario on the scripted fake, as a program; return its frames and its requests to the model."""
    home = HermeticHome(root, url)
    script = root / "script.json"
    cwd = str(home.work / "0")
    script.write_bytes(dumps(scenario["script"]).replace(b"{cwd}", cwd.encode()))  # `vocabulary` has results with the directory
    ledger = root / "ledger.ndjson"
    env = {**home.env, "FAKE_CODEX_SCRIPT": str(script), "FAKE_CODEX_LEDGER": str(ledger)}
    client = Client([FAKE, "app-server"], env=env, cwd=str(home.work), timeout=WAIT)
    try:
        initialize(client)
        begin = len(client.timeline)
        # As with the real one: another place than the server's own, which some threads have.
        Conversation(client, scenario["conversation"], cwd).play()
        client.close()
        return client.timeline[begin:], [json.loads(line) for line in ledger.read_text().splitlines()]
    finally:
        client.stop()


def play_mutated(root: Path, url: str, scenario: dict[str, Any], table: Any) -> list[Frame]:
    """Run a scenario on the scripted fake, within this process and with another table."""
    home = HermeticHome(root, url)
    script = root / "script.json"
    script.write_bytes(dumps(scenario["script"]))
    client = InProcess(script, home.home, str(home.work), table)
    initialize(client)
    begin = len(client.timeline)
    Conversation(client, scenario["conversation"], str(home.work / "0")).play()
    return client.timeline[begin:]


def keep(kind: str, scenario: dict[str, Any], real: list[Frame], fake: list[Frame]) -> None:
    """Keep a counterexample; the one that is kept last is the smallest."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    name = kind.replace(" ", "-")
    (REPORTS / f"{name}.json").write_text(json.dumps(scenario, ensure_ascii=False, indent=1))
    for side, frames, origin in (("real", real, "recorded"), ("fake", fake, "authored")):
        header = Header("0.92.0", bundle_of("0.92.0"), f"differential/{name}", {"rpc.client": "authored", "rpc.server": origin})
        with CassetteWriter(REPORTS / f"{name}.{side}.ndjson", header) as writer:
            for frame in frames:
                writer.write(frame)


# -- the tests ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    with BackendProcess() as backend:
        found = Real(tmp_path_factory.mktemp("differential"), backend)
        try:
            yield found
        finally:
            found.client.stop()


@pytest.fixture(scope="module", autouse=True)
def counted(pytestconfig: pytest.Config) -> Iterator[None]:
    with TRIES.reported(pytestconfig):
        yield


def test_the_vocabulary_is_what_the_real_binary_gives(tmp_path: Path) -> None:
    with BackendProcess() as backend:
        session = backend.session("vocabulary", vocabulary.script())
        home = HermeticHome(tmp_path, session.url)
        client = Client([str(find_installed("0.92.0")), "app-server"], env=home.env, cwd=str(home.work), timeout=WAIT)
        try:
            initialize(client)
            found = vocabulary.record(client, home.work, lambda: vocabulary.model_told(session))
        finally:
            client.stop()
    assert found == vocabulary.load()


@pytest.mark.parametrize("kind", KINDS)
def test_the_fake_says_what_the_real_one_says(kind: str, real: Real, tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("fake")
    numbers = itertools.count()

    @(lambda test: test if SEED is None else seed(int(SEED))(test))
    @settings(
        max_examples=SCENARIOS // 2 if kind in lives.KINDS else SCENARIOS,
        deadline=None,
        database=None,
        derandomize=SEED is None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(KINDS[kind])
    def check(scenario: dict[str, Any]) -> None:
        assert TRIES.differences(kind, lambda: once(scenario)) == [], "the fake differs from the real server, twice"

    def once(scenario: dict[str, Any]) -> list[str]:
        imitating = beside.submit(play_fake, root / str(next(numbers)), real.session.url, scenario)
        said = real.play(scenario)
        asked = real.asked()
        imitated, wanted = imitating.result()
        found = differences(kind, said, imitated) + asking.differences(asked, wanted)
        if found:
            keep(kind, scenario, said, imitated)
            (REPORTS / f"{kind.replace(' ', '-')}.txt").write_text("\n".join(found))
        return found

    with ThreadPoolExecutor(1) as beside:
        check()


def test_a_mutated_row_is_found(real: Real, tmp_path: Path) -> None:
    """Each mutation of the mapping shows against the real binary in one scenario of the class that it belongs to."""
    for number, (kind, row, change) in enumerate(MUTATIONS):
        scenario = next(iter(_examples(kind)))
        table = load_table()
        imitated = play_mutated(tmp_path / f"{number}a", real.session.url, scenario, table)
        said = _equal_to(imitated, kind, real, scenario)
        change(table["frames"][row])
        assert differences(kind, said, play_mutated(tmp_path / f"{number}b", real.session.url, scenario, table)) != [], (
            kind,
            row,
        )


@pytest.mark.parametrize("kind", lives.BROKEN)
def test_a_broken_life_is_found(kind: str, real: Real, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each class of lives of threads shows what is wrong in its part of the fake, in one of its scenarios in the usual lane."""
    url, table = real.session.url, load_table()

    def imitated(scenario: dict[str, Any], number: str, broken: bool) -> list[Frame]:
        with monkeypatch.context() as patched:
            if broken:
                lives.BROKEN[kind](patched)
            return play_mutated(tmp_path / number, url, scenario, table)

    for n, scenario in enumerate(_examples(kind, USUAL // 2)):
        sides = [(broken, imitated(scenario, f"{n}{broken}", broken)) for broken in (False, True)]
        (_, right), (_, wrong) = sides
        roughly = [[NAMES.sub(b"", f.raw.replace(str(tmp_path / f"{n}{b}").encode(), b"")) for f in side] for b, side in sides]
        if roughly[0] != roughly[1] and differences(kind, right, wrong):
            break
    else:
        pytest.fail("no scenario shows it")
    assert differences(kind, _equal_to(right, kind, real, scenario), wrong) != []


def _equal_to(imitated: list[Frame], kind: str, real: Real, scenario: dict[str, Any]) -> list[Frame]:
    """Return what the real server says, which must be equal to what the fake says."""
    said = list[Frame]()

    def play() -> list[str]:
        said[:] = real.play(scenario)
        return differences(kind, said, imitated)

    assert TRIES.differences(kind, play) == []
    return said


def _examples(kind: str, count: int = 1) -> Iterator[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    @settings(
        max_examples=count, database=None, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        found.append(data.draw(KINDS[kind]))

    draw()
    return iter(found)


def _drop(rows: list[Any]) -> None:
    rows.pop()


def _swap(rows: list[Any]) -> None:
    rows[0], rows[1] = rows[1], rows[0]


def _other_key(rows: list[Any]) -> None:
    rows[0]["msg"]["other"] = rows[0]["msg"].pop(next(iter(rows[0]["msg"])))


def _other_value(rows: list[Any]) -> None:
    rows[0]["msg"]["turn_id"] = "$thread"


MUTATIONS = [
    ("text", "agent-message-delta", _swap),
    ("text", "agent-message-delta", _drop),
    ("text", "user-message", _drop),
    ("text", "agent-message-completed", _other_value),
    ("text", "task-complete", _swap),
    ("plan", "plan", _other_key),
    ("plan", "usage", _drop),
    ("raw items", "raw-item", _drop),
    ("raw items", "raw-item", _other_key),
]
