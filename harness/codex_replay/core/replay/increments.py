"""Build the full request that a WebSocket message stands for.

A `response.create` may continue the last response of its connection (`previous_response_id`): then its input has only what is
new. The full input is the last request's input, what the model answered, and what is new. A response that failed cannot be
continued, nor can one of another connection.

Source: DESIGN.md, "Matching, replaying, normalising": a request with `previous_response_id` and new input equals the full one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Members of a message that the request over HTTP does not have.
OWN = ("type", "generate", "previous_response_id")
#: The time at which a message was begun, in its client_metadata.
_START = "x-codex-ws-stream-request-start-ms"


class Increments:
    """The requests and answers of one connection, in order."""

    def __init__(self) -> None:
        self._body: Mapping[str, Any] = {}
        self._items: list[Any] = []
        #: The response that the client may continue, None before the first.
        self.id: str | None = None

    def full(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the body of the full request, with `previous_response_id` only where it names another response than the last."""
        body = {key: given for key, given in message.items() if key not in OWN}
        body.setdefault("stream", True)
        previous = message.get("previous_response_id")
        if previous is None:
            return body
        if previous == self.id:
            return {**body, "input": [*items(self._body), *self._items, *items(message)]}
        return {**body, "previous_response_id": previous}

    def begin(self, body: Mapping[str, Any] | None) -> None:
        """Take note of a request, in full; until its answer is complete nothing can be continued. None forgets all."""
        self._body, self._items, self.id = body or {}, [], None

    def take_event(self, event: Any) -> None:
        """Take note of an event of the answer."""
        kind = event.get("type") if type(event) is dict else None
        if kind == "response.output_item.done":
            self._items.append(event.get("item"))
        elif kind in ("response.completed", "response.incomplete") and type(event.get("response")) is dict:
            self.id = event["response"].get("id")


def items(body: Mapping[str, Any]) -> list[Any]:
    """Return the input of a request as items."""
    given = body.get("input")
    if type(given) is str:
        return [{"type": "message", "role": "user", "content": given}]
    return given if type(given) is list else []


def comparable(body: dict[str, Any], message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a full body in the form in which recordings compare it: without the time, and marked if it generates nothing."""
    metadata = body.get("client_metadata")
    if type(metadata) is dict and _START in metadata:
        body = {**body, "client_metadata": {key: value for key, value in metadata.items() if key != _START}}
    return {**body, "generate": False} if message.get("generate") is False else body
