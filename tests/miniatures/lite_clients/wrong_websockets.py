"""Clients that use a WebSocket wrongly."""

from __future__ import annotations

from typing import Any

from codex_replay.reference.lite_client import client, websocket
from codex_replay.reference.lite_client.errors import Problem
from tests.miniatures.lite_clients.patching import Client, Reply, after, variant, without

Socket = websocket.Socket


@variant
def never_a_websocket() -> None:
    """Sends everything over HTTP."""
    old = Client.__init__

    def init(self: Any, *given: Any) -> None:
        old(self, *given)
        self.over_http = True

    Client.__init__ = init  # type: ignore[method-assign]


@variant
def a_connection_for_each_message() -> None:
    """Opens a WebSocket for each message."""
    after(Client, "send_message", lambda answer, self, body: (self.leave(), answer)[1])


@variant
def handshake_without_session() -> None:
    """Leaves the session out of the handshake where it may: with an API key it is not required."""
    old = Socket.__init__
    Socket.__init__ = lambda self, url, headers, timeout: old(self, url, without(dict(headers), "session_id"), timeout)  # type: ignore[method-assign]


@variant
def account_in_the_message() -> None:
    """Sends the account in another header."""

    def init(self: Any, url: str, headers: Any, timeout: float) -> None:
        old(self, url, {name.replace("chatgpt-account-id", "account"): value for name, value in headers.items()}, timeout)

    old = Socket.__init__
    Socket.__init__ = init  # type: ignore[method-assign]


def in_message(change: Any) -> None:
    old = Socket.ask
    Socket.ask = lambda self, body: old(self, change(dict(body)))  # type: ignore[method-assign]


@variant
def message_without_cache_key() -> None:
    """Leaves the cache key out of messages."""
    in_message(lambda body: without(body, "prompt_cache_key"))


@variant
def message_with_few_fields() -> None:
    """Sends the model and the input alone."""
    in_message(lambda body: {"model": body["model"], "input": body["input"], "store": False, "stream": True})


@variant
def message_without_tools() -> None:
    """Leaves the tools out of messages."""
    in_message(lambda body: without(body, "tools"))


@variant
def handshake_of_another_program() -> None:
    """Has another User-Agent in the handshake than in requests."""
    old = Socket.__init__
    Socket.__init__ = lambda self, url, headers, timeout: old(self, url, {**headers, "User-Agent": "codex_cli_rs/0"}, timeout)  # type: ignore[method-assign]


@variant
def follow_up_of_outputs_alone() -> None:
    """Sends the output of a call without what it continues."""
    in_message(lambda body: {**body, "input": [one for one in body["input"] if "output" in one] or body["input"]})


@variant
def no_fallback() -> None:
    """Takes 426 for an error."""
    websocket.UPGRADE_REQUIRED = 0


@variant
def handshake_without_refresh() -> None:
    """Does not refresh the login after a 401 at the handshake."""
    old = client.refusal

    def refusal(*given: Any) -> Problem:
        found = old(*given)
        return Problem(str(found))

    client.refusal = refusal


@variant
def error_message_is_an_end() -> None:
    """Takes an error message for the end of the response."""
    old = Client.send_message

    def send(self: Any, body: Any) -> Any:
        try:
            return old(self, body)
        except Problem as error:
            if "backend answered" not in str(error):
                raise
            return Reply()

    Client.send_message = send  # type: ignore[method-assign]


@variant
def end_of_connection_is_an_end() -> None:
    """Takes the end of the connection for the end of the response."""
    old = Client.send_message

    def send(self: Any, body: Any) -> Any:
        try:
            return old(self, body)
        except Problem as error:
            if "was closed before" not in str(error):
                raise
            return Reply()

    Client.send_message = send  # type: ignore[method-assign]


@variant
def binary_is_an_end() -> None:
    """Takes a binary message for the end of the response."""
    old = Client.send_message

    def send(self: Any, body: Any) -> Any:
        try:
            return old(self, body)
        except Problem as error:
            if "sent a binary message" not in str(error):
                raise
            return Reply()

    Client.send_message = send  # type: ignore[method-assign]


@variant
def silence_is_an_end() -> None:
    """Takes a long silence on a WebSocket for the end of the response."""
    old = Client.send_message

    def send(self: Any, body: Any) -> Any:
        try:
            return old(self, body)
        except Problem as error:
            if "Nothing came" not in str(error):
                raise
            return Reply()

    Client.send_message = send  # type: ignore[method-assign]


@variant
def crash_of_an_unknown_message() -> None:
    """Crashes at a message that it does not understand."""

    def known(events: Any) -> Any:
        for kind, data in events:
            if kind in ("None", "response.codex_replay.unknown"):
                raise RuntimeError(kind)
            yield kind, data

    client.read_events = known
