"""Determine the kind of a JSON-RPC message of either direction by its keys.

Frames of the real app-server have no `jsonrpc` key and clients may leave it out (REAL-35, REAL-37), so this key is ignored."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    Kind = Literal["request", "notification", "response", "error", "other"]


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
