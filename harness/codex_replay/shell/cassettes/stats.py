"""Count the frames of a cassette in one pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from codex_replay.core.cassette import ws_frames
from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.json_text import dumps
from codex_replay.core.wire.jsonrpc import kind
from codex_replay.shell.cassettes.file import CassetteReader

Sort = tuple[str, str, str]


@dataclass(slots=True)
class Stats:
    """The number of frames and bytes in one cassette.

    `by` maps (seam, sender, kind) to a number of frames and bytes. `size` is in bytes, `duration` in seconds.
    """

    path: str
    codex: str = ""
    case: str = ""
    frames: int = 0
    size: int = 0
    duration: float = 0.0
    truncated: bool = False
    by: dict[Sort, tuple[int, int]] = field(default_factory=dict)

    def rows(self) -> list[tuple[Sort, tuple[int, int]]]:
        """Return the counts by seam and direction, the most frequent first."""
        return sorted(self.by.items(), key=lambda row: (row[0][:2], -row[1][0], row[0][2]))

    def as_json(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        counts = [
            {"seam": seam, "from": sender, "what": what, "frames": number, "bytes": size}
            for (seam, sender, what), (number, size) in self.rows()
        ]
        return {
            "path": self.path,
            "codex": self.codex,
            "case": self.case,
            "frames": self.frames,
            "bytes": self.size,
            "duration": self.duration,
            "truncated": self.truncated,
            "counts": counts,
        }


def count(path: str, step: Callable[[], None] = lambda: None) -> Stats:
    """Count the frames of one cassette, and read it as a stream. Raises `CassetteError` if the cassette cannot be read."""
    with CassetteReader(path) as reader:
        stats = Stats(path, reader.header.codex, reader.header.case)
        methods: dict[tuple[str, str], str] = {}
        for frame in reader:
            sort = (frame.seam, frame.sender, _what(frame, methods))
            size = len(frame.raw) if frame.seam == "rpc" else len(dumps(frame.payload))
            frames, total = stats.by.get(sort, (0, 0))
            stats.by[sort] = (frames + 1, total + size)
            stats.frames += 1
            stats.size += size
            stats.duration = max(stats.duration, frame.t)
            step()
        stats.truncated = reader.truncated is not None
        return stats


def _what(frame: Frame, methods: dict[tuple[str, str], str]) -> str:
    """Return the kind of a frame in a cassette. The kind of a reply includes the method of its request."""
    value = frame.value
    if frame.seam == "http":
        payload = value if type(value) is dict else {}
        path = str(payload.get("path")).partition("?")[0]
        if frame.kind == "ws":
            return f"message {ws_frames.name_of(payload)}"
        return {
            "request": f"{payload.get('method')} {path}",
            "response": f"status {payload.get('status')}",
            "sse": f"event {payload.get('event')}",
        }.get(frame.kind, frame.kind)
    sort = kind(value)
    if sort in ("request", "notification"):
        if sort == "request":
            methods[(frame.sender, repr(value["id"]))] = str(value["method"])
        return str(value["method"])
    if sort in ("response", "error"):
        other = "server" if frame.sender == "client" else "client"
        return f"{sort} to {methods.get((other, repr(value['id'])), 'nothing')}"
    return "no message"
