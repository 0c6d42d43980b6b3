"""A conversation with the backend: send the input, answer the model's calls, and send everything again, until the model sends
only text.
"""

from __future__ import annotations

import os

from codex_replay.reference.json_text import dumps, loads
from codex_replay.reference.lite_client import refresh as tokens
from codex_replay.reference.lite_client import reply, sse, transport
from codex_replay.reference.lite_client.errors import Problem, Unauthorized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from codex_replay.reference.lite_client.auth import Auth
    from codex_replay.reference.lite_client.reply import Reply
    from codex_replay.reference.lite_client.settings import Settings
    from codex_replay.reference.lite_client.tools import Item, Tools
    from codex_replay.reference.lite_client.websocket import Socket

VERSION = "0.92.0"
ORIGINATOR = "codex_cli_rs"
#: The maximum number of requests, to stop a model that calls tools forever.
MOST_REQUESTS = 100


class FallBack(Exception):
    """The backend does not support WebSockets, so the client must use HTTP."""


class Client:
    """A conversation with the backend, identified by a new uuid."""

    def __init__(self, settings: Settings, auth: Auth, tools: Tools) -> None:
        self.settings = settings
        self.auth = auth
        self.tools = tools
        self.conversation = new_id()
        self.socket: Socket | None = None
        self.over_http = settings.transport != "websocket"

    def run(self, prompt: str) -> str:
        """Send a prompt and return the last text of the model. Raises `Problem` if the conversation fails."""
        try:
            return self.converse(prompt)
        finally:
            self.leave()

    def converse(self, prompt: str) -> str:
        """Send requests and answer the model's calls until the model sends only text."""
        input_ = [user_message(prompt)]
        for _ in range(MOST_REQUESTS):
            answer = self.ask(input_)
            if not answer.calls:
                return answer.text
            input_ = self.follow_up(input_, answer)
        raise Problem(f"The model still calls tools after {MOST_REQUESTS} requests.")

    def follow_up(self, input_: list[Item], answer: Reply) -> list[Item]:
        """Return the next input: all items so far, the reply of the model, and the output of each of its calls."""
        message = [item for item in map(sent_back, answer.items) if item is not None]
        return [*input_, *message, *self.tools.outputs(answer.calls)]

    def ask(self, input_: list[Item]) -> Reply:
        """Send one request to the backend. After a 401, refresh the tokens once and send the request again."""
        body = self.body(input_)
        try:
            return self.send(body)
        except Unauthorized:
            if not self.may_refresh():
                raise
            self.refresh()
            return self.send(body)

    def may_refresh(self) -> bool:
        """Return True for a ChatGPT login, because only a ChatGPT login has tokens that can be refreshed."""
        return self.auth.chatgpt

    def refresh(self) -> None:
        """Get new tokens and store them immediately, because the old refresh token is no longer valid."""
        self.auth.store(tokens.refresh(self.settings.token_url, self.auth.refresh_token(), self.settings.timeout))

    def send(self, body: Item) -> Reply:
        """Send one request and read the stream of its response to the end."""
        if not self.over_http:
            try:
                return self.send_message(body)
            except FallBack:
                self.over_http = True
        with_data = dumps(body, ensure_ascii=False).encode()
        answer = transport.post(self.url(), self.headers(), with_data, self.settings.timeout)
        try:
            if answer.status != 200:
                raise refusal(answer.status, answer.reason, answer.read())
            return reply.read(self.events(answer))
        finally:
            answer.close()

    def send_message(self, body: Item) -> Reply:
        """Send one request on the WebSocket; raises `FallBack` if the backend has no WebSockets.

        After any error, close the WebSocket.
        """
        from codex_replay.reference.lite_client import websocket  # late: most backends of today are asked over HTTP

        try:
            if self.socket is None:
                self.socket = websocket.Socket(self.url(), self.headers(), self.settings.timeout)
            return reply.read(read_events(self.socket.ask(body)))
        except websocket.Refused as error:
            self.leave()
            if error.status == websocket.UPGRADE_REQUIRED:
                raise FallBack from None
            raise refusal(error.status, error.reason, error.body) from None
        except Problem:
            self.leave()
            raise

    def leave(self) -> None:
        """Close the WebSocket, if one is open."""
        if self.socket is not None:
            self.socket.close()
            self.socket = None

    def events(self, answer: transport.Answer) -> Iterator[tuple[str, str]]:
        """Yield the events of an answer. A subclass may override `events` to observe the events."""
        return sse.events(answer.chunks())

    def url(self) -> str:
        """Return the endpoint."""
        return f"{self.settings.base_url}/responses"

    def headers(self) -> dict[str, str]:
        """Return the headers that the backend requires."""
        found = {
            "Authorization": f"Bearer {self.auth.bearer()}",
            "originator": ORIGINATOR,
            "User-Agent": f"{ORIGINATOR}/{VERSION}",
            "session_id": self.conversation,
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
        }
        account = self.auth.account_id()
        return {**found, "chatgpt-account-id": account} if account else found

    def body(self, input_: list[Item]) -> Item:
        """Return the body of a request, with its members in the order of the specification."""
        found: Item = {
            "model": self.settings.model,
            "instructions": self.settings.instructions,
            "input": input_,
            "tools": self.tools.specs,
            "tool_choice": "auto",
            "parallel_tool_calls": False,
            "reasoning": {"effort": "medium", "summary": "auto"},
            "store": False,
            "stream": True,
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": self.conversation,
        }
        text = text_settings(self.settings.schema)
        return {**found, "text": text}


def read_events(events: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the events of a stream that have a type. The client ignores events without a type, as Codex does."""
    return (event for event in events if event[0] != "None")


def new_id() -> str:
    """Return a random uuid (version 4) with 122 random bits.

    The module `uuid` is not used, because its import is slow.
    """
    digits = os.urandom(16).hex()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{'89ab'[int(digits[16], 16) % 4]}{digits[17:20]}-{digits[20:]}"


def text_settings(schema: Any) -> Item:
    """Return the settings for the form of the model's answer. `schema` is the JSON Schema of the answer, or None."""
    if schema is None:
        return {"verbosity": "medium"}
    return {"verbosity": "medium", "format": {"type": "json_schema", "strict": True, "schema": schema, "name": "output"}}


def user_message(prompt: str) -> Item:
    """Return the input item for a prompt."""
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]}


def sent_back(item: Item) -> Item | None:
    """Return a finished item in the form in which the next request repeats it.

    The `id` is removed, because the backend stores no items and cannot resolve ids.
    """
    kind = item.get("type")
    if kind == "function_call":
        return {"type": kind, "name": item["name"], "arguments": item["arguments"], "call_id": item["call_id"]}
    if kind == "custom_tool_call":
        return {"type": kind, "name": item["name"], "input": item["input"], "call_id": item["call_id"]}
    if kind == "message":
        return {"type": kind, "role": "assistant", "content": item.get("content", [])}
    if kind == "reasoning" and item.get("encrypted_content"):
        return {"type": kind, "summary": item.get("summary", []), "encrypted_content": item["encrypted_content"]}
    return None


def refusal(status: int, reason: str, body: bytes) -> Problem:
    """Return the error message in an error response."""
    try:
        error = loads(body).get("error")
    except (ValueError, AttributeError):
        error = None
    detail = reply.error_text(error) if isinstance(error, dict) else body.decode("utf-8", "replace").strip()[:500]
    kind = Unauthorized if status == 401 else Problem
    problem = kind(f"The backend answered {status} {reason}: {detail or 'no reason is given'}.")
    problem.status = status
    return problem
