"""Single facts about a replay: what waits for what, which ids and directories are replaced, what is a miss."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.normalise.normaliser import Rules
from codex_replay.core.replay.match import Matcher
from codex_replay.core.replay.player import Player
from codex_replay.core.replay.track import Track
from codex_replay.core.wire.json_text import dumps, loads
from codex_replay.protocol.data_tables import load
from tests.core.replay.players import METHODS, OTHER, THREAD, Lines, drain, live, log, opening, player_of


def test_a_turn_is_not_said_to_be_interrupted_before_the_client_has_interrupted_it() -> None:
    frames = log(
        *opening(),
        ("server", {"method": "item/agentMessage/delta", "params": {"threadId": THREAD, "turnId": "0", "delta": "a"}}),
        ("client", {"id": 3, "method": "turn/interrupt", "params": {"threadId": THREAD, "turnId": "0"}}),
        ("server", {"method": "item/agentMessage/delta", "params": {"threadId": THREAD, "turnId": "0", "delta": "b"}}),
        ("server", {"method": "codex/event/turn_aborted", "params": {"id": "0", "msg": {}, "conversationId": THREAD}}),
        ("server", {"id": 3, "result": {}}),
        ("server", {"method": "turn/completed", "params": {"threadId": THREAD, "turn": {"id": "0"}}}),
    )
    player = player_of(frames)
    drain(player)
    for n in (0, 2):
        player.receive(frames[n])
    assert [line for line in drain(player) if b"delta" in line] == [frames[4].raw, frames[6].raw]
    player.receive(frames[5])
    assert drain(player) == [frames[7].raw, frames[8].raw, frames[9].raw]


@pytest.mark.parametrize("error_reply", [False, True], ids=["unanswered", "error"])
def test_what_ends_an_abandoned_call_waits_for_the_interrupt(error_reply: bool) -> None:
    """A server request without a result blocks its thread: what comes then, up to the abort, the interrupt has caused."""
    of = {"threadId": "T", "turnId": "0"}
    reply = [("client", {"id": 0, "error": {"code": -1, "message": "no"}})] if error_reply else []
    frames = log(
        ("client", {"id": 1, "method": "turn/start", "params": {"threadId": "T"}}),
        ("server", {"id": 1, "result": {"turn": {"id": "0"}}}),
        ("server", {"method": "item/commandExecution/requestApproval", "id": 0, "params": of}),
        *reply,
        ("client", {"id": 2, "method": "turn/interrupt", "params": of}),
        ("server", {"method": "item/completed", "params": of}),
        ("server", {"method": "codex/event/turn_aborted", "params": {"id": "0", "msg": {}, "conversationId": "T"}}),
        ("server", {"id": 2, "result": {}}),
        ("server", {"method": "turn/completed", "params": {"threadId": "T", "turn": {"id": "0"}}}),
    )
    player = player_of(frames)
    client = [frame for frame in frames if frame.sender == "client"]
    said = []
    for frame in client:
        assert player.receive(live(frame.value)) is None
        said.append(len(drain(player)))
    assert said == [2, *([0] if error_reply else []), 4]


@pytest.mark.parametrize("named", [True, False], ids=["by-id", "by-path"])
def test_a_turn_after_a_resume_waits_for_its_own_request(named: bool) -> None:
    """A thread that is loaded again numbers its turns from 0: the second turn 0 is not the first one's."""
    write_out = {"method": "sendUserMessage", "params": {"conversationId": "T", "items": []}}
    told = {"method": "codex/event/task_started", "params": {"id": "0", "msg": {}, "conversationId": "T"}}
    done = {"method": "turn/completed", "params": {"threadId": "T", "turn": {"id": "0"}}}
    by = {"conversationId": "T"} if named else {"path": "/rollout.jsonl"}
    frames = log(
        ("client", {"id": 1, "method": "newConversation", "params": {}}),
        ("server", {"id": 1, "result": {"conversationId": "T"}}),
        ("client", {"id": 2, **write_out}),
        ("server", {"id": 2, "result": {}}),
        ("server", told),
        ("server", done),
        ("client", {"id": 3, "method": "resumeConversation", "params": by}),
        ("server", {"id": 3, "result": {"conversationId": "T"}}),
        ("server", {"method": "codex/event/mcp_startup_complete", "params": {"id": "", "msg": {}, "conversationId": "T"}}),
        ("client", {"id": 4, **write_out}),
        ("server", {"id": 4, "result": {}}),
        ("server", told),
        ("server", done),
    )
    player = player_of(frames)
    said = []
    for frame in frames:
        if frame.sender == "client":
            assert player.receive(live(frame.value)) is None
            said.append(len(drain(player)))
    assert said == [1, 3, 2, 3]


