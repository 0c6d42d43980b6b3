"""The responses that a session stores, as the real service does.

Clients can read, stream again, poll, cancel, delete and continue a stored response.

Sources: API reference, "Responses" (get, delete, cancel, list input items, input token counts) and the guide on background mode.
A response is kept unless its request has `"store": false`. The response is built again for each request; only the turn and the
request of the response are stored.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from codex_fakes.backend.loop.tasks import Task
from codex_fakes.backend.loop.waiting import ended
from codex_replay.core.wire.client_json import read
from codex_replay.protocol.responses.items import reply
from codex_replay.protocol.responses.settings import TOKEN
from codex_replay.protocol.responses.steps import Send
from codex_replay.protocol.script.expect import input_items, input_texts
from codex_replay.protocol.script.script import Turn

#: Calls that the client has to answer.
CLIENT_CALLS = ("function_call", "custom_tool_call")
#: How many responses a session keeps, and how many bytes of their requests; the oldest go first.
COUNT, BYTES = 1000, 16 * 1024 * 1024


class Stored:
    """One stored response: its turn, its request, and its progress if it runs in the background."""

    def __init__(self, turn: Turn, data: bytes, label: str) -> None:
        self._turn = turn
        self._label = label
        self.data = data
        self.status: str | None = None  # "queued", "in_progress" or "cancelled"; None: it is as its last event has it
        self.background: Task[None] | None = None

    @property
    def body(self) -> dict[str, Any]:
        """The body of the request that the response answered."""
        found: dict[str, Any] = read(self.data)
        return found

    def events(self, include: Sequence[str] = ()) -> list[Mapping[str, Any]]:
        """Return the events of the stream of a response, with the parts that a client requests by `include`."""
        body = self.body
        if include:
            body["include"] = [*(body.get("include") or ()), *include]
        return [step.event for step in reply(self._turn, body, self._label, True) if isinstance(step, Send)]

    def response(self, include: Sequence[str] = ()) -> Mapping[str, Any]:
        """Return the response in its current state."""
        events = self.events(include)
        found: list[Mapping[str, Any]] = [event["response"] for event in events if "response" in event]
        if not found:
            return {}
        if self.status is not None:
            return {**found[0], "status": self.status}
        if events[-1]["type"] == "error":
            return {**found[-1], "status": "failed", "error": {key: events[-1][key] for key in ("code", "message")}}
        return found[-1]

    async def settled(self) -> None:
        """Wait until the response is complete or cancelled."""
        if self.background is not None:
            await ended(self.background)

    async def finish(self, waiting: Iterable[Any]) -> None:
        """Wait for the delays and gates of a background response, and then complete the response."""
        self.status = "in_progress"
        for each in waiting:
            await each
        self.status = None

    def cancel(self) -> None:
        """Cancel the response, unless it is complete."""
        if self.background is not None and not self.background.done():
            self.background.cancel()
            self.status = "cancelled"


class Responses:
    """The stored responses of a session, by id."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Stored] = OrderedDict()
        self._size = 0

    def keep(self, turn: Turn, data: bytes, label: str) -> Stored:
        """Store a response; it replaces a stored response with the same id."""
        id_ = turn.response_id or f"resp_{label}"
        self.delete(id_)
        stored = self._kept[id_] = Stored(turn, data, label)
        self._size += len(data)
        while len(self._kept) > COUNT or (self._size > BYTES and len(self._kept) > 1):
            self.delete(next(iter(self._kept)))
        return stored

    def get(self, id_: str) -> Stored | None:
        """Return the stored response with the given id, or None if it does not exist or was dropped."""
        return self._kept.get(id_)

    def delete(self, id_: str) -> bool:
        """Delete a stored response. Return True if the response existed."""
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

    def history(self, body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the inputs and outputs of all stored responses that a request continues, the oldest first."""
        turns = [[*input_items(stored.body), *stored.response().get("output", ())] for stored in self._chain(body)]
        return [item for turn in reversed(turns) for item in turn]

    def _chain(self, body: Mapping[str, Any]) -> Iterator[Stored]:
        """Yield all stored responses that a request continues, the newest first."""
        previous, seen = body.get("previous_response_id"), set[str]()
        while isinstance(previous, str) and previous not in seen and (stored := self.get(previous)) is not None:
            seen.add(previous)
            yield stored
            previous = stored.body.get("previous_response_id")

    def is_cut(self, body: Mapping[str, Any]) -> bool:
        """Return True if the beginning of the conversation is no longer stored."""
        last = body
        for stored in self._chain(body):
            last = stored.body
        return isinstance(previous := last.get("previous_response_id"), str) and self.get(previous) is None


def unknown_call(body: Mapping[str, Any], earlier: Iterable[Mapping[str, Any]]) -> str | None:
    """Return the call id of the first output without a call in the input or the earlier conversation, or None."""
    items = input_items(body)
    wanted = [str(item.get("call_id")) for item in items if str(item.get("type")).endswith("_call_output")]
    called = {str(item.get("call_id")) for item in (*earlier, *items) if not str(item.get("type")).endswith("_call_output")}
    return next((call for call in wanted if call not in called), None)


def unanswered_call(body: Mapping[str, Any], earlier: Iterable[Mapping[str, Any]]) -> str | None:
    """Return the call id of the first unanswered call in the earlier conversation, or None."""
    before = [*earlier]
    answered = {str(item.get("call_id")) for item in (*before, *input_items(body)) if "output" in item}
    calls = [str(item.get("call_id")) for item in before if item.get("type") in CLIENT_CALLS]
    return next((call for call in calls if call not in answered), None)


def input_tokens(body: Mapping[str, Any]) -> int:
    """Return the number of tokens in the texts of a request. The backend always counts one token for four characters."""
    texts = [str(body.get("instructions") or ""), *input_texts(body)]
    return max(1, -(-sum(map(len, texts)) // TOKEN))
