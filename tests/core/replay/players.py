"""What the tests of the player share: recordings in a few words, and what a player releases."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from codex_replay.core.cassette.frames import Frame, encode_frame, parse_line
from codex_replay.core.normalise.normaliser import Rules
from codex_replay.core.replay.causality import Methods
from codex_replay.core.replay.match import Matcher
from codex_replay.core.replay.player import Player
from codex_replay.core.replay.track import Track
from codex_replay.core.wire.json_text import dumps
from codex_replay.protocol.data_tables import load

METHODS = Methods(lambda: load("causality"))


class Lines:
    """A source of lines that lie in memory."""

    def __init__(self, frames: Iterable[Frame]) -> None:
        self._lines = [encode_frame(frame) for frame in frames]
        self.read = self.again = 0

    def read_line(self) -> bytes:
        self.read += 1
        return self._lines[self.read - 1] if self.read <= len(self._lines) else b""

    def place(self, line: bytes) -> int | None:
        assert self._lines[self.read - 1] == line
        return sum(map(len, self._lines[: self.read - 1]))

    def lines_at(self, place: int, end: int, most: int) -> list[bytes]:
        lines, at = [], 0
        for line in self._lines:
            if place <= at < end and most > 0:
                lines.append(line)
                most -= len(line)
            at += len(line)
        self.again += len(lines)
        return lines

    def parse(self, line: bytes) -> Frame | None:
        frame = parse_line(line) if line else None
        assert frame is None or isinstance(frame, Frame)
        return frame


def log(*entries: tuple[str, Any]) -> list[Frame]:
    """Make frames of ("client" | "server", message or bytes) pairs."""
    return [
        Frame(n, n / 100, "rpc", sender, raw=message if isinstance(message, bytes) else dumps(message) + b"\n")
        for n, (sender, message) in enumerate(entries, 1)
    ]


def player_of(*logs: list[Frame], level: str = "method") -> Player:
    rules = Rules(load("normalise"))
    return Player(
        [Track(f"recording {i}", Lines(frames), METHODS, Matcher(lambda: rules)) for i, frames in enumerate(logs, 1)], level
    )


def drain(player: Player) -> list[bytes]:
    out: list[bytes] = []
    while player.may_advance:
        out += [frame.raw if isinstance(frame, Frame) else frame for frame in player.advance(100)]
    return out


def live(message: Any) -> Frame:
    return Frame(0, 0.0, "rpc", "client", raw=message if isinstance(message, bytes) else dumps(message) + b"\n")


THREAD = "01a1fa03-daf3-7c40-a0be-c9e3464a450e"


OTHER = "01a1fa03-ffff-7c40-a0be-c9e3464a450e"


def opening(thread: str = THREAD) -> list[tuple[str, Any]]:
    return [
        ("client", {"id": 1, "method": "thread/start", "params": {}}),
        ("server", {"id": 1, "result": {"thread": {"id": thread}}}),
        ("client", {"id": 2, "method": "turn/start", "params": {"threadId": thread}}),
        ("server", {"id": 2, "result": {"turn": {"id": "0"}}}),
    ]
