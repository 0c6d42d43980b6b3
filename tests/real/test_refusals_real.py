"""The real Codex still refuses each wrong form in the words that the scripted fake is held to (tests/data/refusals.ndjson)."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_replay.shell.codex.cache import find_installed
from codex_replay.shell.codex.home import HermeticHome
from codex_replay.shell.rpc.client import Client
from tests.fakes.scripted.conversing import initialize
from tests.fakes.scripted.refusals import otherwise
from tests.fakes.stdio import bad_lines, number_lines


def test_the_real_server_refuses_each_wrong_form_so(tmp_path: Path) -> None:
    codex = find_installed("0.92.0")
    assert codex is not None, "The real Codex is not installed; run `codex-replay codex install 0.92.0` first."
    home = HermeticHome(tmp_path / "home", "http://127.0.0.1:9")
    client = Client([str(codex), "app-server"], env=home.env, cwd=str(home.work), timeout=60)
    try:
        initialize(client)
        assert otherwise(client, client.request("thread/start", {})["thread"]["id"]) == []
    finally:
        client.stop()


def test_the_real_server_answers_each_bad_line_so(tmp_path: Path) -> None:
    with bad_lines.real(tmp_path) as server:
        found = {row["line"]: (server.answer(row["line"]), row["answer"]) for row in bad_lines.rows()}
    assert {line: both for line, both in found.items() if both[0] != both[1]} == {}


@pytest.mark.parametrize("version", number_lines.VERSIONS)
def test_the_real_server_reads_each_number_so(version: str, tmp_path: Path) -> None:
    given = number_lines.real(version, tmp_path)
    rows = [row for row in number_lines.rows() if row["version"] == version]
    found = {row["line"]: (number_lines.answer_to(row["line"], given), row["answer"]) for row in rows}
    assert {line: both for line, both in found.items() if both[0] != both[1]} == {}
