"""fake-codex answers lines that no well-behaved client sends as the real Codex does, in both modes, and goes on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from codex_replay.core.wire.serde import read
from codex_replay.shell.codex.home import HermeticHome
from tests.fakes.stdio.bad_lines import Server, lines, rows

FAKE = [str(Path(sys.executable).with_name("fake-codex")), "app-server"]
CASSETTE = Path(__file__).parents[3] / "cassettes" / "app_server" / "test_methods" / "user_agent.ndjson"
NOT_RECORDED = -32001


@pytest.fixture
def home(tmp_path: Path) -> HermeticHome:
    return HermeticHome(tmp_path / "home", "http://127.0.0.1:9")


@pytest.fixture
def scripted(home: HermeticHome) -> Iterator[Server]:
    server = Server(FAKE, home.env, str(home.work))
    yield server
    server.close()


@pytest.fixture
def replaying(home: HermeticHome) -> Iterator[Server]:
    server = Server(FAKE, {**home.env, "FAKE_CODEX_CASSETTE": str(CASSETTE)}, str(home.work))
    yield server
    server.close()


def test_the_rows_are_those_of_the_lines() -> None:
    """A line that is added without asking the real server is found."""
    assert [row["line"] for row in rows()] == lines()
    assert len(rows()) > 200
    answers = [row["answer"] for row in rows()]
    assert answers.count(None) > 50
    assert len(answers) - answers.count(None) > 50


def test_a_scripted_fake_answers_each_as_the_real_server(scripted: Server) -> None:
    found = {row["line"]: (scripted.answer(row["line"]), row["answer"]) for row in rows()}
    assert {line: both for line, both in found.items() if both[0] != both[1]} == {}


def test_a_replaying_fake_answers_each_as_the_real_server(replaying: Server) -> None:
    """What the real server would judge by the members of a method's params is not recorded, and is reported as that."""
    found = {row["line"]: (replaying.answer(row["line"]), row["answer"]) for row in rows()}
    for line, (answer, wanted) in found.items():
        judged = wanted == "result" or not wanted or "unknown variant `nope`, expected one of `init" in wanted["message"]
        if judged and wanted != "result":
            assert answer == wanted, line
        else:
            assert answer == wanted or answer["code"] == NOT_RECORDED, line
    assert replaying.close() == 1  # it reports what was not recorded; 2 would be a run that broke off


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (b'{"id":1,"method":"x"}\n', {"id": 1, "method": "x"}),
        (b'[1,"x"]', {"id": 1, "method": "x"}),
        (b'{"id":1,"id":1,"method":"x"}', None),
        (b'{"id":1,"method":"x","params":{"id":1}}', {"id": 1, "method": "x", "params": {"id": 1}}),
        (b'{"id":-0,"method":"x"}', {"id": -0.0, "method": "x"}),
        (b'{"id":1,"method":"x-0"}', {"id": 1, "method": "x-0"}),
        (b'{"id":1,"result":{},"error":1,"error":2}', {"id": 1, "result": {}, "error": 2}),
        (b'{"id":1,"method":"\\udc00"}', None),
        (b'{"id":1,"method":"\\ud83d\\ude00"}', {"id": 1, "method": "\U0001f600"}),
        (b"{not json", None),
    ],
)
def test_what_the_real_reader_reads(line: bytes, wanted: object) -> None:
    assert read(line) == wanted
