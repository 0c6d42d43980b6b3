"""The responses that a session keeps, as the documented service does: to read, stream again, poll, cancel, delete and continue.

Sources: API reference, "Responses" (get, delete, cancel, list input items, input token counts) and the guide on background mode.
A response is kept unless its request has `"store": false`. It is built anew when it is asked for: what is kept is the turn and
the request.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from codex_replay.core.wire.client_json import read
from codex_replay.protocol.responses.items import reply
from codex_replay.protocol.responses.settings import TOKEN
from codex_replay.protocol.responses.steps import Send
from codex_replay.protocol.script.expect import input_items, input_texts
from codex_replay.protocol.script.script import Turn

#: `.../responses/ID`, and what may follow.
PATH = re.compile(r"/responses/([^/]+)(/cancel|/input_items)?$")
#: How many responses a session keeps, and how many bytes of their requests; the oldest go first.
COUNT, BYTES = 1000, 16 * 1024 * 1024


class Stored:
    """One response: its turn, its request, and how far it is if it is made in the background."""

    def __init__(self, turn: Turn, data: bytes, label: str) -> None:
        self._turn = turn
        self._label = label
        self.data = data
        self.status: str | None = None  # "queued", "in_progress" or "cancelled"; None: it is as its last event has it
        self.background: asyncio.Task[None] | None = None

    @property
    def body(self) -> dict[str, Any]:
        """The body of its request."""
        found: dict[str, Any] = read(self.data)
        return found

    def events(self) -> list[Mapping[str, Any]]:
        """Return the events of its stream."""
        return [step.event for step in reply(self._turn, self.body, self._label, True) if isinstance(step, Send)]

    def response(self) -> Mapping[str, Any]:
        """Return the response as it is now."""
        found = [event["response"] for event in self.events() if "response" in event]
        if self.status is None:
            return found[-1] if found else {}
        return {**found[0], "status": self.status}

    async def finish(self, waiting: Iterable[Any]) -> None:
        """Make it in the background: wait, then be done."""
        self.status = "in_progress"
        for each in waiting:
            await each
        self.status = None

    def cancel(self) -> None:
        """End it, if it is not done."""
        if self.background is not None and not self.background.done():
            self.background.cancel()
            self.status = "cancelled"


class Responses:
    """The stored responses of a session by id."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Stored] = OrderedDict()
        self._size = 0

    def keep(self, turn: Turn, data: bytes, label: str) -> Stored:
        """Keep a response; one with the same id is replaced."""
        id_ = turn.response_id or f"resp_{label}"
        self.delete(id_)
        stored = self._kept[id_] = Stored(turn, data, label)
        self._size += len(data)
        while len(self._kept) > COUNT or (self._size > BYTES and len(self._kept) > 1):
            self.delete(next(iter(self._kept)))
        return stored

    def get(self, id_: str) -> Stored | None:
        """Return a response, None if it is not kept."""
        return self._kept.get(id_)

    def delete(self, id_: str) -> bool:
        """Forget a response; return whether it was there."""
        stored = self._kept.pop(id_, None)
        if stored is None:
            return False
        self._size -= len(stored.data)
        stored.cancel()
        return True

    def close(self) -> None:
        """Forget all."""
        while self._kept:
            self.delete(next(iter(self._kept)))

    def unknown_call(self, body: Mapping[str, Any]) -> str | None:
        """Return the id of an output's call that neither the input nor an earlier response has, None if there is none."""
        items = input_items(body)
        wanted = {str(item.get("call_id")): None for item in items if str(item.get("type")).endswith("_call_output")}
        earlier: list[Mapping[str, Any]] = list(items)
        previous, seen = body.get("previous_response_id"), set[str]()
        while wanted and isinstance(previous, str) and previous not in seen and (stored := self.get(previous)) is not None:
            seen.add(previous)
            earlier += [*stored.response().get("output", ()), *input_items(stored.body)]
            previous = stored.body.get("previous_response_id")
        if isinstance(previous, str) and previous not in seen:
            return None  # the beginning of the conversation is no longer kept
        called = {str(item.get("call_id")) for item in earlier if not str(item.get("type")).endswith("_call_output")}
        return next((call for call in wanted if call not in called), None)


def listed_input(body: Mapping[str, Any], newest_first: bool) -> dict[str, Any]:
    """Return the input items of a request as the page that the API lists."""
    data = [_listed(item, i) for i, item in enumerate(input_items(body))]
    if newest_first:
        data.reverse()
    ids = {"first_id": data[0]["id"], "last_id": data[-1]["id"]} if data else {"first_id": None, "last_id": None}
    return {"object": "list", "data": data, **ids, "has_more": False}


def _listed(item: Mapping[str, Any], place: int) -> dict[str, Any]:
    kind = str(item.get("type", "message"))
    found = {"id": f"{'msg' if kind == 'message' else 'item'}_in_{place}", "type": kind, **item}
    if kind == "message":
        found.setdefault("status", "completed")
        if isinstance(item.get("content"), str):
            part = "output_text" if item.get("role") == "assistant" else "input_text"
            more: dict[str, Any] = {"annotations": [], "logprobs": []} if part == "output_text" else {}
            found["content"] = [{"type": part, "text": item["content"], **more}]
    return found


def input_tokens(body: Mapping[str, Any]) -> int:
    """Return the tokens of a request's texts: four characters each, as everywhere here."""
    texts = [str(body.get("instructions") or ""), *input_texts(body)]
    return max(1, -(-sum(map(len, texts)) // TOKEN))
