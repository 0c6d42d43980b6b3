"""How far a track reads ahead, and what it keeps meanwhile: little, whatever the recording and however long the client waits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.normalise.masking import Rules
from codex_replay.core.replay import track
from codex_replay.core.replay.match import Matcher
from codex_replay.core.replay.player import Player
from codex_replay.core.wire.json_text import dumps
from codex_replay.protocol.data_tables import load
from codex_replay.shell.cassettes.file import CassetteReader
from tests.core.replay.players import METHODS, OTHER, THREAD, Lines, drain, log, opening

CASSETTES = sorted((Path(__file__).parents[3] / "cassettes" / "app_server").rglob("*.ndjson"))


def player_on(source: Any) -> Player:
    return Player([track.Track("t", source, METHODS, Matcher(lambda: Rules(load("normalise"))))])


def deltas(count: int, size: int, thread: str = THREAD) -> list[tuple[str, Any]]:
    params = {"threadId": thread, "turnId": "0", "itemId": "m"}
    texts = (str(n).ljust(size, "x") for n in range(count))
    return [("server", {"method": "item/agentMessage/delta", "params": {**params, "delta": text}}) for text in texts]


def turn(asked: list[tuple[str, Any]], then: list[tuple[str, Any]]) -> list[Frame]:
    start = {"id": 7, "method": "turn/start", "params": {"threadId": THREAD, "input": []}}
    end = {"method": "turn/completed", "params": {"threadId": THREAD, "turn": {"id": "0"}}}
    return log(
        *opening(), ("client", start), ("server", {"id": 7, "result": {"turn": {"id": "0"}}}), *asked, *then, ("server", end)
    )


APPROVAL = [
    ("server", {"id": 0, "method": "item/x/requestApproval", "params": {"threadId": THREAD, "turnId": "0"}}),
    ("client", {"id": 0, "result": {"decision": "accept"}}),
]


def test_large_frames_are_not_kept_while_the_client_is_silent() -> None:
    source = Lines(log(*opening(), *deltas(2000, 20000)))
    drain(player_on(source))
    assert source.read * 20000 < 2 * track.READ_AHEAD_BYTES


@pytest.mark.parametrize("size", [30, 20000])
def test_nothing_is_read_of_a_turn_that_waits_for_a_reply(size: int) -> None:
    frames = turn(APPROVAL, deltas(6000, size))
    source = Lines(frames)
    player = player_on(source)
    out = drain(player)
    for frame in frames:
        if frame.sender == "client":
            if frame.value.get("result"):
                assert source.read < 5000, "the turn is open, but nothing of it can go out before the reply"
            assert player.receive(frame) is None
            out += drain(player)
    assert out == [frame.raw for frame in frames if frame.sender == "server"]


def test_what_must_be_read_for_a_response_is_read_again_when_it_goes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The response to a request stands behind a long turn that waits: that turn's frames are kept by their places."""
    monkeypatch.setattr(track, "READ_AHEAD_BYTES", 1000)
    monkeypatch.setattr(track, "RELEASE_BYTES", 5000)
    late = [("server", {"id": 8, "result": {"data": []}})]
    # The list is asked for before the approval, and answered after all of the turn.
    asked = [APPROVAL[0], ("client", {"id": 8, "method": "model/list", "params": {}}), APPROVAL[1]]
    frames = turn(asked, deltas(300, 100) + late)
    source = Lines(frames)
    player = player_on(source)
    out = drain(player)
    for frame in frames:
        if frame.sender == "client" and "result" not in frame.value:
            assert player.receive(frame) is None
            out += drain(player)
    assert out[-1] == dumps(late[0][1]) + b"\n"
    assert b"agentMessage" not in b"".join(out)
    assert player.receive(next(frame for frame in frames if frame.sender == "client" and "result" in frame.value)) is None
    batch = player.advance(100)
    assert sum(len(frame.raw) for frame in batch if isinstance(frame, Frame)) < 6000, "not all of it goes out at once"
    out += [frame.raw if isinstance(frame, Frame) else frame for frame in batch] + drain(player)
    assert source.again > 250
    said = [frame.raw for frame in frames if frame.sender == "server"]
    assert sorted(out) == sorted(said)
    assert [raw for raw in out if b"threadId" in raw] == [raw for raw in said if b"threadId" in raw]


@pytest.mark.parametrize("path", CASSETTES[:: max(1, len(CASSETTES) // 25)], ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_recording_is_replayed_alike_whatever_is_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def replayed() -> list[bytes]:
        with CassetteReader(path) as reader:
            sent = [frame for frame in reader if frame.seam == "rpc" and frame.sender == "client"]
        with CassetteReader(path) as reader:
            player = player_on(reader)
            heard = drain(player)
            for frame in sent:
                assert player.receive(frame) is None
                heard += drain(player)
        return sorted(heard)

    usual = replayed()
    monkeypatch.setattr(track, "READ_AHEAD_BYTES", 0)
    monkeypatch.setattr(track, "RELEASE_BYTES", 1)
    monkeypatch.setattr(track, "READ_AHEAD", 1)
    assert replayed() == usual


def test_no_frame_overtakes_one_of_its_lane_that_still_waits() -> None:
    """A line that carries on a stream goes out undecoded only if nothing of that stream is held."""
    ask = ("client", {"id": 8, "method": "turn/steer", "params": {"threadId": THREAD, "input": []}})
    frames = turn([], [*deltas(2, 20), APPROVAL[0], APPROVAL[1], *deltas(9000, 20), ask, *deltas(5, 20, OTHER)])
    player = player_on(Lines(frames))
    out = drain(player)
    for frame in frames:
        if frame.sender == "client":
            assert player.receive(frame) is None
            out += drain(player)
    said = [frame.raw for frame in frames if frame.sender == "server"]
    assert [raw for raw in out if THREAD.encode() in raw] == [raw for raw in said if THREAD.encode() in raw]
