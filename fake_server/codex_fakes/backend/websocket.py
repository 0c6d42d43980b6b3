"""The WebSocket of the Responses backend: `GET {base}/responses`, upgraded; a `response.create` message is a request.

Strategy: a message becomes the full HTTP request that it stands for, and `WebSocketExchange` turns the answer to that request
into messages, so that one script, one set of rules and one ledger serve both transports. An increment (`previous_response_id`)
is put together with what this connection last asked and was told (`increments`). Imported at the first upgrade: its library
takes 30 ms.

Sources: the measured behaviour of Codex 0.169.0 (handshake, prewarm, increments, faults); the documents of the API's WebSocket
mode (the last response of a connection can be continued; one that failed cannot).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

from codex_fakes.backend.answers import dump, refuse
from codex_fakes.backend.complaints import complain, describe
from codex_fakes.backend.exchange import Disconnected, Exchange, Headers, MessageExchange, Request, reason
from codex_fakes.backend.handshakes import Handshake
from codex_fakes.backend.ledger import Entry
from codex_fakes.backend.play import play
from codex_fakes.backend.rules.auth import Asked
from codex_fakes.backend.rules.table import AUTH_RULES, Violation, check, first_violation
from codex_fakes.backend.sessions import Session
from codex_fakes.model.faults import STATUSES
from codex_replay.core.replay.increments import Increments, comparable, items
from codex_replay.core.wire.client_json import read
from codex_replay.core.wire.json_text import NotJson
from codex_replay.core.wire.sse import Decoder as EventDecoder
from codex_replay.core.wire.websocket import Decoder, Encoder, Message, accept_key, is_upgrade, offer_accepted
from codex_replay.protocol.script.script import Turn

Answer = Callable[[Exchange, Session, Entry, str, str], Awaitable[None]]
#: Messages of one connection that may wait for their answer before reading is paused.
MOST_WAITING = 16
#: The method of a message in the ledger.
METHOD = "WEBSOCKET"


def refused_handshake(request: Request) -> Violation | None:
    """Return what is wrong with the handshake of RFC 6455, section 4.2.1, or None."""
    wrong = None
    try:
        key = base64.b64decode(request.header("sec-websocket-key") or "", validate=True)
    except binascii.Error:
        key = b""
    if request.method != "GET" or request.version != "1.1" or not is_upgrade(request.headers):
        wrong = "A WebSocket begins with GET, HTTP/1.1 and `upgrade: websocket`."
    elif "upgrade" not in (request.header("connection") or "").lower():
        wrong = "The header `connection` must contain `Upgrade`."
    elif len(key) != 16:
        wrong = "The header `sec-websocket-key` must be 16 bytes in base64."
    elif request.header("sec-websocket-version") != "13":
        wrong = "The header `sec-websocket-version` must be 13."
    return None if wrong is None else Violation("handshake", 400, "invalid_handshake", wrong)


async def serve(
    exchange: Exchange, session: Session, entry: Entry, path: str, answer: Answer, granted: Handshake | None = None
) -> None:
    """Answer a handshake, and then the messages of its connection; `answer` answers the HTTP requests that they stand for.

    `granted` is how a recording grants it, None without one.
    """
    request = exchange.request
    settings = session.websocket
    if (violation := refused_handshake(request)) is not None:
        refuse(exchange, entry, violation)
        return
    if (fault := settings.next_handshake()) is not None:
        _fail_handshake(exchange, entry, fault)
        return
    off = session.script.rules_off if session.script is not None else ()
    if violation := first_violation(Asked(path, request.header, b"", session.tokens), AUTH_RULES, off):
        refuse(exchange, entry, violation)
        return
    compression = settings.compression and (granted is None or granted.compression)
    accepted = offer_accepted(request.headers) if compression else None
    more = [*(granted.headers if granted is not None else ()), *settings.headers]
    headers = [("connection", "Upgrade"), ("upgrade", "websocket")]
    headers.append(("sec-websocket-accept", accept_key(request.header("sec-websocket-key") or "")))
    if accepted is not None:
        headers.append(("sec-websocket-extensions", accepted[0]))
    lines = [f"HTTP/1.1 101 {reason(101)}", *(f"{name}: {value}" for name, value in (*headers, *more)), "", ""]
    exchange.write_bytes("\r\n".join(lines).encode("latin-1", "replace"))
    entry.answer, entry.status = "route", 101
    entry.close("end")  # its messages have entries of their own
    channel = Channel(exchange, session, path, answer, accepted[1] if accepted is not None else None)
    try:
        await channel.run()
    finally:
        channel.release()


def _fail_handshake(exchange: Exchange, entry: Entry, fault: str) -> None:
    entry.answer = "turn"
    if fault == "closed":
        exchange.cut()
        entry.close("cut")
    elif fault == "reset":
        exchange.reset()
        entry.close("reset")
    else:
        status = int(fault.removeprefix("http_"))
        code, message = STATUSES.get(status, ("upgrade_required", "Use HTTP."))
        entry.status = status
        body = dump({"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}})
        exchange.respond(status, [("content-type", "application/json")], body)


class Channel:
    """One upgraded connection: its messages in, in order, and the answers out; pings are answered at any time."""

    def __init__(self, exchange: Exchange, session: Session, path: str, answer: Answer, deflate: Any) -> None:
        self._exchange = exchange
        self._session = session
        self._path = path
        self._answer = answer
        limits = session.limits
        self._idle = limits.idle
        self._decoder = Decoder(True, deflate, limits.body)
        self.encoder = Encoder(False, deflate)
        self._waiting: deque[Message] = deque()
        self._came = asyncio.Event()
        self.increments = Increments()
        self._kept = 0  # bytes of the request that can be continued
        self._prewarms = 0
        self.continues = False  # True if the request is kept, so that its answer can be continued
        self.over = False

    def send(self, data: bytes) -> None:
        """Send frames, unless the connection is over."""
        if not self.over:
            self._exchange.write_bytes(data)

    def close(self, code: int, why: str = "") -> None:
        """Send a close frame and close the connection."""
        self.send(self.encoder.close(code, why.encode()))
        self.over = True
        self._exchange.connection.close()

    def _feed(self, data: bytes) -> None:
        """Take bytes of the client: pongs leave at once, messages wait for their turn."""
        for message in self._decoder.feed(data):
            if message.kind == "ping":
                self.send(self.encoder.message("pong", message.data))
            elif message.kind != "pong":
                if not self._exchange.take(len(message.data)):
                    self.close(1013, "The messages of all clients together are too long at the moment.")
                    break
                self._waiting.append(message)
            self._came.set()
        if self._decoder.broken is not None and not self.over:
            code = 1007 if "UTF-8" in self._decoder.broken else 1002
            self.close(code, self._decoder.broken)
        self._exchange.connection.reading(len(self._waiting) < MOST_WAITING)
        if self.over:
            self._came.set()

    async def run(self) -> None:
        """Answer messages until one side ends the connection."""
        connection = self._exchange.connection
        connection.upgraded(self._feed)
        while not self.over:
            if not self._waiting:
                await self._next()
                continue
            message = self._waiting.popleft()
            connection.reading(len(self._waiting) < MOST_WAITING)
            await self._one(message)
            self._exchange.connection.give_back(len(message.data))
            self._exchange.size -= len(message.data)

    def release(self) -> None:
        """Let go of what refers to this: compression takes much memory, and the garbage collector comes seldom."""
        self.over = True
        self._exchange.connection.upgraded(None)
        self._decoder.close()
        self.encoder.deflate = None
        self._waiting.clear()

    async def _next(self) -> None:
        """Wait until something comes; close a connection on which nothing does."""
        self._came.clear()
        try:
            async with asyncio.timeout(self._idle):
                await self._exchange.wait_for(self._came.wait())
        except TimeoutError:
            self.close(1000, "idle")

    async def _one(self, message: Message) -> None:
        if message.kind == "close":
            self.send(self.encoder.close(message.code))
            self.over = True
            self._exchange.connection.close()
        elif message.kind == "lost":
            self.close(1009 if "too long" in message.why else 1007, message.why)
        elif message.kind != "text":
            self.close(1003, "Send requests as text messages.")
        else:
            await self._request(message.data)

    async def _request(self, data: bytes) -> None:
        """Answer one message of the client as the HTTP request that it stands for."""
        request = Request(self._exchange.request.conn)
        shown = self._exchange.request
        request.method, request.target, request.version = METHOD, shown.target, "websocket"
        request.headers, request.head_size, request.body = shown.headers, shown.head_size, data
        exchange = WebSocketExchange(self, request)
        session = self._session
        entry = session.enter(request)
        entry.body = data
        try:
            await self._judge(exchange, entry, data)
            entry.close("end")
        except (asyncio.CancelledError, Disconnected):
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
            value = read(data)
        except NotJson as error:
            refuse(exchange, entry, Violation("json", 400, "invalid_json", f"The message is not JSON: {error}."))
            return
        if not isinstance(value, dict) or value.get("type") != "response.create":
            text = 'A message must be an object with "type": "response.create".'
            refuse(exchange, entry, Violation("message-type", 400, "invalid_value", text, "type"))
            return
        await self._create(exchange, entry, value)

    async def _create(self, exchange: WebSocketExchange, entry: Entry, value: dict[str, Any]) -> None:
        session = self._session
        previous = value.get("previous_response_id")
        entry.websocket = {"generate": value.get("generate") is not False, "previous_response_id": previous}
        body = self.increments.full(value)
        entry.body = dump(body)
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
        """Answer from the recordings; return False if the script, or a prewarm, is to answer."""
        replay, session = self._session.replay, self._session
        assert replay is not None
        off = session.script.rules_off if session.script is not None else ()
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
        """Return the error of a full request that is found before the rules for all requests apply, or None."""
        if size > self._session.limits.body:
            text = f"The request that this increment stands for is longer than {self._session.limits.body} bytes."
            return Violation("body-size", 413, "body_too_large", text)
        previous = body.get("previous_response_id")
        if previous is None or (isinstance(previous, str) and self._session.responses.get(previous) is not None):
            return None  # in full, or stored, as over HTTP
        sentence = f"Previous response with id '{previous}' not found."
        return Violation("previous-response", 400, "previous_response_not_found", sentence, "previous_response_id")

    def _begin(self, body: Mapping[str, Any] | None, size: int) -> None:
        """Keep a request, whose bytes count; if those of all clients are too many, it cannot be continued."""
        connection = self._exchange.connection
        connection.give_back(self._kept)
        self._kept = size
        if not connection.take(size):
            connection.give_back(size)
            body, self._kept = None, 0
        self.increments.begin(body)
        self.continues = body is not None

    async def _prewarm(self, exchange: WebSocketExchange, entry: Entry, body: dict[str, Any]) -> None:
        """Answer a request that generates nothing: it uses no turn."""
        session = self._session
        off = session.script.rules_off if session.script is not None else ()
        found = check(Asked(self._path, exchange.request.header, entry.body or b"", session.tokens), off)
        if isinstance(found, Violation):
            refuse(exchange, entry, found)
            return
        entry.answer = "prewarm"
        self._prewarms += 1
        turn = session.websocket.prewarm or Turn(usage={"input_tokens": 0, "output_tokens": 0})
        await play(exchange, session, entry, turn, f"p{exchange.request.conn}_{self._prewarms}", {**body, "stream": True})


class WebSocketExchange(MessageExchange):
    """One message of the client and the answer to it: the events of a stream leave as messages, a refusal as an `error`."""

    def __init__(self, channel: Channel, request: Request) -> None:
        super().__init__(channel._exchange.connection, request)
        self._channel = channel
        self.encoder = channel.encoder
        self._events = EventDecoder()
        self.size = 0  # the channel counts its messages

    def respond(self, status: int, headers: Headers, body: bytes) -> None:
        """Send an error message with the status and the error that HTTP would have."""
        self.begun = self.ended = True
        try:
            error = json.loads(body)["error"]
        except (ValueError, TypeError, KeyError):
            error = {"message": body.decode("utf-8", "replace"), "type": "invalid_request_error", "param": None, "code": None}
        kept = {name: value for name, value in headers if name.lower() not in ("content-type", "content-length")}
        message = {"type": "error", "status": status, "error": error, **({"headers": kept} if kept else {})}
        self._send(dump(message))

    async def stream_framed(self, status: int, headers: Headers, framed: Iterator[bytes]) -> None:
        """Never used: what is framed as HTTP chunks is no message."""
        raise NotImplementedError

    def start(self, status: int, headers: Headers) -> None:
        """Begin an answer; the first message is its first event."""
        self.begun = True

    def write(self, pieces: Iterable[bytes]) -> None:
        """Send the events in these pieces of a stream."""
        for piece in pieces:
            for block in self._events.feed(piece):
                if block.data is not None:
                    self._event(block.event, block.data)

    def write_bytes(self, data: bytes) -> None:
        """Send a piece of a stream."""
        self.write([data])

    def _event(self, name: bytes, data: bytes) -> None:
        if name in (b"response.output_item.done", b"response.completed", b"response.incomplete"):
            self.note(json.loads(data))
        self._send(data)

    def note(self, event: Any) -> None:
        """Remember the response that the client receives: its next message may continue it."""
        if self._channel.continues:
            self._channel.increments.take_event(event)

    def send(self, data: bytes) -> None:
        """Send frames."""
        self._channel.send(data)

    def finish(self) -> None:
        """Close the connection after what was sent, a close frame included."""
        self._channel.over = True
        self.connection.close()

    def _send(self, data: bytes) -> None:
        encoder = self._channel.encoder
        self._channel.send(encoder.message("text", data))

    def end(self) -> None:
        """End the answer; the connection stays for the next one."""
        self.ended = True

    def cut(self) -> None:
        """Close the connection without a close frame."""
        self._channel.over = True
        super().cut()

    def reset(self) -> None:
        """Reset the connection."""
        self._channel.over = True
        super().reset()

    def fail(self, name: str) -> None:
        """Let a fault happen that only a WebSocket has (`codex_fakes.model.faults.Message`)."""
        channel = self._channel
        if name.startswith("close_"):
            channel.close(int(name.removeprefix("close_")))
        elif name == "binary":
            channel.send(channel.encoder.message("binary", b"\x00\x01"))
        elif name == "text":
            channel.send(channel.encoder.message("text", b"this is not JSON"))
        elif name == "deflate":
            channel.send(channel.encoder.broken_deflate())
        else:
            message = ERRORS[name]
            error = {"type": "invalid_request_error", "code": name, "message": message, "param": None}
            self._send(dump({"type": "error", "status": 400, "error": error}))
            self.ended = True
            if name == "websocket_connection_limit_reached":
                channel.close(1000)


#: code -> message of the errors that only a WebSocket has.
ERRORS = {
    "websocket_connection_limit_reached": "Responses websocket connection limit reached (60 minutes). "
    "Create a new websocket connection to continue.",
    "previous_response_not_found": "Previous response not found.",
}
