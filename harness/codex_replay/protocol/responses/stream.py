"""Check that a whole stream of Responses events is consistent.

A stream can be wrong although each of its events is valid. For example, a delta comes before its item was added, a text
differs from its joined deltas, or an event follows the end of the stream. `StreamChecker` takes the events in order, and
returns each problem as a sentence with the number of the event. Sources: LITE-48 to LITE-56; the `sequence_number` of the
openai package's types. This module shares no code with the module that builds streams.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ENDS = ("response.completed", "response.failed", "response.incomplete", "error")
#: event that carries a piece -> (event that carries the whole, the key of the whole).
JOINED = {
    "response.output_text.delta": ("response.output_text.done", "text"),
    "response.refusal.delta": ("response.refusal.done", "refusal"),
    "response.function_call_arguments.delta": ("response.function_call_arguments.done", "arguments"),
    "response.custom_tool_call_input.delta": ("response.custom_tool_call_input.done", "input"),
    "response.mcp_call_arguments.delta": ("response.mcp_call_arguments.done", "arguments"),
    "response.code_interpreter_call_code.delta": ("response.code_interpreter_call_code.done", "code"),
    "response.reasoning_summary_text.delta": ("response.reasoning_summary_text.done", "text"),
    "response.reasoning_text.delta": ("response.reasoning_text.done", "text"),
}
_WHOLES = {whole: (piece, key) for piece, (whole, key) in JOINED.items()}
_SEARCH = ["response.web_search_call." + status for status in ("in_progress", "searching", "completed")]


class StreamChecker:
    """A checker for one stream: pass the decoded events to `feed` in order, then call `close`.

    Both `feed` and `close` return the problems that they found.
    """

    def __init__(self) -> None:
        self.count = 0
        self.end: str | None = None
        self._queued = False
        self._added: dict[int, Mapping[str, Any]] = {}
        self._done: dict[int, Mapping[str, Any]] = {}
        self._parts: set[tuple[Any, ...]] = set()
        self._pieces: dict[tuple[Any, ...], str] = {}
        self._searches: dict[Any, list[str]] = {}

    def feed(self, event: Mapping[str, Any]) -> list[str]:
        """Take the next event of the stream; return a sentence for each error that it shows."""
        kind = str(event.get("type"))
        problems = self._place(event, kind)
        if kind in ("response.output_item.added", "response.output_item.done"):
            problems += self._item(event, kind)
        elif kind in ENDS:
            problems += self._finish(event, kind)
        elif "item_id" in event:
            problems += self._within(event, kind)
        message = [f"Event {self.count} ({kind}): {problem}" for problem in problems]
        self.count += 1
        return message

    def close(self) -> list[str]:
        """Check the end of the stream; return a sentence for each missing event."""
        if self.end is None:
            return [f"The stream ended after {self.count} events without any of {', '.join(ENDS)}."]
        if self.end == "response.completed" and (left := sorted(set(self._added) - set(self._done))):
            return [f"The items {left} were added but never done."]
        return []

    def _place(self, event: Mapping[str, Any], kind: str) -> list[str]:
        problems = []
        if event.get("sequence_number") != self.count:
            problems.append(f"sequence_number is {event.get('sequence_number')!r}, expected {self.count}.")
        if self.end is not None:
            problems.append(f"This event follows {self.end}, which ends the stream.")
        first = {0: "response.created", 1 + self._queued: "response.in_progress"}.get(self.count)
        if kind == "response.queued" and self.count == 1:
            self._queued = True
        elif first is not None and kind != first:
            problems.append(f"Expected {first} here.")
        return problems

    def _item(self, event: Mapping[str, Any], kind: str) -> list[str]:
        index, item = event.get("output_index"), event.get("item")
        if not isinstance(index, int) or not isinstance(item, Mapping):
            return ["The event lacks its output_index or its item."]
        if kind.endswith("added"):
            problems = [] if index == len(self._added) else [f"output_index is {index}, expected {len(self._added)}."]
            self._added[index] = item
            return problems
        if index not in self._added:
            return [f"The item {index} is done but was never added."]
        problems = [
            f"The item's {key} was {self._added[index].get(key)!r} when it was added and is {item.get(key)!r} now."
            for key in ("id", "type", "call_id", "name")
            if self._added[index].get(key) != item.get(key)
        ]
        if index in self._done:
            problems.append(f"The item {index} is done twice.")
        if item.get("type") == "web_search_call":
            if not isinstance(item.get("action"), Mapping):
                problems.append("A web_search_call is done without its action.")
            if self._searches.get(item.get("id")) != _SEARCH:
                problems.append("A web search must go through in_progress, searching and completed before it is done.")
        problems += self._joined(item)
        self._done[index] = item
        return problems

    def _joined(self, item: Mapping[str, Any]) -> list[str]:
        """Compare a finished item with the deltas that were sent for it."""
        wholes: list[str] = []
        if item.get("type") == "message":
            wholes = [str(part.get("text", part.get("refusal", ""))) for part in item.get("content") or []]
        elif item.get("type") in ("function_call", "mcp_call"):
            wholes = [str(item.get("arguments"))]
        elif item.get("type") == "code_interpreter_call":
            wholes = [str(item.get("code"))]
        elif item.get("type") == "custom_tool_call":
            wholes = [str(item.get("input"))]
        else:
            return []
        sent = [text for key, text in self._pieces.items() if key[1] == item.get("id")]
        return [] if "".join(sent) == "".join(wholes) else ["The item differs from its joined deltas."]

    def _within(self, event: Mapping[str, Any], kind: str) -> list[str]:
        index = event.get("output_index")
        item = self._added.get(index) if isinstance(index, int) else None
        if item is None:
            return [f"The event belongs to the item {index}, which was not yet added."]
        problems = (
            []
            if event["item_id"] == item.get("id")
            else [f"The event's item_id is {event['item_id']!r}, but the item's id is {item.get('id')!r}."]
        )
        if index in self._done:
            problems.append(f"The event belongs to the item {index}, which is already done.")
        part = (event["item_id"], event.get("content_index"), event.get("summary_index"))
        if kind.endswith("part.added"):
            self._parts.add(part)
        elif part[1:] != (None, None) and part not in self._parts:
            problems.append("The event belongs to a part that was not yet added.")
        if kind in JOINED:
            key = (kind, *part)
            self._pieces[key] = self._pieces.get(key, "") + str(event.get("delta"))
        elif kind in _WHOLES:
            piece, name = _WHOLES[kind]
            if self._pieces.get((piece, *part), "") != event.get(name):
                problems.append(f"The {name} of the event differs from the joined deltas.")
        elif kind in _SEARCH:
            self._searches.setdefault(event["item_id"], []).append(kind)
        return problems

    def _finish(self, event: Mapping[str, Any], kind: str) -> list[str]:
        self.end = self.end or kind
        if kind == "error":
            return []
        response = event.get("response")
        if not isinstance(response, Mapping):
            return ["It has no response."]
        problems = []
        if response.get("status") != kind.removeprefix("response."):
            problems.append(f"The response's status is {response.get('status')!r}.")
        if kind == "response.completed":
            if response.get("output") != [self._done[index] for index in sorted(self._done)]:
                problems.append("The response's output differs from the items that were done.")
            problems += _usage(response.get("usage"))
        return problems


def _usage(usage: object) -> list[str]:
    if usage is None:
        return []
    if not isinstance(usage, Mapping):
        return ["usage is not an object."]
    total, parts = usage.get("total_tokens"), (usage.get("input_tokens"), usage.get("output_tokens"))
    if all(isinstance(part, int) for part in parts) and total != sum(part for part in parts if isinstance(part, int)):
        return [f"usage.total_tokens is {total}, but {parts[0]} + {parts[1]} tokens were used."]
    return []
