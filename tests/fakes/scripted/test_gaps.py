"""The gaps that a scripted fake leaves where the real server takes its time: a client does not lose races against a burst."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean, median
from typing import Any

import pytest

from codex_replay.core.cassette.frames import Frame
from codex_replay.protocol.turn.frames import load_table
from codex_replay.shell.cassettes.file import CassetteReader
from codex_replay.shell.rpc.client import ErrorReply
from tests.fakes.scripted.test_scripted import Started, of, start, texts

__all__ = ["start"]  # a fixture

REPOSITORY = Path(__file__).parents[3]
SLOW = "0.0001x"  # gaps of minutes after a start of 5 s: what comes in a test's time has not waited for them


def begun(fake: Started) -> tuple[str, str]:
    """Start a turn; return its thread and its id as soon as the response is there."""
    thread = fake.thread()
    turn = fake.client.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "Go."}]})
    return thread, turn["turn"]["id"]


def steer(fake: Started, thread: str, turn: str) -> Any:
    more = [{"type": "text", "text": "And this."}]
    return fake.client.request("turn/steer", {"threadId": thread, "input": more, "expectedTurnId": turn})


def test_a_client_can_steer_right_after_the_response(start: Callable[..., Started]) -> None:
    fake = start(["One.", "Two."], FAKE_CODEX_PACE="recorded", FAKE_CODEX_VERSION="0.169.0")
    thread, turn = begun(fake)
    assert steer(fake, thread, turn) == {"turnId": turn}


def test_in_a_burst_the_turn_is_over_by_then(start: Callable[..., Started]) -> None:
    fake = start(["One.", "Two."], FAKE_CODEX_PACE="burst", FAKE_CODEX_VERSION="0.169.0")
    thread, turn = begun(fake)
    with pytest.raises(ErrorReply, match="no active turn"):
        steer(fake, thread, turn)


@pytest.mark.parametrize("version", ["0.92.0", "0.169.0"])
@pytest.mark.parametrize(("pace", "part"), [("fast", 0.05), ("recorded", 1), ("2x", 0.5)])
def test_a_turn_takes_its_part_of_the_real_gaps(start: Callable[..., Started], version: str, pace: str, part: float) -> None:
    fake = start(["One."], FAKE_CODEX_PACE=pace, FAKE_CODEX_VERSION=version)
    frames = turn_of(fake)
    gaps = load_table(version)["gaps"]
    assert between(frames, "turn/start", "turn/completed") >= (gaps["start"] + gaps["model"]) / 1000 * part * 0.9


def turn_of(fake: Started) -> list[Frame]:
    begin = len(fake.client.timeline)
    fake.turn(fake.thread())
    return fake.client.timeline[begin:]


def between(frames: list[Frame], first: str, last: str) -> float:
    times = {str(frame.value.get("method")): frame.t for frame in frames}
    return times[last] - times[first]


def test_the_end_of_the_input_ends_the_gaps(start: Callable[..., Started]) -> None:
    """Who has closed stdin reads the whole turn at once."""
    fake = start(["One."], FAKE_CODEX_PACE=SLOW)
    text = [{"type": "text", "text": "Go."}]
    fake.client.post("turn/start", {"threadId": fake.thread(), "input": text})
    assert fake.client.close() == 0
    assert texts([frame.value for frame in fake.client.timeline if frame.sender == "server"]) == ["One."]


@pytest.mark.parametrize("pace", ["burst", "0.1x"])
def test_what_comes_while_output_is_held_comes_behind_it(start: Callable[..., Started], pace: str) -> None:
    fake = start(["One."], FAKE_CODEX_PACE=pace)
    thread = fake.thread()
    text = [{"type": "text", "text": "Go."}]
    first = fake.client.post("turn/start", {"threadId": thread, "input": text})
    second = fake.client.post("thread/read", {"threadId": "no id"})
    fake.client.reply_to(second)
    said = [frame.value for frame in fake.client.timeline if frame.sender == "server"]
    ids = [value.get("id") for value in said]
    started = next(n for n, value in enumerate(said) if of(value, "turn/started"))
    assert ids.index(first) < started < ids.index(second)


# -- the figures ----------------------------------------------------------------------------------------------------------


def waits(path: Path, last: str, following: str) -> Iterator[float]:
    """Yield the milliseconds between a server frame of one kind and the next one, if the client sent nothing in between."""
    before: Frame | None = None
    requests: dict[str, str] = {}
    with CassetteReader(path) as reader:
        for frame in reader:
            if frame.seam != "rpc" or not isinstance(frame.value, dict):
                continue
            if frame.sender == "client":
                if "method" in frame.value:
                    requests[str(frame.value.get("id"))] = frame.value["method"]
                before = None
                continue
            if before is not None and kind_of(before.value, requests) == last and frame.value.get("method") == following:
                yield (frame.t - before.t) * 1000
            before = frame


def kind_of(message: Any, requests: dict[str, str]) -> str:
    return str(message.get("method") or requests.get(str(message.get("id"))))


@pytest.mark.parametrize(
    ("version", "folder", "name", "last", "following", "middle"),
    [
        ("0.92.0", "cassettes/app_server", "start", "turn/start", "turn/started", mean),
        ("0.92.0", "cassettes/app_server", "model", "codex/event/user_message", "codex/event/token_count", median),
        ("0.169.0", "tests/data/scripted-later", "start", "turn/start", "thread/status/changed", median),
        ("0.169.0", "tests/data/scripted-later", "model", "item/completed", "item/started", median),
    ],
)
def test_the_figures_are_those_of_the_recordings(
    version: str, folder: str, name: str, last: str, following: str, middle: Callable[[list[float]], float]
) -> None:
    """`gaps` in turn.json; another machine records other times, so that half and double are still the same.

    The later start is judged by its median: some of its recordings were made on a busy machine, with single gaps of 0.1 s.
    """
    found = [ms for path in sorted((REPOSITORY / folder).rglob("*.ndjson")) for ms in waits(path, last, following)]
    assert len(found) >= 20
    assert middle(found) / 2 <= load_table(version)["gaps"][name] <= middle(found) * 2
