"""The coverage of the recordings: complete where it can be, with a reason where it cannot, and told as it is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.json_text import dumps
from codex_replay.plugin.reporting import coverage
from codex_replay.plugin.reporting.coverage import Coverage, Sight, at, everything, seen, values_of
from codex_replay.protocol import data_tables, versions
from codex_replay.protocol.schema import bundle
from codex_replay.shell.cassettes.file import CassetteReader

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "coverage.md"


@pytest.fixture(scope="module")
def covered() -> Coverage:
    """What the recordings of the app-server suite show; they are all of the real binary."""
    found = Coverage()
    for path in sorted((ROOT / "cassettes" / "app_server").rglob("*.ndjson")):
        with CassetteReader(path) as reader:
            assert reader.header.origin["rpc"] == "recorded"
            found.add(reader.header.case, seen(reader))
    return found


def sights(found: Coverage, kind: str) -> dict[str, Sight]:
    return {sight.name: sight for sight in found.sights() if sight.kind == kind}


def test_every_client_method_and_server_request_is_shown(covered: Coverage) -> None:
    methods, requests = sights(covered, "client method"), sights(covered, "server request")
    assert (len(methods), len(requests)) == (55, 6)
    assert [name for name, sight in {**methods, **requests}.items() if not sight.case] == []
    assert [name for name, sight in methods.items() if sight.refused] == ["feedback/upload"]


def test_there_are_as_many_notifications_and_events_as_the_bundle_has() -> None:
    known = everything(versions.DEFAULT)
    assert (len(known["server notification"]), len(known["event"])) == (29, 64)


def test_what_is_not_shown_has_a_reason_and_what_is_shown_has_none(covered: Coverage) -> None:
    wrong = [
        (sight.kind, sight.name) for sight in covered.sights() if bool(sight.reason) is (bool(sight.case) and not sight.refused)
    ]
    assert wrong == []


def test_every_reason_is_about_something_that_there_is() -> None:
    known = everything(versions.DEFAULT)
    reasons = data_tables.load("unreachable")["reasons"]
    assert [(sort, name) for sort, names in reasons.items() for name in names if name not in known.get(sort, ())] == []


def test_the_page_is_that_of_the_recordings(covered: Coverage) -> None:
    """After a change: `python -m tests.tools.coverage_page > docs/coverage.md`."""
    _, _, table = PAGE.read_text(encoding="utf-8").partition("\n## ")
    assert f"## {table}".strip() == covered.markdown().strip()


def rpc(*entries: tuple[str, Any]) -> list[Frame]:
    return [Frame(n, 0.0, "rpc", sender, "msg", dumps(value) + b"\n") for n, (sender, value) in enumerate(entries, 1)]


def test_a_refusal_is_no_answer() -> None:
    asked = ("client", {"id": 1, "method": "userInfo"})
    assert seen(rpc(asked)) == {"client method: userInfo"}
    assert seen(rpc(asked, ("server", {"id": 1, "error": {}}))) == {"client method: userInfo"}
    answered = seen(rpc(asked, ("server", {"id": 1, "result": {}})))
    assert answered == {"client method: userInfo", "client method: userInfo answered"}


def test_an_answer_of_any_case_is_an_answer() -> None:
    found = Coverage()
    found.add("refused", ["client method: userInfo"])
    first = sights(found, "client method")["userInfo"]
    assert (first.case, first.refused) == ("refused", True)
    found.add("answered", ["client method: userInfo", "client method: userInfo answered"])
    later = sights(found, "client method")["userInfo"]
    assert (later.case, later.refused) == ("answered", False)


def test_events_requests_and_enumerated_values_are_seen_where_they_stand() -> None:
    item = {"type": "commandExecution", "status": "declined", "commandActions": [{"type": "read"}, {"type": "search"}]}
    shown = seen(
        rpc(
            ("server", {"method": "codex/event/turn_aborted", "params": {"msg": {"reason": "replaced"}}}),
            ("server", {"method": "item/started", "params": {"item": item}}),
            ("server", {"id": 0, "method": "execCommandApproval", "params": {}}),
            ("client", {"id": 0, "result": {"decision": {"approved_execpolicy_amendment": {}}}}),
            ("client", {"method": "initialized"}),
            ("client", {"id": 0, "method": 5}),
            ("client", 5),
        )
    )
    assert shown == {
        "event: turn_aborted",
        "abort reason: replaced",
        "server notification: item/started",
        "item type: commandExecution",
        "command status: declined",
        "command action: read",
        "command action: search",
        "server request: execCommandApproval",
        "v1 decision: approved_execpolicy_amendment",
        "client notification: initialized",
    }


def test_a_status_of_another_item_is_not_a_command_s() -> None:
    item = {"type": "fileChange", "status": "declined", "changes": []}
    assert "command status: declined" not in seen(rpc(("server", {"method": "item/completed", "params": {"item": item}})))


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("a", [{"b": [1, 2]}]),
        ("a.b.[]", [1, 2]),
        ("a.c", []),
        ("m.{}.s", ["x", "y"]),
        ("t[k=v].n", [7]),
        ("t[k=w].n", []),
        ("[]", []),
    ],
)
def test_paths(path: str, found: list[Any]) -> None:
    value = {"a": {"b": [1, 2]}, "m": {"1": {"s": "x"}, "2": {"s": "y"}}, "t": {"k": "v", "n": 7}}
    assert list(at(value, path.split("."))) == found


def test_a_type_that_enumerates_nothing_is_told() -> None:
    known = bundle.load()
    with pytest.raises(bundle.BundleError, match="has no enumerated values"):
        values_of(known, "ThreadStartParams")
    with pytest.raises(bundle.BundleError, match="has no type"):
        values_of(known, "NoSuchType")


def test_the_table_names_what_is_not_seen_when_it_is_little(monkeypatch: pytest.MonkeyPatch, covered: Coverage) -> None:
    table = covered.table()
    assert "  event undo_started: " + data_tables.load("unreachable")["reasons"]["event"]["undo_started"] in table
    assert not any("NO REASON" in line for line in table)
    assert "only refused: feedback/upload" in table[1]
    monkeypatch.setattr(coverage, "NAMED", 3)
    assert covered.table()[-1].endswith("report.json lists them")


def test_a_run_prints_the_table_and_reports_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--report", str(tmp_path)]
    done = subprocess.run(
        [
            *command,
            "suites/app_server/conversation/test_v1.py::test_listener",
            "suites/app_server/server/test_lifecycle.py::test_closed_stdout",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"^client method +4 +55$", done.stdout, re.MULTILINE)
    report = json.loads((tmp_path / "report.json").read_text())["coverage"]
    assert report["client method"]["addConversationListener"] == {"case": "app_server/test_v1/listener"}
    assert report["client method"]["feedback/upload"]["case"] is None
    assert report["event"]["undo_started"]["reason"].startswith("Only the terminal interface")
    assert report["event"]["task_started"] == {"case": None, "reason": ""}


def test_a_case_that_fails_shows_nothing(tmp_path: Path) -> None:
    """A cassette without the answer to the last request: the case fails, and its methods are not counted."""
    source = ROOT / "cassettes" / "app_server" / "test_v1" / "listener.ndjson"
    target = tmp_path / "cassettes" / "app_server" / "test_v1" / "listener.ndjson"
    target.parent.mkdir(parents=True)
    target.write_bytes(source.read_bytes().replace(b'"result":{"subscriptionId"', b'"result":{"subscription"'))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--report", str(tmp_path)]
    done = subprocess.run(
        [*command, "--cassettes", str(tmp_path / "cassettes"), "suites/app_server/conversation/test_v1.py::test_listener"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert "coverage" not in json.loads((tmp_path / "report.json").read_text())
