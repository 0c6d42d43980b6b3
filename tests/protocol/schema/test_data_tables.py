"""The one rule of which version's table is used: its own, or none and a sentence for the user (law 6)."""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.core.normalise.deltas import events
from codex_replay.core.normalise.normaliser import Normaliser
from codex_replay.core.normalise.order import Order
from codex_replay.protocol import data_tables
from codex_replay.protocol.versions import DEFAULT, STEPS, is_version

#: The packaged versions; each has every table that a replay uses.
PACKAGED = ", ".join(data_tables.versions())
NONE = "no version's tables apply"


def test_the_version_has_its_own_table() -> None:
    assert data_tables.choose("normalise", DEFAULT) == (data_tables.load("normalise"), "")


@pytest.mark.parametrize("name", ["normalise", "causality", "methods"])
@pytest.mark.parametrize("version", ["0.93.0", "unknown", "", "17", f"{DEFAULT}/../{DEFAULT}", f"{DEFAULT} "])
def test_no_other_versions_table_is_ever_returned(name: str, version: str) -> None:
    table, note = data_tables.choose(name, version)
    assert table != data_tables.load(name)
    assert table == (data_tables.load("normalise", data_tables.ANY) if name == "normalise" else None)
    assert note.startswith(
        f"There is no {name} table for Codex 0.93.0 (`codex-replay codex add 0.93.0` makes it): "
        if version == "0.93.0"
        else "The"
    )
    assert (f"{version!r}" in note and NONE in note) == (version != "0.93.0")


def test_several_missing_tables_are_one_sentence_with_their_effects() -> None:
    note = data_tables.without(("causality", "normalise", "methods"), "0.93.0")
    assert note.startswith(
        "There is no causality, normalise or methods table for Codex 0.93.0 "
        "(`codex-replay codex add 0.93.0` makes it): each server"
    )
    assert note.endswith(f"the real server refuses it. Available for: {PACKAGED}.")
    assert data_tables.without(("causality", "normalise", "methods"), DEFAULT) == ""


@pytest.mark.parametrize("version", data_tables.versions())
def test_each_packaged_version_has_every_table_that_a_replay_uses(version: str) -> None:
    """fake-codex does not look for those of the default version, to start sooner. All versions have the same form of table."""
    assert all(data_tables.has(name, version) for name in ("causality", "normalise", "methods", "config-keys"))
    for name in ("causality", "normalise"):
        assert data_tables.load(name, version).keys() == data_tables.load(name, DEFAULT).keys()
    assert data_tables.identity(version).startswith("sha256:")


@pytest.mark.parametrize("version", [each for each in data_tables.versions() if each != DEFAULT])
def test_each_learnt_row_has_its_evidence(version: str) -> None:
    learnt, table = data_tables.load("learnt", version), data_tables.load("normalise", version)
    base = data_tables.load("learning", data_tables.ANY)
    rows = learnt["normalise"]["rows"]
    assert all(row["scenarios"] > 0 and row["example"] for row in rows)
    of_keys = {row["rule"] for row in rows if row["part"] == "keys"}
    assert table["keys"].keys() == base["keys"].keys() | of_keys
    assert len(table["races"]) == len(base["races"]) + sum(row["part"] == "races" for row in rows)
    causal = data_tables.load("causality", version)
    assert {(row["part"], row["rule"]) for row in learnt["causality"]["rows"]} == {
        (part, rule) for part, rules in causal.items() for rule in rules
    }


def test_a_hostile_version_is_shown_escaped_and_short() -> None:
    note = data_tables.choose("normalise", "\x1b[2J" + "x" * 10_000)[1]
    assert "\x1b" not in note
    assert len(note) < 400


@pytest.mark.parametrize(
    ("version", "start"),
    [
        ("0.93.0", "There is no normalise table for Codex 0.93.0 (`codex-replay"),
        ("garbage", "'garbage' is not a Codex version. Available for: "),
    ],
)
def test_a_version_that_was_asked_for_by_name_is_refused(version: str, start: str) -> None:
    assert data_tables.unavailable("normalise", version).startswith(start)
    assert data_tables.unavailable("normalise", version).endswith(f"Available for: {PACKAGED}.")
    assert data_tables.unavailable("normalise", DEFAULT) == ""


def test_the_table_of_every_version_has_the_form_of_a_versions_own() -> None:
    """It masks nothing that a version makes volatile."""
    table: Any = data_tables.load("normalise", data_tables.ANY)
    assert set(table) == set(data_tables.load("normalise"))
    normaliser = Normaliser(table)
    assert (events([], table), Order(table) is not None) == ([], True)
    message = {"method": "a", "params": {"createdAt": 5, "path": "/home/me"}}
    assert normaliser.message(message, "server") == message
    host = {"headers": [["host", "127.0.0.1:5000"], ["version", "1"]]}
    assert normaliser.payload("request", host) == {"headers": [["host", "<host>"], ["version", "1"]]}


@pytest.mark.parametrize("version", [*STEPS, "0.99.0-alpha.4", "10.0.100"])
def test_what_is_a_version(version: str) -> None:
    assert is_version(version)


@pytest.mark.parametrize(
    "text",
    ["", "unknown", "17", "0.92", "0.92.0/x", "../0.92.0", "0.92.0 ", "0.92.0-", "0.92.0-a/b", "0.92.\u0662", "v0.92.0"],
)
def test_what_is_no_version(text: str) -> None:
    assert not is_version(text)


@pytest.mark.parametrize(("name", "version"), [("normalise", "0.93.0"), ("no-such", DEFAULT)])
def test_a_missing_table_is_an_error(name: str, version: str) -> None:
    with pytest.raises(data_tables.MissingTable, match=f"no {name}.json for Codex {version}"):
        data_tables.load(name, version)


def test_unknown_versions_have_no_schema_files_and_no_identity() -> None:
    assert data_tables.identity("0.93.0") == "unknown"
    with pytest.raises(data_tables.MissingTable, match=f"Available versions: {PACKAGED}"):
        data_tables.schema("0.93.0")
