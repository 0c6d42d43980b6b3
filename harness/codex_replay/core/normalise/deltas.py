"""Join the output chunks of a command. The real server splits the output at different points in each run.

The chunks of one output of a command become one event, at the place of the first chunk. After another kind of frame of the
same command, the next chunks become a new event. The table "deltas" in `protocol/data/<version>/normalise.json` names the
frames that carry output chunks.
"""

from __future__ import annotations

import copy
from base64 import b64decode, b64encode
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from codex_replay.core.cassette.frames import Frame, is_canonical
from codex_replay.core.normalise.order import Mark, Marker, at


@dataclass(frozen=True, slots=True)
class Event:
    """One frame, or the joined output chunks of one command, with the frame numbers, the mark and the value.

    For an http frame, the value of the event is the payload.
    """

    numbers: tuple[int, ...]
    mark: Mark
    sender: str
    kind: str
    value: Any
    form: str = ""
    extra: dict[str, Any] = field(default_factory=dict)


def events(frames: Iterable[Frame], table: dict[str, Any]) -> list[Event]:
    """Return the events of one run in the order of their frames, with output chunks joined."""
    marker = Marker(table)
    rules = {rule["label"]: rule for rule in table["deltas"]}
    found: list[Event] = []
    place: list[int] = []  # frame index -> event index, for a reply points at its request by index
    open_: dict[tuple[Any, ...], _Chunks] = {}
    every: list[_Chunks] = []
    for frame in frames:
        mark = marker.mark(frame)
        rule = rules.get(mark.label)
        if rule is not None and type(at(frame.value, rule["at"])) is not str:
            rule = None
        if rule is None:
            if mark.item is not None and open_:
                for key in [key for key in open_ if key[0] == mark.thread and key[1] == mark.item]:
                    del open_[key]
            place.append(len(found))
            if mark.request is not None:
                mark = mark._replace(request=place[mark.request])
            found.append(_event(frame, mark))
            continue
        stream = str(at(frame.value, rule["stream"])) if "stream" in rule else ""
        key = (mark.thread, mark.item, mark.label, stream)
        pieces = open_.get(key)
        if pieces is None:
            pieces = open_[key] = _Chunks(len(found), rule)
            every.append(pieces)
            found.append(_event(frame, mark._replace(item=f"{mark.item} {stream}".rstrip())))
        place.append(pieces.index)
        pieces.add(frame)
    for pieces in every:
        found[pieces.index] = pieces.joined(found[pieces.index])
    return found


def _event(frame: Frame, mark: Mark) -> Event:
    return Event((frame.n,), mark, frame.sender, frame.kind, _value(frame), _form(frame), frame.extra)


def _value(frame: Frame) -> Any:
    if frame.seam == "rpc" and frame.value is None:
        return frame.raw.decode("utf-8", "backslashreplace")
    return frame.value


def _form(frame: Frame) -> str:
    """Describe how the bytes of an rpc line differ from the usual form, for example if a client begins to send CRLF."""
    if frame.seam != "rpc" or is_canonical(frame.raw, frame.value):
        return ""
    if not frame.raw.endswith(b"\n"):
        return "unterminated"
    return "CRLF" if frame.raw.endswith(b"\r\n") else "unusual"


class _Chunks:
    """Collect the chunks of one output stream."""

    def __init__(self, index: int, rule: dict[str, Any]) -> None:
        self.index = index
        self._at: str = rule["at"]
        self._base64 = rule.get("encoding") == "base64"
        self._parts: list[str] = []
        self._numbers: list[int] = []

    def add(self, frame: Frame) -> None:
        """Append one piece."""
        self._parts.append(str(at(frame.value, self._at)))
        self._numbers.append(frame.n)

    def joined(self, event: Event) -> Event:
        """Return `event`, which has the first chunk, with the joined output of all chunks."""
        if len(self._parts) == 1:
            return event
        value = copy.deepcopy(event.value)
        *path, last = self._at.split(".")
        inner = value
        for key in path:
            inner = inner[key]
        inner[last] = _join(self._parts, self._base64)
        return replace(event, numbers=tuple(self._numbers), value=value)


def _join(parts: list[str], base64: bool) -> str:
    if not base64:
        return "".join(parts)
    try:
        return b64encode(b"".join(b64decode(part, validate=True) for part in parts)).decode()
    except ValueError:
        return " ".join(parts)
