"""Frames that no turn causes: those of an idle thread, of a process, of a thread that the server opened, and of no thread."""

from __future__ import annotations

from typing import Any

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.normalise.normaliser import Rules
from codex_replay.core.replay.causality import Methods
from codex_replay.core.replay.match import Matcher
from codex_replay.core.replay.player import Player
from codex_replay.core.replay.track import Track
from codex_replay.protocol.data_tables import load
from tests.core.replay.players import Lines, drain, live, log

VERSION = "0.169.0"
OPENING = (
    ("client", {"id": 1, "method": "thread/start", "params": {}}),
    ("server", {"id": 1, "result": {"thread": {"id": "T"}}}),
    ("server", {"method": "thread/started", "params": {"thread": {"id": "T"}}}),
)
TURN = (
    ("client", {"id": 2, "method": "turn/start", "params": {"threadId": "T"}}),
    ("server", {"id": 2, "result": {"turn": {"id": "turn-1"}}}),
    ("server", {"method": "turn/started", "params": {"threadId": "T", "turn": {"id": "turn-1"}}}),
)
END = ("server", {"method": "turn/completed", "params": {"threadId": "T", "turn": {"id": "turn-1"}}})


def asked(number: int, method: str, **params: Any) -> tuple[str, dict[str, Any]]:
    return ("client", {"id": number, "method": method, "params": params})


def answered(number: int) -> tuple[str, dict[str, Any]]:
    return ("server", {"id": number, "result": {}})


def told(method: str, **params: Any) -> tuple[str, dict[str, Any]]:
    return ("server", {"method": method, "params": params})


def released(*entries: tuple[str, Any]) -> list[int]:
    """Return how many server frames each client frame releases."""
    frames = log(*entries)
    table = Methods(lambda: load("causality", VERSION))
    track = Track("recording", Lines(frames), table, Matcher(lambda: Rules(load("normalise", VERSION))))
    player = Player([track], "method")
    counts = []
    for frame in frames:
        if frame.sender == "client":
            assert player.receive(live(frame.value)) is None
            counts.append(len(drain(player)))
    return counts


def recorded(*entries: tuple[str, Any]) -> list[int]:
    """Return how many server frames follow each client frame in the recording."""
    counts: list[int] = []
    for sender, _ in entries:
        if sender == "client":
            counts.append(0)
        else:
            counts[-1] += 1
    return counts


def as_recorded(*entries: tuple[str, Any]) -> None:
    assert released(*entries) == recorded(*entries)


def test_a_frame_of_an_idle_thread_waits_for_the_last_answered_request() -> None:
    as_recorded(
        *OPENING,
        asked(2, "thread/attachment/add", threadId="T"),
        answered(2),
        told("thread/attachment/updated", threadId="T"),
        asked(3, "thread/attachment/remove", threadId="T"),
        answered(3),
        told("thread/attachment/updated", threadId="T"),
    )


def test_a_late_frame_of_an_ended_turn_waits_for_the_request_that_caused_it() -> None:
    as_recorded(
        *OPENING,
        *TURN,
        END,
        asked(3, "thread/backgroundTerminals/clean", threadId="T"),
        answered(3),
        told("item/completed", threadId="T", turnId="turn-1"),
    )


def test_a_warning_behind_the_response_that_names_a_turn_waits_for_its_request() -> None:
    as_recorded(*OPENING, *TURN[:2], told("warning", threadId="T"), TURN[2], END)
    review = (asked(3, "review/start", threadId="T"), ("server", {"id": 3, "result": {"turn": {"id": "turn-2"}}}))
    as_recorded(*OPENING, *TURN, *review, told("warning", threadId="T"), END)


def test_a_review_that_has_ended_leaves_no_turn_within_it_behind() -> None:
    """0.169.0 tells a review by two turns, and ends the outer one only."""
    as_recorded(
        *OPENING,
        asked(2, "review/start", threadId="T"),
        ("server", {"id": 2, "result": {"turn": {"id": "outer"}}}),
        told("turn/started", threadId="T", turn={"id": "inner"}),
        told("turn/completed", threadId="T", turn={"id": "outer"}),
        asked(3, "turn/start", threadId="T"),
        told("warning", threadId="T"),
        ("server", {"id": 3, "result": {"turn": {"id": "turn-3"}}}),
    )


def test_a_frame_of_the_running_turn_does_not_wait_for_the_next_one() -> None:
    """A client may wait for the end of the first turn, and the recorded one did not."""
    second = (asked(3, "turn/start", threadId="T"), ("server", {"id": 3, "result": {"turn": {"id": "turn-2"}}}))
    assert released(*OPENING, *TURN, *second, END) == [2, 3, 1]


