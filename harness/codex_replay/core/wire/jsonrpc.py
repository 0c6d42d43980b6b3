"""Read from a JSON-RPC message of either direction its kind, and the ids of its request, thread and turn.

The key `jsonrpc` is ignored, because frames of the real app-server have no `jsonrpc` key, and clients may omit it (REAL-35,
REAL-37).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    Kind = Literal["request", "notification", "response", "error", "other"]

# What a client calls the processes, watches and searches that it starts.
_NAMES = ("processId", "processHandle", "watchId", "sessionId", "subscriptionId")


def kind(value: Any) -> Kind:
    """Return the kind of a JSON-RPC message.

    A request has `method` and `id`, a notification has only `method`, and a reply has `id` and `result` or `error`.
    """
    if type(value) is not dict:
        return "other"
    if "method" in value:
        return "request" if "id" in value else "notification"
    if "id" in value:
        if "result" in value:
            return "response"
        if "error" in value:
            return "error"
    return "other"


def is_reply(value: Any) -> bool:
    """Return True if the message is a reply to a request of the other side."""
    return kind(value) in ("response", "error")


def label(value: Any) -> str:
    """Return a short name of a message for reports: the method, or `result of request 3`, or `error for request 3`, or `no
    message`.
    """
    sort = kind(value)
    if sort in ("request", "notification"):
        method = value["method"]
        return method if type(method) is str else f"method {method!r}"
    if sort == "response":
        return f"result of request {value['id']}"
    if sort == "error":
        return f"error for request {value['id']}"
    return "no message"


def object_in(params: Any) -> tuple[str, str] | None:
    """Return the kind and the name of an object that the client created and that the params mention."""
    if type(params) is dict:
        for key in _NAMES:
            if type(params.get(key)) is str:
                return key, params[key]
    return None


def request_key(request_id: Any) -> Any:
    """Return a dictionary key that keeps 1, 1.0, true and "1" apart."""
    return (type(request_id), request_id) if type(request_id) in (int, str, float, bool) else repr(request_id)


def thread_of(params: Any) -> str | None:
    """Return the id of the thread (or v1 conversation) that the params or the result of a message contain."""
    if type(params) is not dict:
        return None
    for key in ("threadId", "conversationId", "reviewThreadId"):
        if type(params.get(key)) is str:
            name: str = params[key]
            return name
    thread = params.get("thread")
    if type(thread) is dict and type(thread.get("id")) is str:
        inner: str = thread["id"]
        return inner
    return None


def reason_of(params: Any) -> str | None:
    """Return the reason of a v1 event, which tells why a turn was aborted."""
    msg = params.get("msg") if type(params) is dict else None
    reason = msg.get("reason") if type(msg) is dict else None
    return reason if type(reason) is str else None


def turn_of(method: Any, params: Any) -> str | None:
    """Return the id of the turn that the params of a message contain."""
    turn = params.get("turnId")
    if turn is None and type(params.get("turn")) is dict:
        turn = params["turn"].get("id")
    if turn is None and type(method) is str and method.startswith("codex/event/"):
        turn = params.get("id")
    return turn if type(turn) is str else None


def is_number(turn: str) -> bool:
    """Return True if a turn id is the number of a submission.

    `is_number` does not call `whole_number`, because the import would delay the first answer of fake-codex.
    """
    return turn.isascii() and turn.isdecimal() and len(turn) < 20
