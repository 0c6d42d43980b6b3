"""Align the frames of a run with the frames of its recording, and mark frames that differ, are missing, or were not expected.

Run and recording are compared like two recordings (`codex_replay.protocol.recordings.compare`): normalised, and in the
canonical order. The comparison returns frame numbers, and the result is added to the frames in their order of arrival. A
missing frame is placed after the frame of the run that corresponds to the frame before it in the recording. The functions
here are pure: they take frames and return the frames of a trace.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from codex_replay.core.cassette import frames as core
from codex_replay.protocol import versions
from codex_replay.protocol.recordings.compare import Difference, compare
from codex_replay.report.cassette_trace import kind_of, text_of, trace_frames
from codex_replay.report.data import LONGEST_FRAME, Frame
from codex_replay.report.labels import Labels

if TYPE_CHECKING:
    from typing import Any

#: The maximum number of missing frames to list for a run that ended early.
MOST_AFTER = 20
#: Comparing costs up to the square of what differs.
MOST_COMPARED = 3000


def align(
    recorded: Sequence[core.Frame],
    live: Sequence[core.Frame],
    version: str = versions.DEFAULT,
    only: Collection[str] = ("rpc", "http"),
) -> tuple[list[Frame], list[Difference]]:
    """Return the frames of a run with their marks, and the differences, smallest first.

    The frames of the run and of the recording must already be redacted. If the run has no HTTP frames, or no JSON-RPC
    frames, the frames of this seam are omitted from the recording, too. A seam ("rpc" or "http") that is not in `only` is
    listed but not compared.
    """
    report = list(trace_frames(live, version))
    seams = ({frame.seam for frame in live} or {"rpc"}) & set(only)
    wanted = [frame for frame in recorded if frame.seam in seams]
    if not wanted or max(len(wanted), len(live)) > MOST_COMPARED:
        return report, []
    ours = {frame.n: frame for frame in wanted}
    theirs = {frame["n"]: frame for frame in report}
    message = [frame for frame in live if frame.seam in seams]
    found = list(compare(wanted, message, version).differences)
    missing = []
    # An id is never compared; that it has another name here only follows from what else is different.
    named = {(one.a, one.b) for one in found if one.path != "$.msg.id"}
    found = [one for one in found if one.path != "$.msg.id" or (one.a, one.b) not in named]
    for one in found:
        if one.kind == "missing":
            missing.append(ours[one.a or 0])
        else:
            _mark(theirs[one.b or 0], one, ours)
    return _with_missing(report, live, wanted, missing), found


def _mark(frame: Frame, one: Difference, ours: dict[int, core.Frame]) -> None:
    if one.kind == "extra":
        frame["mark"] = "unexpected"
        return
    frame["mark"] = "different"
    frame["expected"] = text_of(ours[one.a or 0])[:LONGEST_FRAME]
    path = plain_path(one.path)
    if path not in frame["paths"]:
        frame["paths"].append(path)


def plain_path(path: str) -> str:
    """Convert a path from the module `compare` to a path inside the frame."""
    for lead in ("$.msg", "$.request", "$.response", "$.sse", "$.close", "$.chunk"):
        if path.startswith(lead):
            return "$" + path[len(lead) :]
    return path


def _with_missing(
    told: list[Frame], live: Sequence[core.Frame], wanted: Sequence[core.Frame], missing: list[core.Frame]
) -> list[Frame]:
    if not missing:
        return told
    labels = Labels()
    names = {frame.n: labels.label(frame) for frame in wanted}
    after = _places(wanted, live)
    places: dict[int, list[Frame]] = {}
    last = max(after.values(), default=-1)
    cut = 0
    for frame in sorted(missing, key=lambda frame: frame.n):
        place = after[frame.n]
        waiting = places.setdefault(place, [])
        if place == last and len(waiting) >= MOST_AFTER:
            cut += 1
            continue
        waiting.append(_missing(frame, names[frame.n]))
    if cut:
        places[last][-1]["what"] += f" (and {cut} more frames that never came)"
    result = places.get(-1, [])
    for i, one in enumerate(told):
        result.append(one)
        result += places.get(i, [])
    for n, one in enumerate(result, 1):
        one["n"] = n
    return result


def _places(wanted: Sequence[core.Frame], live: Sequence[core.Frame]) -> dict[int, int]:
    """Return for each recorded frame the index of the run's frame after which it belongs (-1: before all frames)."""

    def named(frames: Sequence[core.Frame]) -> list[str]:
        labels = Labels()
        return [f"{frame.sender} {labels.label(frame)}" for frame in frames]

    matcher = SequenceMatcher(None, named(wanted), named(live), autojunk=False)
    partner = {a + i: b + i for a, b, size in matcher.get_matching_blocks() for i in range(size)}
    place, found = -1, {}
    for i, frame in enumerate(wanted):
        place = partner.get(i, place)
        found[frame.n] = place
    return found


def _missing(frame: core.Frame, label: str) -> Frame:
    return {
        "n": 1,
        "t": None,
        "seam": "http" if frame.seam == "http" else "rpc",
        "from": "client" if frame.sender == "client" else "server",
        "conn": frame.conn,
        "what": label,
        "kind": kind_of(frame),
        "text": "",
        "mark": "missing",
        "expected": text_of(frame)[:LONGEST_FRAME],
        "paths": [],
        "bound": [],
        "masked": [],
    }


def values(found: Sequence[Difference]) -> tuple[str | None, str | None]:
    """Return the expected and the actual JSON at the smallest difference, or None if there is no difference."""
    if not found:
        return None, None
    one = found[0]
    place = f"{one.label} {plain_path(one.path)}: "
    expected = None if one.left is None else place + _json(one.left)
    actual = None if one.right is None else place + _json(one.right)
    return expected, actual


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)
