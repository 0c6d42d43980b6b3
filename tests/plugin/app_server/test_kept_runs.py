"""What the plugin part leaves of cases that pass, that fail early or at their end, and that are skipped.

The live subject is fake-codex without a cassette, which improvises as the real one does, and costs nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codex_replay.plugin.app_server.kept_runs import error_text, without_expectations
from codex_replay.shell.codex.suite_run import load

SUITE = """
import pytest

def test_passes(app_server):
    server = app_server(racy="as it happens")
    server.initialize()
    assert server.request("account/read", {})["account"] is None

def test_ends_early(app_server):
    server = app_server([{"items": ["Hello"], "expect": {"prompt": "not said"}}])
    server.initialize()
    assert 1 == 2
    server.request("account/read", {})

def test_ends_badly(app_server):
    server = app_server(ends=3)
    server.initialize()

def test_is_skipped(app_server):
    pytest.skip("not today")

def test_has_no_server(tmp_path):
    pass
"""


@pytest.fixture(scope="module", params=["0", "1"], ids=["alone", "xdist"])
def left(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that a run has left its cases in."""
    root = tmp_path_factory.mktemp("project")
    place = root / "suites" / "app_server"
    place.mkdir(parents=True)
    (place / "test_x.py").write_text(SUITE)
    (root / "pytest.ini").write_text("[pytest]\n")
    subject = f"{Path(sys.executable).with_name('fake-codex')} app-server"
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "suites",
        "-p",
        "codex_replay.suites",
        "-p",
        "codex_replay.plugin.app_server.kept_runs",
    ]
    argv += [
        "--keep-behaviour",
        "kept",
        "--app-server",
        subject,
        "--validate",
        "no",
        "--report",
        "report",
        "-q",
        "-n",
        request.param,
        "-p",
        "no:cacheprovider",
    ]
    ran = subprocess.run(argv, cwd=root, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    return root / "kept"


def said(left: Path, case: str) -> Any:
    return json.loads((left / "cases" / "app_server" / "test_x" / f"{case}.json").read_text())


def test_every_case_with_a_server_is_left_and_counted(left: Path) -> None:
    assert json.loads((left / "collected.json").read_text()) == {"cases": 4}
    names = sorted(path.stem for path in (left / "cases").rglob("*.json"))
    assert names == ["ends_badly", "ends_early", "is_skipped", "passes"]


def test_a_case_that_passes(left: Path) -> None:
    value = said(left, "passes")
    assert (value["outcome"], value["early"], value["sentence"], value["racy"]) == ("passed", False, "", "as it happens")
    assert value["node"] == "app_server/test_x.py::test_passes"
    (ended,) = value["servers"]
    kept = load(left, "0.92.0")["app_server/test_x/passes"]
    assert [each.label for each in kept.servers[0].said] == ["reply to initialize", "reply to account/read"]
    assert (kept.client, kept.racy) == (3, "as it happens")
    assert ended > 0


def test_a_case_that_ends_early_keeps_what_was_said_up_to_there(left: Path) -> None:
    value = said(left, "ends_early")
    assert (value["outcome"], value["early"]) == ("failed", True)
    assert value["sentence"] == "test_x.py, line 12: assert 1 == 2"
    assert value["servers"] == [None]  # its input was not ended by the case
    kept = load(left, "0.92.0")["app_server/test_x/ends_early"]
    assert [each.label for each in kept.servers[0].said] == ["reply to initialize"]
    assert kept.end() == "test_x.py, line 12: assert 1 == 2 after reply to initialize"


def test_a_case_whose_server_ends_badly_has_not_ended_early(left: Path) -> None:
    value = said(left, "ends_badly")
    assert (value["outcome"], value["early"]) == ("failed", False)
    assert "The server did not exit cleanly" in value["sentence"]
    assert value["servers"][0] > 0


def test_a_case_that_is_skipped_says_why(left: Path) -> None:
    assert (said(left, "is_skipped")["outcome"], said(left, "is_skipped")["sentence"]) == ("skipped", "not today")


def test_every_client_asks_for_what_later_versions_want_to_be_asked_for(left: Path) -> None:
    lines = (left / "cases" / "app_server" / "test_x" / "passes.1.ndjson").read_text().splitlines()
    params = json.loads(lines[1])["msg"]["params"]
    assert params["capabilities"] == {"experimentalApi": True}


def test_expectations_are_taken_out_of_a_script_and_nothing_else_is() -> None:
    turn = {"items": ["x"], "expect": {"prompt": "a"}, "match": "b"}
    bare = {"items": ["x"], "match": "b"}
    assert without_expectations(["Hello", turn]) == ["Hello", bare]
    assert without_expectations({"turns": [turn], "defaults": turn, "auth": "none"}) == {
        "turns": [bare],
        "defaults": bare,
        "auth": "none",
    }
    assert without_expectations(None) is None
    assert turn["expect"] == {"prompt": "a"}


def test_an_error_that_is_no_assertion_says_what_it_is() -> None:
    with pytest.raises(KeyError) as caught:
        {}["a"]
    assert error_text(caught.value) == "KeyError: 'a'"