def test_a_review_of_its_own_thread_waits_for_its_request() -> None:
    frames = log(
        ("client", {"id": 1, "method": "thread/start", "params": {}}),
        ("server", {"id": 1, "result": {"thread": {"id": "T"}}}),
        ("client", {"id": 2, "method": "review/start", "params": {"threadId": "T", "delivery": "detached"}}),
        ("server", {"id": 2, "result": {"turn": {"id": "0"}, "reviewThreadId": "R"}}),
        ("server", {"method": "turn/started", "params": {"threadId": "R", "turn": {"id": "0"}}}),
        ("server", {"method": "turn/completed", "params": {"threadId": "R", "turn": {"id": "0"}}}),
    )
    player = player_of(frames)
    assert player.receive(live(frames[0].value)) is None
    assert len(drain(player)) == 1
    assert player.receive(live(frames[2].value)) is None
    assert len(drain(player)) == 3


def test_a_turn_is_not_said_to_be_replaced_before_the_client_has_replaced_it() -> None:
    frames = log(
        ("client", {"id": 1, "method": "turn/start", "params": {"threadId": "T"}}),
        ("server", {"id": 1, "result": {"turn": {"id": "0"}}}),
        ("client", {"id": 2, "method": "review/start", "params": {"threadId": "T"}}),
        ("server", {"id": 2, "result": {"turn": {"id": "1"}, "reviewThreadId": "T"}}),
        (
            "server",
            {"method": "codex/event/turn_aborted", "params": {"id": "0", "msg": {"reason": "replaced"}, "conversationId": "T"}},
        ),
        ("server", {"method": "turn/completed", "params": {"threadId": "T", "turn": {"id": "0"}}}),
    )
    player = player_of(frames)
    assert player.receive(live(frames[0].value)) is None
    assert len(drain(player)) == 1
    assert player.receive(live(frames[2].value)) is None
    assert len(drain(player)) == 3


def test_live_ids_are_spliced_into_the_recorded_bytes_wherever_the_id_stands() -> None:
    frames = log(
        ("client", {"id": 1, "method": "a", "params": {"id": 1}}),
        ("server", b'{ "result": {"id":1, "x":[1.0e5, "\\u0041"]} , "id" : 1 }\r\n'),
    )
    player = player_of(frames)
    player.receive(live({"id": "live-é", "method": "a", "params": {"id": 1}}))
    assert drain(player) == ['{ "result": {"id":1, "x":[1.0e5, "\\u0041"]} , "id" : "live-é" }\r\n'.encode()]


@pytest.mark.parametrize("recorded_first", [True, False])
def test_a_uuid_of_the_client_is_echoed_with_the_live_value(recorded_first: bool) -> None:
    mine, theirs = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"
    frames = log(
        ("client", {"id": 1, "method": "a", "params": {"key": mine}}),
        ("server", {"id": 1, "result": {"key": mine, "path": f"/x/{mine}.json"}}),
    )
    player = player_of(frames, level="exact")
    said = theirs if recorded_first else mine
    assert player.receive(live({"id": 1, "method": "a", "params": {"key": said}})) is None
    assert drain(player) == [dumps({"id": 1, "result": {"key": said, "path": f"/x/{said}.json"}}) + b"\n"]


