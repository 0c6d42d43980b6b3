"""Read one reply of the model like Codex: take the events of the Responses stream, and return the events of the turn.

The class `Sampling` is a state machine over the decoded events of one reply. A `Sampling` knows the open item, and collects
the items for the history, the tool calls and the usage. At the end of the reply, a `Sampling` knows how the reply ended:
completed, failed or cut off. The part "model" of turn.json maps the events of the model to events of the turn. The rules
here were derived from the behaviour of the real Codex. A delta that comes while no item is open is dropped. If an item was
not announced, it is announced when it is complete. An item of an unknown form is ignored (recordings; REAL-110). The
program fake-codex loads this module at start-up.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_KINDS = {"message": "agent-message", "reasoning": "reasoning", "web_search_call": "web-search"}


class Sampling:
    """A reply of the model, while it is being read.

    Pass the events of the reply to `receive`, then read `calls`, `history`, `usage`, `last_message` and `end`.

    `end` is None until the reply ends, then {"completed": True} or the cause of the failure (see `failure` in `frames`).
    """

    def __init__(self, rows: list[dict[str, Any]], searches: Mapping[str, list[str]] | None = None) -> None:
        """`searches` has the actions of web searches that the Codex version knows, with their members.

        If `searches` is None, the Codex version passes on every action unchanged.
        """
        self._rows = rows
        self._searches = searches
        self._open: dict[str, Any] | None = None
        self.calls: list[dict[str, Any]] = []
        self.history: list[dict[str, Any]] = []
        self.items: list[dict[str, Any]] = []  # those of the history, as they came
        self.response: dict[str, Any] = {}  # the one that completed
        self.usage: dict[str, int] | None = None
        self.last_message: str | None = None
        self.end: dict[str, Any] | None = None

    def receive(self, event: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        """Process one event of the model; return the events of the turn that it causes, each with its values."""
        kind = event.get("type")
        item = event.get("item")
        sort = item.get("type") if isinstance(item, dict) else None
        if sort == "web_search_call" and self._searches is not None:
            event = {**event, "item": _known_search(event["item"], self._searches)}
        for row in self._rows:
            if row["on"] == kind and row.get("item", sort) == sort:
                return self._apply(row, event)
        if kind == "response.output_item.done" and self._searches is not None and type(sort) is str:
            self._note(sort, item or {})
        return []

    def _note(self, sort: str, item: Mapping[str, Any]) -> None:
        """Store an item that causes no events for the client in the history.

        In the history, an item "compaction" keeps its content, and any other item becomes an item of type "other".
        """
        if sort != "compaction":
            self.history.append({"type": "other"})
        elif type(item.get("encrypted_content")) is str:
            self.history.append({"type": sort, "encrypted_content": item["encrypted_content"]})

    def _apply(self, row: dict[str, Any], event: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        if "end" in row:
            self._end(row["end"], event)
            return []
        if "call" in row:
            if well_formed(event["item"]):
                self._call(row["call"], event["item"])
            return []
        if "let" in row:
            if self._open is None:
                return []
            values = {name: event.get(path) for name, path in row["let"].items()}
            return [(row["frames"], {"item": self._open["item"], **values})]
        item = item_values(event["item"]) if well_formed(event["item"]) else None
        if item is None:
            return []
        if row["on"] == "response.output_item.added":
            self._open = item
            return [(row["frames"], item)]
        return self._done(row["frames"], event["item"], item)

    def _done(self, name: str, item: dict[str, Any], values: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        announced, self._open = self._open, None
        self.history.append(history_item(item))
        self.items.append(item)
        if item["type"] == "message" and (values["text"] if self._searches is None else values["texts"]):
            self.last_message = values["text"] if self._searches is None else values["texts"][-1]
        done = [(name, values)]
        return done if announced is not None else [(_KINDS[item["type"]] + "-started", values), *done]

    def _call(self, sort: str, item: dict[str, Any]) -> None:
        self._open = None
        self.history.append(history_item(item))
        self.items.append(item)
        self.calls.append({"call": sort, **item})

    def _end(self, how: str, event: Mapping[str, Any]) -> None:
        response = event.get("response")
        response = response if isinstance(response, dict) else {}
        if how == "failed":
            error = response.get("error")
            error = error if isinstance(error, dict) else {}
            self.end = {"code": error.get("code") or "*", "text": error.get("message") or ""}
        elif how == "incomplete":
            details = response.get("incomplete_details")
            reason = details.get("reason") if isinstance(details, dict) else None
            limited = reason == "max_output_tokens"
            self.end = {"break": "incomplete-max_output_tokens" if limited else "incomplete", "reason": reason or "unknown"}
            self.usage = usage_of(response.get("usage")) if limited else None
        elif not isinstance(response.get("id"), str):
            self.end = {"break": "completed_without_id"}
        else:
            self.end, self.response = {"completed": True}, response
            self.usage = usage_of(response.get("usage"))

    def close(self, how: str = "closed") -> None:
        """End the stream of the model's events.

        If no event has ended the reply, the stream was cut off: `how` is the reason, a key of "breaks" in the table.
        """
        if self.end is None:
            self.end = {"break": how}


def _known_search(item: Mapping[str, Any], searches: Mapping[str, list[str]]) -> Mapping[str, Any]:
    """Return a web search whose action has only the members that Codex reads; an unknown action gets the type "other"."""
    action = item.get("action")
    if type(action) is not dict or type(action.get("type")) is not str:
        return item
    known = {name: action[name] for name in searches.get(action["type"], ()) if action.get(name) is not None}
    return {**item, "action": {"type": action["type"] if action["type"] in searches else "other", **known}}


def usage_of(usage: Any) -> dict[str, int] | None:
    """Return the token usage of a response, with the key names that Codex uses; None if the response has no usage."""
    if not isinstance(usage, dict):
        return None
    cached = usage.get("input_tokens_details") or {}
    reasoning = usage.get("output_tokens_details") or {}
    return {
        "input_tokens": usage.get("input_tokens", 0),
        "cached_input_tokens": cached.get("cached_tokens", 0),
        "output_tokens": usage.get("output_tokens", 0),
        "reasoning_output_tokens": reasoning.get("reasoning_tokens", 0),
        "total_tokens": usage.get("total_tokens", 0),
    }


#: Item -> the members that it must have, and their types; the real binary ignores an item without them.
_MEMBERS: dict[str, dict[str, type]] = {
    "message": {"role": str, "content": list},
    "reasoning": {"summary": list},
    "web_search_call": {},
    "function_call": {"name": str, "arguments": str, "call_id": str},
    "custom_tool_call": {"name": str, "input": str, "call_id": str},
    "local_shell_call": {"action": dict},
}


def well_formed(item: Mapping[str, Any]) -> bool:
    """Return True if an item has a known type and the members that the real Codex requires; Codex ignores other items."""
    if any(type(item.get(name)) is not kind for name, kind in _MEMBERS[item["type"]].items()):
        return False
    parts: list[Any] = []
    for name in {"message": ("content",), "reasoning": ("summary", "content")}.get(item["type"], ()):
        given = item.get(name) or []
        if type(given) is not list:
            return False
        parts += given
    if any(type(part) is not dict or type(part.get("text")) is not str for part in parts):
        return False  # a refusal, too, has no text
    action = item.get("action", {"type": "other"})
    return type(action) is dict and type(action.get("type")) is str and type(item.get("id", "")) is str


def item_values(item: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the values that the events of an item of the model need.

    Return None if the item causes no events, because it is malformed or is not a message of the assistant.
    """
    sort = item["type"]
    if sort == "message":
        parts = item["content"]
        if item["role"] != "assistant" or any(part.get("type") not in ("output_text", "input_text") for part in parts):
            return None
        texts = [part["text"] for part in parts]
        content = [{"type": "Text", "text": text} for text in texts]
        return {"item": item.get("id") or "", "content": content, "texts": texts, "text": "".join(texts)}
    if sort == "reasoning":
        summary = [part["text"] for part in item.get("summary") or []]
        return {"item": item.get("id") or "", "summary": summary, "content": [part["text"] for part in item.get("content") or []]}
    action = item.get("action") or {"type": "other"}
    return {"item": item.get("id") or "", "action": dict(action), "actionV2": _action_v2(action), "query": _query(action)}