def test_a_frame_of_a_turn_does_not_wait_for_a_request_that_came_while_it_ran() -> None:
    entries = (*OPENING, *TURN, asked(3, "thread/read", threadId="T"), answered(3), told("item/started", threadId="T"), END)
    assert released(*entries) == [2, 4, 1]


def test_a_kind_of_frame_that_the_thread_sends_unasked_waits_for_no_request() -> None:
    """A client may wait until the MCP server is ready, and the recorded one did not."""
    entries = (
        *OPENING,
        told("mcpServer/startupStatus/updated", threadId="T", status="starting"),
        asked(2, "thread/name/set", threadId="T"),
        answered(2),
        told("mcpServer/startupStatus/updated", threadId="T", status="ready"),
    )
    assert released(*entries) == [4, 1]


def test_the_first_frame_of_a_thread_waits_for_no_request_but_its_opener() -> None:
    """A client may wait for thread/started, and the recorded one did not."""
    entries = (*OPENING[:2], asked(2, "thread/name/set", threadId="T"), answered(2), OPENING[2])
    assert released(*entries) == [2, 1]


def test_a_request_that_reaches_all_threads_is_awaited_in_each() -> None:
    as_recorded(
        *OPENING,
        told("mcpServer/startupStatus/updated", threadId="T", status="ready"),
        asked(2, "config/mcpServer/reload"),
        told("mcpServer/startupStatus/updated", threadId="T", status="ready"),
        answered(2),
    )


def test_a_frame_of_no_thread_that_follows_requests_waits_for_the_last_one() -> None:
    as_recorded(*OPENING, *TURN, END, asked(3, "thread/read", threadId="T"), told("deprecationNotice"), answered(3))


def test_a_command_ends_after_the_requests_that_named_its_process() -> None:
    as_recorded(
        asked(1, "initialize"),
        answered(1),
        asked(2, "command/exec", processId="p"),
        told("command/exec/outputDelta", processId="p", deltaBase64="YQo="),
        asked(3, "command/exec/write", processId="p"),
        answered(3),
        told("command/exec/outputDelta", processId="p", deltaBase64="Ygo="),
        answered(2),
    )


def test_the_output_of_two_commands_waits_for_its_own() -> None:
    entries = (
        asked(1, "process/spawn", processHandle="a"),
        answered(1),
        asked(2, "process/spawn", processHandle="b"),
        answered(2),
        told("process/exited", processHandle="a"),
        told("process/exited", processHandle="b"),
    )
    assert released(*entries) == [2, 2]


def test_a_thread_that_the_server_opened_waits_for_the_turn_that_opened_it() -> None:
    as_recorded(
        *OPENING,
        *TURN,
        told("thread/status/changed", threadId="sub"),
        told("turn/started", threadId="sub", turn={"id": "turn-2"}),
        told("turn/completed", threadId="sub", turn={"id": "turn-2"}),
        END,
    )


def test_a_thread_whose_opening_request_is_unanswered_waits_for_its_answer() -> None:
    as_recorded(
        *OPENING,
        *TURN,
        END,
        asked(3, "thread/fork", threadId="T"),
        told("thread/started", thread={"id": "F"}),
        ("server", {"id": 3, "result": {"thread": {"id": "F"}}}),
    )


def test_a_frame_is_a_frame() -> None:
    assert isinstance(log(*OPENING)[0], Frame)


def test_a_warning_before_the_response_to_a_turn_waits_for_the_request_of_that_turn() -> None:
    """A request of another thread comes between the two turns: the warning must not come before its answer."""
    as_recorded(
        *OPENING,
        *TURN,
        END,
        asked(3, "thread/loaded/list"),
        answered(3),
        asked(4, "turn/start", threadId="T"),
        told("warning", threadId="T"),
        ("server", {"id": 4, "result": {"turn": {"id": "turn-2"}}}),
    )


def test_a_frame_of_an_idle_thread_waits_for_the_open_request_that_names_the_thread() -> None:
    """The server announces the change before the response, in a notification whose kind no table lists."""
    as_recorded(
        *OPENING,
        asked(2, "thread/metadata/update", threadId="T"),
        answered(2),
        asked(3, "project/read"),
        answered(3),
        asked(4, "thread/metadata/update", threadId="T"),
        told("thread/unlisted", threadId="T"),
        answered(4),
    )


def test_a_refused_request_no_longer_counts_as_open() -> None:
    entries = (
        *OPENING,
        told("thread/known", threadId="T"),
        asked(2, "turn/start", threadId="T"),
        ("server", {"id": 2, "error": {"code": -32600, "message": "no"}}),
        asked(3, "turn/start", threadId="T"),
        told("turn/started", threadId="T", turn={"id": "turn-3"}),
        ("server", {"id": 3, "result": {"turn": {"id": "turn-3"}}}),
    )
    as_recorded(*entries)


