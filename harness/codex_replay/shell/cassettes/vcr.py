"""Store vcrpy's cassettes in the codex-replay format, for Python clients that run in the same process as their tests.

To use another persister of vcrpy, call `register_serializer("ndjson", codex_replay.shell.cassettes.vcr)`, because this
module is also a serializer. The written cassette is redacted, and all codex-replay commands can read it. The cassette lacks
what vcrpy does not see: the times, the chunk borders of a stream, cut or reset streams, and the original order and case of
headers.

To use the persister of this module:

    import vcr
    from codex_replay import NdjsonPersister

    recorder = vcr.VCR()
    recorder.register_persister(NdjsonPersister)
    with recorder.use_cassette("case.ndjson"):
        run_the_client()
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from codex_replay.core.cassette import http_frames
from codex_replay.core.cassette.frames import (
    BadLine,
    Footer,
    Frame,
    Header,
    encode_footer,
    encode_frame,
    encode_header,
    parse_line,
)
from codex_replay.core.redact import encoded_body
from codex_replay.core.redact.redactor import Redactor
from codex_replay.core.redact.streamed import clean
from codex_replay.core.wire import content_encoding
from codex_replay.shell.cassettes.file import CassetteError
from codex_replay.shell.files.atomic import write_whole


class NdjsonPersister:
    """A persister for `VCR.register_persister`, which loads and saves vcrpy's cassettes in the codex-replay format."""

    @staticmethod
    def load_cassette(cassette_path: str | os.PathLike[str], serializer: object) -> tuple[list[Any], list[Any]]:
        """Return the recorded requests and responses of a cassette.

        Raises vcrpy's own error for a missing or empty file, and `CassetteError` for a damaged file.
        """
        from vcr.persisters.filesystem import CassetteNotFoundError  # type: ignore[import-untyped]
        from vcr.request import Request  # type: ignore[import-untyped]

        try:
            with open(cassette_path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            raise CassetteNotFoundError from None
        if not data.strip():
            raise CassetteNotFoundError
        found = list(_interactions(data, os.fspath(cassette_path)))
        return [Request(**request) for request, _ in found], [response for _, response in found]

    @staticmethod
    def save_cassette(cassette_path: str | os.PathLike[str], cassette_dict: Mapping[str, Any], serializer: object) -> None:
        """Write all requests and responses in one step, so that a reader never sees an incomplete file."""
        path = os.fspath(cassette_path)
        pairs = zip(cassette_dict["requests"], cassette_dict["responses"], strict=True)
        exchanges = (
            (request.method, request.uri, _pairs(request.headers), request.body_bytes or b"", response)
            for request, response in pairs
        )
        write_whole(path, _lines(exchanges, os.path.splitext(os.path.basename(path))[0]))


def serialize(cassette_dict: Mapping[str, Any]) -> str:
    """Convert vcrpy's dictionary of a cassette to the text of a codex-replay cassette.

    `serialize` and `deserialize` together are a serializer for vcrpy.
    """
    exchanges = (
        (found["request"]["method"], found["request"]["uri"], _pairs(found["request"]["headers"]),
         _bytes(found["request"]["body"]), found["response"])
        for found in cassette_dict["interactions"]
    )  # fmt: skip
    return _lines(exchanges, "vcr").decode()


def deserialize(cassette_string: str) -> dict[str, Any]:
    """Convert the text of a codex-replay cassette to vcrpy's dictionary.

    `serialize` and `deserialize` together are a serializer for vcrpy. Raises `CassetteError` for a damaged cassette.
    """
    found = _interactions(cassette_string.encode(), "the cassette")
    return {"version": 1, "interactions": [{"request": request, "response": response} for request, response in found]}


def _lines(exchanges: Iterable[tuple[str, str, list[list[str]], bytes, Mapping[str, Any]]], case: str) -> bytes:
    redactor = Redactor(paths=_home())
    frames: list[Frame] = []
    for conn, exchange in enumerate(exchanges, 1):
        for sender, kind, payload, extra in _frames(redactor, *exchange):
            frames.append(Frame(len(frames) + 1, 0.0, "http", sender, kind, b"", payload, conn, extra=extra))
    header = encode_header(Header("unknown", "unknown", case, {"http": "recorded"}))
    return b"".join([header, *map(encode_frame, clean(frames, redactor)), encode_footer(Footer(len(frames)))])


def _home() -> dict[str, str]:
    home = os.path.expanduser("~").rstrip("/")
    return {home: "/home/user"} if home.startswith("/") else {}


def _frames(
    redactor: Redactor, method: str, uri: str, headers: list[list[str]], body: bytes, response: Mapping[str, Any]
) -> Iterator[tuple[str, str, Any, dict[str, Any]]]:
    """Yield the sender, kind, payload and marks of each frame of one exchange. The mark "server" is the URL without its path."""
    parts = urlsplit(uri)
    path = uri[len(f"{parts.scheme}://{parts.netloc}") :] or "/"
    clean = redactor.headers((name, value) for name, value in headers)
    payload = http_frames.request_payload(method, path, clean, body, redact=redactor.redact)
    yield "client", "request", payload, {"server": redactor.text(f"{parts.scheme}://{parts.netloc}")}
    headers, status = _pairs(response["headers"]), response["status"]
    clean = redactor.headers((name, value) for name, value in headers)
    yield "server", "response", http_frames.response_payload(status["code"], clean, status["message"] or ""), {}
    raw = _bytes(response["body"].get("string"))
    encoding = _encoding(raw, (http_frames.header(headers, "content-encoding") or "").lower())
    if not encoding and (http_frames.header(headers, "content-type") or "").startswith("text/event-stream"):
        for block in http_frames.sse_blocks(raw):
            yield "server", "sse", http_frames.sse_payload(block), {}
    elif raw:
        yield "server", "chunk", encoded_body.fields(raw, encoding), {}
    yield "server", "close", "end", {}


def _encoding(raw: bytes, named: str) -> str:
    """Return the encoding of a recorded body.

    If the client's library has decompressed the body, return "", even if a header names an encoding.
    """
    if content_encoding.detect(raw) == named.removeprefix("x-"):
        return named
    if named.removeprefix("x-") in ("identity", "gzip", "zstd"):  # the first bytes distinguish the latter two
        return ""
    try:
        raw.decode()
        content_encoding.decode(raw, named)
    except content_encoding.BadEncoding:
        return ""
    except UnicodeDecodeError:
        pass
    return named


def _interactions(data: bytes, name: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each exchange of a cassette as a request and a response of vcrpy.

    Exchanges without a complete answer are omitted.
    """
    requests: dict[int | None, Frame] = {}
    responses: dict[int | None, Frame] = {}
    bodies: dict[int | None, list[Frame]] = {}
    for number, line in enumerate(data.splitlines(keepends=True), 1):
        try:
            frame = parse_line(line)
        except BadLine as error:
            raise CassetteError(f"{name}, line {number}: {error}; record the cassette again.") from None
        if not isinstance(frame, Frame) or frame.seam != "http":
            continue
        if frame.kind == "request":
            requests[frame.conn] = frame
            bodies[frame.conn] = []
        elif frame.kind == "response":
            responses[frame.conn] = frame
        elif frame.kind in ("sse", "chunk"):
            bodies.setdefault(frame.conn, []).append(frame)
        elif frame.payload == "end" and frame.conn in requests and frame.conn in responses:
            yield _exchange(requests.pop(frame.conn), responses.pop(frame.conn), bodies.pop(frame.conn))


def _exchange(request: Frame, response: Frame, body: list[Frame]) -> tuple[dict[str, Any], dict[str, Any]]:
    asked, answered = request.payload, response.payload
    server = request.extra.get("server") or f"http://{http_frames.header(asked['headers'], 'host') or 'localhost'}"
    status = answered["status"]
    return (
        {
            "method": asked["method"],
            "uri": server + asked["path"],
            "body": http_frames.body_bytes(asked) or None,
            "headers": dict(asked["headers"]),
        },
        {
            "status": {"code": status, "message": answered.get("reason", http_frames.usual_reason(status))},
            "headers": _many(answered["headers"]),
            "body": {"string": b"".join(piece for _, piece in http_frames.body_chunks(body))},
        },
    )


def _many(headers: Iterable[Iterable[str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in headers:
        found.setdefault(name, []).append(value)
    return found


def _pairs(headers: Mapping[str, Any]) -> list[list[str]]:
    """Return header pairs. vcrpy has a string, a list or bytes under each name."""
    pairs: list[list[str]] = []
    for name, values in headers.items():
        all_of_it = values if isinstance(values, list | tuple) else [values]
        pairs += [[_text(name), _text(value)] for value in all_of_it]
    return pairs


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _bytes(value: Any) -> bytes:
    if value is None:
        return b""
    return value if isinstance(value, bytes) else str(value).encode()
