"""A WebSocket client that sends requests to the backend under test.

For each request, the client sends a `response.create` message, and returns the messages of the answer as an `Answer`.

An `Answer` has the same form over HTTP and over a WebSocket, so that one case can run on both transports. Each message that
is an event becomes a block of an event stream. An error message becomes an HTTP response with the status and the error of
the message. The connection uses the client of the package `websockets`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from codex_replay.core.text.error_text import error_text
from codex_replay.plugin.backend.answer import Answer
from codex_replay.shell.rpc.client import SubjectFailure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: The types of the message that ends an answer.
LAST = ("response.completed", "response.failed", "response.incomplete", "error")
#: The headers of a request over HTTP that describe its body, and its upgrade, which the package makes itself.
_NOT_SENT = ("content-type", "content-encoding", "accept")


class Refused(Exception):
    """The backend answered the handshake with a status other than 101; `answer` is its response."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.report_on())
        self.answer = answer


class Socket:
    """A WebSocket connection: `ask` sends a request and returns the answer.

    Raises `Refused` if the backend refuses the handshake.
    """

    def __init__(self, url: str, headers: Mapping[str, str], wait: float, *, compressed: bool = True) -> None:
        __tracebackhide__ = True
        from websockets.exceptions import InvalidStatus, WebSocketException
        from websockets.sync.client import connect  # few runs of other suites need it

        self._wait = wait
        target = "ws" + url.removeprefix("http")
        sent = [(name, value) for name, value in headers.items() if name.lower() not in _NOT_SENT]
        try:
            # Later versions of the package open the connection only here; it is closed by `close`.
            self._connection = connect(
                target,
                additional_headers=sent,
                user_agent_header=None,
                compression="deflate" if compressed else None,
                open_timeout=wait,
                close_timeout=wait,
                ping_interval=None,
                max_size=None,
                proxy=None,
            ).__enter__()
        except InvalidStatus as error:
            response = error.response
            pairs = list(response.headers.raw_items())
            raise Refused(Answer(f"GET {url}", response.status_code, pairs, bytes(response.body or b""))) from None
        except (OSError, WebSocketException) as error:
            raise SubjectFailure(f"The handshake with {url} failed: {error_text(error)}") from None

    @property
    def extensions(self) -> str:
        """The value of the header `sec-websocket-extensions` in the handshake response; "" if the header is missing."""
        response = self._connection.response
        return "" if response is None else str(response.headers.get("sec-websocket-extensions", ""))

    def ask(self, body: object, *, fragments: int = 1) -> Answer:
        """Send a request over the WebSocket and return its answer.

        If `body` is an object, `"type": "response.create"` is added; if it is bytes, they are sent unchanged, as a text
        message. `fragments` is the number of WebSocket frames of the message.
        """
        __tracebackhide__ = True
        self.send(body, fragments=fragments)
        return self.answer()

    def send(self, body: object, *, fragments: int = 1) -> None:
        """Send a request without waiting for its answer."""
        __tracebackhide__ = True
        from websockets.exceptions import WebSocketException

        if isinstance(body, bytes):
            text = body.decode()
        else:
            value = {"type": "response.create", **body} if isinstance(body, dict) else body
            text = json.dumps(value, ensure_ascii=False)
        size = -(-len(text) // fragments)
        try:
            self._connection.send(text if fragments == 1 else [text[at : at + size] for at in range(0, len(text), size)])
        except WebSocketException as error:
            raise SubjectFailure(f"The backend closed the WebSocket before a message could be sent ({error})") from None

    def answer(self) -> Answer:
        """Return the messages up to the end of an answer; raises `SubjectFailure` if the answer does not end in time."""
        __tracebackhide__ = True
        events: list[dict[str, Any]] = []
        while not events or events[-1].get("type") not in LAST:
            events.append(self.event())
        last = events[-1]
        if last["type"] == "error" and type(last.get("status")) is int:
            body = json.dumps({"error": last.get("error")}).encode()
            headers = {"content-type": "application/json", **(last.get("headers") or {})}
            return Answer("response.create", last["status"], list(headers.items()), body)
        return Answer("response.create", 200, [], b"".join(_block(event) for event in events))

    def event(self) -> dict[str, Any]:
        """Return the next message of the backend.

        Raise `SubjectFailure` if no message comes in time, or if the message is not a text that contains a JSON object.
        """
        __tracebackhide__ = True
        from websockets.exceptions import WebSocketException

        try:
            message = self._connection.recv(self._wait)
        except TimeoutError:
            raise SubjectFailure(f"The backend sent no message for {self._wait:g} s, and the answer was not complete") from None
        except WebSocketException as error:
            raise SubjectFailure(f"The backend closed the WebSocket before its answer was complete ({error})") from None
        try:
            value = json.loads(message) if isinstance(message, str) else None
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise SubjectFailure(f"A message of the backend is not a JSON object as text: {message[:200]!r}")
        return value

    def ping(self, payload: bytes = b"") -> bool:
        """Send a ping; return True if the backend sends a pong with the same payload in time."""
        return self._connection.ping(payload).wait(self._wait)

    def close(self) -> int | None:
        """Send a close frame; return the code of the backend's close frame, or None if no close frame comes."""
        self._connection.close()
        received = self._connection.protocol.close_rcvd
        return None if received is None else received.code


def _block(event: Mapping[str, Any]) -> bytes:
    return f"event: {event.get('type')}\ndata: {json.dumps(event)}\n\n".encode()


def sockets_closed(sockets: Sequence[Socket]) -> None:
    """Close all connections of a case that are still open."""
    for socket in sockets:
        socket._connection.close_timeout = 0.2
        socket.close()
