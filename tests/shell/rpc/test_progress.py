"""How far a conversation came: the last message of the server, and whether the turn had ended."""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.shell.rpc.progress import progress

STARTED, ENDED = {"method": "turn/started", "params": {}}, {"method": "turn/completed", "params": {}}


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([], "The server sent no message"),
        ([{"id": 1, "result": {}}], "The last message of the server was result of request 1, and no turn had started"),
        ([STARTED], "The last message of the server was turn/started, and the turn had not ended"),
        ([STARTED, ENDED], "The last message of the server was turn/completed, and the turn had ended"),
        ([STARTED, ENDED, STARTED], "The last message of the server was turn/started, and the turn had not ended"),
        (
            [{"method": "codex/event/task_started"}, {"method": "codex/event/turn_aborted"}, None],
            "The last message of the server was no message, and the turn had ended",
        ),
    ],
)
def test_the_end_of_the_sentence(messages: list[Any], text: str) -> None:
    assert progress(messages) == text
