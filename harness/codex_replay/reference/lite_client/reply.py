"""Read one streamed response: join its deltas, and detect whether the response is complete or was interrupted.

Each delta contains the id of its item, because the deltas of two calls may be mixed.
"""

from __future__ import annotations

from codex_replay.reference.json_text import loads
from codex_replay.reference.lite_client.errors import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

#: type of a delta event -> (item type, the field that its pieces make up).
DELTAS = {
    "response.output_text.delta": ("message", "text"),
    "response.function_call_arguments.delta": ("function_call", "arguments"),
    "response.custom_tool_call_input.delta": ("custom_tool_call", "input"),
}
CALLS = {"function_call": "arguments", "custom_tool_call": "input"}


class Reply:
    """The reply of the model: `items` has the finished items, in the order of the response; `completed` is True after
    response.completed."""

    def __init__(self) -> None:
        self.completed = False
        self._pieces: dict[str, list[str]] = {}
        self._items: dict[int, dict[str, Any]] = {}

    @property
    def items(self) -> list[dict[str, Any]]:
        """The finished items."""
        return [self._items[index] for index in sorted(self._items)]

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The finished items that are calls and need an output from the client.

        A web search needs no output, because the backend runs it.
        """
        return [item for item in self.items if item.get("type") in CALLS]

    @property
    def text(self) -> str:
        """The joined text of all messages in the response."""
        return "".join(map(text_of, self.items))

    def feed(self, name: str, data: str) -> None:
        """Process one event of the response. Raises `Problem` if the event cannot be read or reports a failed response."""
        event = decode(data)
        kind = event.get("type") or name
        if kind in DELTAS:
            self.delta(event)
        elif kind == "response.output_item.done":
            self.done(event)
        elif kind == "response.completed":
            self.completed = True
        elif kind == "response.failed":
            self.failed(event)
        elif kind == "response.incomplete":
            self.incomplete(event)
        elif kind == "error":
            raise Problem(f"The backend reports an error: {error_text(event.get('error') or event)}.")

    def delta(self, event: dict[str, Any]) -> None:
        """Store a delta, which is a part of a text, of a call's arguments or of a call's input."""
        self._pieces.setdefault(_key(event), []).append(str(event.get("delta", "")))

    def done(self, event: dict[str, Any]) -> None:
        """Store a finished item of the response. The joined deltas of the item must equal its text."""
        item = event.get("item")
        if not isinstance(item, dict):
            return
        joined = self.joined(_key({"item_id": item.get("id"), **event}))
        if joined is not None and joined != content(item):
            raise Problem("The stream is damaged: the joined deltas of an item differ from its complete value. Try again.")
        if item.get("type") in CALLS and not all(isinstance(item.get(key), str) for key in ("name", "call_id")):
            raise Problem("The stream is damaged: a call has no name or no call_id. Try again.")
        index = event.get("output_index")
        self._items[index if isinstance(index, int) else len(self._items)] = item

    def joined(self, key: str) -> str | None:
        """Return the joined deltas of an item; None if it had no deltas."""
        return "".join(self._pieces[key]) if key in self._pieces else None

    def failed(self, event: dict[str, Any]) -> None:
        """Raise a `Problem` with the error in the event `response.failed`."""
        raise Problem(f"The response failed: {error_text((event.get('response') or {}).get('error'))}.")

    def incomplete(self, event: dict[str, Any]) -> None:
        """Raise a `Problem` with the reason in the event `response.incomplete`."""
        details = (event.get("response") or {}).get("incomplete_details") or {}
        raise Problem(f"The response is incomplete: {details.get('reason', 'no reason is given')}.")


def read(events: Iterable[tuple[str, str]]) -> Reply:
    """Read one streamed response to its end. Raises `Problem` if the response does not complete."""
    reply = Reply()
    for name, data in events:
        reply.feed(name, data)
        if reply.completed:
            return reply
    raise unfinished()


def unfinished() -> Problem:
    """Return the problem for a stream that ends before its response is complete."""
    return Problem("The stream ended before response.completed. Try again.")


def decode(data: str) -> dict[str, Any]:
    """Return the decoded data of an event.

    Raises `Problem` for an event that is not JSON, because the event may contain a part of the answer.
    """
    try:
        event = loads(data)
    except ValueError as error:
        raise Problem("The stream is damaged: an event is not JSON. Try again.") from error
    return event if isinstance(event, dict) else {}


def content(item: dict[str, Any]) -> str:
    """Return the complete text of an item. The joined deltas of the item must equal the complete text."""
    field = CALLS.get(str(item.get("type")))
    return str(item.get(field, "")) if field else message_text(item)


def message_text(item: dict[str, Any]) -> str:
    """Return the text of a message of the model."""
    parts = item.get("content") or []
    return "".join(str(part.get("text", "")) for part in parts if isinstance(part, dict) and part.get("type") == "output_text")


def text_of(item: dict[str, Any]) -> str:
    """Return the text of a message of the model, including refusals. Return "" for an item that is not a message."""
    parts = item.get("content") or [] if item.get("type") == "message" else []
    return "".join(str(part.get("text") or part.get("refusal") or "") for part in parts if isinstance(part, dict))


def error_text(error: object) -> str:
    """Return the message and the code of an error."""
    if not isinstance(error, dict):
        return "no reason is given"
    code, message = error.get("code"), str(error.get("message") or "").rstrip(".")
    return f"{message} ({code})" if message and code else str(message or code or "no reason is given")


def _key(event: dict[str, Any]) -> str:
    return str(event.get("item_id") or event.get("output_index"))