def test_the_threads_of_an_imported_project_wait_for_its_import() -> None:
    as_recorded(
        *OPENING,
        told("thread/status/changed", threadId="T"),
        asked(2, "project/import"),
        told("thread/project/updated", threadId="T"),
        answered(2),
    )


def test_a_command_of_the_user_in_mid_turn_is_an_item_of_the_turn() -> None:
    entries = (
        *OPENING,
        *TURN,
        asked(3, "thread/shellCommand", threadId="T"),
        answered(3),
        told("item/started", threadId="T", turnId="turn-1"),
    )
    as_recorded(*entries)


def test_the_usage_that_a_resume_shows_waits_for_the_resume_though_an_earlier_command_began_no_turn() -> None:
    usage = told("thread/tokenUsage/updated", threadId="T", turnId="turn-1")
    entries = [*OPENING, *TURN, asked(3, "thread/shellCommand", threadId="T"), answered(3), usage, END]
    as_recorded(*entries, asked(4, "thread/resume", threadId="T"), answered(4), usage)


def test_the_threads_of_a_deleted_project_wait_for_its_deletion() -> None:
    as_recorded(
        *OPENING,
        asked(2, "thread/metadata/update", threadId="T"),
        told("thread/project/updated", threadId="T"),
        answered(2),
        asked(3, "project/delete"),
        told("project/changed"),
        told("thread/project/updated", threadId="T"),
        answered(3),
    )


def test_a_change_of_a_watched_directory_waits_for_the_last_request() -> None:
    """The request that writes the file does not name the watch."""
    as_recorded(
        asked(1, "fs/watch", watchId="w"),
        answered(1),
        asked(2, "fs/writeFile", path="/tmp/a"),
        answered(2),
        told("fs/changed", watchId="w"),
    )


def test_a_frame_of_no_thread_does_not_go_with_the_output_of_a_process() -> None:
    """The process writes between two frames that the turn's task writes together."""
    entries = (
        *OPENING,
        asked(2, "command/exec", processId="p"),
        asked(3, "turn/start", threadId="T"),
        ("server", {"id": 3, "result": {"turn": {"id": "turn-1"}}}),
        told("command/exec/outputDelta", processId="p"),
        told("account/rateLimits/updated"),
    )
    assert released(*entries) == [2, 1, 2]


def test_a_goal_that_a_client_sets_in_mid_turn_is_reported_after_its_response() -> None:
    goal = (asked(3, "thread/goal/set", threadId="T"), answered(3), told("thread/goal/updated", threadId="T", turnId=None))
    assert released(*OPENING, *TURN, *goal, END) == [2, 2, 3]


def test_a_warning_of_a_turn_waits_for_its_own_request_though_an_earlier_one_never_became_a_turn() -> None:
    """A message waits in the queue of the thread; the client starts it with another request."""
    as_recorded(
        *OPENING,
        told("thread/status/changed", threadId="T"),
        asked(2, "thread/queue/add", threadId="T"),
        answered(2),
        told("thread/queue/changed", threadId="T"),
        asked(3, "thread/queue/start", threadId="T"),
        told("warning", threadId="T"),
        ("server", {"id": 3, "result": {"turn": {"id": "turn-1"}}}),
    )


def test_a_frame_between_the_responses_to_requests_at_once_stays_there() -> None:
    asks = [
        asked(number, method, threadId="T") for number, method in ((3, "thread/resume"), (4, "thread/read"), (5, "thread/read"))
    ]
    usage = told("thread/tokenUsage/updated", threadId="T", turnId="turn-1")
    entries = (
        *OPENING,
        *TURN,
        END,
        *asks,
        answered(3),
        usage,
        told("thread/goal/cleared", threadId="T"),
        answered(4),
        answered(5),
    )
    assert released(*entries) == [2, 3, 1, 3, 1]


def test_the_status_of_a_turn_waits_for_its_request_though_an_earlier_one_is_open() -> None:
    started = (*TURN[:2], told("thread/status/changed", threadId="T"), TURN[2])
    first = (*OPENING, told("thread/status/changed", threadId="T"), asked(9, "thread/fork", threadId="T"))
    assert released(*first, *started, answered(9)) == [3, 1, 3]


def test_a_notice_that_waits_delays_no_frame_of_a_thread() -> None:
    asks = [asked(number, "thread/read", threadId="T") for number in (3, 4, 5)]
    notice, name = told("deprecationNotice"), told("thread/name/updated", threadId="T")
    entries = (*OPENING, *TURN, END, *asks, notice, answered(3), name, answered(4), answered(5))
    assert released(*entries) == [2, 3, 1, 2, 2]
