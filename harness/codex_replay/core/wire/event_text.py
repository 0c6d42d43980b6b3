"""Rewrite values in the JSON of one server-sent event; all other bytes stay unchanged."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from codex_replay.core.wire.json_span import Path, span, written
from codex_replay.core.wire.json_text import value_or_none

_LINE = re.compile(rb"([^\r\n]*)(?:\r\n|\r|\n|\Z)")


def edited(raw: bytes, value: Any, edits: Iterable[tuple[Path, Any]]) -> bytes | None:
    """Return an event with some values of its JSON replaced: `edits` maps paths to new values.

    Return None if the lines of the event do not contain the JSON `value`.
    """
    if value_or_none(_data_of(raw)[0]) != value:
        return None
    for path, new in edits:
        data, places = _data_of(raw)
        start, end = span(data, path)
        raw = raw[: places[start]] + written(data[start:end], new) + raw[places[end - 1] + 1 :]
    return raw


def _data_of(raw: bytes) -> tuple[bytes, list[int]]:
    """Return the data of one event, with its lines joined, and the offset in `raw` of each of its bytes."""
    data, places = b"", list[int]()
    for line in _LINE.finditer(raw):
        if line[1].startswith(b"data:"):
            start = line.start() + (6 if line[1].startswith(b"data: ") else 5)
            if places:
                data += b"\n"
                places.append(start - 1)
            data += raw[start : line.end(1)]
            places += range(start, line.end(1))
    return data, places
