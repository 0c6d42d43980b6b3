"""fake-codex reads unusual numbers as the real server of the same version, on stdio and over WebSocket."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from websockets.sync.client import connect

from codex_replay.core.wire.serde import read
from codex_replay.shell.codex.home import HermeticHome
from tests.fakes.listening.test_listening import PLAIN, running
from tests.fakes.stdio.number_lines import OPENING, VERSIONS, answer_to, answers, ask, lines, rows

FAKE = str(Path(sys.executable).with_name("fake-codex"))


def different(version: str, given: dict[str, str]) -> dict[str, tuple[str | None, str | None]]:
    """Return the lines with another answer than the real server's: the answer, and the real one."""
    found = {row["line"]: (answer_to(row["line"], given), row["answer"]) for row in rows() if row["version"] == version}
    return {line: both for line, both in found.items() if both[0] != both[1]}


def test_the_rows_are_those_of_the_lines() -> None:
    """A line that is added without asking the real servers is found."""
    assert [(row["version"], row["line"]) for row in rows()] == [(version, line) for version in VERSIONS for line in lines()]


@pytest.mark.parametrize("version", VERSIONS)
def test_on_stdio(version: str, tmp_path: Path) -> None:
    home = HermeticHome(tmp_path, "http://127.0.0.1:9", version=version)
    assert different(version, ask([FAKE, "app-server"], {**home.env, "FAKE_CODEX_VERSION": version}, home.work)) == {}


def test_over_a_websocket(tmp_path: Path) -> None:
    """The listening server answers each; the connection stays open."""
    version = VERSIONS[-1]
    with running(tmp_path) as server, connect(server.url, **PLAIN) as websocket:
        for line in (*OPENING, *lines(), '{"id":"last","method":"thread/list","params":{}}'):
            websocket.send(line)
        messages = []
        while not messages or messages[-1].get("id") != "last":
            messages.append(json.loads(websocket.recv(10)))
    assert different(version, answers(messages)) == {}


@pytest.mark.parametrize("number", ["1e-05", "0.70", "1e300"])
def test_a_number_stays_the_same_number_for_the_model(number: str) -> None:
    """The server forwards it, for example in the schema of a tool."""
    value = read(f'{{"id":1,"method":"x","params":{{"a":{number}}}}}'.encode(), texts=True)
    assert value["params"]["a"] == float(number)
