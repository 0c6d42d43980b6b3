"""Send the requests of a conversation as messages on one WebSocket, with the client of the `websockets` package.

Each message contains the whole input. The client does not use `previous_response_id` to shorten its messages, because the
conversation of one prompt is short.
"""

from __future__ import annotations

from codex_replay.reference.json_text import dumps, loads
from codex_replay.reference.lite_client.errors import Problem
from codex_replay.reference.lite_client.transport import cause

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

#: The status of a backend that has no WebSocket.
UPGRADE_REQUIRED = 426
#: The events that end a response.
LAST = ("response.completed", "response.failed", "response.incomplete", "error")
#: The headers of a request that describe its body over HTTP.
NOT_SENT = ("Content-Type", "Accept", "User-Agent")


class Refused(Exception):
    """The backend refused the WebSocket, or answered a message with an error.

    `Refused` has the status, reason and body of the answer.
    """

    def __init__(self, status: int, reason: str, body: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.reason = reason
        self.body = body


class Socket:
    """A WebSocket connection to the backend.

    Opening the WebSocket raises `Refused` if the backend refuses it, or `Problem` if the backend does not answer.
    """

    def __init__(self, url: str, headers: Mapping[str, str], timeout: float) -> None:
        from websockets.exceptions import InvalidStatus, WebSocketException
        from websockets.sync.client import connect  # late: a client over HTTP does not need it

        self._url = url
        self._timeout = timeout
        try:
            # websockets deprecates a connection that no `with` opens; this one lives as long as the client.
            self._connection = connect(
                "ws" + url.removeprefix("http"),
                additional_headers={name: value for name, value in headers.items() if name not in NOT_SENT},
                user_agent_header=headers["User-Agent"],
                open_timeout=timeout,
                close_timeout=min(timeout, 1.0),
                max_size=None,
                proxy=None,
            ).__enter__()
        except InvalidStatus as error:
            answer = error.response
            raise Refused(answer.status_code, answer.reason_phrase, bytes(answer.body or b"")) from None
        except (OSError, WebSocketException) as error:
            raise Problem(f"The WebSocket to {url} could not be opened: {cause(error)}.") from error

    def ask(self, body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Send a request and yield the type and the JSON of each event of its response."""
        from websockets.exceptions import WebSocketException

        try:
            self._connection.send(dumps({"type": "response.create", **body}, ensure_ascii=False))
            kind = ""
            while kind not in LAST:
                message = self._connection.recv(self._timeout)
                if not isinstance(message, str):
                    raise Problem(f"{self._url} sent a binary message. Try again.")
                event = event_of(message)
                kind = str(event.get("type"))
                if kind == "error" and isinstance(event.get("status"), int):
                    raise Refused(event["status"], "", dumps({"error": event.get("error")}).encode())
                yield kind, message
        except TimeoutError as error:
            raise Problem(f"Nothing came from {self._url} for too long (LITE_TIMEOUT). Try again.") from error
        except (OSError, WebSocketException) as error:
            raise Problem(f"The WebSocket to {self._url} was closed before the response was complete: {cause(error)}.") from error

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def event_of(message: str) -> dict[str, Any]:
    """Return the event in a WebSocket message.

    For an unreadable message, return an event without a type, which the client ignores.
    """
    try:
        found = loads(message)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
