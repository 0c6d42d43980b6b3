"""The errors that the proxy sends to its HTTP client: a status, and OpenAI's error object with a type, a code and a message."""

from __future__ import annotations

import json
import re
from typing import Any


class ProxyError(Exception):
    """The proxy cannot answer a request. `status` is the HTTP status of the answer; `body` is the error object in the answer."""

    def __init__(self, status: int, message: str, *, kind: str = "", code: str | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind or ("invalid_request_error" if status < 500 else "server_error")
        self.code = code
        self.param = param

    @property
    def body(self) -> dict[str, Any]:
        """The error object of the OpenAI API."""
        return {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}


def bad_request(message: str, param: str | None = None, code: str | None = None) -> ProxyError:
    """Return the error for an invalid request. `param` names the invalid field."""
    return ProxyError(400, message, code=code, param=param)


def app_server_ended(message: str) -> ProxyError:
    """Return the error for a request whose app-server does not run, or has ended during the turn."""
    return ProxyError(502, message, code="app_server_gone")


def too_slow(message: str) -> ProxyError:
    """Return the error for a request that the app-server did not answer in time."""
    return ProxyError(504, message, code="app_server_timeout")


#: codexErrorInfo -> status, type, code; REAL-99 to REAL-109. 401 from upstream is our login, not the client's.
KNOWN: dict[str, tuple[int, str, str]] = {
    "contextwindowexceeded": (400, "invalid_request_error", "context_length_exceeded"),
    "usagelimitexceeded": (429, "insufficient_quota", "insufficient_quota"),
    "unauthorized": (502, "server_error", "upstream_unauthorized"),
    "badrequest": (400, "invalid_request_error", "bad_request"),
    "internalservererror": (502, "server_error", "upstream_error"),
    "sandboxerror": (500, "server_error", "sandbox_error"),
}
STATUS = re.compile(r"(?:unexpected status|last status:) (\d{3})\b")
RATE_LIMIT = re.compile(r"rate.?limit", re.I)


def from_codex(message: str, info: Any) -> ProxyError:
    """Return the HTTP error that answers a request whose turn failed.

    `message` and `info` come from the error of the turn; `info` is its `codexErrorInfo` (camelCase in v2, snake_case in
    v1).
    """
    name, status = _info(info)
    if name in KNOWN:
        known, kind, code = KNOWN[name]
        return ProxyError(known, message, kind=kind, code=code)
    if status is None and (found := STATUS.search(message)):
        status = int(found[1])
    if status == 429 or (status is None and RATE_LIMIT.search(message)):
        return ProxyError(429, message, kind="rate_limit_error", code="rate_limit_exceeded")
    if status == 503:
        return ProxyError(503, message, code="upstream_unavailable")
    if "idle timeout" in message:
        return ProxyError(504, message, code="upstream_timeout")
    if status is None and (text := _upstream_words(message)) is not None:
        return ProxyError(400, text, code="bad_request")
    return ProxyError(502, message, code="upstream_error")


def _info(info: Any) -> tuple[str, int | None]:
    """Return the name of an error in lower case without underscores, and the HTTP status in its `codexErrorInfo`."""
    if isinstance(info, dict) and len(info) == 1:
        name, inner = next(iter(info.items()))
        inner = inner if isinstance(inner, dict) else {}
        status = inner.get("httpStatusCode", inner.get("http_status_code"))
        return _flat(name), status if isinstance(status, int) else None
    return (_flat(info), None) if isinstance(info, str) else ("", None)


def _flat(name: str) -> str:
    return name.replace("_", "").lower()


def _upstream_words(message: str) -> str | None:
    """Return the message of the backend's error object, if the message of a failed turn is the raw body of an HTTP 400.

    Otherwise return None.

    Codex passes the body of an HTTP 400 on as text.
    """
    try:
        found = json.loads(message)["error"]["message"]
    except (ValueError, TypeError, KeyError):
        return None
    return found if isinstance(found, str) else None
