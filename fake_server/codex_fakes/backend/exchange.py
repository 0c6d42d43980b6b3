"""One HTTP request to the backend and its answer.

The code here decides each byte of the answer: the order and case of headers, and the boundaries of chunks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from codex_fakes.backend.loop.waiting import sleep
from codex_replay.protocol.responses.steps import event_bytes

if TYPE_CHECKING:
    from codex_replay.core.wire.websocket import Encoder

Headers = list[tuple[str, str]]
T = TypeVar("T")


def frame(pieces: Iterable[bytes]) -> bytes:
    """Write pieces of a body as HTTP chunks."""
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece)


def chunks(events: Iterable[Mapping[str, Any]]) -> bytes:
    """Write the events of a stream as HTTP chunks."""
    return frame(event_bytes(event) for event in events)


#: Frames all events of an answer; the result depends on nothing but the events.
Framing = Callable[[Iterable[Mapping[str, Any]]], bytes]


class Framed(Protocol):
    """The interface of a whole answer that a `Framing` has framed, in pieces."""

    def chunks(self, head: bytes = b"", tail: bytes = b"") -> Iterator[bytes]:
        """Yield the pieces (at least one), with `head` before the first piece and `tail` after the last piece."""


class Disconnected(Exception):
    """The client has disconnected while its answer was delayed."""


class Request:
    """One HTTP request to the backend.

    `headers` have their original order and case. `body` has the bytes as they were sent (compressed).
    """

    __slots__ = (
        *("_by_name", "body", "conn", "head_size", "headers", "keep_alive", "method", "target", "upgrade", "value", "version"),
    )

    def __init__(self, conn: int) -> None:
        self.conn = conn
        self.method = ""
        self.target = ""
        self.version = "1.1"
        self.headers: Headers = []
        self.head_size = 0  # bytes, about
        self.body = b""
        self.value: Any = None  # the decoded body, if it is already known
        self._by_name: dict[str, str] | None = None
        self.keep_alive = True
        self.upgrade = False

    def header(self, name: str) -> str | None:
        """Return the value of the first header with a name (in any case), or None. Trailers are not searched."""
        if self._by_name is None:
            self._by_name = {key.lower(): value for key, value in reversed(self.headers)}
        return self._by_name.get(name.lower())

    def forget(self) -> None:
        """Drop the data of a request that only the answer needed.

        The ledger keeps the method, the headers and the body of the request.
        """
        self.body, self.value, self._by_name = b"", None, None


class Wire(Protocol):
    """The interface of the connection that carries an answer."""

    def write(self, data: bytes) -> None:
        """Send bytes to the client. If the client has disconnected, do nothing."""

    async def turn(self) -> None:
        """Let the other connections send, and wait until this connection may send again."""

    async def drain(self) -> None:
        """Wait until the client has read most of the bytes that were written.

        After many bytes, also wait until the other connections have sent something.
        """

    def unsent(self) -> int:
        """Return the number of written bytes that the operating system has not taken yet."""

    def close(self) -> None:
        """Close the connection when the pending bytes are written."""

    def linger(self) -> None:
        """Close the connection like `close`, but first drop for a while what the client still sends."""

    def reset(self) -> None:
        """Close the connection with RST, and drop the pending bytes."""

    def take(self, size: int) -> bool:
        """Count bytes that an answer keeps in memory; return False if all answers together keep too many."""

    def give_back(self, size: int) -> None:
        """Subtract bytes that are no longer kept from the count of `take`."""

    def upgraded(self, reader: Callable[[bytes], None] | None) -> None:
        """Pass all further bytes of the client to the function `reader`. With None, drop them."""

    def reading(self, wanted: bool) -> None:
        """Start or stop reading from the client."""

    async def wait_for(self, waiting: Awaitable[T]) -> T:
        """Wait for an awaitable on behalf of an answer. Raises `Disconnected` if the client disconnects meanwhile."""


class Exchange:
    """One HTTP request to the backend and its answer.

    Every method writes without waiting; `drain` waits while the client reads slowly.
    """

    def __init__(self, connection: Wire, request: Request) -> None:
        self.connection = connection
        self.request = request
        self.size = len(request.body)  # as it was sent: the ledger lets the body go when the answer has ended
        self.chunked = False
        self.keep_alive = request.keep_alive
        self.begun = False
        self.ended = False

    @property
    def framing(self) -> Framing | None:
        """The framing that the client gets for a complete stream; None if the framing does not depend on the events alone."""
        return chunks if self.request.version == "1.1" else None

    def respond(self, status: int, headers: Headers, body: bytes) -> None:
        """Send a whole answer to the client. The header `content-length` is added after the given headers."""
        with_body = status not in (204, 304)
        length = [("content-length", str(len(body)))] if with_body else []
        head = self._head(status, [*headers, *length])
        self.connection.write(head + body if with_body and self.request.method != "HEAD" else head)
        self.end()

    async def stream_framed(self, status: int, headers: Headers, framed: Framed) -> None:
        """Send a whole answer that `framing` has framed. A short answer is sent in one write."""
        head = self._head(status, [*headers, ("transfer-encoding", "chunked")])
        for i, piece in enumerate(framed.chunks(head, b"0\r\n\r\n")):
            if i:
                await self.drain()
            self.connection.write(piece)
        self.end()
        await self.drain()

    def start(self, status: int, headers: Headers) -> None:
        """Begin a chunked answer, whose length is not known yet.

        For an HTTP/1.0 client, the answer ends at the end of the connection.
        """
        self.chunked = self.request.version == "1.1"
        if self.chunked:
            headers = [*headers, ("transfer-encoding", "chunked")]
        else:
            self.keep_alive = False
        self.connection.write(self._head(status, headers))

    def _head(self, status: int, headers: Headers) -> bytes:
        """Begin an answer. Return the bytes of the answer's status line and headers."""
        if not self.keep_alive and not any(name.lower() == "connection" for name, _ in headers):
            headers = [*headers, ("connection", "close")]
        self.begun = True
        lines = [f"HTTP/1.1 {status} {reason(status)}", *(f"{name}: {value}" for name, value in headers), "", ""]
        return "\r\n".join(lines).encode("latin-1", "replace")

    def write(self, pieces: Iterable[bytes]) -> None:
        """Send parts of the body in one write, each as a separate HTTP chunk."""
        if self.chunked:
            self.connection.write(frame(pieces))
        else:
            self.connection.write(b"".join(pieces))

    def write_bytes(self, data: bytes) -> None:
        """Send bytes without any framing, for faults that break the framing itself."""
        self.begun = True
        self.connection.write(data)

    def end(self) -> None:
        """Write the last chunk of an answer. Close the connection, unless it is kept alive."""
        if self.chunked and not self.ended:
            self.connection.write(b"0\r\n\r\n")
        self.ended = True
        if not self.keep_alive:
            self.connection.close()

    def cut(self) -> None:
        """Close the connection after the pending bytes, in the middle of the answer, as if the server had exited."""
        self.ended = True
        self.connection.close()

    def reset(self) -> None:
        """Reset the connection (RST), so that the client's read fails."""
        self.ended = True
        self.connection.reset()

    def take(self, size: int) -> bool:
        """Count the bytes that the answer keeps in memory until its end.

        Return False if all answers together keep too many bytes.
        """
        self.size += size
        return self.connection.take(size)

    def fail(self, name: str) -> None:
        """Make a mistake that exists only on a WebSocket, because the script demands it.

        Over HTTP, the backend refuses a script with a mistake for a WebSocket before it answers.
        """
        raise NotImplementedError

    async def drain(self) -> None:
        """Wait until the client has read most of the bytes that were written.

        After many bytes, also wait until the other connections have sent something.
        """
        await self.connection.drain()

    async def sent(self) -> None:
        """Wait until the operating system has taken all pending bytes, so that a later reset does not drop them."""
        while self.connection.unsent():
            await self.wait_for(sleep(0.001))

    async def wait_for(self, waiting: Awaitable[T]) -> T:
        """Wait for an awaitable while the answer is open. Raises `Disconnected` if the client disconnects meanwhile."""
        return await self.connection.wait_for(waiting)


class MessageExchange(Exchange):
    """A WebSocket message of a client, and the answer to it. The events of the answer are sent as messages."""

    encoder: Encoder

    def send(self, data: bytes) -> None:
        """Send frames."""
        raise NotImplementedError

    def note(self, event: Any) -> None:
        """Store an event of the response, because the client's next message may continue the response."""
        raise NotImplementedError

    def finish(self) -> None:
        """Close the connection when all sent data, including a close frame, is written."""
        raise NotImplementedError


@cache
def reason(status: int) -> str:
    """Return the reason phrase of an HTTP status."""
    if status == 200:
        return "OK"
    from http import HTTPStatus  # not for most answers: it would slow every start

    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Status"
