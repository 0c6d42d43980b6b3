"""The committed matrix: its totals are those that were observed, and every page of it is what its JSON says."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from codex_replay.cli.drift import pages as drift_pages
from codex_replay.plugin.app_server.start import RECORDED_HOME
from codex_replay.protocol import data_tables
from codex_replay.protocol.drift.report import encode
from codex_replay.protocol.schema import bundle
from codex_replay.protocol.versions import STEPS as VERSIONS
from tests.tools import drift_matrix as matrix

MATRIX = Path(__file__).resolve().parents[3] / "reports" / "drift"
#: REAL-116: client methods, server notifications, server requests.
OBSERVED = {
    "0.92.0": (55, 29, 6),
    "0.93.0": (56, 31, 7),
    "0.99.0": (60, 32, 7),
    "0.104.0": (60, 37, 7),
    "0.105.0": (41, 35, 8),
    "0.107.0": (42, 42, 7),
    "0.110.0": (44, 43, 7),
    "0.115.0": (57, 48, 9),
    "0.116.0": (55, 48, 9),
    "0.125.0": (71, 58, 9),
    "0.140.0": (84, 66, 10),
    "0.150.0": (95, 79, 10),
    "0.169.0": (109, 86, 10),
}
V1 = {
    *("newConversation", "getConversationSummary", "listConversations", "resumeConversation", "forkConversation"),
    *("archiveConversation", "sendUserMessage", "sendUserTurn", "interruptConversation", "addConversationListener"),
    *("removeConversationListener", "gitDiffToRemote", "loginApiKey", "loginChatGpt", "cancelLoginChatGpt", "logoutChatGpt"),
    *("getAuthStatus", "getUserSavedConfig", "setDefaultModel", "getUserAgent", "userInfo", "execOneOffCommand"),
}


def committed(name: str) -> Any:
    return json.loads((MATRIX / name).read_text())


INDEX = committed("index.json")
STEPS = [f"{old}-{new}" for old, new in pairwise(INDEX["versions"])]


def three(counts: dict[str, int]) -> tuple[int, int, int]:
    return counts["client_methods"], counts["server_notifications"], counts["server_requests"]


@pytest.mark.parametrize("version", OBSERVED)
def test_the_totals_are_those_that_were_observed(version: str) -> None:
    """The totals are those that were observed. (REAL-116)"""
    assert three(INDEX["versions"][version]) == OBSERVED[version]


@pytest.mark.parametrize("step", STEPS)
def test_a_step_counts_what_the_index_counts(step: str) -> None:
    report = committed(f"{step}.json")
    assert report["counts"]["from"] == INDEX["versions"][report["from"]]
    assert report["counts"]["to"] == INDEX["versions"][report["to"]]
    for cls in ("breaking", "additive"):
        listed = sum(finding["class"] == cls for finding in report["findings"])
        assert listed == report["counts"][cls] == INDEX[cls][report["from"]][report["to"]]
    # What came and went by name makes up the difference of the totals.
    for kind, name in (("client-request", "client_methods"), ("server-request", "server_requests"), ("event", "events")):
        rules = [finding["rule"] for finding in report["findings"] if finding["kind"] == kind and "with" not in finding]
        came = rules.count("method-new") - rules.count("method-gone")
        assert report["counts"]["to"][name] - report["counts"]["from"][name] == came
    assert report["uncompared"] == []


def test_every_v1_method_that_went_is_named() -> None:
    """Every v1 method that went is named. (REAL-119)"""
    findings = committed("0.104.0-0.105.0.json")["findings"]
    gone = {finding["method"] for finding in findings if (finding["rule"], finding["sends"]) == ("method-gone", "client")}
    assert gone == V1
    assert len(V1) == 22


def test_what_is_only_behind_a_capability_is_marked_and_counted() -> None:
    marked = {}
    for step in STEPS:
        report = committed(f"{step}.json")
        behind = [finding for finding in report["findings"] if "behind" in finding]
        assert report["counts"]["behind"] == len(behind)
        marked |= {(step, finding["method"], finding["what"]): finding["behind"] for finding in behind}
    assert marked["0.93.0-0.98.0", "thread/start", "dynamicTools"] == "experimentalApi"
    assert ("0.93.0-0.98.0", "thread/start", "experimentalRawEvents") not in marked  # that one went later
    assert marked["0.98.0-0.99.0", "thread/start", "experimentalRawEvents"] == "experimentalApi"


def test_what_changed_inside_of_what_is_gated_is_marked_and_counted() -> None:
    marked = {}
    for step in STEPS:
        report = committed(f"{step}.json")
        for key in ("without", "with"):
            found = [finding for finding in report["findings"] if key in finding]
            assert report["counts"][key] == sum(finding["class"] == "breaking" for finding in found)
            marked |= {(step, finding["method"], finding["rule"], finding["what"]): key for finding in found}
    assert marked["0.93.0-0.98.0", "collaborationMode/list", "value-gone", '"code"'] == "with"  # moved behind it, and changed
    assert marked["0.140.0-0.150.0", "thread/start", "property-new-required", "type"] == "with"  # of each dynamic tool
    assert marked["0.140.0-0.150.0", "thread/turns/items/list", "method-gone", "thread/turns/items/list"] == "with"
    assert marked["0.150.0-0.160.0", "thread/turns/list", "method-new", "thread/turns/list"] == "without"


def test_the_end_of_the_v1_events_is_named() -> None:
    """The end of the v1 events is named. (REAL-122)"""
    report = committed("0.110.0-0.115.0.json")
    gone = [finding["method"] for finding in report["findings"] if finding["kind"] == "event"]
    assert len(gone) == report["counts"]["from"]["events"] == 75
    assert [row.change for row in drift_pages.rows(report, "breaking") if row.kind == "event"] == ["gone: all 75 types"]


def test_the_matrix_holds_its_versions_and_steps_and_nothing_else() -> None:
    assert list(INDEX["versions"]) == list(VERSIONS)
    pages = {f"{step}.{end}" for step in STEPS for end in ("json", "md")}
    # The behavioural reports beside them are made by `drift --behaviour`.
    schemas = {path.name for path in MATRIX.iterdir() if not path.name.startswith("behaviour-")}
    assert schemas == pages | {"index.json", "index.md", "index.html"}


@pytest.mark.parametrize("step", STEPS)
def test_a_page_is_what_its_json_says(step: str) -> None:
    assert (MATRIX / f"{step}.md").read_text() == drift_pages.markdown(committed(f"{step}.json"))
    assert (MATRIX / f"{step}.json").read_text() == encode(committed(f"{step}.json"))


def test_the_index_is_what_its_json_says() -> None:
    assert (MATRIX / "index.md").read_text() == matrix.markdown(INDEX)
    assert (MATRIX / "index.html").read_text() == matrix.html(INDEX)
    assert (MATRIX / "index.json").read_text() == encode(INDEX)


def test_a_changed_number_makes_the_pages_differ() -> None:
    changed = json.loads(json.dumps(INDEX))
    changed["versions"]["0.92.0"]["events"] += 1
    assert (MATRIX / "index.md").read_text() != matrix.markdown(changed)
    assert (MATRIX / "index.html").read_text() != matrix.html(changed)


def test_no_place_on_a_machine_and_no_time_is_told() -> None:
    told = re.compile(r"""(?:^|[\s"'(=])(?:~|/(?:root|home|tmp|work|usr|Users))/|\b20\d\d-\d\d""")
    assert told.search('in "/home/somebody/cache"')
    for path in MATRIX.iterdir():
        text = path.read_text()
        if path.name.startswith("behaviour-"):  # the home of every recording, and what Codex itself says it looked for
            text = text.replace(RECORDED_HOME, "HOME").replace("/usr/bin/bwrap", "bwrap")
        assert told.search(text) is None, path.name


# --- writing one


def write(out: Path, *versions: str) -> Any:
    return CliRunner().invoke(matrix.command, ["--out", str(out), "--versions", ",".join(versions)])


def test_a_matrix_is_written_from_bundles_and_again_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {name: bundle.Bundle(name, data_tables.schema("0.92.0")) for name in ("0.92.0", "0.92.1", "0.92.2")}
    monkeypatch.setattr(matrix, "bundle_of", lambda version, told: versions[version])
    assert write(tmp_path, *versions).exit_code == 0
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {"0.92.0-0.92.1.json", "0.92.1-0.92.2.md", "index.html"} <= first.keys()
    assert write(tmp_path, *versions).exit_code == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first
    assert write(tmp_path, "0.92.0", "0.92.2").exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir() if path.name[0] == "0") == ["0.92.0-0.92.2.json", "0.92.0-0.92.2.md"]


def test_a_bundle_that_cannot_be_had_ends_it_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(version: str, told: Any) -> Any:
        raise bundle.BundleError(f"There is no Codex {version}.")

    monkeypatch.setattr(matrix, "bundle_of", fails)
    done = write(tmp_path / "out", "0.92.0", "9.9.9")
    assert done.exit_code == 2
    assert (
        done.stderr
        == "codex-replay: There is no Codex 0.92.0. Finished bundles and pages are kept; rerun the command to continue.\n"
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("versions", [["0.92.0"], ["0.92.0", "0.92.0"], [""]])
def test_fewer_than_two_versions_are_a_usage_error(versions: list[str], tmp_path: Path) -> None:
    assert write(tmp_path, *versions).exit_code == 2
