"""A drift answers first, shows ten changes, and leaves out what a client never reads."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from codex_replay.cli.drift import pages
from codex_replay.cli.main import main
from codex_replay.protocol.drift.reads import matches, used_in

ROOT = Path(__file__).resolve().parents[3]
PRIMARY = ROOT / "harness/codex_replay/protocol/data/0.92.0/schema/codex_app_server_protocol.schemas.json"
V2 = "test_v2/text_turn"


def run(*words: object) -> Result:
    return CliRunner().invoke(main, ["drift", *map(str, words)])


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A bundle without codex/event, without one notification and fourteen requests, and with an enum opened."""
    document = json.loads(PRIMARY.read_text())
    definitions = document["definitions"]

    def without(union: str, names: set[str]) -> None:
        kept = [each for each in definitions[union]["oneOf"] if each["properties"]["method"]["enum"][0] not in names]
        definitions[union]["oneOf"] = kept

    requests = [each["properties"]["method"]["enum"][0] for each in definitions["ClientRequest"]["oneOf"]]
    without("ClientRequest", set(sorted(name for name in requests if "onversation" in name)[:8]))
    without("ServerNotification", {"item/started"})
    definitions["v2"]["TurnStatus"] = {"type": "string"}
    definitions["v2"]["Turn"]["properties"]["mine"] = {"type": "string"}
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(document))
    return path


def test_the_verdict_is_first_and_additions_are_hidden(mine: Path) -> None:
    lines = run("0.92.0", mine).stdout.splitlines()
    everything = run("0.92.0", mine, "--all").stdout
    assert lines[0].startswith("From 0.92.0 to mine.json, ")
    assert lines[-1].startswith("Show all ")
    assert lines[-1].endswith(": add --all.")
    assert "new property: mine" not in "\n".join(lines)
    assert "8 methods" in "\n".join(lines)
    assert "new property: mine" in everything
    assert everything.splitlines()[-1] == lines[0]


def test_no_more_than_ten_are_shown(tmp_path: Path) -> None:
    finding: dict[str, Any] = {
        "class": "breaking",
        "rule": "property-gone",
        "kind": "event",
        "method": "m",
        "path": "$",
        "what": "x",
        "before": "",
        "after": "",
        "hits": "readers",
        "sentence": "",
    }
    found = [{**finding, "path": f"$.{n}", "places": [{}] * n} for n in range(1, 30)]
    report = {"findings": found, "cassettes": None, "counts": {"to": {"events": 1}, "breaking": 29, "additive": 0}}
    assert [row.path for row in pages.worst(report, 10)] == [f"$.{n}" for n in range(29, 19, -1)]
    assert pages.left_out(report, 10) == "Show all 29 changes that break: add --all."
    for each in found:
        each["cases"] = ["a"] if each["path"] != "$.7" else ["a", "b"]
    report["cassettes"] = {"cases": 2}
    assert pages.worst(report, 10)[0].path == "$.7"


def of(report: dict[str, Any], **wanted: str) -> list[dict[str, Any]]:
    return [each for each in report["findings"] if all(each[key] == value for key, value in wanted.items())]


def test_a_method_or_a_rule_can_be_ignored(mine: Path) -> None:
    plain = json.loads(run("0.92.0", mine, "--json").stdout)
    assert of(plain, method="item/started")
    assert of(plain, rule="enum-opened")
    left = json.loads(run("0.92.0", mine, "--json", "--ignore", "item/*", "--ignore", "enum-opened").stdout)
    assert not of(left, method="item/started")
    assert not of(left, rule="enum-opened")
    assert left["ignored"] == len(plain["findings"]) - len(left["findings"]) > 1
    said = run("0.92.0", mine, "--ignore", "item/started").stdout.splitlines()[0]
    assert said.endswith(" Not counted: 1 change (--ignore, --reads, --sends).")


def test_versions_of_which_every_change_is_left_out_are_not_called_equal(mine: Path, tmp_path: Path) -> None:
    (tmp_path / "used.txt").write_text("turn/interrupt\n")
    done = run("0.92.0", mine, "--reads", tmp_path / "used.txt", "--sends", tmp_path / "used.txt")
    count = len(json.loads(run("0.92.0", mine, "--json").stdout)["findings"])
    said = f"No change from 0.92.0 to mine.json concerns your client. Not counted: {count} changes (--ignore, --reads, --sends)."
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, said)


@pytest.mark.parametrize("option", ["--cassettes", "--reads", "--sends"])
def test_a_recording_that_was_cut_short_is_named(mine: Path, tmp_path: Path, option: str) -> None:
    lines = (ROOT / f"cassettes/app_server/{V2}.ndjson").read_bytes().splitlines(keepends=True)
    (tmp_path / "short").mkdir()
    (tmp_path / "short" / "cut.ndjson").write_bytes(b"".join(lines[:12]))
    done = run("0.92.0", mine, option, tmp_path / "short")
    assert done.exit_code in (0, 1)
    assert "cut.ndjson: the recording was cut short after line 12 (it has no footer)." in done.stderr


def test_a_name_that_is_nowhere_is_refused(mine: Path) -> None:
    done = run("0.92.0", mine, "--ignore", "item/strated")
    assert done.exit_code == 2
    assert "--ignore item/strated: no change has this rule or is in this method." in done.stderr


