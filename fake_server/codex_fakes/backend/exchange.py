"""One request and the answer to it, byte by byte: the order and case of headers and the bounds of chunks are what we write."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from codex_replay.core.wire.websocket import Encoder

Headers = list[tuple[str, str]]
T = TypeVar("T")


def frame(pieces: Iterable[bytes]) -> bytes:
    """Frame pieces as HTTP chunks."""
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece)


class Disconnected(Exception):
    """The client has closed its side while we were holding an answer back."""


class Request:
    """One request: `headers` in their order and case, `body` as sent (not yet decompressed)."""

    __slots__ = ("body", "conn", "head_size", "headers", "keep_alive", "method", "target", "upgrade", "version")

    def __init__(self, conn: int) -> None:
        self.conn = conn
        self.method = ""
        self.target = ""
        self.version = "1.1"
        self.headers: Headers = []
        self.head_size = 0  # bytes, about
        self.body = b""
        self.keep_alive = True
        self.upgrade = False

    def header(self, name: str) -> str | None:
        """Return the first header of this name (in any case), or None."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), None)


class Wire(Protocol):
    """The connection that an answer is written to."""

    writable: asyncio.Event

    def write(self, data: bytes) -> None:
        """Send bytes, unless the client has disconnected."""

    def unsent(self) -> int:
        """Return how many written bytes the system has not taken yet."""

    def close(self) -> None:
        """Close the connection after the pending bytes are written."""

    def reset(self) -> None:
        """Close with RST and drop the pending bytes."""

    def take(self, size: int) -> bool:
        """Count bytes that an answer keeps in memory; return False if all answers together keep too many."""

    def give_back(self, size: int) -> None:
        """Count bytes that are no longer kept."""

    def upgraded(self, reader: Callable[[bytes], None] | None) -> None:
        """Give all further bytes of the client to `reader`; None drops them."""

    def reading(self, wanted: bool) -> None:
        """Read from the client, or read no more for now."""

    async def wait_for(self, waiting: Awaitable[T]) -> T:
        """Wait for something; raises `Disconnected` when the client goes meanwhile."""


class Exchange:
    """One request and the answer to it; every method writes at once, `drain` waits while the client is slow."""

    def __init__(self, connection: Wire, request: Request) -> None:
        self.connection = connection
        self.request = request
        self.size = len(request.body)  # as it was sent: the ledger lets the body go when the answer has ended
        self.chunked = False
        self.keep_alive = request.keep_alive
        self.begun = False
        self.ended = False

    def respond(self, status: int, headers: Headers, body: bytes) -> None:
        """Send a whole answer; `content-length` is added after the given headers."""
        with_body = status not in (204, 304)
        length = [("content-length", str(len(body)))] if with_body else []
        self._head(status, [*headers, *length], body if with_body and self.request.method != "HEAD" else b"")
        self.end()

    async def stream_framed(self, status: int, headers: Headers, framed: Iterator[bytes]) -> None:
        """Send a whole answer in chunks, which are already framed for an HTTP/1.1 client; a short answer goes in one write."""
        last = next(framed, b"")
        head = True
        for piece in framed:
            if head:
                self._head(status, [*headers, ("transfer-encoding", "chunked")], last)
            else:
                self.connection.write(last)
            head, last = False, piece
            await asyncio.sleep(0)  # a thousand clients of long replies take turns, piece by piece
            await self.drain()
        if head:
            self._head(status, [*headers, ("transfer-encoding", "chunked")], last + b"0\r\n\r\n")
        else:
            self.connection.write(last + b"0\r\n\r\n")
        self.end()
        await self.drain()

    def start(self, status: int, headers: Headers) -> None:
        """Begin an answer of unknown length: chunked, or ended by the close of the connection for an HTTP/1.0 client."""
        self.chunked = self.request.version == "1.1"
        if self.chunked:
            headers = [*headers, ("transfer-encoding", "chunked")]
        else:
            self.keep_alive = False
        self._head(status, headers, b"")

    def _head(self, status: int, headers: Headers, body: bytes) -> None:
        if not self.keep_alive and not any(name.lower() == "connection" for name, _ in headers):
            headers = [*headers, ("connection", "close")]
        self.begun = True
        lines = [f"HTTP/1.1 {status} {reason(status)}", *(f"{name}: {value}" for name, value in headers), "", ""]
        self.connection.write("\r\n".join(lines).encode("latin-1", "replace") + body)

    def write(self, pieces: Iterable[bytes]) -> None:
        """Send parts of the body in one write, each as a separate HTTP chunk."""
        if self.chunked:
            self.connection.write(frame(pieces))
        else:
            self.connection.write(b"".join(pieces))

    def write_bytes(self, data: bytes) -> None:
        """Send bytes past all framing: for faults that break the framing itself."""
        self.begun = True
        self.connection.write(data)

    def end(self) -> None:
        """Write the last chunk; close the connection unless it is kept alive."""
        if self.chunked and not self.ended:
            self.connection.write(b"0\r\n\r\n")
        self.ended = True
        if not self.keep_alive:
            self.connection.close()

    def cut(self) -> None:
        """Close the connection here, after the pending bytes, as if the server had exited."""
        self.ended = True
        self.connection.close()

    def reset(self) -> None:
        """Reset the connection (RST): the client's read fails."""
        self.ended = True
        self.connection.reset()

    def take(self, size: int) -> bool:
        """Count bytes that are kept until the answer has ended; return False if there are too many of all clients."""
        self.size += size
        return self.connection.take(size)

    def fail(self, name: str) -> None:
        """Let a fault happen that only a WebSocket has; over HTTP it is refused before."""
        raise NotImplementedError

    async def drain(self) -> None:
        """Wait until the client has read most of the pending bytes."""
        await self.connection.writable.wait()

    async def sent(self) -> None:
        """Wait until the system has taken all pending bytes, so that a later reset drops none of them on this side."""
        while self.connection.unsent():
            await self.wait_for(asyncio.sleep(0.001))

    async def wait_for(self, waiting: Awaitable[T]) -> T:
        """Wait for something while the answer is open; raises `Disconnected` when the client closes meanwhile."""
        return await self.connection.wait_for(waiting)


class MessageExchange(Exchange):
    """A WebSocket message of a client and the answer to it; what is written as a stream of events leaves as messages."""

    encoder: Encoder

    def send(self, data: bytes) -> None:
        """Send frames."""
        raise NotImplementedError

    def note(self, event: Any) -> None:
        """Remember the response that the client receives: its next message may continue it."""
        raise NotImplementedError

    def finish(self) -> None:
        """Close the connection after what was sent, a close frame included."""
        raise NotImplementedError


def reason(status: int) -> str:
    """Return the reason phrase of a status."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Status"
