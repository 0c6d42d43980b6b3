"""Why an answer did not end, as the frames of the app-server show it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_replay.plugin.proxy.http import Exchange
from codex_replay.plugin.proxy.no_end import ends_turn, no_end, turn_is_open
from codex_replay.plugin.proxy.wire import WireFrame

ASKED = {"id": 2, "method": "turn/start", "params": {}}
ACCEPTED = {"id": 2, "result": {}}
TAKEN = {"id": 0, "result": {}}
APPROVAL = {"id": 0, "method": "item/tool/call", "params": {}}
DELTA = {"method": "item/agentMessage/delta", "params": {}}
COMPLETED = {"method": "turn/completed", "params": {}}


V1_END = {"method": "codex/event/task_complete", "params": {}}


def frames_of(*sent: tuple[str, Any]) -> list[WireFrame]:
    return [WireFrame(n, "7", sender, json.dumps(json.dumps(value)).encode()) for n, (sender, value) in enumerate(sent)]


def answer(*sent: tuple[str, Any], status: int = 0, body: bytes = b"") -> str:
    frames = frames_of(*sent)
    problem = "no complete answer within 10 s"
    done = Exchange("POST", "/v1/responses", {}, status, body=body, ended=10.0, problem=problem, frames=frames)
    return no_end(done, attached=False)


@pytest.mark.parametrize(
    ("sent", "cause"),
    [
        ([], "The proxy sent nothing to its app-server for this request."),
        ([("client", ASKED)], "The app-server had not answered turn/start (id 2)."),
        (
            [("client", ASKED), ("server", ACCEPTED), ("server", APPROVAL)],
            "The proxy did not answer the app-server's request item/tool/call (id 0), so the turn cannot end.",
        ),
        (
            [
                ("client", ASKED),
                ("server", ACCEPTED),
                ("server", APPROVAL),
                ("client", TAKEN),
                ("server", DELTA),
            ],
            "The turn had not ended; the app-server's last message was item/agentMessage/delta, 6.0 s before.",
        ),
        (
            [("client", ASKED), ("server", ACCEPTED), ("server", COMPLETED), ("server", DELTA)],
            "The turn had ended (turn/completed, 8.0 s before), but the proxy did not end the answer.",
        ),
        ([("client", {"method": "initialized"})], "The app-server had sent nothing."),
    ],
)
def test_the_cause_comes_first(sent: list[tuple[str, Any]], cause: str) -> None:
    told = f"{cause} POST /v1/responses: no complete answer within 10 s. No byte of it had come."
    assert answer(*sent) == told


def test_what_had_come_is_named() -> None:
    assert answer(status=200, body=b"data").endswith("Status 200 and 4 bytes had come.")


def test_of_a_proxy_that_is_attached_no_cause_is_known() -> None:
    done = Exchange("POST", "/v1/responses", {}, problem="the answer broke off")
    assert no_end(done, attached=True) == "POST /v1/responses: the answer broke off. No byte of it had come."


@pytest.mark.parametrize(
    ("message", "ends"),
    [
        (COMPLETED, True),
        ({"method": "codex/event/task_complete", "params": {}}, True),
        ({"method": "error", "params": {"willRetry": False}}, True),
        ({"method": "error", "params": {"willRetry": True}}, False),
        ({"method": "error"}, True),
        (DELTA, False),
        ({"id": 1, "result": {}}, False),
        (None, False),
    ],
)
def test_what_ends_a_turn(message: Any, ends: bool) -> None:
    assert ends_turn(message) is ends


@pytest.mark.parametrize(
    ("sent", "is_open"),
    [
        ([], False),
        ([("client", ASKED)], True),
        ([("client", ASKED), ("server", ACCEPTED), ("server", DELTA)], True),
        ([("client", ASKED), ("server", COMPLETED)], False),
        # A thread's turn is reported in both spellings: that is one end, not two.
        ([("client", ASKED), ("client", ASKED), ("server", V1_END), ("server", COMPLETED)], True),
        ([("client", {"id": 3, "method": "sendUserTurn", "params": {}}), ("server", V1_END)], False),
        # What a client says of itself ends nothing.
        ([("client", ASKED), ("client", COMPLETED)], True),
    ],
)
def test_a_turn_is_open_until_the_server_ends_it(sent: list[tuple[str, Any]], is_open: bool) -> None:
    assert turn_is_open(frames_of(*sent)) is is_open
