"""Why an answer did not end, as the frames of the app-server show it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from codex_replay.plugin.proxy.http import Exchange
from codex_replay.plugin.proxy.no_end import (
    ENDED,
    REACTION,
    UNANSWERED,
    Watch,
    are_joined,
    ends_turn,
    no_end,
    refused_submission,
    stuck,
    turn_is_open,
)
from codex_replay.plugin.proxy.timeline import proxy_frames, report_on
from codex_replay.plugin.proxy.violations import violations
from codex_replay.plugin.proxy.wire import Wire, WireFrame
from codex_replay.shell.process.patience import Patience

ASKED = {"id": 2, "method": "turn/start", "params": {}}
ACCEPTED = {"id": 2, "result": {}}
TAKEN = {"id": 0, "result": {}}
REFUSED = {"id": 0, "error": {"code": -32601, "message": "unknown"}}
APPROVAL = {"id": 0, "method": "item/tool/call", "params": {}}
DELTA = {"method": "item/agentMessage/delta", "params": {}}
IDLE = {"method": "thread/status/changed", "params": {"threadId": "a", "status": {"type": "idle"}}}
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
            [("client", ASKED), ("server", ACCEPTED), ("server", APPROVAL), ("client", REFUSED)],
            "The proxy answered the app-server's request item/tool/call (id 0) with an error. Some versions of "
            "Codex then never end the turn: answer with a result.",
        ),
        (
            [("client", ASKED), ("server", ACCEPTED), ("server", APPROVAL), ("client", {"id": "0", "result": {}})],
            "The proxy did not answer the app-server's request item/tool/call (id 0; the proxy sent a reply with the id '0', "
            "which the app-server ignores), so the turn cannot end.",
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
            [("client", ASKED), ("server", ACCEPTED), ("server", DELTA), ("server", IDLE)],
            "The turn had ended (the thread was idle: thread/status/changed, 7.0 s before), but turn/completed did not come. "
            "Usually the optOutNotificationMethods of `initialize` name it: remove it there.",
        ),
        (
            [("client", ASKED), ("server", {"id": 2, "error": {"code": -32600, "message": "no such policy"}})],
            "The app-server refused turn/start (no such policy), so it got no prompt. The proxy must then end the answer with an "
            "error.",
        ),
        (
            [("client", ASKED), ("server", ACCEPTED), ("server", COMPLETED), ("server", DELTA)],
            "The turn had ended (turn/completed, 8.0 s before), but the proxy did not end the answer.",
        ),
        (
            [("client", {"method": "initialized"})],
            "The proxy had not submitted the prompt (turn/start, sendUserTurn, sendUserMessage). "
            "The last message of the proxy to the app-server was initialized, 10.0 s before.",
        ),
    ],
)
def test_the_cause_comes_first(sent: list[tuple[str, Any]], cause: str) -> None:
    told = f"{cause} POST /v1/responses: no complete answer within 10 s. The client had received no byte of the answer."
    assert answer(*sent) == told


FINISHED = (("client", ASKED), ("server", ACCEPTED), ("server", COMPLETED))


@pytest.mark.parametrize(
    ("headers", "shown"),
    [
        ([("Content-Type", "text/event-stream")], True),
        ([("Transfer-Encoding", "chunked")], False),
        ([("content-length", "99")], False),
    ],
)
def test_an_answer_without_a_length_is_named(headers: list[tuple[str, str]], shown: bool) -> None:
    done = Exchange("POST", "/v1/responses", {}, 200, headers=headers, ended=10.0, problem="late", frames=frames_of(*FINISHED))
    assert (" The answer has neither Content-Length nor " in no_end(done, attached=False)) is shown


@pytest.mark.parametrize(
    ("sent", "cause"),
    [
        ([("client", ASKED)], "The app-server (process 7) had ended; it had sent nothing."),
        (
            [("client", ASKED), ("server", ACCEPTED), ("server", DELTA)],
            "The app-server (process 7) had ended; its last message was item/agentMessage/delta, 8.0 s before.",
        ),
        (
            [("client", ASKED), ("server", ACCEPTED), ("server", COMPLETED)],
            "The turn had ended (turn/completed, 8.0 s before), but the proxy did not end the answer.",
        ),
    ],
)
def test_an_app_server_that_has_ended_is_the_cause(sent: list[tuple[str, Any]], cause: str) -> None:
    done = Exchange("POST", "/v1/responses", {}, ended=10.0, problem="the answer broke off", frames=frames_of(*sent))
    assert no_end(done, attached=False, gone={"7"}).startswith(cause)


def test_frames_that_another_thread_reads_belong_to_the_request_too(tmp_path: Path) -> None:
    wire = Wire(tmp_path)
    watch = Watch(wire, Patience(None, alone=False))
    (tmp_path / "wire.7").write_text('{"t":1,"got":"{\\"id\\":1,\\"method\\":\\"turn/start\\"}"}\n')
    assert len(wire.update()) == 1
    assert [frame.value["method"] for frame in watch.frames()] == ["turn/start"]


def test_a_jump_of_the_wall_clock_gives_up_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock may be set while the proxy answers: the frame is from before, and the look at it from after."""
    ledger = str(tmp_path / "wire.7")
    argv = [sys.executable, "-m", "codex_replay.shell.rpc.wire_tap", "--timed", ledger, "--", "echo", json.dumps(APPROVAL)]
    wire = Wire(tmp_path)
    watch = Watch(wire, Patience(None, alone=False))
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    assert stuck(watch.frames()) == UNANSWERED
    now = time.time() + 3600
    monkeypatch.setattr(time, "time", lambda: now)
    assert not watch.hopeless()
    monkeypatch.setattr(time, "monotonic", lambda: wire.frames[-1].t + 2 * REACTION)
    assert watch.hopeless()


