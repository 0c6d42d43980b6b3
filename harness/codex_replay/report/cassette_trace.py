"""Convert a cassette to a trace, for `cassette show --html`, and for the report of a case whose frames equal its recording.

The frames of the cassette are read as a stream while the page is written. In a replay, some values are replaced by live
ones (bound ids), and others are ignored (masked times). The tables of the recording's Codex version define which values are
bound or masked. Each frame lists its `bound` values as `<thread:1> = 01a1...`, and its `masked` values as JSON paths.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from codex_replay.core.cassette import frames as core
from codex_replay.core.normalise.normaliser import UUID, Rules, is_headers
from codex_replay.core.wire.jsonrpc import kind
from codex_replay.protocol import data_tables, versions
from codex_replay.report.data import LONGEST_FRAME, Frame, Trace
from codex_replay.report.labels import Labels
from codex_replay.shell.cassettes.file import CassetteReader

#: A browser reads the page: of a longer recording it shows the beginning, with a note.
MOST_FRAMES = 100_000
MOST_TEXT = 64 << 20

#: The place of a value: the place around it and its key or number there; None is the whole. Few places are ever spelled out.
Place = tuple["Place", str | int] | None

_HTTP = {"request": "http-request", "response": "http-response", "sse": "sse", "ws": "sse", "close": "close"}


def cassette_trace(path: Path | str, case: str, step: Callable[[], object] | None = None) -> Trace:
    """Return the trace of the cassette at `path`; raises `CassetteError` if it cannot be read.

    The function `step` is called for each frame, to show the progress. If the recording has no footer, or is too long for a
    page, `truncated` is a sentence that says so.
    """
    with CassetteReader(path) as reader:
        notes = Notes(reader.header.codex)
        report: list[Frame] = []
        size = 0
        for frame in reader:
            if len(report) >= MOST_FRAMES or size >= MOST_TEXT:
                return _trace(case, str(path), True, report)
            report.append(notes.frame(frame))
            if step is not None:
                step()
            size += len(report[-1]["text"])
        return _trace(case, str(path), reader.truncated is not None, report)


def _trace(case: str, path: str, truncated: bool, told: list[Frame]) -> Trace:
    return {"case": case, "source": "recorded", "cassette": path, "truncated": truncated, "frames": told}


#: Recordings of one suite repeat the same short strings: their volatile parts are computed once.
_REMEMBERED = 200


@cache
def _rules(version: str) -> tuple[Rules, frozenset[str], dict[tuple[str, str], bool]]:
    table, _ = data_tables.choose("normalise", version)
    return Rules(table), frozenset(table["keys"]), {}


def unmarked(version: str) -> str:
    """Return the reason why the bound and masked values in frames of `version` cannot be marked, as a sentence.

    Return "" if the values can be marked.
    """
    return data_tables.without(("normalise",), version, "times, durations and paths are not marked as masked")


class Notes:
    """Converts the frames of one run to frames of a trace, each with the values that a replay would bind and mask."""

    def __init__(self, version: str = versions.DEFAULT) -> None:
        """`version` is the recorded Codex version; see `unmarked` for a version without a table."""
        self._rules, self._keys, self._known = _rules(version)
        self._labels = Labels()
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def frame(self, frame: core.Frame) -> Frame:
        """Return one frame in the form for the report; the frames must come in order."""
        text = text_of(frame)
        bound: list[str] = []
        masked: list[str] = []
        try:
            self._walk("", "", None, frame.value, bound, masked, None)
        except RecursionError:  # nested beyond what anybody reads: shown without notes
            bound, masked = [], []
        if frame.kind == "request" and "$.path" in masked:  # of a request that is not a path of the machine
            masked.remove("$.path")
        if frame.seam == "rpc" and type(frame.value) is dict and "id" in frame.value:
            bound.append(f"id = {json.dumps(frame.value['id'])}")
        report: Frame = {
            "n": frame.n,
            "t": frame.t,
            "seam": "http" if frame.seam == "http" else "rpc",
            "from": "client" if frame.sender == "client" else "server",
            "conn": frame.conn,
            "what": self._labels.label(frame),
            "kind": kind_of(frame),
            "text": text[:LONGEST_FRAME],
            "mark": None,
            "expected": None,
            "paths": [],
            "bound": list(dict.fromkeys(bound)),
            "masked": masked,
        }
        if len(text) > LONGEST_FRAME or not frame.whole:
            report["cut"] = len(text)
        return report

    def _walk(
        self, parent: str, key: str, path: Place, value: Any, bound: list[str], masked: list[str], inherited: str | None
    ) -> None:
        if type(value) is dict:
            inside = self._rules.masked_key(key) or inherited
            inside = None if inside == "path" else inside
            for name, inner in value.items():
                if not self._is_plain(name, inner, inside):
                    self._walk(key, name, (path, name), inner, bound, masked, inside)
        elif type(value) is list:
            headers = key == "headers" and is_headers(value)
            for i, inner in enumerate(value):
                if headers and self._rules.masked_header(inner[0]) is not None:
                    masked.append(f"{spelled(path)}[{i}][1]")
                elif not self._is_plain(key, inner, inherited):
                    self._walk(parent, key, (path, i), inner, bound, masked, inherited)
        elif type(value) is str:
            if "-" in value:
                bound += [self._bind(parent, key, uuid, len(uuid) == len(value)) for uuid in UUID.findall(value)]
            if self._is_masked(key, value):
                masked.append(spelled(path))
        elif type(value) in (int, float) and (inherited is not None or self._rules.masked_key(key) is not None):
            masked.append(spelled(path))

    def _is_plain(self, key: str, value: Any, inherited: str | None) -> bool:
        """Return True if a quick check shows that a replay leaves a value unchanged."""
        if type(value) is str:
            return self._known.get((key, value)) is False and "-" not in value
        return value is None or type(value) is bool or (type(value) is int and inherited is None and key not in self._keys)

    def _is_masked(self, key: str, text: str) -> bool:
        if len(text) > _REMEMBERED:
            return bool(self._rules.mask(key, text) != text)
        found = self._known.get((key, text))
        if found is None:
            found = self._known[key, text] = bool(self._rules.mask(key, text) != text)
        return found

    def _bind(self, parent: str, key: str, uuid: str, whole: bool) -> str:
        name = self._names.get(uuid.lower())
        if name is None:
            role = (self._rules.role(parent, key) if whole else None) or "uuid"
            self._counts[role] = count = self._counts.get(role, 0) + 1
            name = self._names[uuid.lower()] = f"<{role}:{count}>"
        return f"{name} = {uuid}"


def spelled(place: Place) -> str:
    """Return the JSON path for a place, given as a sequence of keys and indexes."""
    steps: list[str] = []
    while place is not None:
        place, step = place
        steps.append(f".{step}" if str(step).isidentifier() else f"[{json.dumps(step)}]")
    return "$" + "".join(reversed(steps))


def text_of(frame: core.Frame) -> str:
    """Return a frame as text: a JSON-RPC line unchanged without its line feed, or an HTTP payload as compact JSON."""
    if frame.seam == "rpc":
        return frame.raw.removesuffix(b"\n").decode("utf-8", "backslashreplace")
    return json.dumps(frame.payload, ensure_ascii=False, separators=(",", ":"))


def kind_of(frame: core.Frame) -> str:
    """Return the kind of a frame in the report: request, response, ..., sse, close, or bytes if the frame is not a message."""
    if frame.seam == "http":
        return _HTTP.get(frame.kind, "bytes")
    sort = kind(frame.value)
    return "bytes" if sort == "other" else sort


def trace_frames(frames: Iterable[core.Frame], version: str = versions.DEFAULT) -> Iterator[Frame]:
    """Yield the frames of one run in the form of a trace; `version` is the recorded Codex version."""
    notes = Notes(version)
    for frame in frames:
        yield notes.frame(frame)
