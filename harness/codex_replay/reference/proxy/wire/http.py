"""A small HTTP/1.1 server.

The server reads requests with bodies, and sends answers complete or in chunks. The library httptools parses the requests,
and asyncio does the I/O. Each request has one task, which is cancelled when the client disconnects. A request that arrives
before the previous answer is complete waits. For an HTTP/1.0 client, the end of a streamed answer is the end of the
connection.
"""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import httptools

MAX_BODY = 64 << 20
REASONS = {200: "OK", 204: "No Content", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 405: "Method Not Allowed"}
REASONS |= {413: "Content Too Large", 429: "Too Many Requests", 500: "Internal Server Error", 502: "Bad Gateway"}
REASONS |= {503: "Service Unavailable", 504: "Gateway Timeout"}

Headers = dict[str, str]


class Disconnected(Exception):
    """The client has closed the connection."""


class Request:
    """An HTTP request: method, path, headers (names in lower case), body."""

    def __init__(self) -> None:
        self.method = ""
        self.path = ""
        self.headers: Headers = {}
        self.body = b""
        self.keep_alive = True
        self.chunked = True
        self.fault = 0


class Answer:
    """Write the answer to one HTTP request.

    Call `send` for a complete answer; for a stream, call `start`, then `write` for each chunk, then `end`.
    """

    def __init__(self, connection: Connection, request: Request) -> None:
        self._connection, self._request = connection, request
        self.request_id = _request_id(request)
        self.started = False

    async def send(self, status: int, body: bytes, headers: Headers | None = None) -> None:
        """Send an answer with a JSON body, or without a body (204)."""
        about = {} if status == 204 else {"content-type": "application/json", "content-length": str(len(body))}
        self._head(status, {**about, **(headers or {})})
        await self._connection.write(b"" if self._request.method == "HEAD" else body)

    async def start(self, headers: Headers) -> None:
        """Begin a stream with status 200."""
        if self._request.chunked:
            headers = {**headers, "transfer-encoding": "chunked"}
        else:
            self._request.keep_alive = False
        self._head(200, headers)
        await self._connection.write(b"")

    async def write(self, data: bytes) -> None:
        """Send a chunk of a streamed answer.

        If the client reads slowly, wait for it. Raises `Disconnected` if the client has disconnected.
        """
        if data:
            await self._connection.write(b"%x\r\n%s\r\n" % (len(data), data) if self._request.chunked else data)

    async def end(self) -> None:
        """End the stream properly."""
        if self._request.chunked:
            await self._connection.write(b"0\r\n\r\n")

    def _head(self, status: int, headers: Headers) -> None:
        self.started = True
        lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}", f"x-request-id: {self.request_id}"]
        if "origin" in self._request.headers:  # a page of another origin may read every answer: the bearer is its own (HAND-04)
            lines.append("access-control-allow-origin: *")
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines.append(f"connection: {'keep-alive' if self._request.keep_alive else 'close'}")
        self._connection.buffer("\r\n".join([*lines, "", ""]).encode("latin-1"))


Handler = Callable[[Request, Answer], Awaitable[None]]


class Connection(asyncio.Protocol):
    """One connection of a client."""

    def __init__(self, handler: Handler, connections: set[Connection]) -> None:
        self._handler, self._connections = handler, connections
        self._transport: Any = None
        self._parser = httptools.HttpRequestParser(self)
        self._request = Request()
        self._waiting: deque[Request] = deque()
        self._task: asyncio.Task[None] | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._gone = False

    # -- asyncio's side --------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Record that a client has connected."""
        self._transport = transport
        self._connections.add(self)

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fault(400)
        except httptools.HttpParserError:
            self._fault(400)

    def eof_received(self) -> bool:
        """Record that the client has closed its side of the connection and will not read the answer."""
        self.abandon()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """Record that the client has disconnected."""
        self._connections.discard(self)
        self.abandon()

    def pause_writing(self) -> None:
        """Record that the client reads slowly, so that writers must wait."""
        self._may_write.clear()

    def resume_writing(self) -> None:
        """Record that the client has read enough, so that writers may continue."""
        self._may_write.set()

    # -- httptools' side -------------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """A request begins."""
        self._request = Request()
        self._url = b""

    def on_url(self, url: bytes) -> None:
        """Take a part of the request's target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self._request.headers[name.decode("latin-1").lower()] = value.decode("latin-1").strip()

    def on_headers_complete(self) -> None:
        """Record that all headers are complete."""
        self._request.method = self._parser.get_method().decode("latin-1")
        self._request.path = _path(self._url)
        self._request.chunked = self._parser.get_http_version() == "1.1"
        self._request.keep_alive = self._parser.should_keep_alive()
        self._body: list[bytes] = []
        self._size = 0
        if self._request.headers.get("expect", "").lower() == "100-continue":
            self.buffer(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """Take a part of the request's body."""
        self._size += len(body)
        if self._size <= MAX_BODY:
            self._body.append(body)
        else:
            self._request.fault = 413

    def on_message_complete(self) -> None:
        """Record that the request is complete."""
        self._request.body = b"".join(self._body)
        self._waiting.append(self._request)
        self._next()

    # -- ours ------------------------------------------------------------------------------------------------------------

    def buffer(self, data: bytes) -> None:
        """Send without waiting."""
        if not self._gone:
            self._transport.write(data)

    async def write(self, data: bytes) -> None:
        """Send data, and wait until the client has read enough of the data.

        Raises `Disconnected` if the client has disconnected.
        """
        self.buffer(data)
        await self._may_write.wait()
        if self._gone:
            raise Disconnected

    def abandon(self) -> None:
        """Cancel the tasks of a client that has disconnected."""
        self._gone = True
        self._may_write.set()
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
        if self._transport is not None:
            self._transport.close()

    async def finished(self) -> None:
        """Wait until all running requests have ended."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    def _fault(self, status: int) -> None:
        request = Request()
        request.fault, request.keep_alive = status, False
        self._waiting.append(request)
        self._next()

    def _next(self) -> None:
        if self._task is None and self._waiting and not self._gone:
            self._task = asyncio.create_task(self._serve(self._waiting.popleft()))

    async def _serve(self, request: Request) -> None:
        answer = Answer(self, request)
        try:
            await self._handler(request, answer)
        except Disconnected:
            pass
        except asyncio.CancelledError:
            request.keep_alive = False
            raise
        except Exception:  # an error in one request closes its connection; the proxy must keep running for the other clients
            traceback.print_exc(file=sys.stderr)
            request.keep_alive = False
        finally:
            self._task = None
            if request.keep_alive:
                self._next()
            elif self._transport is not None:
                self._transport.close()


def _path(target: bytes) -> str:
    """Return the path in the target of a request. The target is a path or a whole URL; any other target is invalid."""
    try:
        found = httptools.parse_url(target).path or b""
    except httptools.HttpParserInvalidURLError:
        found = target
    return found.decode("latin-1")


def _request_id(request: Request) -> str:
    """Return the request id that the client sent, if it is valid in a header; otherwise return a new id."""
    given = request.headers.get("x-request-id", "")
    return given if 0 < len(given) <= 128 and given.isascii() and given.isprintable() else "req_" + os.urandom(12).hex()
