"""Convert the traffic of one run of a case to a form that can be compared with a run on another Codex version.

Output chunks are joined, and the events of a run are then sorted into a canonical order and normalised, as in
`recordings.compare`. Frames of the client and answers of the model are omitted, because the suite itself sends them. The
positions of the remaining events are kept, so that a changed order can be found.

A result and an error get the same label, because both are replies. If one version answers a request and the other version
refuses it, the two replies are therefore compared. If a run ended early, `client` shows how many steps its client
completed; the other run is compared up to the same step.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.normalise.deltas import events
from codex_replay.core.normalise.normaliser import Normaliser
from codex_replay.core.normalise.order import Mark, Order, canonical
from codex_replay.protocol import data_tables

#: A name that the normaliser has bound: `<thread:1>`, `<id:turn/start:2>`.
NAME = re.compile(r"<([a-z-]+(?::[^<>]*)?):(\d+)>")
_IDENTITIES = ("thread", "item", "subscription", "uuid")


def blank(text: str) -> str:
    """Return `text` without the numbers in its placeholder names (such as `item-1`): two runs may number ids differently."""
    return NAME.sub(lambda found: f"<{role(found[1])}>", text) if "<" in text else text


def role(name: str) -> str:
    """Return a placeholder name (such as `item-1`) without its number.

    Names that stand for a uuid all count as equal, because each run names a uuid by the place where it first occurs.
    """
    return "uuid" if name in _IDENTITIES else name


@dataclass(frozen=True, slots=True)
class Entry:
    """One event to compare: its `label`, its normalised `value`, its position in the run (`seen`), and its `mark`."""

    label: str
    value: Any
    seen: int
    mark: Mark
    text: str  # the value as JSON, names reduced: what two runs are aligned by


@dataclass(frozen=True, slots=True)
class Answered:
    """A request of the server that the client answered, and the tool output that the model got because of the answer."""

    method: str
    reply: Any
    output: Any


@dataclass(frozen=True, slots=True)
class Form:
    """One conversation in the form in which two versions are compared.

    `client` has the positions of the client's frames; `calls` has the answered server requests by call id.

    `closed` is the position of the first frame after the client closed the server's stdin, or None if the client never
    closed it.
    """

    said: tuple[Entry, ...]
    client: tuple[int, ...]
    closed: int | None
    last: str
    order: Order = field(repr=False)
    calls: dict[str, Answered] = field(repr=False, default_factory=dict)

    def end_for(self, other: Form) -> int | None:
        """Return the position up to which a run can be compared with another run, if the other run ended early.

        Return None if the other run did not end early.

        The position is the first step (a client frame, or the end of the client's frames) that the other run did not reach.
        """
        ends = [self.client[len(other.client)]] if len(other.client) < len(self.client) else []
        if self.closed is not None and other.closed is None:
            ends.append(self.closed)
        return min(ends, default=None)


def form(frames: Iterable[Frame], version: str, closed: float | None = None) -> Form:
    """Return a conversation in the form in which two versions are compared.

    `version` selects the table of values that change from run to run. `closed` is the time, in seconds as in the frames, when the
    client closed the server's stdin.
    """
    table, _ = data_tables.choose("normalise", version)
    frames = list(frames)
    after = {frame.n for frame in frames if closed is not None and frame.t > closed}
    seen = events(frames, table)
    normaliser, order = Normaliser(table), Order(table)
    for event in seen:
        normaliser.learn(event.value)
    text, client = [], []
    replies: dict[int, Any] = {}
    outputs: dict[str, Any] = {}
    for index in canonical([event.mark for event in seen], order):
        event = seen[index]
        if event.mark.lane.startswith("rpc"):
            value = normaliser.message(event.value, event.sender) if isinstance(event.value, dict) else event.value
            if event.mark.lane == "rpc>":
                client.append(index)
                if event.mark.request is not None:
                    replies[event.mark.request] = value
                continue
        else:
            value = normaliser.payload(event.kind, event.value)
            if event.mark.lane == "http<":
                continue
            outputs.update(_outputs(value))
        text.append(Entry(_label(event.mark.label), value, index, event.mark, blank(_json(value))))
    last = next((_label(event.mark.label) for event in reversed(seen) if event.mark.lane == "rpc<"), "")
    calls = {}
    for index, reply in replies.items():
        mark = seen[index].mark
        asked = seen[index].value
        call = asked.get("params", {}).get("callId") or mark.item if isinstance(asked, dict) else None
        if call in outputs:
            calls[str(call)] = Answered(str(asked["method"]), reply, outputs[call])
    end = next((index for index, event in enumerate(seen) if event.numbers[0] in after), len(seen))
    return Form(tuple(text), tuple(sorted(client)), None if closed is None else end, last, order, calls)


def _label(label: str) -> str:
    """Return the label of a frame for the comparison: results and errors both become replies, and only requests to the model
    keep their lane (their thread).
    """
    lane, _, rest = label.partition(" ")
    for sort in ("response to ", "error to "):
        if rest.startswith(sort):
            return "reply to " + rest.removeprefix(sort)
    return f"upstream {rest}" if lane == "http>" else rest


def _outputs(request: Any) -> dict[str, Any]:
    """Return the tool outputs in a request to the model, by call id."""
    body = request.get("body") if isinstance(request, dict) else None
    items = body.get("input") if isinstance(body, dict) else None
    return {
        str(item["call_id"]): item.get("output")
        for item in (items if isinstance(items, list) else ())
        if isinstance(item, dict) and "call_id" in item and str(item.get("type")).endswith("_output")
    }


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True)
