"""The mutants of the calls to the app-server: the envelope, the params, the developer instructions, and which calls there are."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from codex_replay.plugin.proxy.http import Exchange
from codex_replay.plugin.proxy.wire import WireFrame
from tests.mutants.operators import Change, text_changes
from tests.mutants.recording import CALLS, Mutation, Recording, frame_of
from tests.mutants.sites import Mutant, Sites, change_in

#: The developer instructions that begin so are the tool text; texts with longer lines are not taken apart.
TOOL_TEXT, LONGEST_LINE = "Tool calling", 600
CONDITIONAL = ("Tool choice is", "Strict tools:")


def is_call(frame: WireFrame, method: str) -> bool:
    """Return True if the proxy sends this call."""
    return frame.sender == "client" and isinstance(frame.value, dict) and frame.value.get("method") == method


def in_calls(method: str, change: Callable[[Any], bool]) -> Mutation:
    """Change the value of each call of a method."""

    def mutation(done: Exchange) -> Exchange:
        frames, found = [], False
        for frame in done.frames:
            if is_call(frame, method):
                value = json.loads(frame.raw)
                if change(value):
                    frame, found = frame_of(frame, value), True
            frames.append(frame)
        return replace(done, frames=frames) if found else done

    return mutation


def call_mutants(recordings: Iterable[Recording]) -> Iterator[Mutant]:
    """Yield the mutants of the three payloads and of the handshake."""
    sites: dict[str, Sites] = {}
    texts: Counter[str] = Counter()
    for one in recordings:
        if one.profile != "as-specified":
            continue
        for frame in [*one.handshake, *(f for done in one.exchanges for f in done.frames)]:
            if (
                frame.sender == "client"
                and frame.kind in ("request", "notification")
                and frame.value["method"] in (*CALLS, "initialize", "initialized")
            ):
                sites.setdefault(frame.value["method"], Sites()).add(frame.value)
                text = str((frame.value.get("params") or {}).get("developerInstructions") or "")
                if text.startswith(TOOL_TEXT) and max(map(len, text.split("\n"))) < LONGEST_LINE:
                    texts[text] += 1
    for method, found in sites.items():
        for path, wanted, what, change in found.all():
            if path == "id" and what not in ("is missing", "is null", "is a boolean", "is an object", "is an array"):
                continue  # the answer of the server would have the other id too
            if method in ("initialize", "initialized") and path.partition(".")[0] != "jsonrpc":
                continue  # the app-server judges its handshake itself: it refuses all that follows a wrong one

            def alter(value: Any, path: str = path, wanted: str = str(wanted), change: Change = change) -> bool:
                return change_in(value, path, wanted, change)

            yield Mutant("calls", f"{method}.{path}", f"({wanted}) {what}", in_calls(method, alter), method)
        for level in ("the envelope", "params"):

            def extend(value: Any, level: str = level) -> bool:
                place = value if level == "the envelope" else value.get("params")
                if isinstance(place, dict):
                    place["unknownMember"] = None
                return isinstance(place, dict)

            if not (level == "params" and method.startswith("initial")):
                yield Mutant("calls", f"{method}", f"has an unknown null member in {level}", in_calls(method, extend), method)
    yield from _order_mutants()
    altered = {
        "has a line at the end": lambda it: it + "\nBe careful.",
        "has a line at the start": lambda it: "Be careful.\n" + it,
    }
    for text in usual(texts):
        altered |= text_changes(text.split("\n"))
    for what, alter_text in altered.items():
        for method in ("newConversation", "sendUserTurn"):
            yield Mutant("instructions", f"{method}.developerInstructions", what, _in_text(method, alter_text), method)


def usual(texts: Counter[str]) -> list[str]:
    """Return the most frequent tool text of two tools for each set of conditional lines."""
    found: dict[tuple[str, ...], str] = {}
    for text, _ in texts.most_common():
        lines = tuple(line[:17] for line in text.split("\n") if line.startswith(CONDITIONAL))
        if text.count("\nTool: ") == 2:
            found.setdefault(lines, text)
    return list(found.values())


def _in_text(method: str, altered: Callable[[str], str]) -> Mutation:
    def alter(value: Any) -> bool:
        params = value["params"]
        text = params.get("developerInstructions")
        if not isinstance(text, str) or not text.startswith(TOOL_TEXT):
            return False
        params["developerInstructions"] = altered(text)
        return bool(params["developerInstructions"] != text)

    return in_calls(method, alter)


def _order_mutants() -> Iterator[Mutant]:
    """Each call omitted, repeated, and before the one that precedes it."""

    def omit(frames: list[WireFrame], at: int) -> None:
        del frames[at]

    def repeat(frames: list[WireFrame], at: int) -> None:
        value = json.loads(frames[at].raw)
        frames.insert(at + 1, frame_of(frames[at], {**value, "id": f"{value.get('id')}-again"}))

    def earlier(frames: list[WireFrame], at: int) -> None:
        before = max((n for n in range(at) if any(is_call(frames[n], each) for each in CALLS)), default=None)
        if before is not None:
            frames[before], frames[at] = frames[at], frames[before]

    def reused(frames: list[WireFrame], at: int) -> None:
        frames[at] = frame_of(frames[at], {**json.loads(frames[at].raw), "id": 1})

    for method in CALLS:
        for what, alter in {"is omitted": omit, "is repeated": repeat, "comes before the call that precedes it": earlier}.items():
            if not (method == CALLS[0] and alter is earlier):
                yield Mutant("calls", method, what, _in_order(method, alter), method)
    yield Mutant("calls", CALLS[2], "has an id that was used", _in_order(CALLS[2], reused), CALLS[2])


def _in_order(method: str, alter: Callable[[list[WireFrame], int], None]) -> Mutation:
    def mutation(done: Exchange) -> Exchange:
        at = next((n for n, frame in enumerate(done.frames) if is_call(frame, method)), None)
        if at is None:
            return done
        frames = list(done.frames)
        alter(frames, at)
        return replace(done, frames=frames)

    return mutation
