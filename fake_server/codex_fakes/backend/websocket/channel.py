"""One WebSocket connection, opened by `GET {base}/responses`. Each `response.create` message is a request.

A message is converted to a full HTTP request, and `WebSocketExchange` converts the answer to messages. HTTP and WebSocket
requests therefore use the same script, the same rules and the same ledger (the list of received requests). A message with
`previous_response_id` (an increment) is combined with the last request of the connection and its answer (see `increments`).
The module is imported at the first upgrade, because importing the WebSocket library takes 30 ms.

Sources: the measured behaviour of Codex 0.169.0 (handshake, prewarm, increments, faults); the documents of the API's WebSocket
mode (the last response of a connection can be continued; a failed response cannot).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any

from codex_fakes.backend.answers import dump, refuse
from codex_fakes.backend.bodies import DECODED
from codex_fakes.backend.complaints import complain, describe
from codex_fakes.backend.exchange import Disconnected, Exchange, Request
from codex_fakes.backend.ledger import Entry
from codex_fakes.backend.loop.tasks import CancelledError, Loop, running_loop
from codex_fakes.backend.loop.waiting import Event, timeout
from codex_fakes.backend.play import play
from codex_fakes.backend.rules.auth import Asked
from codex_fakes.backend.rules.table import Violation, check
from codex_fakes.backend.sessions import Session
from codex_fakes.backend.websocket.exchange import NO_STEERING, WebSocketExchange
from codex_replay.core.replay.increments import OWN, Increments, comparable, items
from codex_replay.core.wire.client_json import read
from codex_replay.core.wire.json_text import NotJson
from codex_replay.core.wire.websocket import Decoder, Encoder, Message, Steps
from codex_replay.protocol.script.script import Turn

Answer = Callable[[Exchange, Session, Entry, str, str], Awaitable[None]]
#: Messages of one connection that may wait for their answer before reading is paused.
MOST_WAITING = 16
#: Bytes of messages that are decoded in one round of the loop, and that may wait for their answer before no more are decoded.
BURST, MOST_BYTES = 1 << 20, 16 << 20
FULL = "The messages of all clients together are too long at the moment: retry later."
#: The method of a message in the ledger.
METHOD = "WEBSOCKET"


#: The first bytes of a message of Codex.
_BEGIN = b'{"type":"response.create",'


def _is_full(data: bytes, value: Mapping[str, Any]) -> bool:
    """Return True if the bytes of a message are a full request, apart from the key `type`, which comes first."""
    return data.startswith(_BEGIN) and "stream" in value and [key for key in OWN if key in value] == ["type"]


@cache
def _steps(loop: Loop) -> Steps:
    """Return the queue of the connections of a process that have more to decode."""
    return Steps(loop.call_soon)


class Channel:
    """One WebSocket connection, which answers messages in order, and pings at any time."""

    def __init__(self, exchange: Exchange, session: Session, path: str, answer: Answer, deflate: Any) -> None:
        self._exchange = exchange
        self._session = session
        self._path = path
        self._answer = answer
        limits = session.limits
        self._idle = limits.idle
        self._decoder = Decoder(True, deflate, limits.body, burst=BURST)
        self.encoder = Encoder(False, deflate)
        self._waiting: deque[Message] = deque()
        self._answered = 0  # bytes of the message that is being answered
        self._partial = 0  # bytes of incomplete messages
        self._queued = False  # True if the decoding of more messages waits for its turn (`_steps`)
        self._came = Event()
        self.increments = Increments()
        self._head = (b"", b"")  # the first part of the last message, and the same without its `type`
        self._kept = 0  # bytes of the request that can be continued
        self.continues = False  # True if the request is kept, so that its answer can be continued
        self.over = False

    def send(self, data: bytes) -> None:
        """Send WebSocket frames to the client. If the connection has ended, do nothing."""
        if not self.over:
            self._exchange.write_bytes(data)

    def close(self, code: int, why: str = "") -> None:
        """Send a close frame and close the connection."""
        self.send(self.encoder.close(code, why.encode()))
        self.over = True
        self._exchange.connection.linger()

    def _feed(self, data: bytes) -> None:
        """Take bytes from the client of the WebSocket. Answer pings immediately, and queue messages."""
        for message in self._decoder.feed(data):
            if message.kind == "ping":
                self.send(self.encoder.message("pong", message.data))
            elif message.kind != "pong":
                if not self._exchange.take(len(message.data)):
                    self.close(1013, FULL)
                    break
                self._waiting.append(message)
            self._came.set()
            if message.kind == "close" and self._answered:  # not after the answer (RFC 6455, 5.5.1)
                self._goodbye(message)
            if message.kind in ("close", "lost"):  # no frame after a close frame counts, not even a ping (RFC 6455, 5.5.1)
                self._stop_reading()
                return
        if (why := self._decoder.lost) and not self.over:  # its end may never come
            self._waiting.append(Message("lost", why=why))
            self._came.set()
            self._stop_reading()
            return
        if self._decoder.broken is not None and not self.over:
            code = 1007 if "UTF-8" in self._decoder.broken else 1002
            self.close(code, self._decoder.broken)
        self._pace()
        if self.over:
            self._came.set()

    def _stop_reading(self) -> None:
        self._exchange.connection.upgraded(None)
        self._decoder.close()

    def _pace(self) -> None:
        """Read and decode more if few messages wait for their answer."""
        size = self._decoder.size
        if not self._exchange.take(size - self._partial) and size > self._partial and not self.over:
            self.close(1013, FULL)
        self._partial = size
        self._exchange.connection.reading(len(self._waiting) < MOST_WAITING and not self._decoder.held)
        if not self._queued and self._wants_step():
            self._queued = True
            _steps(running_loop()).add(self._step)

    def _wants_step(self) -> bool:
        """Return True if decoded messages remain in the decoder, and few bytes wait for their answer."""
        size = self._answered + sum(len(message.data) for message in self._waiting)
        return self._decoder.held and not self.over and size < MOST_BYTES

    def _step(self) -> bool:
        """Decode one piece of a burst. Return True if there is more to decode now."""
        if self._wants_step():
            self._feed(b"")
        self._queued = self._wants_step()
        return self._queued

    async def run(self) -> None:
        """Answer messages until one side ends the connection."""
        connection = self._exchange.connection
        connection.upgraded(self._feed)
        while not self.over:
            if not self._waiting:
                await self._next()
                continue
            message = self._waiting.popleft()
            self._answered = len(message.data)
            self._pace()
            await self._one(message)
            self._exchange.connection.give_back(self._answered)
            self._exchange.size -= self._answered
            self._answered = 0
            del message
            self._pace()

    def release(self) -> None:
        """Drop the references to the connection, so that its memory is freed immediately.

        Compression takes much memory, and the garbage collector runs rarely.
        """
        self.over = True
        self._stop_reading()
        self.encoder.deflate = None
        self._waiting.clear()

    async def _next(self) -> None:
        """Wait for the next message of the client. Close the connection if it is idle for too long."""
        self._came.clear()
        try:
            async with timeout(self._idle):
                await self._exchange.wait_for(self._came.wait())
        except TimeoutError:
            self.close(1000, "idle")

    async def _one(self, message: Message) -> None:
        if message.kind == "close":
            self._goodbye(message)
        elif message.kind == "lost":
            self.close(1009 if "too long" in message.why else 1007, message.why)
        elif message.kind != "text":
            self.close(1003, "Send requests as text messages.")
        else:
            await self._request(message.data)

    def _goodbye(self, message: Message) -> None:
        """Answer a close frame of the client, and end the connection."""
        self.send(self.encoder.close(message.code))
        self.over = True
        self._exchange.connection.close()

    async def _request(self, data: bytes) -> None:
        """Convert one message of the client to an HTTP request, and answer it."""
        request = Request(self._exchange.request.conn)
        shown = self._exchange.request
        request.method, request.target, request.version = METHOD, shown.target, "websocket"
        request.headers, request.head_size, request.body = shown.headers, shown.head_size, data
        exchange = WebSocketExchange(self, self._exchange.connection, request)
        session = self._session
        entry = session.enter(request)
        entry.body = data
        try:
            await self._judge(exchange, entry, data)
            entry.close("end")
        except (CancelledError, Disconnected):
            entry.close("gone")
            raise
        except Exception as error:
            entry.answer, entry.sentence = "broken", f"The backend itself failed: {describe(error)}."
            entry.close("reset")
            complain(
                f"The backend failed to answer a message: {describe(error)}. This is a bug of codex-replay: please report it."
            )
            self.close(1011, "The backend itself failed.")

    async def _judge(self, exchange: WebSocketExchange, entry: Entry, data: bytes) -> None:
        try:
            found, parts, new = self._session.reader.read(data)
            if len(data) <= DECODED:
                value = found or read(data)
            else:  # each pass over a long text takes long: other clients get answers between two passes
                from codex_fakes.backend.loop.threads import in_thread

                value = await in_thread(read, data)
        except NotJson as error:
            refuse(exchange, entry, Violation("json", 400, "invalid_json", f"The message is not JSON: {error}."))
            return
        if isinstance(value, dict) and value.get("type") == "response.steer":
            exchange.refuse_steer(value)
            entry.answer, entry.status, entry.sentence = "rule", 400, f"steering: {NO_STEERING}"
            return
        if not isinstance(value, dict) or value.get("type") != "response.create":
            text = 'A message must be an object with "type": "response.create".'
            refuse(exchange, entry, Violation("message-type", 400, "invalid_value", text, "type"))
            return
        await self._create(exchange, entry, value, parts, new)

    def _without_type(self, head: bytes) -> bytes:
        """Return the first part of a message without its `type`.

        For equal parts, return the same object, so that ledger entries share it.
        """
        if head is not self._head[0]:
            self._head = (head, b"{" + head[len(_BEGIN) :])
        return self._head[1]

    async def _create(
        self, exchange: WebSocketExchange, entry: Entry, value: dict[str, Any], parts: tuple[bytes, ...], new: int
    ) -> None:
        session = self._session
        previous = value.get("previous_response_id")
        entry.websocket = {"generate": value.get("generate") is not False, "previous_response_id": previous}
        body = self.increments.full(value)
        if not _is_full(data := entry.body or b"", value):
            entry.body = dump(body)
        else:
            entry.body = b"{" + data[len(_BEGIN) :]
            if parts:
                entry.parts, entry.unshared = (self._without_type(parts[0]), *parts[1:]), new
        if previous is None:
            exchange.request.value = body  # it is within the bounds of a message
        if (violation := self._unfit(body, len(entry.body))) is not None and session.replay is None:
            self._begin(None, 0)
            refuse(exchange, entry, violation)
            return
        if previous is not None:
            entry.websocket["sent_items"] = len(items(value))
        self._begin(body, len(entry.body))
        if session.replay is not None and await self._replayed(exchange, entry, body, value):
            return
        if violation is not None:
            self._begin(None, 0)
            refuse(exchange, entry, violation)
        elif value.get("generate") is False:
            await self._prewarm(exchange, entry, body)
        else:
            await self._answer(exchange, session, entry, self._path, "")

    async def _replayed(self, exchange: WebSocketExchange, entry: Entry, body: dict[str, Any], value: dict[str, Any]) -> bool:
        """Answer a message of the client from the recordings.

        Return False if the script must answer the message, or if it is a prewarm.
        """
        replay, session = self._session.replay, self._session
        assert replay is not None
        off = session.rules_off
        unanswered = await replay.answer_message(exchange, entry, session.tokens, off, self._path, comparable(body, value))
        if unanswered is None:
            return True
        if value.get("generate") is False and not replay.upgrades:
            return False  # a recording of HTTP has none
        if session.script is not None and unanswered.rule == "miss":
            entry.missed = unanswered.message
            return False
        self._begin(None, 0)
        refuse(exchange, entry, unanswered)
        if unanswered.rule == "miss":
            entry.answer, entry.sentence = "miss", unanswered.message
        return True

    def _unfit(self, body: Mapping[str, Any], size: int) -> Violation | None:
        """Check a full request for errors that only a WebSocket message can have. Return the error, or None if there is none."""
        if size > self._session.limits.body:
            text = f"The full request of this increment is longer than {self._session.limits.body} bytes."
            return Violation("body-size", 413, "body_too_large", text)
        previous = body.get("previous_response_id")
        if previous is None or (isinstance(previous, str) and self._session.responses.get(previous) is not None):
            return None  # in full, or stored, as over HTTP
        sentence = f"Previous response with id '{previous}' not found."
        return Violation("previous-response", 400, "previous_response_not_found", sentence, "previous_response_id")

    def _begin(self, body: Mapping[str, Any] | None, size: int) -> None:
        """Keep a request, so that the client can continue its response.

        If the kept requests of all clients together are too large, the backend answers the request but does not keep it. If
        the backend does not keep a request, no later message can continue its response with `previous_response_id`.
        """
        connection = self._exchange.connection
        connection.give_back(self._kept)
        self._kept = size
        if not connection.take(size):
            connection.give_back(size)
            body, self._kept = None, 0
        self.increments.begin(body)
        self.continues = body is not None

    async def _prewarm(self, exchange: WebSocketExchange, entry: Entry, body: dict[str, Any]) -> None:
        """Answer a request without generation (a prewarm), which uses no turn of the script."""
        session = self._session
        off = session.rules_off
        found = check(Asked(self._path, exchange.request.header, entry.body or b"", session.tokens), off)
        if isinstance(found, Violation):
            refuse(exchange, entry, found)
            return
        entry.answer = "prewarm"
        session.prewarms += 1  # of all connections: the ids of two runs are equal
        turn = session.websocket.prewarm or Turn(usage={"input_tokens": 0, "output_tokens": 0})
        await play(exchange, session, entry, turn, f"p{session.prewarms}", {**body, "stream": True})
