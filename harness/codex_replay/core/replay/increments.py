"""Build the full request that is equivalent to a WebSocket message.

A `response.create` message may continue the last response of its connection, which it names by `previous_response_id`. The
input of a message that continues a response has only the new items. The input of the equivalent full request is the input
of the last request, the model's answer, and the new items. A message cannot continue a response that failed, or that
belongs to another connection.

Source: DESIGN.md, "Matching, replaying, normalising": a request with `previous_response_id` and new input equals the full one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

#: Members of a message that the request over HTTP does not have.
OWN = ("type", "generate", "previous_response_id")
#: The time at which a message was begun, in its client_metadata.
_START = "x-codex-ws-stream-request-start-ms"


class Increments:
    """The requests and answers of one WebSocket connection, in order."""

    def __init__(self) -> None:
        self._body: Mapping[str, Any] = {}
        self._items: list[Any] = []
        self._id: str | None = None
        self._later: Callable[[], Iterable[Any]] | None = None  # the events of an answer that was not looked at yet

    @property
    def id(self) -> str | None:
        """The id of the response that the client may continue, or None before the first response."""
        if self._later is not None:
            later, self._later = self._later, None
            for event in later():
                self.take_event(event)
        return self._id

    def full(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the body of the full request.

        The body has `previous_response_id` only if the id is not that of the last response.
        """
        body = {key: given for key, given in message.items() if key not in OWN}
        body.setdefault("stream", True)
        previous = message.get("previous_response_id")
        if previous is None:
            return body
        if previous == self.id:
            return {**body, "input": [*items(self._body), *self._items, *items(message)]}
        return {**body, "previous_response_id": previous}

    def begin(self, body: Mapping[str, Any] | None) -> None:
        """Store a request in its full form.

        Until the answer to the request is complete, the client cannot continue any response. With None, forget all earlier
        requests and answers.
        """
        self._body, self._items, self._id, self._later = body or {}, [], None, None

    def take_event(self, event: Any) -> None:
        """Store an event of the answer."""
        kind = event.get("type") if type(event) is dict else None
        if kind == "response.output_item.done":
            self._items.append(event.get("item"))
        elif kind in ("response.completed", "response.incomplete") and type(event.get("response")) is dict:
            self._id = event["response"].get("id")

    def take_later(self, events: Callable[[], Iterable[Any]]) -> None:
        """Keep the function `events`, which yields the events of an answer.

        The function is called only if the client continues the answer.
        """
        self._later = events


def items(body: Mapping[str, Any]) -> list[Any]:
    """Return the input of a request as a list of items."""
    given = body.get("input")
    if type(given) is str:
        return [{"type": "message", "role": "user", "content": given}]
    return given if type(given) is list else []


def comparable(body: dict[str, Any], message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a full request in the form that is compared with recordings.

    The start time is removed, and a request that generates no answer gets `"generate": false`.
    """
    metadata = body.get("client_metadata")
    if type(metadata) is dict and _START in metadata:
        body = {**body, "client_metadata": {key: value for key, value in metadata.items() if key != _START}}
    return {**body, "generate": False} if message.get("generate") is False else body
