"""Translate the notifications of the app-server to the events of a request, for v1 and v2.

The events of v1 are read only from `codex/event/*`, and the events of v2 only from `item/*`, `turn/*` and `error`. The
server sends most events in both dialects (v1 and v2), so a client that reads both gets these events twice. Only the token
usage is read from both dialects, and the last value counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from codex_replay.reference.proxy.errors import ProxyError, from_codex
from codex_replay.reference.proxy.wire.app_server import TOOL_CALL, Message
from codex_replay.reference.proxy.wire.json_text import text

Params = dict[str, Any]


class Delta(NamedTuple):
    """A part of the agent message `item`."""

    item: str
    text: str


class AgentMessage(NamedTuple):
    """A complete message of the agent."""

    item: str
    text: str


class Native(NamedTuple):
    """The model has called a tool natively; `request` is the id of the server's request for the output, or None."""

    call_id: str
    name: str
    arguments: str
    request: Any = None


class Usage(NamedTuple):
    """The tokens used in the whole conversation so far."""

    input: int
    cached: int
    output: int
    reasoning: int
    total: int


class Failed(NamedTuple):
    """The turn has failed."""

    error: ProxyError


class Began(NamedTuple):
    """A turn has started."""


class Ended(NamedTuple):
    """The event that a turn has ended. `aborted` is True if the turn was interrupted."""

    aborted: bool


class Item(NamedTuple):
    """The event that an item was added to the conversation.

    `call` is True if the item is a tool call: its output and another reply must follow.
    """

    call: bool


Event = Delta | AgentMessage | Native | Usage | Failed | Began | Ended | Item


class Replies:
    """Detect the end of the last reply of a turn.

    The last reply is complete if it has no tool call and the server has reported its token usage.

    Codex 0.92 sometimes loses the frame that ends a turn, because it loses frames after a burst of about 128 frames. If the
    end of a turn is lost, Codex also does not answer an interrupt of the turn. If the end of a turn is lost, a client that
    waits for it hangs.
    """

    def __init__(self) -> None:
        self._items: list[bool] = []
        self.through = False

    def saw(self, event: Event | None) -> None:
        """Process the next event.

        The server reports the token usage more than once: only the first report after an item ends a reply.
        """
        if isinstance(event, Item | Native):
            self._items.append(isinstance(event, Native) or event.call)
            self.through = False
        elif isinstance(event, Usage) and self._items:
            self.through = not any(self._items)
            self._items = []
        elif isinstance(event, Delta | Began):
            self.through = False


def read_event(message: Message, v2: bool) -> Event | None:
    """Return the event in a message of the app-server, or None if the proxy needs no event of this kind."""
    if message.method == TOOL_CALL:
        return _native_request(message)
    kind = message.method.removeprefix("codex/event/")
    if kind != message.method:
        body = message.params.get("msg")
        body = body if isinstance(body, dict) else {}
        reader = V1.get(kind) if not v2 or kind == "token_count" else None
        return reader(body) if reader else None
    reader = V2.get(message.method) if v2 else None
    return reader(message.params) if reader else None


def _native_request(message: Message) -> Native:
    params = message.params
    arguments = params.get("arguments")
    output = arguments if isinstance(arguments, str) else text({} if arguments is None else arguments)
    return Native(str(params.get("callId") or ""), str(params.get("tool") or ""), output, message.id)


# -- v2 --------------------------------------------------------------------------------------------------------------------


def _item_completed(params: Params) -> Event | None:
    item = params.get("item") or {}
    return AgentMessage(str(item.get("id")), str(item.get("text") or "")) if item.get("type") == "agentMessage" else None


#: Calls of tools that Codex runs itself.
CALLS = ("custom_tool_call", "local_shell_call")


def _raw_item(params: Params) -> Event | None:
    item = params.get("item") or {}
    if item.get("type") != "function_call":
        return Item(str(item.get("type")) in CALLS)
    return Native(str(item.get("call_id") or ""), str(item.get("name") or ""), str(item.get("arguments") or "{}"))


def _turn_completed(params: Params) -> Event:
    turn = params.get("turn") or {}
    if turn.get("status") == "failed":
        error = turn.get("error") or {}
        return Failed(from_codex(str(error.get("message") or "The turn failed."), error.get("codexErrorInfo")))
    return Ended(turn.get("status") == "interrupted")


V2: dict[str, Callable[[Params], Event | None]] = {
    "turn/started": lambda _: Began(),
    "item/agentMessage/delta": lambda params: Delta(str(params.get("itemId")), str(params.get("delta") or "")),
    "item/completed": _item_completed,
    "rawResponseItem/completed": _raw_item,
    "thread/tokenUsage/updated": lambda params: _usage(params.get("tokenUsage"), "total"),
    "turn/completed": _turn_completed,
}

# -- v1 --------------------------------------------------------------------------------------------------------------------


def _v1_item_completed(body: Params) -> Event | None:
    item = body.get("item") or {}
    if item.get("type") != "AgentMessage":
        return None
    return AgentMessage(str(item.get("id")), "".join(str(part.get("text") or "") for part in item.get("content") or []))


V1: dict[str, Callable[[Params], Event | None]] = {
    "task_started": lambda _: Began(),
    "agent_message_content_delta": lambda body: Delta(str(body.get("item_id")), str(body.get("delta") or "")),
    "item_completed": _v1_item_completed,
    "error": lambda body: Failed(from_codex(str(body.get("message") or "The turn failed."), body.get("codex_error_info"))),
    "token_count": lambda body: _usage(body.get("info"), "total_token_usage"),
    "task_complete": lambda _: Ended(False),
    "turn_aborted": lambda _: Ended(True),
}

# -- usage -----------------------------------------------------------------------------------------------------------------

NAMES = (
    ("input_tokens", "inputTokens"),
    ("cached_input_tokens", "cachedInputTokens"),
    ("output_tokens", "outputTokens"),
    ("reasoning_output_tokens", "reasoningOutputTokens"),
    ("total_tokens", "totalTokens"),
)


def _usage(info: Any, total: str) -> Usage | None:
    """Return the token counts in `info[total]`, whose keys are in snake_case or camelCase.

    Return None if the server has not sent token counts yet.
    """
    found = info.get(total) if isinstance(info, dict) else None
    if not isinstance(found, dict):
        return None
    return Usage(*(int(found.get(v1) or found.get(v2) or 0) for v1, v2 in NAMES))
