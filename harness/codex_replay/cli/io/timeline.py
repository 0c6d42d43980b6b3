"""Format a frame as readable text: as one line of a timeline, or with its whole content."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.normalise.normaliser import UUID
from codex_replay.core.text.escape import escape
from codex_replay.core.text.truncate import truncate
from codex_replay.report.labels import Labels

#: Keys that nearly every message has and that add little to a line.
_DULL = frozenset({"conversationId", "threadId", "turnId", "thread_id", "turn_id"})
_COLOURS = {"client": "cyan", "server": "green"}


class Timeline:
    """Format the frames of one run as lines."""

    def __init__(self, width: int, colour: bool) -> None:
        self._width = width
        self._colour = colour
        self._labels = Labels()

    def label(self, frame: Frame) -> str:
        """Return the label of a frame: its method, the request that it answers, the HTTP request, the status or the SSE event."""
        return self._labels.label(frame)

    @staticmethod
    def direction(frame: Frame) -> str:
        """Return the seam (`rpc`, or `h` and the connection) and the arrow of a frame."""
        seam = "rpc" if frame.seam == "rpc" else f"h{frame.conn}"
        return f"{seam:<4} {'->' if frame.sender == 'client' else '<-'}"

    def line(self, frame: Frame) -> str:
        """Return the frame as one line: number, seconds, seam, direction, label, summary."""
        label = escape(self.label(frame))
        head = f"{frame.n:>6} {frame.t:>10.4f} {self.direction(frame)} "
        mark = "" if frame.whole else " [cut]"
        rest = max(0, self._width - len(head) - len(label) - len(mark) - 2)
        summary = escape(summarise(frame, rest))
        if not self._colour:
            return f"{head}{label}{mark}  {summary}".rstrip()
        colour = "red" if label.startswith("ERROR") else _COLOURS[frame.sender]
        return click.style(head, dim=True) + click.style(label, fg=colour) + mark + "  " + click.style(summary, dim=True)

    def full(self, frame: Frame) -> str:
        """Return the whole frame as indented JSON; a line that is not JSON is escaped."""
        if frame.seam == "rpc" and frame.value is None:
            body = escape(frame.raw.decode("utf-8", "backslashreplace"))
        else:
            text = json.dumps(frame.value, indent=2, ensure_ascii=False)
            body = "\n".join(escape(line) for line in text.split("\n"))
        return self.line(frame) + "\n" + "\n".join("         " + line for line in body.split("\n"))


def summarise(frame: Frame, width: int) -> str:
    """Return a summary of a frame in at most `width` characters: its plain values as `key=value`, long ids shortened."""
    value = frame.value
    if frame.seam == "rpc":
        if value is None:
            return truncate(frame.raw.decode("utf-8", "backslashreplace").rstrip("\r\n"), width)
        if type(value) is dict:
            value = next((value[key] for key in ("params", "result", "error") if key in value), None)
    elif type(value) is dict:
        value = {k: v for k, v in value.items() if k not in ("method", "path", "status", "event", "headers")}
        value = value.get("data", value.get("body", value.get("json", value)))
    parts: list[str] = []
    length = 0
    for part in _leaves("", value):
        parts.append(part)
        length += len(part) + 1
        if length > width:
            break
    return truncate(" ".join(parts), width)


def _leaves(key: str, value: Any) -> Iterator[str]:
    if type(value) is dict:
        for name, inner in value.items():
            # The type of a whole event is in its label; that of an item is not.
            if name not in _DULL and inner is not None and not (name == "type" and key in ("", "msg")):
                yield from _leaves(f"{key}.{name}" if key and key != "msg" else name, inner)
    elif type(value) is list:
        if len(value) == 1:
            yield from _leaves(key, value[0])
        elif value:
            yield f"{key}[{len(value)}]"
    elif type(value) is str:
        text = UUID.sub(lambda found: short_id(found[0]), value)
        yield f"{key}={json.dumps(truncate(text, 60), ensure_ascii=False)}" if key else json.dumps(text, ensure_ascii=False)
    elif value is not None:
        yield f"{key}={json.dumps(value)}"


def short_id(uuid: str) -> str:
    """Return the part of a uuid that differs from other uuids.

    A uuid of version 7 begins with the time, so all ids of one minute begin alike.
    """
    return f"...{uuid[-8:]}" if uuid[14] == "7" else uuid[:8]
