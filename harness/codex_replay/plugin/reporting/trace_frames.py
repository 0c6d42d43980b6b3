"""Build the frames of a trace from the data of a fixture: HTTP requests and answers, lines of JSON-RPC, or ledgers.

Most functions are generators: only the frames that the trace of a long case keeps are built. The functions redact nothing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from codex_replay.core.cassette import frames as core

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from codex_replay.plugin.base.ledger import Request
    from codex_replay.report.data import Frame


def _frame(t: float | None, seam: str, sender: str, conn: str | int | None, kind: str, what: str, text: str) -> Frame:
    return {
        "n": 0,
        "t": t,
        "seam": "http" if seam == "http" else "rpc",
        "from": "client" if sender == "client" else "server",
        "conn": conn,
        "kind": kind,
        "what": what,
        "text": text,
        "mark": None,
        "expected": None,
        "paths": [],
        "bound": [],
        "masked": [],
    }


def request_frame(t: float | None, conn: int, method: str, path: str, headers: Any, body: Any) -> Frame:
    """Return the frame of an HTTP request; `headers` are pairs of name and value, `body` is a JSON value or bytes."""
    message = {"method": method, "path": path, "headers": [list(pair) for pair in headers], "body": _readable(body)}
    return _frame(t, "http", "client", conn, "http-request", f"{method} {path}", _json(message))


def answer_frames(t: float | None, conn: int, status: int | None, headers: Any, body: bytes) -> Iterator[Frame]:
    """Yield the frames of an HTTP answer: one frame with head and body, or, for an event stream, the head and then each event."""
    pairs = [list(pair) for pair in headers]
    stream = any(name.lower() == "content-type" and "event-stream" in value for name, value in pairs)
    head = {"status": status, "headers": pairs, **({} if stream or not body else {"body": _readable(body)})}
    yield _frame(t, "http", "server", conn, "http-response", f"HTTP {status or 'no answer'}", _json(head))
    for block in body.decode("utf-8", "backslashreplace").replace("\r\n", "\n").split("\n\n") if stream else ():
        if block.strip():
            first = block.partition("\n")[0]
            name = first.removeprefix("event:").strip() if first.startswith("event:") else first[:40]
            yield _frame(t, "http", "server", conn, "sse", f"event {name}", block)


def _readable(body: Any) -> Any:
    if not isinstance(body, bytes):
        return body
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "backslashreplace")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def ledger_frames(requests: Sequence[Request]) -> Iterator[Frame]:
    """Yield the requests in the ledger of a fake backend, each with the status of its answer; a ledger contains no times."""
    for conn, request in enumerate(requests, 1):
        yield request_frame(None, conn, request.method, request.path, request.headers, request.body)
        message = {"status": request.status, **({"refused": request.sentence} if request.sentence else {})}
        what = f"HTTP {request.status or 'no answer'}"
        yield _frame(None, "http", "server", conn, "http-response", what, _json(message))


def wire_lines(ledger: Iterable[dict[str, Any]], conn: int) -> Iterator[tuple[float | None, int, str, str]]:
    """Yield the lines of a ledger (the file of a tap) in the form for `rpc_frames`.

    `conn` is the number of times that the server was started before.
    """
    for entry in ledger:
        conn += "run" in entry
        yield from ((None, conn, sender, str(entry[key])) for key, sender in _SIDES if key in entry)


_SIDES = (("got", "client"), ("said", "server"), ("sent", "server"))


def rpc_frames(lines: Iterable[tuple[float | None, int, str, str]]) -> Iterator[Frame]:
    """Yield lines of JSON-RPC, given as (time in seconds or None, connection, "client" or "server", text)."""
    from codex_replay.report.cassette_trace import kind_of
    from codex_replay.report.labels import Labels

    labels: dict[int, Labels] = {}
    for t, conn, sender, line in lines:
        raw = line.encode("utf-8", "surrogateescape")
        frame = core.Frame(0, t or 0.0, "rpc", sender, "msg", raw)
        label = labels.setdefault(conn, Labels()).label(frame)
        yield _frame(t, "rpc", sender, conn, kind_of(frame), label, raw.decode("utf-8", "backslashreplace"))
