"""Why a wait for an editor was in vain, read off what passed between the editor and its server."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from codex_replay.plugin.editor_client.wire import Wire

NOBODY = 2**22 + 1  # above every process id of Linux
START = ("got", {"id": 2, "method": "turn/start"})
STARTED, ENDED = ("said", {"method": "turn/started"}), ("said", {"method": "turn/completed"})
ASKED = ("said", {"id": 0, "method": "item/commandExecution/requestApproval"})


@pytest.mark.parametrize(
    ("passed", "cause"),
    [
        ([], "The editor has sent nothing to its server"),
        (
            [("got", {"id": 1, "method": "initialize"}), ("said", {"id": 1, "result": {}})],
            "The editor has started no turn; the last message that it sent was initialize",
        ),
        (
            [START, ("said", {"id": 2, "error": {"code": -32600, "message": "no"}})],
            'The server refused turn/start with the error {"code": -32600, "message": "no"}',
        ),
        (
            [START, STARTED, ASKED],
            "The editor has not answered the server's request item/commandExecution/requestApproval",
        ),
        (
            [START, STARTED, ASKED, ("got", {"id": "0", "result": {}})],
            "The editor has not answered the server's request item/commandExecution/requestApproval (id 0; "
            'the id of its reply is "0")',
        ),
        (
            [START, STARTED, ASKED, ("got", {"id": 0, "result": {}})],
            "The turn had not ended; the last message of the server was item/commandExecution/requestApproval",
        ),
        ([START, STARTED, ENDED], "The turn had ended; the last message of the server was turn/completed"),
        ([START, STARTED, ENDED, ("said", "no JSON")], "The turn had ended; the last message of the server was turn/completed"),
        ([START, STARTED, ENDED, ("got", "no JSON")], "The turn had ended; the last message of the server was turn/completed"),
    ],
    ids=["silent", "no-turn", "refused", "unanswered", "wrong-id", "answered", "ended", "garbage-said", "garbage"],
)
def test_the_cause(passed: list[tuple[str, Any]], cause: str, tmp_path: Path) -> None:
    assert cause_of(tmp_path / "ledger", passed) == cause


@pytest.mark.parametrize(
    ("passed", "cause"),
    [
        ([], "The server had ended, and had sent no message"),
        (
            [START, STARTED],
            "The server had ended, and the turn had not ended; the last message of the server was turn/started",
        ),
        (
            [START, ("said", {"id": 2, "error": {"code": -32600, "message": "no"}})],
            'The server refused turn/start with the error {"code": -32600, "message": "no"}',
        ),
    ],
    ids=["at-its-start", "in-a-turn", "refused"],
)
def test_the_end_of_the_server_is_the_cause(passed: list[tuple[str, Any]], cause: str, tmp_path: Path) -> None:
    assert cause_of(tmp_path / "ledger", passed, {"run": 0, "pid": NOBODY}) == cause


def test_a_second_server_that_runs_is_not_blamed(tmp_path: Path) -> None:
    runs = [{"run": 0, "pid": NOBODY}, {"run": 1, "pid": os.getpid()}]
    assert cause_of(tmp_path / "ledger", [START, STARTED, ENDED], *runs).startswith("The turn had ended")


def test_an_approval_that_the_editor_decided_by_itself_is_the_cause(tmp_path: Path) -> None:
    decided = [START, STARTED, ASKED, ("got", {"id": 0, "result": {"decision": "accept"}}), ENDED]
    wire = wire_of(tmp_path / "ledger", decided)
    assert wire.cause(approvals=0) == (
        "The editor answered the server's request item/commandExecution/requestApproval without asking the user"
    )
    assert wire.cause(approvals=1).startswith("The turn had ended")  # it did ask, and the server asks no more
    assert wire_of(tmp_path / "ledger", [START, STARTED, ASKED]).cause(approvals=0).startswith("The editor has not answered")


def test_only_the_messages_of_the_last_server_are_the_cause(tmp_path: Path) -> None:
    wire = wire_of(tmp_path / "ledger", [START, STARTED, ASKED])
    with wire._ledger_path.open("a") as ledger:
        for entry in ({"run": 1, "pid": os.getpid()}, {"got": json.dumps({"id": 1, "method": "turn/start"})}):
            ledger.write(json.dumps(entry) + "\n")
    assert wire.cause() == "The editor has started no turn; the last message that it sent was turn/start"


@pytest.mark.parametrize(("version", "faults"), [("0.92.0", 1), ("0.169.0", 0), ("unknown", 1)])
def test_the_version_of_the_app_server_decides_which_keys_are_known(version: str, faults: int, tmp_path: Path) -> None:
    """Codex 0.92.0 does not know `capabilities.optOutNotificationMethods`, and 0.169.0 does."""
    params = {"clientInfo": {"name": "a", "version": "1"}, "capabilities": {"optOutNotificationMethods": ["turn/diff/updated"]}}
    started = ("got", {"id": 1, "method": "initialize", "params": params})
    found = wire_of(tmp_path / "ledger", [started], version=version).violations()
    assert len(found) == faults, found


def cause_of(ledger: Path, passed: list[tuple[str, Any]], *runs: dict[str, int]) -> str:
    return wire_of(ledger, passed, *runs).cause()


def wire_of(ledger: Path, passed: list[tuple[str, Any]], *runs: dict[str, int], version: str = "0.92.0") -> Wire:
    entries = [*runs, *({key: value if value == "no JSON" else json.dumps(value)} for key, value in passed)]
    ledger.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    return Wire(ledger, 1.0, version)