def test_a_frame_that_two_requests_saw_is_once_on_the_timeline() -> None:
    frames = frames_of(("client", ASKED), ("server", ACCEPTED))
    both = [Exchange("POST", path, {}, 200, ended=9.0, frames=frames) for path in ("/v1/a", "/v1/b")]
    assert report_on(both).count("turn/start") == 1
    assert len([frame for frame in proxy_frames(both) if frame["seam"] == "rpc"]) == 2


def test_what_had_come_is_named() -> None:
    assert answer(status=200, body=b"data").endswith("Status 200 and 4 bytes had come.")


def test_of_a_proxy_that_is_attached_no_cause_is_known() -> None:
    done = Exchange("POST", "/v1/responses", {}, problem="the answer broke off")
    assert (
        no_end(done, attached=True) == "POST /v1/responses: the answer broke off. The client had received no byte of the answer."
    )


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


STARTED = {"method": "turn/started", "params": {"threadId": "a", "turn": {"id": "0"}}}
OVER = {"method": "turn/completed", "params": {"threadId": "a", "turn": {"id": "0"}}}
OTHER = {"method": "turn/completed", "params": {"threadId": "b", "turn": {"id": "0"}}}
STARTED_V1 = {"method": "codex/event/task_started", "params": {"conversationId": "a", "id": "1"}}
OVER_V1 = {"method": "codex/event/task_complete", "params": {"conversationId": "a", "id": "1"}}
RUNS = (("client", ASKED), ("server", ACCEPTED), ("server", STARTED))


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        ((), ""),
        (RUNS, ""),
        ((*RUNS, ("server", APPROVAL)), UNANSWERED),
        ((*RUNS, ("server", APPROVAL), ("client", TAKEN)), ""),
        ((*RUNS, ("server", OVER)), ENDED),
        ((*RUNS, ("server", STARTED_V1), ("server", OVER_V1), ("server", OVER)), ENDED),
        ((*RUNS, ("server", OVER_V1), ("server", OVER), ("server", STARTED_V1)), ""),  # the next turn of the thread
        # The turn of a neighbour, which began before, says nothing about this one.
        ((*RUNS, ("server", OTHER)), ""),
        # The next request is on its way: the app-server will say more.
        ((*RUNS, ("server", OVER), ("client", {**ASKED, "id": 3})), ""),
    ],
)
def test_an_answer_is_stuck_if_only_the_proxy_can_end_it(sent: tuple[tuple[str, Any], ...], why: str) -> None:
    assert stuck(frames_of(*sent)) == why


@pytest.mark.parametrize(
    ("sent", "joined"),
    [
        ((*RUNS, ("client", {**ASKED, "id": 3}), ("server", {"id": 3, "result": {}}), ("server", OVER)), True),
        # The reply of the one that joined names a turn that never ends.
        (
            (
                *RUNS,
                ("server", {**STARTED, "params": {"threadId": "a", "turn": {"id": "1"}}}),
                ("client", ASKED),
                ("server", OVER),
            ),
            True,
        ),
        ((*RUNS, ("client", {**ASKED, "id": 3}), ("server", OVER)), False),  # the second one has no reply yet
        (RUNS, False),
        (RUNS[:2], False),  # the turn has not begun
    ],
)
def test_two_submissions_may_be_one_turn(sent: tuple[tuple[str, Any], ...], joined: bool) -> None:
    assert turn_is_open(frames_of(*sent))
    assert are_joined(frames_of(*sent)) is joined


def test_a_line_longer_than_64_kib_is_named_first() -> None:
    long = {"method": "item/completed", "params": {"text": "x" * 70_000}}
    sent = (("client", ASKED), ("server", ACCEPTED))
    assert answer(*sent, ("server", long)).startswith("The app-server sent a line of 700")
    assert "(item/completed). A line has no limit" in answer(*sent, ("server", long))
    assert "A line has no limit" not in answer(*sent, ("client", long), ("server", DELTA))


def test_a_refused_call_is_named_if_no_prompt_was_accepted() -> None:
    call = {"id": 5, "method": "thread/inject_items", "params": {}}
    refused = {"id": 5, "error": {"code": -32600, "message": "unknown variant"}}
    told = "The app-server refused thread/inject_items (unknown variant), so it got no prompt. "
    assert refused_submission(frames_of(("client", call), ("server", refused))) == told
    assert refused_submission(frames_of(("client", ASKED), ("server", ACCEPTED), ("client", call), ("server", refused))) == ""
    no_turn = {"id": 2, "error": {"code": -32600, "message": "no such model"}}
    told = "The app-server refused turn/start (no such model), so it got no prompt. "
    assert refused_submission(frames_of(("client", ASKED), ("server", no_turn))) == told


def test_the_messages_of_another_case_are_not_judged_again() -> None:
    """The process of a proxy serves many cases; the handshake belongs to each."""
    known = {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "a", "version": "1"}, "capabilities": {"a": 1}}}
    call = {"id": 2, "method": "thread/start", "params": {"environments": []}}
    frames = frames_of(("client", known), ("client", call), ("client", {**call, "id": 3}))
    found = [violations(frames, "known", "0.92.0", since) for since in (0, 3)]
    assert [[text.partition(":")[0] for text in each] for each in found] == [["initialize", "thread/start"], ["initialize"]]
