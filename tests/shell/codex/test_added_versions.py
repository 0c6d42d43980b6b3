"""The versions that a user has added: read like packaged ones, never in the place of one, listed and removed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from codex_replay.cli.codex import group
from codex_replay.cli.codex_add import summary
from codex_replay.protocol import data_tables
from codex_replay.protocol.learning.causes import EFFECT
from codex_replay.protocol.versions import DEFAULT
from codex_replay.shell.codex import add as adding
from codex_replay.shell.files import version_data

ADDED = "9.9.9"
LEARNT: dict[str, Any] = {
    "learnt": 1,
    "codex": ADDED,
    "runs": 2,
    "methods": {"listed": 3, "not_refused": [], "evidence": ""},
    "config_keys": {"found": 2, "of": 4, "evidence": ""},
    "scenarios": {"all": 5, "passed": 3},
    "normalise": {"pairs": 5, "rows": [{"part": "keys", "rule": "createdAt", "scenarios": 1, "first": "a", "example": "b"}]},
    "causality": {"rows": [{"part": "opens_turn", "rule": "turn/start", "seen": 4}], "not_seen": ["interrupts"]},
    "unexplained": {"a/b/c": "\x1b[2J differs"},
    "cassettes": {"kept": 2, "dropped": {"a/b/d.ndjson": "lint: no"}},
    "written": adding.WRITTEN,
}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an added version."""
    monkeypatch.setenv("CODEX_REPLAY_DATA", str(tmp_path))
    monkeypatch.setenv("CODEX_REPLAY_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "versions" / ADDED
    folder.mkdir(parents=True)
    (folder / "causality.json").write_text('{"opens_turn": []}', encoding="utf-8")
    (folder / version_data.LEARNT).write_text(json.dumps(LEARNT), encoding="utf-8")
    return folder


def test_an_added_version_is_read_like_a_packaged_one(data: Path) -> None:
    assert data_tables.versions() == sorted([*version_data.packaged(), ADDED])
    assert data_tables.has("causality", ADDED)
    assert not data_tables.has("normalise", ADDED)
    assert "no command creates one" in data_tables.without(("normalise",), ADDED, "x")
    assert "`codex-replay codex add 0.93.0` makes it" in data_tables.without(("normalise",), "0.93.0", "x")


def test_a_packaged_version_is_never_replaced(data: Path) -> None:
    own = data.with_name(DEFAULT)
    own.mkdir()
    (own / "causality.json").write_text("{}", encoding="utf-8")
    assert json.loads(data_tables.read("causality.json", DEFAULT)) != {}
    done = CliRunner().invoke(group, ["remove", DEFAULT])
    assert (done.exit_code, "is packaged with codex-replay" in done.output) == (2, True)


def test_a_folder_that_was_not_finished_is_no_version(data: Path) -> None:
    (data / version_data.LEARNT).unlink()
    assert version_data.added() == []


def test_list_shows_the_state_and_remove_ends_it(data: Path) -> None:
    done = CliRunner().invoke(group, ["list"])
    assert f"{ADDED}        no binary; added: 3 of 5 cases pass, 2 recordings\n" in done.output
    assert CliRunner().invoke(group, ["remove", ADDED]).exit_code == 0
    assert not data.exists()
    again = CliRunner().invoke(group, ["remove", ADDED])
    assert (again.exit_code, "has not been added" in again.output) == (2, True)


def test_the_summary_has_what_was_learnt_what_not_and_what_it_means(data: Path) -> None:
    text = summary(LEARNT, data)
    assert "1 masked keys" in text
    assert f"causality.interrupts: no run showed it, so {EFFECT['interrupts']}" in text
    assert "2 recordings from the 3 cases that passed in each run, of 5 in all" in text
    assert "a/b/c: " in text
    assert "\x1b" not in text
    assert all(name in text for name in adding.WRITTEN)


def test_add_refuses_what_it_cannot_add(tmp_path: Path) -> None:
    listener = adding.Listener(lambda what: None, lambda done, total: None)
    with pytest.raises(adding.CannotAdd, match="is packaged"):
        adding.add(DEFAULT, tmp_path, listener)
    done = CliRunner().invoke(group, ["add", "nonsense"])
    assert (done.exit_code, "is not a Codex version" in done.output) == (2, True)


def test_a_case_with_several_servers_has_several_recordings(data: Path) -> None:
    """The summary does not report more cases than there are."""
    text = summary({**LEARNT, "cassettes": {"kept": 4, "dropped": {}}}, data)
    assert "4 recordings from the 3 cases that passed in each run, of 5 in all" in text
