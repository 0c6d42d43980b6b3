"""Use the Responses backend in one case: send requests, and check the answers.

Through the control API of a fake backend, the harness sets the valid tokens and the replies of the model. A backend that is
given as a URL has no control API. For a backend that is given as a URL, a case that needs the control API is skipped, with
a reason. The module uses the HTTP client of the standard library and the SSE decoder of `core`. A case that is marked
`both_transports` runs once over HTTP and once over a WebSocket. Over a WebSocket, the case sends its requests to
`/responses` as messages (module `websocket`).
"""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

import pytest

from codex_replay.core.text.error_text import error_text
from codex_replay.plugin.backend.answer import Answer
from codex_replay.protocol.versions import DEFAULT
from codex_replay.shell.rpc.client import SubjectFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from codex_replay.plugin.backend.websocket import Socket
    from codex_replay.shell.http.backend_process import BackendSession

__all__ = ["Answer", "Backend", "SubjectFailure", "event_problems", "stream_problems"]

#: The base path of the ChatGPT backend and that of the API.
CHATGPT, API = "/backend-api/codex", "/v1"
#: The settings that a fake accepts as valid.
LOGIN = {"access_token": "access-1", "refresh_token": "refresh-1", "account_id": "account-1"}
KEY = "sk-backend-1"


def event_problems(event: object) -> list[str]:
    """Return a sentence for each error in one decoded event.

    The type of the event decides the rules: the rules of the openai package, or, for types that only Codex has, those of
    codex-replay.
    """
    from codex_replay.protocol.responses.events import event_schemas

    return event_schemas().problems(event)


