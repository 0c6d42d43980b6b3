"""The answer to one WebSocket message of a client.

The events of a stream are sent as messages, and a refusal is sent as an `error` message.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from codex_fakes.backend.answers import dump
from codex_fakes.backend.exchange import Framed, Framing, Headers, MessageExchange, Request
from codex_replay.core.wire.json_text import compact
from codex_replay.core.wire.sse import Decoder as EventDecoder
from codex_replay.core.wire.websocket import Decoder, Encoder

if TYPE_CHECKING:
    from codex_fakes.backend.exchange import Wire
    from codex_replay.core.replay.increments import Increments


#: The events that make up the response which a client's next message may continue.
CONTINUED = (b"response.output_item.done", b"response.completed", b"response.incomplete")


def messages(events: Iterable[Mapping[str, Any]]) -> bytes:
    """Return the events of a stream as WebSocket text messages."""
    encoder = Encoder(False)
    return b"".join(encoder.message("text", compact(event).encode("utf-8", "surrogatepass")) for event in events)


def read_messages(framed: Iterable[bytes]) -> Iterator[Any]:
    """Yield the events in the result of `messages`."""
    decoder = Decoder(False)
    for piece in framed:
        yield from (json.loads(message.data) for message in decoder.feed(piece))


class Channel(Protocol):
    """The interface of a connection that an answer needs."""

    encoder: Encoder
    increments: Increments
    #: True if the request is kept, so that its answer can be continued.
    continues: bool
    over: bool

    def send(self, data: bytes) -> None:
        """Send WebSocket frames to the client. If the connection has ended, do nothing."""

    def close(self, code: int, why: str = "") -> None:
        """Send a close frame and close the connection."""


class WebSocketExchange(MessageExchange):
    """A WebSocket message of a client and the answer to it.

    The events of a stream become messages, and a refusal becomes an `error` message.
    """

    def __init__(self, channel: Channel, connection: Wire, request: Request) -> None:
        super().__init__(connection, request)
        self._channel = channel
        self.encoder = channel.encoder
        self._events = EventDecoder()
        self.size = 0  # the channel counts its messages

    def respond(self, status: int, headers: Headers, body: bytes) -> None:
        """Send an `error` message with the status and the error of the equivalent HTTP answer."""
        self.begun = self.ended = True
        try:
            error = json.loads(body)["error"]
        except (ValueError, TypeError, KeyError):
            error = {"message": body.decode("utf-8", "replace"), "type": "invalid_request_error", "param": None, "code": None}
        kept = {name: value for name, value in headers if name.lower() not in ("content-type", "content-length")}
        message = {"type": "error", "status": status, "error": error, **({"headers": kept} if kept else {})}
        self._send(dump(message))

    @property
    def framing(self) -> Framing | None:
        """The framing of a complete stream as messages;

        None if the compression of each message depends on the earlier messages.
        """
        return messages if self.encoder.deflate is None else None

    async def stream_framed(self, status: int, headers: Headers, framed: Framed) -> None:
        """Send a whole answer that is framed as messages."""
        self.begun = True
        if self._channel.continues:
            self._channel.increments.take_later(lambda: read_messages(framed.chunks()))
        for i, piece in enumerate(framed.chunks()):
            if i:
                await self.drain()
            self._channel.send(piece)
        self.end()
        await self.drain()

    def start(self, status: int, headers: Headers) -> None:
        """Begin an answer on the WebSocket. Nothing is sent before the first event."""
        self.begun = True

    def write(self, pieces: Iterable[bytes]) -> None:
        """Send the events in the given pieces of a stream."""
        frames = []
        for piece in pieces:
            for block in self._events.feed(piece):
                if block.data is None:
                    continue
                if block.event in CONTINUED:
                    self.note(json.loads(block.data))
                frames.append(self.encoder.message("text", block.data))
        self._channel.send(b"".join(frames))

    def write_bytes(self, data: bytes) -> None:
        """Send a piece of a stream."""
        self.write([data])

    def note(self, event: Any) -> None:
        """Store an event of the response, because the client's next message may continue the response."""
        if self._channel.continues:
            self._channel.increments.take_event(event)

    def send(self, data: bytes) -> None:
        """Send frames."""
        self._channel.send(data)

    def finish(self) -> None:
        """Close the connection when all pending bytes, including a close frame, are written."""
        self._channel.over = True
        self.connection.close()

    def refuse_steer(self, value: Mapping[str, Any]) -> None:
        """Answer `response.steer` like a model that cannot be steered (the openai SDK's `ResponseSteerFailedEvent`)."""
        error = {"type": "invalid_request_error", "code": "steering_not_supported", "message": NO_STEERING}
        steer = {name: value.get(name) for name in ("previous_response_id", "input")}
        self._send(dump({"type": "response.steer.failed", "sequence_number": 0, "error": error, "steer": steer}))
        self.ended = True

    def _send(self, data: bytes) -> None:
        encoder = self._channel.encoder
        self._channel.send(encoder.message("text", data))

    def end(self) -> None:
        """End the answer on the WebSocket. The connection stays open for the next answer."""
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
        """Apply a fault that exists only for a WebSocket (`codex_fakes.model.faults.Message`)."""
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


NO_STEERING = "This model does not support steering; send the input with the next `response.create`."
#: code -> message of the errors that only a WebSocket has.
ERRORS = {
    "websocket_connection_limit_reached": "Responses websocket connection limit reached (60 minutes). "
    "Create a new websocket connection to continue.",
    "previous_response_not_found": "Previous response not found.",
}