def in_directories(cwds: list[str], said: list[str]) -> list[Frame]:
    """A client that names each directory, and a server that answers with texts and with a map of paths."""
    return log(
        *[("client", {"id": n, "method": "a", "params": {"cwd": cwd}}) for n, cwd in enumerate(cwds)],
        *[("client", {"id": 9, "method": "b", "params": {"command": said[0], "files": {said[1]: 1}}})],
        *[("server", {"method": "c", "params": {"said": said, "files": dict.fromkeys(said, 1)}})],
    )


def replayed(recorded: list[Frame], spoken: list[Frame]) -> Any:
    player = player_of(recorded, level="exact")
    for frame in spoken:
        if frame.sender == "client":
            assert player.receive(live(frame.raw)) is None
    return loads(drain(player)[0])


def test_directories_are_replaced_at_once_and_by_whole_segments() -> None:
    recorded = ["cat /home/user/work/a /home/user/b /home/user/workshop /var/tmp/x /tmp", "/home/user/work/a", "/tmp/x"]
    spoken = ["cat /data/project/a /srv/me/b /srv/me/workshop /var/tmp/x /home/user", "/data/project/a", "/home/user/x"]
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        there = [["/home/user", "/home/user/work/", "/tmp"][i] for i in order]
        here = [["/srv/me", "/data/project", "/home/user"][i] for i in order]
        log_there, log_here = in_directories(there, recorded), in_directories(here, spoken)
        assert replayed(log_there, log_here) == log_here[-1].value
        assert replayed(log_here, log_there) == log_there[-1].value


@pytest.mark.parametrize("cwd", ["/", "/srv"])
def test_two_directories_may_be_one_for_the_live_client(cwd: str) -> None:
    recorded = in_directories(["/home/user", "/home/user/work"], ["/home/user/x", "/home/user/work"])
    inside = f"{cwd.rstrip('/')}/x"
    spoken = in_directories([cwd, cwd], [inside, cwd])
    assert replayed(recorded, spoken)["params"]["said"] == [inside, cwd]


def test_ids_that_change_places_are_replaced_at_once() -> None:
    """Each of two live ids is the other's recorded one."""
    one, two = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"
    ask = {"id": 1, "method": "a", "params": {"keys": [one, two], "text": f"{one} {two}"}}
    frames = log(("client", ask), ("server", {"id": 1, "result": f"{one} {two}"}))
    player = player_of(frames, level="exact")
    asked = {"id": 1, "method": "a", "params": {"keys": [two, one], "text": f"{two} {one}"}}
    assert player.receive(live(asked)) is None
    assert loads(drain(player)[0])["result"] == f"{two} {one}"


def test_exact_holds_the_client_to_the_thread_it_was_given() -> None:
    frames = log(*opening())
    player = player_of(frames, level="exact")
    player.receive(frames[0])
    drain(player)
    miss = player.receive(live({"id": 2, "method": "turn/start", "params": {"threadId": OTHER}}))
    assert miss is not None
    assert miss.differences[0].path == "params.threadId"
    assert player.receive(frames[2]) is None


def test_a_miss_names_the_nearest_frame_and_the_smallest_difference_and_changes_nothing() -> None:
    frames = log(
        ("client", {"id": 1, "method": "a", "params": {}}),
        ("client", {"id": 2, "method": "b", "params": {"x": {"y": [1, 2]}, "z": 1}}),
        ("server", {"id": 2, "result": {}}),
    )
    player = player_of(frames, level="exact")
    miss = player.receive(live({"id": 9, "method": "b", "params": {"x": {"y": [1, 3]}, "z": 1}}))
    assert str(miss) == (
        "no recorded frame matches b: the nearest is frame 2 of recording 1, b, and differs at params.x.y[1]: recorded 2, got 3"
    )
    assert "which comes later" in str(player.receive(frames[1]))
    assert player.receive(frames[0]) is None
    assert player.receive(frames[1]) is None
    assert drain(player) == [frames[2].raw]
    assert "no recorded frame is left" in str(player.receive(live({"id": 3, "method": "c"})))


def approval(decision: str, thread: str) -> list[Frame]:
    return log(
        *opening(thread),
        ("server", {"id": 0, "method": "item/x/requestApproval", "params": {"threadId": thread, "turnId": "0"}}),
        ("client", {"id": 0, "result": {"decision": decision}}),
        ("server", {"method": "item/completed", "params": {"threadId": thread, "turnId": "0", "status": decision}}),
    )