def test_what_a_client_reads_can_be_listed(mine: Path, tmp_path: Path) -> None:
    (tmp_path / "reads.txt").write_text("# mine\nturn/*  # the turn\n\n")
    left = json.loads(run("0.92.0", mine, "--json", "--reads", tmp_path / "reads.txt").stdout)
    assert not of(left, method="item/started")
    assert of(left, rule="enum-opened")
    assert len(of(left, rule="method-gone", sends="client")) == 8  # what the client sends stays
    (tmp_path / "reads.txt").write_text("# nothing\n")
    assert "the file names no method" in run("0.92.0", mine, "--reads", tmp_path / "reads.txt").stderr


def test_what_a_client_sends_can_be_listed(mine: Path, tmp_path: Path) -> None:
    (tmp_path / "sends.txt").write_text("turn/start\n")
    whole = json.loads(run("0.92.0", mine, "--json").stdout)
    left = json.loads(run("0.92.0", mine, "--json", "--sends", tmp_path / "sends.txt").stdout)
    assert len(of(whole, rule="method-gone", sends="client")) == 8
    assert not of(left, rule="method-gone", sends="client")
    assert of(left, rule="method-gone", sends="server")  # what the client reads stays
    recorded = ROOT / "cassettes/app_server/test_v1"
    assert of(json.loads(run("0.92.0", mine, "--json", "--sends", recorded).stdout), rule="method-gone", sends="client")
    (tmp_path / "sends.txt").write_text("turn/strat\n")
    assert (
        f"--sends {tmp_path / 'sends.txt'}: turn/strat matches no"
        in run("0.92.0", mine, "--sends", tmp_path / "sends.txt").stderr
    )


def test_a_mistyped_method_is_reported(mine: Path, tmp_path: Path) -> None:
    """A mistyped line would leave out all changes of the intended method silently."""
    reads = tmp_path / "reads.txt"
    reads.write_text("item/strated\nturn/*\ncodex/event/task_started\nmodel/list\nnobody/knows/this/one\n")
    done = run("0.92.0", mine, "--json", "--reads", reads)
    assert f"--reads {reads}: item/strated matches no method of the compared bundles, so it has no effect." in done.stderr
    assert " Did you mean item/started?\n" in done.stderr
    assert "nobody/knows/this/one matches no method of the compared bundles, so it has no effect.\n" in done.stderr
    assert done.stderr.count("--reads") == 2
    assert json.loads(done.stdout)["drift"] == 1


def test_fields_that_a_client_reads_can_be_listed(mine: Path, tmp_path: Path) -> None:
    reads = tmp_path / "reads.txt"

    def opened(line: str) -> bool:
        reads.write_text(f"{line}\n")
        done = run("0.92.0", mine, "--json", "--reads", reads)
        assert "--reads" not in done.stderr
        return bool(of(json.loads(done.stdout), rule="enum-opened"))

    assert opened("turn/completed $.params.turn.status")
    assert opened("turn/completed $.params.turn")
    assert opened("turn/completed $.params.turn.id $.params.turn.status  # two fields")
    assert opened("turn/* $.params.*.status")
    assert opened("thread/list $.result.data[*].turns[*].status")
    assert not opened("turn/completed $.params.turn.id")
    reads.write_text("turn/completed $.params.turn.stattus $.turn.status\n")
    done = run("0.92.0", mine, "--reads", reads)
    for path in ("$.params.turn.stattus", "$.turn.status"):
        assert f"--reads {reads}: {path} is not the path of a field of the compared bundles" in done.stderr


def test_recordings_show_what_a_client_reads(mine: Path, tmp_path: Path) -> None:
    """A client of v2 does not read codex/event, though the server sends it."""
    shutil.copy(ROOT / "cassettes/app_server" / f"{V2}.ndjson", tmp_path / "v2.ndjson")
    one = tmp_path / "v2.ndjson"
    plain = json.loads(run("0.92.0", mine, "--json", "--cassettes", one).stdout)
    left = json.loads(run("0.92.0", mine, "--json", "--cassettes", one, "--reads", one, "--ignore", "enum-opened").stdout)
    assert of(left, method="item/started")
    assert plain["counts"]["breaking"] > left["counts"]["breaking"]
    assert "codex/event/task_started" not in used_in(messages(one))


def messages(path: Path) -> list[tuple[str, Any]]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [(line["from"], line["msg"]) for line in lines if line.get("seam") == "rpc" and "msg" in line]


def test_a_client_that_asked_for_events_reads_them() -> None:
    sent = ("client", {"id": 1, "method": "addConversationListener", "params": {}})
    event = ("server", {"method": "codex/event/task_started", "params": {}})
    assert used_in([sent, event]) == {"addConversationListener", "codex/event/task_started"}
    assert used_in([event, ("client", {"id": 2, "method": "turn/start"}), ("server", {"id": 2, "result": {}})]) == {"turn/start"}


@pytest.mark.parametrize(
    ("name", "pattern", "fits"),
    [("a/b", "a/*", True), ("a/b", "a", False), ("a.b", "a?b", True), ("a+b", "a+b", True), ("aab", "a+b", False)],
)
def test_the_patterns(name: str, pattern: str, fits: bool) -> None:
    assert matches(name, [pattern]) is fits
