"""Process the client's direction of one HTTP connection: record whole requests, and rewrite their targets and headers.

The HTTP parser does not report offsets: outside of bodies, it therefore gets single lines, and inside of bodies, pieces of
known length. This module therefore knows for each byte whether the byte belongs to the head (the request line and headers) of a
request. The head of a request is replaced by the rewritten head; all other bytes are passed on unchanged, with chunk sizes, chunk
extensions and trailers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import httptools

from codex_replay.core.cassette import http_frames
from codex_replay.core.wire.web_guard import WebGuard
from codex_replay.shell.http.bodies import MAX_HEAD, MAX_SENT, Redact, decodes_to_more, takes_long

Pairs = list[tuple[str, str]]
TOO_LONG = f"The head of the request is longer than {MAX_HEAD >> 10} KB."


class Watch(Protocol):
    """The interface of `watch.Watch` that the requests of a connection use."""

    limit: int
    guard: WebGuard | None
    refused: str | None
    asked: deque[str]
    rewrite: Callable[[str, Pairs], tuple[str, Pairs]]

    @property
    def headers(self) -> Callable[[Iterable[tuple[str, str]]], Pairs]:
        """The redactor of headers."""

    @property
    def redact(self) -> Redact:
        """The redactor of bytes."""

    def emit(self, sender: str, kind: str, build: Callable[[], Any], *, size: int = 0, long: bool = False, **marks: Any) -> None:
        """Log one frame."""

    def left_out(self, size: int, encoding: str | None) -> dict[str, Any]:
        """Return the cassette entry for a body that is too long."""

    def looked_into(self, payload: dict[str, Any], encoding: str | None) -> dict[str, Any]:
        """Report a body that is left out of the cassette because it cannot be decoded."""

    def stop_looking(self, why: str) -> None:
        """Pass on the rest of the connection without recording it."""


def _as_lenient_servers_read(head: bytes | bytearray) -> Pairs:
    """Return the headers of a head that is not valid HTTP."""
    lines = bytes(head[:MAX_HEAD]).decode("latin-1").replace("\r", "\n").split("\n")
    pairs = (line.partition(":") for line in lines[1:])
    return [(name.strip(), value.strip()) for name, colon, value in pairs if colon]


class Requests:
    """The HTTP requests of one connection.

    Each request is recorded as a whole, and is passed on with the target and headers that `rewrite` returns.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._parser = httptools.HttpRequestParser(self)
        self._out: list[bytes] = []
        self._open = False  # the head is complete, and the end has not come
        self._kept = bytearray()  # a head that is not complete; in a chunked body, a line or the trailers
        self._left = 0  # bytes to the end of the body or of the chunk; 0 in a line
        self._last = False  # the last chunk has come, trailers follow

    def feed(self, data: bytes) -> bytes:
        """Take bytes of the client, and record all complete requests in them. Return the bytes to send to the server."""
        at = 0
        while at < len(data) and self._watch.refused is None:
            end = min(at + self._left, len(data)) if self._left else data.find(b"\n", at) + 1 or len(data)
            piece, at, opened = data[at:end], end, self._open
            if not self._left:
                self._kept += piece
            try:
                self._parser.feed_data(piece)
            except httptools.HttpParserUpgrade:
                # The response shows whether it is granted; if not, the next request begins here.
                self._parser = httptools.HttpRequestParser(self)
            except httptools.HttpParserError as error:
                rest = (piece if opened else self._kept) + data[at:]
                if not opened and self._watch.guard is not None:
                    self._watch.refused = self._watch.guard.refusal(_as_lenient_servers_read(rest))
                if self._watch.refused is None:
                    return self._stop(f"the client does not speak HTTP ({error})", rest)
                continue
            if opened:
                self._out.append(piece)
                if self._open:
                    self._count(piece)
            if len(self._kept) > MAX_HEAD:
                if not opened:  # the guard has not seen the headers
                    self._watch.refused = TOO_LONG
                    continue
                return self._stop(f"a chunk size or the trailers of a request are longer than {MAX_HEAD >> 10} KB", data[at:])
        return self._take()

    def _count(self, piece: bytes) -> None:
        """Count a piece of a body, to find the place where the next chunk or head begins."""
        if self._left:
            self._left -= len(piece)
        elif piece.endswith(b"\n") and not self._last:
            size = int(self._kept.partition(b";")[0], 16)
            self._last = not size
            self._left = size + 2 if size else 0  # a line end follows the chunk
            self._kept.clear()

    def _stop(self, why: str, rest: bytes | bytearray) -> bytes:
        self._watch.stop_looking(why)
        return self._take() + rest

    def _take(self) -> bytes:
        out = b"".join(self._out)
        self._out.clear()
        return out

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._target = b""
        self._headers: Pairs = []
        self._trailers: Pairs = []
        self._body: list[bytes] = []
        self._size = 0
        self._logged = self._complete = self._last = False

    def on_url(self, url: bytes) -> None:
        """Take a part of the target; the parser may report the target in several parts."""
        self._target += url

    def on_header(self, name: bytes, value: bytes | None) -> None:
        """Take a header, or a trailer."""
        pairs = self._trailers if self._open else self._headers
        pairs.append((name.decode("latin-1"), (value or b"").decode("latin-1")))

    def on_headers_complete(self) -> None:
        """Pass on the head."""
        self._open = True
        self._kept.clear()
        self._method = self._parser.get_method().decode("latin-1")
        self._version = self._parser.get_http_version()
        self._left = int(http_frames.header(self._headers, "content-length") or 0)  # the parser takes nothing but digits
        watch, target = self._watch, self._target.decode("latin-1")
        if watch.guard is not None:
            watch.refused = watch.guard.refusal(self._headers, target)
        if watch.refused is not None:
            self._open = False
            return
        watch.asked.append(self._method)
        target, headers = watch.rewrite(target, self._headers)
        self._out.append(http_frames.head(f"{self._method} {target} HTTP/{self._version}", headers))

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body for the log."""
        self._size += len(body)
        if self._size > MAX_SENT:
            self._body.clear()
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """Log the request."""
        self._complete = True
        self.log()
        self._open = False
        self._left = 0
        self._kept.clear()

    def log(self) -> None:
        """Log the received part of the request. A second call does nothing."""
        if not self._open or self._logged:
            return
        self._logged = True
        body, size = b"".join(self._body), self._size
        self._body = []
        watch, method, version, headers, trailers = self._watch, self._method, self._version, self._headers, self._trailers
        path = self._target.decode("latin-1")
        encoding = http_frames.header(headers, "content-encoding")
        kept = [body]  # let go when the frame is made: a long one would be in memory twice

        def payload() -> dict[str, Any]:
            body = kept.pop()
            fields = (method, path, watch.headers(headers))
            more = watch.headers(trailers)
            if size > MAX_SENT or decodes_to_more(body, encoding, watch.limit):
                bare = http_frames.request_payload(*fields, b"", version, trailers=more)
                last = {"version": bare.pop("version")} if "version" in bare else {}
                return {**bare, **watch.left_out(size, encoding), **last}
            request = http_frames.request_payload(*fields, body, version, watch.redact, more)
            return watch.looked_into(request, encoding)

        long = takes_long(body, encoding)
        watch.emit("client", "request", payload, size=len(body), long=long, truncated=not self._complete)

    def broken_off(self) -> None:
        """Log an incomplete request, because the connection has ended."""
        self.log()
        self._open = False
