"""One Responses backend in a case: send requests, and check the answers.

A fake is set up (valid tokens, replies of the model) through its control API; a backend behind a URL cannot be
set up, so a case that needs it is skipped with a reason. Built on the standard library's HTTP client and `core`'s SSE decoder.
"""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

import pytest

from codex_replay.core.text.error_text import error_text
from codex_replay.core.wire.sse import Block, Decoder
from codex_replay.protocol.versions import DEFAULT
from codex_replay.shell.rpc.client import SubjectFailure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from codex_replay.shell.http.backend_process import BackendSession

__all__ = ["Answer", "Backend", "SubjectFailure", "event_problems", "stream_problems"]

#: The base path of the ChatGPT backend and that of the API.
CHATGPT, API = "/backend-api/codex", "/v1"
#: The settings that a fake accepts as valid.
LOGIN = {"access_token": "access-1", "refresh_token": "refresh-1", "account_id": "account-1"}
KEY = "sk-backend-1"


def event_problems(event: object) -> list[str]:
    """Return a sentence for each thing that is wrong with one decoded event by its type (the openai package's, Codex's own)."""
    from codex_replay.protocol.responses.events import event_schemas

    return event_schemas().problems(event)


def stream_problems(events: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each inconsistency in the events of one stream."""
    from codex_replay.protocol.responses.stream import StreamChecker

    checker = StreamChecker()
    return [*(problem for event in events for problem in checker.feed(event)), *checker.close()]


@dataclass(frozen=True)
class Answer:
    """The response to one request; `asked` is the first line of the request."""

    asked: str
    status: int
    headers: list[tuple[str, str]]
    body: bytes = field(repr=False)

    def header(self, name: str) -> str:
        """Return the value of a header, by its name in any case; "" when it is missing."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), "")

    @cached_property
    def value(self) -> Any:
        """The decoded JSON body; raises `SubjectFailure` if it is not JSON."""
        __tracebackhide__ = True
        try:
            return json.loads(self.body)
        except ValueError:
            raise SubjectFailure(f"The body is not JSON.\n{self.report_on()}") from None

    @property
    def error(self) -> dict[str, Any]:
        """The error object; raises `SubjectFailure` unless the body is `{"error": {...}}`."""
        __tracebackhide__ = True
        error = self.value.get("error") if isinstance(self.value, dict) else None
        if not isinstance(error, dict):
            raise SubjectFailure(f'The body has no object "error".\n{self.report_on()}')
        return error

    @cached_property
    def blocks(self) -> list[Block]:
        """Return the blocks of an event stream; raises `SubjectFailure` if the request did not succeed."""
        __tracebackhide__ = True
        if self.status != 200:
            raise SubjectFailure(f"The request was refused.\n{self.report_on()}")
        decoder = Decoder()
        return decoder.feed(self.body) + decoder.close()

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """The decoded events of the stream; raises `SubjectFailure` where one is not a JSON object."""
        __tracebackhide__ = True
        found = []
        for block in self.blocks:
            if not block.dispatched:
                continue
            try:
                value = json.loads(block.data or b"")
            except ValueError:
                value = None
            if not isinstance(value, dict):
                raise SubjectFailure(f"The data of an event is not a JSON object: {block.raw[:200]!r}\n{self.report_on()}")
            found.append(value)
        return found

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of one type, in order."""
        __tracebackhide__ = True
        return [event for event in self.events if event.get("type") == kind]

    @property
    def items(self) -> list[dict[str, Any]]:
        """The items that were done, in order."""
        __tracebackhide__ = True
        return [event["item"] for event in self.of("response.output_item.done")]

    @property
    def text(self) -> str:
        """The joined deltas of the text."""
        __tracebackhide__ = True
        return "".join(event["delta"] for event in self.of("response.output_text.delta"))

    def report_on(self) -> str:
        """Return the answer for people."""
        text = self.body.decode("utf-8", "replace")
        return f"{self.asked} -> {self.status}\n{text if len(text) < 2000 else text[:2000] + '...'}"


@dataclass
class RecordedRequest:
    """One request and its answer (None if the answer was incomplete); times are values of `time.monotonic`."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes | None = field(repr=False)
    started: float
    ended: float = 0.0
    answer: Answer | None = None


class Backend:
    """The backend under test in one case: send requests with `ask`, `get` and `refresh`; a fake can also be set up."""

    def __init__(self, name: str, url: str, session: BackendSession | None, credentials: dict[str, str], wait: float) -> None:
        self.name = name
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
            pytest.skip(f"not verified on {self.name}: the answer does not show what this check needs")
        self._session.script({"turns": [], "otherwise": "default", "auth": self._told, **script})

    def login(self, mode: str = "chatgpt", *, base: str = "", **state: Any) -> None:
        """Have a fake take a login: "chatgpt" or "api_key", and in what state its tokens are (docs/scripts.md, "auth").

        `base` is the path prefix of requests; by default that of the login.
        """
        self._told = {"mode": mode, **(LOGIN if mode == "chatgpt" else {"api_key": KEY}), **state}
        self._report_on({})
        self._base = base or (CHATGPT if mode == "chatgpt" else API)
        self._credentials = credentials(LOGIN if mode == "chatgpt" else {"api_key": KEY})

    def says(self, *items: object) -> None:
        """Have a fake answer the next request with these items (docs/scripts.md)."""
        self._report_on({"turns": [{"items": list(items)}]})

    def ask(
        self, body: object, headers: Mapping[str, str | None] | None = None, *, path: str = "/responses", method: str = "POST"
    ) -> Answer:
        """Send a request with the headers of the specification and return the answer.

        `body` is sent as JSON, bytes unchanged. `headers` replace headers by name; None leaves one out.
        """
        __tracebackhide__ = True
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
        data = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
        return self._send(method, self._base + path, data, given)

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        """Send a GET with the login's headers; `path` is below the URL, a fake's base path not included."""
        __tracebackhide__ = True
        if self.live:
            pytest.skip(f"not verified on {self.name}: only its /responses is tested")
        return self._send("GET", path, None, {**self._credentials, **(headers or {})})

    def refresh(self, fields: Mapping[str, Any] | bytes, *, form: bool = False) -> Answer:
        """Post to a fake's token URL: JSON, or a form."""
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

    def _send(self, method: str, path: str, data: bytes | None, headers: Mapping[str, str]) -> Answer:
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
            answer = Answer(f"{method} {path}", response.status, response.getheaders(), response.read())
        except (OSError, HTTPException) as error:
            why = f" within {self._wait:g} s" if isinstance(error, TimeoutError) else f": {error_text(error)}"
            raise SubjectFailure(f"{method} {path} got no complete answer{why}") from None
        finally:
            connection.close()
            message.ended = time.monotonic()
        message.answer = answer
        self.answers.append(answer)
        return answer


def credentials(login: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of a login: an API key, or an access token and its account."""
    if "api_key" in login:
        return {"authorization": f"Bearer {login['api_key']}"}
    return {"authorization": f"Bearer {login['access_token']}", "chatgpt-account-id": login["account_id"]}