def _action_v2(action: Mapping[str, Any]) -> dict[str, Any]:
    """Return the action of a web search in the form of Codex versions after 0.92."""
    names = {"open_page": ("openPage", "url"), "find_in_page": ("findInPage", "url", "pattern")}
    kind, *members = names.get(action["type"], (action["type"],))
    if kind == "search":
        return {"type": kind, "query": action.get("query"), "queries": action.get("queries")}
    return {"type": kind, **{name: action.get(name) for name in members}}


def _query(action: Mapping[str, Any]) -> str:
    """Return the text that Codex shows for a web search: the query, the opened page, or the text that is searched in the page."""
    if action["type"] == "search":
        return str(action.get("query") or "")
    if action["type"] == "open_page":
        return str(action.get("url") or "")
    if action["type"] == "find_in_page":
        pattern, url = action.get("pattern"), action.get("url")
        return f"'{pattern}' in {url}" if pattern and url else f"'{pattern}'" if pattern else str(url or "")
    return ""


#: Item -> the members that Codex sends back to the model, in its order (from the recorded requests).
HISTORY = {
    "message": ("type", "role", "content"),
    "reasoning": ("type", "summary", "content", "encrypted_content"),
    "function_call": ("type", "name", "arguments", "call_id"),
    "custom_tool_call": ("type", "status", "call_id", "name", "input"),
    "web_search_call": ("type", "status", "action"),
    "local_shell_call": ("type", "call_id", "status", "action"),
}
_ACTION = ("command", "timeout_ms", "working_directory", "env", "user")


def history_item(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item in the form for the input of the next request: without its id and the members that only replies have."""
    names = HISTORY.get(item["type"])
    if names is None:
        return {key: value for key, value in item.items() if key != "id"}
    kept = {name: item[name] for name in names if name in item}
    if item["type"] == "message":
        kept["content"] = [{"type": part["type"], "text": part.get("text", "")} for part in item["content"]]
    if item["type"] == "reasoning":
        content = item.get("content")
        if content is not None and all(part.get("type") != "reasoning_text" for part in content):
            del kept["content"]
        else:
            kept["content"] = content
        kept.setdefault("encrypted_content", None)
    if item["type"] == "local_shell_call":
        kept["action"] = {"type": item["action"]["type"], **{name: item["action"].get(name) for name in _ACTION}}
    return kept
