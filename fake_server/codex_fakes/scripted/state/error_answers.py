"""Parse an answer of the model with a status other than 200, in the same way as the real server."""

from __future__ import annotations

from time import localtime, strftime, time

from codex_replay.core.wire.json_text import NotJson, dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from codex_replay.protocol.script.script import Turn

#: The reason phrases of Rust's `http`; the backend's own are not shown.
_REASONS = {
    300: "Multiple Choices", 301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified", 305: "Use Proxy",
    307: "Temporary Redirect", 308: "Permanent Redirect",
    400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 406: "Not Acceptable", 407: "Proxy Authentication Required", 408: "Request Timeout",
    409: "Conflict", 410: "Gone", 411: "Length Required", 412: "Precondition Failed", 413: "Payload Too Large",
    414: "URI Too Long", 415: "Unsupported Media Type", 416: "Range Not Satisfiable", 417: "Expectation Failed",
    418: "I'm a teapot", 421: "Misdirected Request", 422: "Unprocessable Entity", 423: "Locked", 424: "Failed Dependency",
    425: "Too Early", 426: "Upgrade Required", 428: "Precondition Required", 429: "Too Many Requests",
    431: "Request Header Fields Too Large", 451: "Unavailable For Legal Reasons",
    500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
    504: "Gateway Timeout", 505: "HTTP Version Not Supported", 506: "Variant Also Negotiates", 507: "Insufficient Storage",
    508: "Loop Detected", 510: "Not Extended", 511: "Network Authentication Required",
}  # fmt: skip

_QUOTED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}


def answered(turn: Turn, url: str) -> tuple[list[Any], dict[str, Any] | None]:
    """Return the acts of an answer with an error status, or the cause of its failure in the form that `turn.failure` needs."""
    if 200 <= turn.status < 300:
        return [], None  # read as a stream, in which no event ends the reply
    headers = {name.lower(): value for name, value in turn.headers}
    body = "" if turn.status == 304 else text_of(turn)
    return [], status_cause(turn.status, body, url, headers.get("cf-ray") or headers.get("x-request-id"))


def log_of(status: int, body: str) -> str:
    """Return the line that the real binary logs for an answer with an error status.

    The body of the answer is quoted in the notation of Rust.
    """
    quoted = "".join(_QUOTED.get(c, c if c.isprintable() else f"\\u{{{ord(c):x}}}") for c in body)
    return f'http {status} {_REASONS.get(status, "<unknown status code>")}: Some("{quoted}")'


def status_cause(status: int, body: str, url: str, request: str | None = None) -> dict[str, Any]:
    """Return the cause of a failed turn, for an answer of the model with the given status and body."""
    reason = _REASONS.get(status, "<unknown status code>")
    shown = f", request id: {request}" if request else ""
    if status == 429 and (limit := _usage_limit(body)) is not None:
        return limit
    return {"status": status, "reason": reason, "body": body, "url": url, "request": shown}


def _usage_limit(body: str) -> dict[str, Any] | None:
    """Return the cause of the failure for a 429 answer that reports a usage limit, or None for any other answer."""
    try:
        error = loads(body.encode("utf-8", "surrogatepass"))["error"]
        kind = error["type"]
    except (NotJson, TypeError, KeyError, IndexError):
        return None
    plan, at = error.get("plan_type"), error.get("resets_at")
    if type(plan) not in (str, type(None)) or type(at) not in (int, type(None)):
        return None
    if kind == "usage_not_included":
        return {"code": kind}
    again = "later" if at is None else f"at {_moment(at)}"
    return {"plan": plan, "again": again} if kind == "usage_limit_reached" else None


def _moment(at: int) -> str:
    """Return a time (seconds since the epoch) in the real server's form. For a time of today, the day is omitted."""
    then = localtime(at)
    hour = f"{then.tm_hour % 12 or 12}:{strftime('%M %p', then)}"
    if then[:3] == localtime(time())[:3]:
        return hour
    day = then.tm_mday
    suffix = "th" if day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{strftime('%b', then)} {day}{suffix}, {then.tm_year} {hour}"


def text_of(turn: Turn) -> str:
    """Return the body of an error answer in the form of the backend."""
    if isinstance(turn.body, str):
        return turn.body
    if turn.body is not None:
        return dumps(turn.body).decode()
    if turn.error is not None:
        empty = {"message": "", "type": "invalid_request_error", "param": None, "code": None}
        return dumps({"error": {**empty, **turn.error}}).decode()
    return ""
