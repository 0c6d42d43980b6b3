"""The stored conversations of a session.

A conversation has an id and a list of items. Requests continue conversations, and clients read and change them.

Source: API reference, "Conversations" (create, retrieve, update, delete; items: create, list, retrieve, delete).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from codex_replay.core.text.numbers import whole_number
from codex_replay.core.wire.json_text import compact
from codex_replay.protocol.responses.items import CREATED_AT

#: How many conversations a session keeps, and how many bytes of their items; the oldest go first.
COUNT, BYTES = 1000, 16 * 1024 * 1024
#: Item -> the prefix of its id, where the type does not give it.
_PREFIXES = {"message": "msg", "function_call": "fc", "reasoning": "rs"}


class Conversation:
    """One conversation: its items in order, each with an id."""

    def __init__(self, id_: str, metadata: Mapping[str, Any]) -> None:
        self.id = id_
        self.metadata = metadata
        self.items: list[dict[str, Any]] = []
        self.size = 0
        self._made = 0

    def shown(self) -> dict[str, Any]:
        """Return the conversation as the API shows it."""
        return {"id": self.id, "object": "conversation", "created_at": CREATED_AT, "metadata": self.metadata}

    def add(self, items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Add items at the end of the conversation. Return the added items with their ids."""
        added = []
        for item in items:
            kind = str(item.get("type", "message"))
            self._made += 1
            added.append(listed(item, f"{_PREFIXES.get(kind, 'item')}_{self.id}_{self._made}"))
            self.size += len(compact(item))
        self.items += added
        return added

    def item(self, id_: str) -> dict[str, Any] | None:
        """Return the item with the given id, or None if the conversation does not have it."""
        return next((item for item in self.items if item["id"] == id_), None)


class Conversations:
    """The conversations of a session, by id."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Conversation] = OrderedDict()
        self._made = 0

    def create(self, metadata: Mapping[str, Any]) -> Conversation:
        """Begin an empty conversation."""
        self._made += 1
        made = self._kept[f"conv_{self._made}"] = Conversation(f"conv_{self._made}", metadata)
        return made

    def get(self, id_: str) -> Conversation | None:
        """Return the conversation with the given id, or None if it does not exist or was dropped."""
        return self._kept.get(id_)

    def delete(self, id_: str) -> bool:
        """Delete a conversation. Return True if the conversation existed."""
        return self._kept.pop(id_, None) is not None

    def trim(self) -> None:
        """Drop the oldest conversations until all conversations together need less memory than the limit."""
        while len(self._kept) > COUNT or (len(self._kept) > 1 and sum(one.size for one in self._kept.values()) > BYTES):
            self._kept.popitem(last=False)

    def close(self) -> None:
        """Forget all."""
        self._kept.clear()


def listed(item: Mapping[str, Any], id_: str) -> dict[str, Any]:
    """Return an item of a request in the form in which the API lists items: with an id, a status, and its content in parts."""
    kind = str(item.get("type", "message"))
    found = {"id": id_, "type": kind, **item}
    if kind == "message":
        found.setdefault("status", "completed")
        if isinstance(item.get("content"), str):
            part = "output_text" if item.get("role") == "assistant" else "input_text"
            more: dict[str, Any] = {"annotations": [], "logprobs": []} if part == "output_text" else {}
            found["content"] = [{"type": part, "text": item["content"], **more}]
    return found


def page(items: Sequence[Mapping[str, Any]], options: Mapping[str, str]) -> dict[str, Any]:
    """Return the page of a stored list that the query requests.

    The query may have `order` (default: newest first), `after` (an id) and `limit` (1 to 100, default 20).
    """
    data = list(items) if options.get("order") == "asc" else list(reversed(items))
    ids = [item["id"] for item in data]
    if options.get("after") in ids:
        data = data[ids.index(options["after"]) + 1 :]
    given = whole_number(options.get("limit", ""))
    limit = min(max(given, 1), 100) if given is not None else 20
    shown = data[:limit]
    ends = {"first_id": shown[0]["id"], "last_id": shown[-1]["id"]} if shown else {"first_id": "", "last_id": ""}
    return {"object": "list", "data": shown, **ends, "has_more": len(data) > limit}
