"""One HTTP/1.1 connection and its requests.

The library httptools parses the requests. The code here writes the answers and decides how a connection ends, without a
framework, because tests of clients depend on the exact bytes. The requests of one connection are answered in order, so
clients may use pipelining.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

import httptools

from codex_fakes.backend.complaints import complain, describe
from codex_fakes.backend.exchange import Disconnected, Exchange, Request, reason
from codex_fakes.backend.limits import Traffic
from codex_fakes.backend.loop.sockets import Transport
from codex_fakes.backend.loop.tasks import CancelledError, Task, running_loop
from codex_fakes.backend.loop.waiting import Event
from codex_fakes.backend.turns import STEP
from codex_replay.core.text.numbers import whole_number
from codex_replay.core.wire.json_text import dumps

#: How many pipelined requests may wait before reading is paused.
MAX_WAITING = 64

T = TypeVar("T")


#: After a refusal, what a client still sends is read and dropped for so many seconds and bytes: a connection that is closed with
#: unread bytes is reset, and the client loses the answer.
LINGER, LINGER_BYTES = 5.0, 64 << 20

#: What a header costs besides its bytes, and what a write does.
HEADER, WRITE = 32, 1024

Handler = Callable[[Exchange], Awaitable[None]]
# Otherwise glibc returns free memory to the system when it has more than 128 KB, and asks for it again at the next request. A
# mapped block that is freed raises this limit to twice its size (mallopt(3), M_MMAP_THRESHOLD).
bytes(1 << 20)


class Connection:
    """One client connection.

    The object parses the incoming data, answers the requests in order, and drops all its data when the connection ends.
    """

    def __init__(self, handler: Handler, number: int, traffic: Traffic, transport: Transport) -> None:
        self._handler = handler
        self.number = number
        self._traffic = traffic
        self._limits = traffic.limits
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[Request] = deque()
        self._task: Task[None] | None = None
        self._request: Request | None = None
        self._body: list[bytes] = []
        self._size = 0
        self._kept = 0  # bytes of bodies of this connection that are on their way
        self._in_head = False
        self._clock = running_loop().time
        #: When something last moved here: a whole request came, an answer ended, or the client took what was written.
        self._moved = self._clock()
        self._unsent = 0
        self._eof = False
        self._holding = False
        self._broken: tuple[int, str] | None = None
        self._dropped = 0  # bytes after a refusal
        self._lingers = False  # True if what the client still sends is dropped
        self._transport = transport
        #: What takes the bytes after an upgrade, and those that came before it was there.
        self._reader: Callable[[bytes], None] | None = None
        self._wanted = True  # whether the reader wants more bytes
        self._early = b""
        self._writable = Event()
        self._writable.set()
        self._made = 0  # bytes that were written since the last turn

        traffic.connections.add(self)

    # the transport's side

    def connection_lost(self) -> None:
        """Abort the answer in progress."""
        self._eof = True
        self._traffic.connections.discard(self)
        self._release(self._kept)
        self._writable.set()
        if self._task is not None:
            self._task.cancel()
        # The parser knows this object too: together they would wait for the garbage collector, with all that they hold.
        del self._parser

    def eof_received(self) -> bool:
        """The client has closed its side of the connection.

        Answer the parsed requests immediately, because the client may disconnect.
        """
        self._eof = True
        if self._holding and self._task is not None:
            self._task.cancel()
        return self._task is not None

    def data_received(self, data: bytes | memoryview) -> None:
        """Parse the data that a client has sent.

        A message that is not HTTP is answered with 400, after the answers to the messages before it.
        """
        if self._broken is not None:
            self._dropped += len(data) if self._broken[0] or self._lingers else 0
            if self._dropped > LINGER_BYTES:
                self._transport.abort()
            if not self._lingers:
                self._after_upgrade(data)
            return
        self._moved = self._moved if self._request is not None else self._clock()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._broken = (0, "")  # what follows an upgrade request is not HTTP: answer it and close, or go on
            self._after_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            self._refuse(400, f"This is not an HTTP/1.1 request: {error}.")
        if self._in_head and self._broken is None:  # the parser keeps a header until it is whole, however long it is
            self._size += len(data)
            if self._size > self._limits.headers + self._limits.target:
                self._refuse(431, f"The headers are longer than {self._limits.headers} bytes.")
        if len(self._waiting) > MAX_WAITING:
            self._transport.pause_reading()

    def pause_writing(self) -> None:
        """Record that the client reads slowly.

        After an upgrade to a WebSocket, the frames of a slow client must wait, because each may need an answer (a pong).
        """
        self._writable.clear()
        self._read_upgraded()

    def resume_writing(self) -> None:
        """Record that the client has read enough, so that writing may continue."""
        self._writable.set()
        self._read_upgraded()

    def _after_upgrade(self, data: bytes | memoryview) -> None:
        if self._reader is not None:
            self._moved = self._clock()
            self._reader(bytes(data))
        elif self._broken == (0, "") and data:
            self._early += data
            if len(self._early) > self._limits.headers:  # a client may not send before the answer
                self._transport.pause_reading()

    def upgraded(self, reader: Callable[[bytes], None] | None) -> None:
        """Pass all further bytes of the client to the function `reader`. With None, drop them."""
        self._reader = reader
        if reader is None:
            return
        early, self._early = self._early, b""
        self.reading(True)
        if early:
            reader(early)

    def reading(self, wanted: bool) -> None:
        """Start or stop reading from the client of an upgraded connection.

        While the client reads slowly, nothing is read from it.
        """
        self._wanted = wanted
        self._read_upgraded()

    def _read_upgraded(self) -> None:
        if self._reader is not None and not self._transport.is_closing():
            reads = self._wanted and self._writable.is_set()
            (self._transport.resume_reading if reads else self._transport.pause_reading)()

    def give_back(self, size: int) -> None:
        """Subtract bytes that are no longer kept from the count of `take`."""
        self._release(size)

    # the parser's side

    def on_message_begin(self) -> None:
        """Start a request."""
        self._request = Request(self.number)
        self._body = []
        self._size = 0
        self._in_head = True

    def on_url(self, url: bytes) -> None:
        """Collect the target of a request; the parser may report it in several parts."""
        if self._request is not None:
            self._request.target += url.decode("latin-1")
            if len(self._request.target) > self._limits.target:
                self._refuse(414, f"The target is longer than {self._limits.target} bytes.")

    def on_header(self, name: bytes, value: bytes | None) -> None:
        """Store a header unchanged."""
        if self._request is not None:
            self._size += len(name) + len(value or b"") + HEADER
            if self._size > self._limits.headers:
                self._refuse(431, f"The headers are longer than {self._limits.headers} bytes.")
            self._request.headers.append((name.decode("latin-1"), (value or b"").decode("latin-1")))

    def on_headers_complete(self) -> None:
        """Store the method of a request. If the client waits for permission to send its body, answer 100 Continue."""
        request = self._request
        if request is None:
            return
        request.head_size = self._size + len(request.target)
        self._size = 0
        self._in_head = False
        request.method = self._parser.get_method().decode("latin-1")
        request.version = self._parser.get_http_version()
        request.keep_alive = self._parser.should_keep_alive()
        request.upgrade = request.header("upgrade") is not None
        if (whole_number(request.header("content-length") or "") or 0) > self._limits.body:
            self._refuse_body()
        elif (request.header("expect") or "").lower() == "100-continue":
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """Collect the body."""
        self._size += len(body)
        if self._size > self._limits.body:
            self._refuse_body()
        elif self._traffic.buffered > self._limits.buffered:
            self._refuse(503, "The request bodies of all clients together are too long at the moment: retry later.")
        elif self._broken is None:
            self._body.append(body)
            self._kept += len(body)
            self._traffic.buffered += len(body)

    def on_message_complete(self) -> None:
        """Queue a complete request. One task per connection answers the requests in order."""
        request, self._request = self._request, None
        if request is None or (self._broken is not None and self._broken[0]):
            return
        request.body = b"".join(self._body)
        self._body = []
        if request.upgrade:
            request.keep_alive = False
        self._waiting.append(request)
        if self._task is None:
            self._task = Task(self._answer())

    # the answers' side

    async def _answer(self) -> None:
        exchange = None
        try:
            while self._waiting and not self._transport.is_closing():
                exchange = Exchange(self, self._waiting.popleft())
                if len(self._waiting) == MAX_WAITING // 2:
                    self._transport.resume_reading()
                await self._traffic.turns.begin()
                self._made = 0
                await self._handler(exchange)
                self._release(exchange.size)
                self._moved = self._clock()
        except (CancelledError, Disconnected):
            self._transport.close()
        except Exception as error:
            self._failed(exchange, error)
        finally:
            self._task = None
        if self._broken is not None and self._broken[0]:
            self._send_refusal()
        elif self._eof:
            self._transport.close()

    def _failed(self, exchange: Exchange | None, error: Exception) -> None:
        """Report an internal error of the backend: write a line to stderr, and answer with 500.

        If an answer has already started, cut it off.
        """
        what = f"{exchange.request.method} {exchange.request.target}" if exchange is not None else "a request"
        complain(f"The backend failed to answer {what}: {describe(error)}. This is a bug of codex-replay: please report it.")
        if exchange is None or exchange.begun:
            self._transport.abort()
            return
        problem = {
            "message": f"The backend itself failed: {type(error).__name__}. Its stderr has the details.",
            "type": "server_error",
        }
        exchange.keep_alive = False
        exchange.respond(500, [("content-type", "application/json")], dumps({"error": problem}))

    def take(self, size: int) -> bool:
        """Count the bytes that an answer keeps in memory. Return False if all answers together keep too many bytes."""
        self._kept += size
        self._traffic.buffered += size
        return self._traffic.buffered <= self._limits.buffered

    def _release(self, size: int) -> None:
        self._kept -= size
        self._traffic.buffered -= size

    def sweep(self, now: float) -> None:
        """Close the connection if it was idle for too long.

        A connection whose answer waits for a delay or a gate of the script is not idle.
        """
        if self._transport.is_closing():
            return
        unsent = self.unsent()
        if unsent != self._unsent:
            self._unsent, self._moved = unsent, now
        if now - self._moved < self._limits.idle:
            return
        if unsent:
            self._transport.abort()
        elif self._task is not None:
            self._moved = now
        elif self._request is not None and self._broken is None:
            self._refuse(408, f"The request was not complete after {self._limits.idle:g} s.")
        else:
            self._transport.close()

    def _refuse_body(self) -> None:
        self._refuse(413, f"The body is longer than {self._limits.body} bytes: start the backend with a larger --max-body.")

    def _refuse(self, status: int, sentence: str) -> None:
        if self._broken is not None and self._broken[0]:
            return
        self._broken = (status, sentence)
        self._release(sum(map(len, self._body)))
        self._body = []
        if self._task is None:
            self._send_refusal()

    def _send_refusal(self) -> None:
        status, sentence = self._broken or (400, "")
        body = sentence.encode()
        lines = [f"HTTP/1.1 {status} {reason(status)}", "content-type: text/plain", f"content-length: {len(body)}"]
        self.write("\r\n".join([*lines, "connection: close", "", ""]).encode() + body)
        self.linger()

    def linger(self) -> None:
        """End the answers of this connection. Read and drop what the client still sends, so that the client can read them."""
        if not self._transport.is_closing():
            self._lingers = True
            self._transport.write_eof()
            self._transport.resume_reading()
            running_loop().call_later(LINGER, self._transport.close)

    async def wait_for(self, waiting: Awaitable[T]) -> T:
        """Wait for an awaitable on behalf of an answer.

        If the client disconnects meanwhile, the wait is cancelled and the answer is aborted.
        """
        if self._eof:
            if isinstance(waiting, Coroutine):
                waiting.close()  # else Python complains that nobody awaited it
            raise Disconnected
        self._holding = True
        try:
            return await waiting
        finally:
            self._holding = False

    async def turn(self) -> None:
        """Let the other connections send, and wait until this connection may send again."""
        self._made = 0
        await self._traffic.turns.go_on()

    async def drain(self) -> None:
        """Wait until the client has read most of the bytes that were written.

        After many bytes, also wait until the other connections have sent something.
        """
        await self._writable.wait()
        if self._made >= STEP:
            await self.turn()

    def write(self, data: bytes) -> None:
        """Send bytes to the client. If the client has disconnected, do nothing."""
        self._made += len(data) + WRITE
        if data and not self._transport.is_closing():
            self._transport.write(data)

    def unsent(self) -> int:
        """Return the number of written bytes that the operating system has not taken yet."""
        return 0 if self._transport.is_closing() else self._transport.get_write_buffer_size()

    def close(self) -> None:
        """Close the connection when the pending bytes are written."""
        self._transport.close()

    def reset(self) -> None:
        """Close the connection with RST, and drop the pending bytes."""
        self._transport.reset()
