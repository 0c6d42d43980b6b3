"""Find races in a client: send the frames of a scripted turn in a different order and rhythm, which the real server may also use.

`FAKE_CODEX_PACE=race:SEED` turns the races on. The table of races (`normalise.json`), which comparisons also use, defines
which frames may change places. Frames of two threads may come in any order. The pauses around a response change, too: the
frames after a response come in the same write, or some milliseconds later. A client that registers its handlers too late
therefore fails. The order of the frames is the same each time for the same seed, script and client.
"""

from __future__ import annotations

from random import Random
from time import monotonic
from typing import Any

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.normalise.order import Marker, Order
from codex_replay.core.text.numbers import whole_number
from codex_replay.core.wire.json_text import dumps
from codex_replay.core.wire.jsonrpc import is_reply
from codex_replay.protocol.data_tables import load

LONGEST = 0.02  # seconds between a response and what is around it
_PASSES = 3  # how often each frame may change places with its neighbour


class Race:
    """Reorder frames: take frames, and return each line with the time at which it must be sent.

    `seed` is the text after `race:` in FAKE_CODEX_PACE. Raises `ValueError` if `seed` is not a number.
    """

    def __init__(self, seed: str, version: str) -> None:
        number = whole_number(seed)
        if number is None:
            raise ValueError(f"FAKE_CODEX_PACE is 'race:{seed}'; the seed after the colon must be a whole number.")
        self._random = Random(number)
        table = load("normalise", version)
        self._order = Order(table)
        self._marker = Marker(table)
        self._frames: list[tuple[Any, bytes]] = []
        self._responses: set[int] = set()

    def hear(self, raw: bytes) -> None:
        """Store a line of the client, because the table of races names a response by its request."""
        self._marker.mark(Frame(0, 0.0, "rpc", "client", raw=raw))

    def add(self, frame: dict[str, Any]) -> None:
        """Add a frame that may be sent now."""
        raw = dumps(frame) + b"\n"
        self._frames.append((self._marker.mark(Frame(0, 0.0, "rpc", "server", raw=raw)), raw))
        if is_reply(frame):
            self._responses.add(id(self._frames[-1][1]))

    def schedule(self, after: float | None) -> list[tuple[float, bytes]]:
        """Return the frames so far, each with the time at which it must be sent (monotonic seconds, never before `after`)."""
        frames, self._frames = self._frames, []
        for _ in range(_PASSES):
            for i in range(len(frames) - 1):
                if self._free(frames[i][0], frames[i + 1][0]) and self._random.random() < 0.5:
                    frames[i], frames[i + 1] = frames[i + 1], frames[i]
        due = max(monotonic(), after or 0.0)
        scheduled = []
        for mark, raw in frames:
            if (id(raw) in self._responses or mark.label.startswith("rpc< response")) and self._random.random() < 0.5:
                due += self._random.random() * LONGEST
                scheduled.append((due, raw))
                due += self._random.random() * LONGEST if self._random.random() < 0.5 else 0.0
            else:
                scheduled.append((due, raw))
        self._responses.clear()
        return scheduled

    def _free(self, one: Any, other: Any) -> bool:
        return not self._order.ordered(self._order.kind_of(one), self._order.kind_of(other))
