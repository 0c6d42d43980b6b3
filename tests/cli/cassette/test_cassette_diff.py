"""`codex-replay cassette diff` and `stats`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from codex_replay.cli.cassette.group import group
from codex_replay.core.wire.json_text import dumps
from codex_replay.protocol import data_tables
from codex_replay.shell.cassettes.file import CassetteReader
from tests.cli.cassette.files import CASSETTES, SHELL, run, write


@pytest.mark.parametrize("scenario", ["shell", "patch", "v1", "v2"])
def test_diff_of_two_runs_is_equal(scenario: str) -> None:
    result = run("diff", CASSETTES / f"{scenario}-a.ndjson", CASSETTES / f"{scenario}-b.ndjson")
    assert (result.exit_code, result.output[:25]) == (0, "Equal after normalisation")


def test_diff_prints_the_smallest_difference_first(tmp_path: Path) -> None:
    changed = tmp_path / "changed.ndjson"
    data = Path(SHELL).read_bytes().replace(b'"status":"completed","error":null', b'"status":"failed","error":null')
    changed.write_bytes(data)
    result = run("diff", SHELL, changed)
    assert result.exit_code == 1
    assert result.output.splitlines()[1].strip() == (
        "rpc< turn/completed: frame 74 of the first and frame 74 of the second differ at "
        '$.msg.params.turn.status: "completed" and "failed"'
    )
    found = json.loads(run("diff", "--json", SHELL, changed).output)
    assert (found["equal"], found["differences"][0]["path"]) == (False, "$.msg.params.turn.status")


def test_of_an_id_that_is_another_throughout_the_first_place_is_told(tmp_path: Path) -> None:
    """Other differences remain visible. Two ids are two causes; a value that is not an id is reported each time."""
    frames = [
        {"method": "a", "params": {"turnId": turn, "turn": {"id": turn}, "item": item, "n": [n, str(n)]}}
        for n, (turn, item) in enumerate([("2", "x"), ("2", "x"), ("4", "x")])
    ]
    paths = []
    for name, changes in (("a", {}), ("b", {'"2"': '"3"', '"4"': '"5"', '"x"': '"y"'})):
        lines = [dumps(frame) + b"\n" for frame in frames]
        for old, new in changes.items():
            lines = [line.replace(f":{old}".encode(), f":{new}".encode()) for line in lines]
        paths.append(write(tmp_path / f"{name}.ndjson", *lines, sender="server"))
    head, *told = run("diff", *paths).output.splitlines()
    assert head == "Different: 9 difference(s) between 3 and 3 events, the smallest first."
    of_ids = [line for line in told if "Id" in line or ".id" in line]
    assert [line.partition("frame ")[2][:1] + line.partition(": ")[2].rpartition(": ")[2] for line in of_ids] == [
        '1"2" and "3" (and in 3 more places with this id)',
        '3"4" and "5" (and in 1 more place with this id)',
    ]
    assert len(told) == 5
    assert run("diff", "--max", "1", *paths).output.splitlines()[-1] == "  ... and 5 more (--max)."
    assert len(json.loads(run("diff", "--json", *paths).output)["differences"]) == 9


def test_what_follows_a_footer_is_said_by_every_verb(tmp_path: Path) -> None:
    twice = tmp_path / "twice.ndjson"
    twice.write_bytes(Path(SHELL).read_bytes() * 2)
    for verb in (["show"], ["stats"], ["diff", SHELL], ["redact", "--out", tmp_path / "out.ndjson"]):
        result = run(*verb, twice)
        assert result.exit_code == 2, verb
        assert "line 77: more lines follow the footer" in result.output, verb


def test_nothing_is_not_equal_to_nothing(tmp_path: Path) -> None:
    empty = write(tmp_path / "a.ndjson")
    result = run("diff", empty, empty)
    assert result.exit_code == 2
    assert "so there is nothing to compare" in result.output


def test_stats_count_everything() -> None:
    result = run("stats", SHELL)
    assert "74 frames" in result.output
    assert "whole" in result.output
    (counted,) = json.loads(run("stats", "--json", SHELL).output)
    with CassetteReader(SHELL) as reader:
        frames = list(reader)
    assert counted["frames"] == len(frames) == sum(row["frames"] for row in counted["counts"])
    assert counted["duration"] == frames[-1].t
    assert {
        key: value
        for key, value in next(row for row in counted["counts"] if row["what"] == "turn/start").items()
        if key != "bytes"
    } == {"seam": "rpc", "from": "client", "what": "turn/start", "frames": 1}


OPTION = " `--codex V` uses the table of V."


def test_diff_reports_that_it_used_the_tables_of_another_version(tmp_path: Path) -> None:
    source = Path(__file__).resolve().parents[3] / "cassettes" / "app_server" / "test_v2" / "text_turn.ndjson"
    path = tmp_path / "other.ndjson"
    path.write_bytes(source.read_bytes().replace(b'"codex":"0.92.0"', b'"codex":"0.93.0"', 1))
    unknown = tmp_path / "unknown.ndjson"
    unknown.write_bytes(source.read_bytes().replace(b'"codex":"0.92.0"', b'"codex":"garbage"', 1))
    other = "codex-replay: There is no normalise table for Codex 0.93.0 (`codex-replay codex add 0.93.0` makes it): times, "
    both = (
        "codex-replay: The runs are of {} and {}; both are normalised with the table of 0.92.0. `--codex V` uses the table of V."
    )
    for a, b, told in (
        (source, source, ""),
        (path, source, both.format("Codex 0.93.0", "Codex 0.92.0")),
        (source, path, both.format("Codex 0.92.0", "Codex 0.93.0")),
        (source, unknown, both.format("Codex 0.92.0", "no known version")),
        (path, path, other),
        (unknown, unknown, "codex-replay: The header names no Codex version ('garbage'), so no version's tables apply: times,"),
    ):
        done = CliRunner().invoke(group, ["diff", str(a), str(b), "--json"])
        assert (done.exit_code, done.stderr[: len(told)], done.stderr.count("\n")) == (0, told, 1 if told else 0)
        in_json = [f"codex-replay: {each}{OPTION}\n" for each in json.loads(done.stdout)["missing"]]
        assert in_json == ([done.stderr] if told else [])


def test_diff_masks_nothing_of_a_version_without_a_table_unless_it_is_given_one(tmp_path: Path) -> None:
    """Two runs of one scenario differ in a time."""
    files = []
    for name, time in (("a", 1), ("b", 2)):
        message = b'{"method":"x","params":{"createdAt":%d}}\n' % time
        path = write(tmp_path / name, message)
        path.write_bytes(path.read_bytes().replace(b'"codex":"0.92.0"', b'"codex":"0.93.0"', 1))
        files.append(str(path))
    assert CliRunner().invoke(group, ["diff", *files]).exit_code == 1
    given = CliRunner().invoke(group, ["diff", *files, "--codex", "0.92.0"])
    assert (given.exit_code, given.stderr) == (0, "")


@pytest.mark.parametrize("codex", ["0.93.0", "garbage", ""])
def test_a_table_that_is_asked_for_and_missing_is_refused(codex: str, tmp_path: Path) -> None:
    path = str(write(tmp_path / "a", b'{"method":"a"}\n'))
    done = CliRunner().invoke(group, ["diff", path, path, "--codex", codex])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("codex-replay: --codex: ")
    assert done.stderr.endswith(f"Available for: {', '.join(data_tables.versions())}.\n")