@pytest.mark.parametrize("decision", ["accept", "decline", "cancel"])
def test_the_clients_reply_chooses_the_branch_and_the_branch_speaks_of_the_thread_that_was_opened(decision: str) -> None:
    names = {"accept": THREAD, "decline": OTHER, "cancel": "01a1fa03-0000-7c40-a0be-c9e3464a450e"}
    player = player_of(*(approval(name, thread) for name, thread in names.items()))
    lead = approval("accept", THREAD)
    said = []
    for frame in (lead[0], lead[2]):
        player.receive(frame)
        said += drain(player)
    assert said == [lead[1].raw, lead[3].raw, lead[4].raw]
    assert player.receive(live({"id": 0, "result": {"decision": decision}})) is None
    assert drain(player) == [
        dumps({"method": "item/completed", "params": {"threadId": THREAD, "turnId": "0", "status": decision}}) + b"\n"
    ]


def test_a_reply_that_no_branch_has_is_a_miss_even_at_the_level_of_methods() -> None:
    player = player_of(approval("accept", THREAD), approval("decline", OTHER))
    lead = approval("accept", THREAD)
    for frame in (lead[0], lead[2]):
        player.receive(frame)
        drain(player)
    assert "result.decision" in str(player.receive(live({"id": 0, "result": {"decision": "maybe"}})))


def test_reading_ahead_is_bounded_while_the_client_is_silent() -> None:
    tail = [
        ("server", {"method": "item/agentMessage/delta", "params": {"threadId": THREAD, "turnId": "0", "delta": str(n)}})
        for n in range(20000)
    ]
    frames = log(*opening(), *tail)
    source = Lines(frames)
    player = Player([Track("long", source, METHODS, Matcher(lambda: Rules(load("normalise"))))])
    drain(player)
    assert source.read < 5000
    for n in (0, 2):
        player.receive(frames[n])
    assert len(drain(player)) == 20002


@given(st.lists(st.text(max_size=8), max_size=30), st.booleans())
@settings(max_examples=50, deadline=None)
def test_undecoded_frames_are_the_same_bytes_as_decoded_ones(deltas: list[str], v1: bool) -> None:
    def frame(text: str) -> Any:
        if v1:
            params = {"id": "0", "msg": {"type": "agent_message_delta", "delta": text}, "conversationId": THREAD}
            return {"method": "codex/event/agent_message_delta", "params": params}
        return {"method": "item/agentMessage/delta", "params": {"threadId": THREAD, "turnId": "0", "itemId": "m", "delta": text}}

    frames = log(*opening(), *(("server", frame(text)) for text in deltas))
    player = player_of(frames)
    for n in (0, 2):
        player.receive(frames[n])
    assert drain(player)[2:] == [f.raw for f in itertools.islice(frames, 4, None)]


@pytest.mark.parametrize("value", [{"delta": "{"}, {"delta": 1}, {"deep": {"delta": "}"}}, {"all": [{"a": {}}]}, "plain", 1])
def test_a_line_that_lost_its_last_brace_carries_no_stream_on(value: Any) -> None:
    """It is handed to the source, which knows that it is broken; the lines around it need no look."""
    params = {"threadId": THREAD, "turnId": "0", "part": value}
    frames = log(*opening(), *[("server", {"method": "item/x/delta", "params": params})] * 4)
    source = Lines(frames)
    player = Player([Track("broken", source, METHODS, Matcher(lambda: Rules(load("normalise"))))])
    for n in (0, 2):
        player.receive(frames[n])
    drained = [frame for frame in player.advance(3, raw=True) if isinstance(frame, bytes)]
    assert drained == [frames[5].raw]  # the first of the stream was decoded, and this one known by it
    looked: list[bytes] = []
    parse = source.parse
    source.parse = lambda line: looked.append(line) or parse(line)  # type: ignore[method-assign,func-returns-value]
    source._lines[6] = source._lines[6][:-2] + b"\n"
    player.advance(1, raw=True)
    assert looked == [source._lines[6]]
