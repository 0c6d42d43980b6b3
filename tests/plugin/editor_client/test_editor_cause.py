"""Why a wait for an editor was in vain, read off what passed between the editor and its server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codex_replay.plugin.editor_client.wire import Wire

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
            [START, STARTED, ASKED, ("got", {"id": 0, "result": {}})],
            "The turn had not ended; the last message of the server was item/commandExecution/requestApproval",
        ),
        ([START, STARTED, ENDED], "The turn had ended; the last message of the server was turn/completed"),
        ([START, STARTED, ENDED, ("said", "no JSON")], "The turn had ended; the last message of the server was turn/completed"),
        ([START, STARTED, ENDED, ("got", "no JSON")], "The turn had ended; the last message of the server was turn/completed"),
    ],
    ids=["silent", "no-turn", "refused", "unanswered", "answered", "ended", "garbage-said", "garbage"],
)
def test_the_cause(passed: list[tuple[str, Any]], cause: str, tmp_path: Path) -> None:
    lines = [json.dumps({key: value if value == "no JSON" else json.dumps(value)}) for key, value in passed]
    (tmp_path / "ledger").write_text("".join(f"{line}\n" for line in lines))
    assert Wire(tmp_path / "ledger", 1.0).cause() == cause
