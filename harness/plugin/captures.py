"""What the fixtures of the other subjects have kept of a case, as frames of a story; not redacted yet.

Each takes what is there already: requests and answers of a backend, the ledger of a lite client's backend, the ledger of an
editor's server, the exchanges and the wire of a proxy, what the fakes for tests of one's own have kept. Generators, so that of a
long case no more is made than is kept.
"""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any

from harness.core import frames as core

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from harness.plugin.asked import Request
    from harness.plugin.backend import Backend
    from harness.plugin.editor_client import EditorClient
    from harness.plugin.fixtures import CodexBackend, FakeCodex
    from harness.plugin.lite_client import LiteClient
    from harness.plugin.proxy import Proxy
    from harness.report.model import Frame


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


def _request(t: float | None, conn: int, method: str, path: str, headers: Any, body: Any) -> Frame:
    said = {"method": method, "path": path, "headers": [list(pair) for pair in headers], "body": _readable(body)}
    return _frame(t, "http", "client", conn, "http-request", f"{method} {path}", _json(said))


def _answer(t: float | None, conn: int, status: int | None, headers: Any, body: bytes) -> Iterator[Frame]:
    """Yield an answer: its head, with the body in it or, of an event stream, each event by itself."""
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


def backend_frames(backend: Backend) -> Iterator[Frame]:
    """What a case asked of a backend, and was answered."""
    start = backend.said[0].started if backend.said else 0.0
    for conn, one in enumerate(backend.said, 1):
        yield _request(one.started - start, conn, one.method, one.path, one.headers.items(), one.body)
        if one.answer is not None:
            yield from _answer(one.ended - start, conn, one.answer.status, one.answer.headers, one.answer.body)


def lite_client_frames(client: LiteClient) -> Iterator[Frame]:
    """What a lite client asked, and with what status it was answered."""
    return _asked([request for run in client.runs for request in run.requests])


def codex_backend_frames(backend: CodexBackend) -> Iterator[Frame]:
    """What a backend of a test's own was asked, and with what status it answered."""
    return _asked(backend.requests)


def _asked(requests: Sequence[Request]) -> Iterator[Frame]:
    for conn, request in enumerate(requests, 1):
        yield _request(None, conn, request.method, request.path, request.headers, request.body)
        said = {"status": request.status, **({"refused": request.sentence} if request.sentence else {})}
        what = f"HTTP {request.status or 'no answer'}"
        yield _frame(None, "http", "server", conn, "http-response", what, _json(said))


def editor_frames(client: EditorClient) -> Iterator[Frame]:
    """What the editors and their servers said to each other."""
    starts = 0
    for editor in client.editors:
        ledger = editor.ledger()
        yield from _rpc(_lines(ledger, starts))
        starts += sum("run" in entry for entry in ledger)


def fake_codex_frames(fake: FakeCodex) -> Iterator[Frame]:
    """What a client and its fake codex said to each other; then what the model was asked, for which there is no time."""
    yield from _rpc(_lines(fake.wire(), 0))
    for conn, call in enumerate(fake.model_calls, 1):
        yield _request(None, conn, "POST", "/responses", (), call.body)


def _lines(ledger: Iterable[dict[str, Any]], conn: int) -> Iterator[tuple[float | None, int, str, str]]:
    for entry in ledger:
        conn += "run" in entry
        yield from ((None, conn, sender, str(entry[key])) for key, sender in _SIDES if key in entry)


_SIDES = (("got", "client"), ("said", "server"), ("sent", "server"))


def _rpc(lines: Iterable[tuple[float | None, int, str, str]]) -> Iterator[Frame]:
    from harness.report.cassette_story import kind_of
    from harness.report.labels import Labels

    labels: dict[int, Labels] = {}
    for t, conn, sender, line in lines:
        raw = line.encode("utf-8", "surrogateescape")
        frame = core.Frame(0, t or 0.0, "rpc", sender, "msg", raw)
        label = labels.setdefault(conn, Labels()).label(frame)
        yield _frame(t, "rpc", sender, conn, kind_of(frame), label, raw.decode("utf-8", "backslashreplace"))


def proxy_frames(proxy: Proxy) -> Iterator[Frame]:
    """Both sides of a proxy, in the order of time."""
    if not proxy.exchanges:
        return
    start = proxy.exchanges[0].started
    children: dict[str, int] = {}
    # What is said at a time, and how much of it then: all of an answer, one line of those that passed on the JSON-RPC seam.
    told: list[tuple[float, Iterator[Frame], int | None]] = []
    for conn, one in enumerate(proxy.exchanges, 1):
        told.append((one.started, iter((_request(one.started - start, conn, one.method, one.path, (), one.sent),)), None))
        told.append((one.ended, _answer(one.ended - start, conn, one.status, one.headers, one.body), None))
        for frame in one.frames:
            children.setdefault(frame.child, len(children) + 1)
        rpc = _rpc((frame.t - start, children[frame.child], frame.sender, frame.raw) for frame in one.frames)
        times = [frame.t for frame in one.frames]
        if times == sorted(times):
            told += ((t, rpc, 1) for t in times)
        else:  # lines that were read late are labelled where they stand, and told where they belong
            told += ((t, iter((frame,)), 1) for t, frame in zip(times, rpc, strict=True))
    told.sort(key=lambda entry: entry[0])
    for _, frames, count in told:
        yield from islice(frames, count)