def stream_problems(events: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each contradiction between the events of one stream."""
    from codex_replay.protocol.responses.stream import StreamChecker

    checker = StreamChecker()
    return [*(problem for event in events for problem in checker.feed(event)), *checker.close()]


@dataclass
class RecordedRequest:
    """One request and its answer; the answer is None if it was incomplete, and times are values of `time.monotonic`."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes | None = field(repr=False)
    started: float
    ended: float = 0.0
    answer: Answer | None = None


class Backend:
    """The backend under test in one case.

    `ask`, `get` and `refresh` send requests to the backend; the other methods configure a fake backend.
    """

    def __init__(
        self,
        name: str,
        url: str,
        session: BackendSession | None,
        credentials: dict[str, str],
        wait: float,
        transport: str = "http",
    ) -> None:
        self.name = name
        self.transport = transport
        self.sockets: list[Socket] = []
        self.live = session is None
        self.answers: list[Answer] = []
        self.said: list[RecordedRequest] = []
        self._url = url
        self._session = session
        self._wait = wait
        self._credentials = credentials
        self._base = "" if self.live else CHATGPT
        self._told: dict[str, Any] = {"mode": "chatgpt", **LOGIN}
        if not self.live:
            self._report_on({})

    def _report_on(self, script: dict[str, Any]) -> None:
        if self._session is None:
            pytest.skip(f"not verified on {self.name}: the case must control the backend, and a URL has no control API")
        websocket = {"websocket": "on"} if self.transport == "websocket" else {}
        self._session.script({"turns": [], "otherwise": "default", "auth": self._told, **websocket, **script})

    def login(self, mode: str = "chatgpt", *, base: str = "", **state: Any) -> None:
        """Make the fake backend accept a login of the kind "chatgpt" or "api_key".

        The keyword arguments set the state of the tokens (docs/scripts.md, "auth").

        `base` is the path prefix of requests; by default, the kind of login decides the prefix.
        """
        self._told = {"mode": mode, **(LOGIN if mode == "chatgpt" else {"api_key": KEY}), **state}
        self._report_on({})
        self._base = base or (CHATGPT if mode == "chatgpt" else API)
        self._credentials = credentials(LOGIN if mode == "chatgpt" else {"api_key": KEY})

    def says(self, *items: object, **turn: object) -> None:
        """Make the fake backend answer the next request with the given items, and with other keys of a turn (docs/scripts.md)."""
        self._report_on({"turns": [{"items": list(items), **turn}]})

    def release(self, gate: str) -> None:
        """Open a gate in a reply that `says` has set: the fake backend then sends the rest of the reply."""
        if self._session is not None:
            self._session.release(gate)

    def ask(
        self,
        body: object,
        headers: Mapping[str, str | None] | None = None,
        *,
        path: str = "/responses",
        method: str = "POST",
        midway: Callable[[], object] | None = None,
    ) -> Answer:
        """Send a request with the headers that the specification demands, and return the answer.

        `body` is sent as JSON, or unchanged if it is bytes. `headers` replaces headers by name; a header with the value
        None is not sent. `midway` is called when the first finished item of an HTTP stream has arrived.
        """
        __tracebackhide__ = True
        given = self._headers(headers)
        if self.transport == "websocket" and (path, method) == ("/responses", "POST"):
            return self._ask_socket(body, given)
        data = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
        return self._send(method, self._base + path, data, given, midway)

    def connect(self, headers: Mapping[str, str | None] | None = None, *, compressed: bool = True) -> Socket:
        """Open a WebSocket to `/responses`, with the headers that the specification demands.

        Raises `SubjectFailure` if the backend refuses the WebSocket.
        """
        __tracebackhide__ = True
        from codex_replay.plugin.backend.websocket import Refused, Socket

        try:
            socket = Socket(
                self._url.rstrip("/") + self._base + "/responses", self._headers(headers), self._wait, compressed=compressed
            )
        except Refused as error:
            raise SubjectFailure(f"The backend did not grant the WebSocket.\n{error}") from None
        self.sockets.append(socket)
        return socket

    def _ask_socket(self, body: object, headers: Mapping[str, str]) -> Answer:
        """Send a request on a new WebSocket; return the answer to the request, or to a refused handshake."""
        __tracebackhide__ = True
        from codex_replay.plugin.backend.websocket import Refused, Socket, sockets_closed

        data = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
        path = self._base + "/responses"
        message = RecordedRequest("WEBSOCKET", path, headers, data, time.monotonic())
        self.said.append(message)
        try:
            socket = Socket(self._url.rstrip("/") + path, headers, self._wait)
            try:
                answer = socket.ask(body)
            finally:
                sockets_closed([socket])
        except Refused as error:
            answer = error.answer
        message.answer, message.ended = answer, time.monotonic()
        self.answers.append(answer)
        return answer

    def _headers(self, headers: Mapping[str, str | None] | None) -> dict[str, str]:
        """Return the headers that the specification demands; `headers` replaces some of them, and the value None removes one."""
        given = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            **self._credentials,
            "originator": "codex_cli_rs",
            "user-agent": f"codex_cli_rs/{DEFAULT}",
            "session_id": str(uuid.uuid4()),
        }
        for name, value in (headers or {}).items():
            given.pop(name.lower(), None)
            if value is not None:
                given[name] = value
        return given

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        """Send a GET request with the headers of the login.

        `path` is relative to the backend's URL, without the base path of a fake backend.
        """
        __tracebackhide__ = True
        if self.live:
            pytest.skip(f"not verified on {self.name}: only its /responses is tested")
        return self._send("GET", path, None, {**self._credentials, **(headers or {})})

    def refresh(self, fields: Mapping[str, Any] | bytes, *, form: bool = False) -> Answer:
        """Send a POST request to the token URL of a fake backend; the body is JSON or a form."""
        __tracebackhide__ = True
        if self.live:
            pytest.skip(f"not verified on {self.name}: a refresh would use up the login's refresh token")
        if isinstance(fields, bytes):
            data = fields
        else:
            data = urlencode(fields).encode() if form else json.dumps(fields).encode()
        kind = "application/x-www-form-urlencoded" if form else "application/json"
        return self._send("POST", "/oauth/token", data, {"content-type": kind})

    def with_token(self, token: str) -> dict[str, str | None]:
        """Return the header that carries an access token."""
        return {"authorization": f"Bearer {token}"}

    def _send(
        self,
        method: str,
        path: str,
        data: bytes | None,
        headers: Mapping[str, str],
        midway: Callable[[], object] | None = None,
    ) -> Answer:
        __tracebackhide__ = True
        # Not needed by a run of other suites; it loads ssl.
        from http.client import HTTPConnection, HTTPException, HTTPSConnection

        parts = urlsplit(self._url)
        make = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        connection = make(parts.hostname or "", parts.port, timeout=self._wait)
        target = parts.path.rstrip("/") + path
        message = RecordedRequest(method, path, headers, data, time.monotonic())
        self.said.append(message)
        try:
            connection.request(method, target, data, dict(headers))
            response = connection.getresponse()
            begun = b""
            while midway is not None and b"response.output_item.done" not in begun and (more := response.read1()):
                begun += more
            if midway is not None:
                midway()
                midway = None
            answer = Answer(f"{method} {path}", response.status, response.getheaders(), begun + response.read())
        except (OSError, HTTPException) as error:
            why = f" within {self._wait:g} s" if isinstance(error, TimeoutError) else f": {error_text(error)}"
            if midway is not None:
                why += (
                    ". The model has finished an item, and waits before the next one. The client must get the events of the "
                    "finished item now: send each event as soon as it is there, and do not wait for the end of the stream"
                )
            raise SubjectFailure(f"{method} {path} got no complete answer{why}") from None
        finally:
            connection.close()
            message.ended = time.monotonic()
        message.answer = answer
        self.answers.append(answer)
        return answer


def credentials(login: Mapping[str, Any]) -> dict[str, str]:
    """Return the HTTP headers for a login: the API key, or the access token and its account."""
    if "api_key" in login:
        return {"authorization": f"Bearer {login['api_key']}"}
    return {"authorization": f"Bearer {login['access_token']}", "chatgpt-account-id": login["account_id"]}
