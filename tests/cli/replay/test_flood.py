"""A live server that floods its client with messages: the replay compares a bounded number of them, and reports it."""

from __future__ import annotations

from codex_replay.cli.replay.command import MORE, TIMES, within_bounds
from codex_replay.core.cassette.frames import Frame

LINE = b'{"method":"x/y"}'


def frames(count: int) -> list[Frame]:
    return [Frame(n, 0.0, "rpc", "server", "msg", LINE) for n in range(1, count + 1)]


def test_a_flood_of_messages_is_compared_only_in_part() -> None:
    recorded, most = frames(3), 3 * TIMES + MORE
    live, report = within_bounds(recorded, frames(most + 5))
    assert len(live) == most
    assert report == f"The live run has {most + 5} frames, and the recording 3: only the first {most} are compared."


def test_a_long_live_run_is_compared_as_a_whole() -> None:
    live = frames(MORE)
    assert within_bounds(frames(3), live) == (live, None)
