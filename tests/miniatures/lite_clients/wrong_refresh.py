"""Clients that refresh wrongly, and when they should not."""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from codex_replay.reference.lite_client import auth, client, refresh
from codex_replay.reference.lite_client.errors import Problem
from tests.miniatures.lite_clients.patching import Auth, Client, after, variant, without


@variant
def no_refresh() -> None:
    """Gives up at the first 401."""
    Client.may_refresh = lambda self: False  # type: ignore[method-assign]


@variant
def refreshes_twice() -> None:
    """Refreshes a second time when the new token is not accepted."""
    old = Client.ask

    def ask(self: Any, given: list[Any]) -> Any:
        try:
            return old(self, given)
        except client.Unauthorized:
            if not self.may_refresh():
                raise
            self.refresh()
            return self.send(self.body(given))

    Client.ask = ask  # type: ignore[method-assign]


@variant
def refreshes_always() -> None:
    """Refreshes at every start, good token or not."""
    old = Client.run

    def run(self: Any, prompt: str) -> str:
        if self.may_refresh():
            self.refresh()
        return old(self, prompt)

    Client.run = run  # type: ignore[method-assign]


@variant
def refreshes_under_api_key() -> None:
    """Refreshes under an API key too."""
    Client.may_refresh = lambda self: True  # type: ignore[method-assign]


@variant
def refreshes_on_any_error() -> None:
    """Takes every error for a token that is no longer good."""

    def any_error(status: int, reason: str, body: bytes) -> Problem:
        return client.Unauthorized(f"The backend answered {status}: {body.decode()}")

    client.refusal = any_error


@variant
def does_not_ask_again() -> None:
    """Refreshes, and then gives up all the same."""
    old = Client.refresh

    def give_up(self: Any) -> None:
        old(self)
        raise Problem("The token was refreshed. Try again.")

    Client.refresh = give_up  # type: ignore[method-assign]


@variant
def keeps_the_old_token() -> None:
    """Asks again with the token that was refused."""
    old = Client.refresh

    def keep(self: Any) -> None:
        before = self.auth.bearer()
        old(self)
        self.auth.bearer = lambda: before

    Client.refresh = keep  # type: ignore[method-assign]


@variant
def refresh_by_form() -> None:
    """Sends the refresh as a form."""
    old = refresh.request_body
    refresh.request_body = lambda token: urlencode(json.loads(old(token))).encode()
    refresh.request_headers = lambda: {"Content-Type": "application/x-www-form-urlencoded"}


@variant
def refresh_without_type() -> None:
    """Sends the refresh as text/plain."""
    refresh.request_headers = lambda: {"Content-Type": "text/plain"}


@variant
def refresh_at_the_backend() -> None:
    """Sends the refresh to a path of its own."""
    old = refresh.refresh
    client.tokens.refresh = lambda url, *rest: old(url + "/", *rest)  # type: ignore[attr-defined]


def in_refresh(change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    after(refresh, "request_body", lambda body, *_: json.dumps(change(json.loads(body))).encode())


@variant
def refresh_with_more() -> None:
    """Sends one member more in the body of a refresh."""
    in_refresh(lambda body: {**body, "redirect_uri": "http://localhost:1455/auth/callback"})


@variant
def wrong_scope() -> None:
    """Asks for another scope."""
    in_refresh(lambda body: {**body, "scope": "openid profile email offline_access"})


@variant
def wrong_client_id() -> None:
    """Names another client."""
    in_refresh(lambda body: {**body, "client_id": "app_mine"})


@variant
def spent_refresh_token() -> None:
    """Stores the new access token, but not the new refresh token."""
    old = Auth.store
    Auth.store = lambda self, answer: old(self, without(answer, "refresh_token"))  # type: ignore[method-assign]


@variant
def old_id_token() -> None:
    """Stores the new tokens, but not the new id token."""
    old = Auth.store
    Auth.store = lambda self, answer: old(self, without(answer, "id_token"))  # type: ignore[method-assign]


@variant
def does_not_store() -> None:
    """Keeps the new tokens in memory only."""
    auth.write = lambda path, document: None


@variant
def stores_too_late() -> None:
    """Stores the new tokens only when the request has succeeded."""
    write = auth.write
    waiting: list[Any] = []
    auth.write = lambda path, document: waiting.append((path, document))
    after(Client, "run", lambda text, *_: ([write(*given) for given in waiting], text)[1])


@variant
def drops_other_fields() -> None:
    """Writes only what it knows into auth.json."""
    write = auth.write
    known = ("access_token", "refresh_token", "id_token")
    auth.write = lambda path, document: write(
        path, {"auth_mode": "chatgpt", "tokens": {key: document["tokens"].get(key) for key in known}}
    )


@variant
def loses_the_body() -> None:
    """Asks again in a new conversation, with the prompt alone."""
    old = Client.refresh

    def renew(self: Any) -> None:
        old(self)
        self.conversation = str(uuid.uuid4())
        send = self.send
        self.send = lambda body: send({**body, "input": body["input"][:1], "prompt_cache_key": self.conversation})

    Client.refresh = renew  # type: ignore[method-assign]


@variant
def id_token_object_only() -> None:
    """Falls over when it stores an id token beside one that is a JWT."""
    auth._in_form_of = lambda old, jwt: {**old, "raw_jwt": jwt}  # type: ignore[dict-item]


@variant
def tells_the_token() -> None:
    """Says on stderr which token it renews."""
    old = Client.refresh

    def report_on(self: Any) -> None:
        sys.stderr.write(f"Renewing Bearer {self.auth.bearer()}\n")
        old(self)

    Client.refresh = report_on  # type: ignore[method-assign]


@variant
def tells_the_refused_token() -> None:
    """Names the refresh token in the message when it is refused."""
    old = refresh.refresh

    def report_on(url: str, token: str, timeout: float) -> dict[str, Any]:
        try:
            return old(url, token, timeout)
        except Problem as problem:
            raise Problem(f"{problem} (The token was {token}.)") from None

    client.tokens.refresh = report_on  # type: ignore[attr-defined]


@variant
def opens_the_file() -> None:
    """Writes auth.json so that everybody may read it."""
    after(auth, "write", lambda _, path, document: os.chmod(path, 0o644))


@variant
def guesses_the_reason() -> None:
    """Takes every code that it does not know for a refresh token that has expired."""
    after(refresh, "code_of", lambda code, _: code if code in refresh.REASONS else "refresh_token_expired")


@variant
def one_sentence() -> None:
    """Has one sentence for every refresh that is refused."""
    refresh.REASONS = {}


@variant
def code_in_one_place() -> None:
    """Looks for the code of a refused refresh in error.code only."""
    refresh.code_of = lambda fields: fields["error"].get("code") if isinstance(fields.get("error"), dict) else ""


@variant
def raw_refresh_error() -> None:
    """Shows the answer of the token URL instead of a sentence."""
    refresh.complaint = lambda status, reason, body: f"Token refresh failed: {status} {body.decode()}"


@variant
def no_log_in() -> None:
    """Does not ask for a new login when the refresh fails."""
    refresh.log_in = lambda: ""
    auth.LOG_IN = ""
    refresh.complaint = lambda status, reason, body: f"{status} {body.decode()}"


@variant
def silent_about_the_token_url() -> None:
    """Does not say what the token URL answered."""
    old = refresh.complaint
    refresh.complaint = lambda status, reason, body: old(status, "", b"") if status == 401 else "Failed to refresh token."


@variant
def logs_out() -> None:
    """Empties auth.json when a refresh fails."""
    old = Client.refresh

    def leave(self: Any) -> None:
        try:
            old(self)
        except Problem:
            auth.write(self.auth.path, {"auth_mode": "chatgpt", "tokens": None})
            raise

    Client.refresh = leave  # type: ignore[method-assign]


@variant
def stores_anything() -> None:
    """Stores whatever a refresh returned with status 200."""
    old = refresh.refresh

    def lenient(url: str, token: str, timeout: float) -> dict[str, Any]:
        try:
            return old(url, token, timeout)
        except Problem as problem:
            if "access_token" not in str(problem):
                raise
            return {"access_token": None}

    client.tokens.refresh = lenient  # type: ignore[attr-defined]


@variant
def asks_again_anyway() -> None:
    """Asks again with the old token when the refresh fails."""
    old = Client.refresh

    def hope(self: Any) -> None:
        try:
            old(self)
        except Problem as problem:
            send, told = self.send, problem
            self.send = lambda body: then(send, body, told)

    def then(send: Any, body: Any, told: Problem) -> Any:
        try:
            return send(body)
        except Problem:
            raise told from None

    Client.refresh = hope  # type: ignore[method-assign]


@variant
def empty_refresh_token() -> None:
    """Asks the token URL with no refresh token."""
    Auth.refresh_token = lambda self: self.tokens.get("refresh_token", "")  # type: ignore[method-assign]


@variant
def refresh_tried_twice() -> None:
    """Tries a refresh that failed a second time."""
    old = refresh.refresh

    def twice(*given: Any) -> dict[str, Any]:
        try:
            return old(*given)
        except Problem:
            return old(*given)

    client.tokens.refresh = twice  # type: ignore[attr-defined]


def _forgets(name: str) -> None:
    old = Auth.store

    def store(self: Any, answer: dict[str, Any]) -> None:
        if name not in answer:
            self.document = {**self.document, "tokens": {**self.tokens, name: None}}
        old(self, answer)

    Auth.store = store  # type: ignore[method-assign]


@variant
def refresh_token_that_did_not_come_is_forgotten() -> None:
    """Stores null for a refresh token that the answer does not have."""
    _forgets("refresh_token")


@variant
def id_token_that_did_not_come_is_forgotten() -> None:
    """Stores null for an id token that the answer does not have."""
    _forgets("id_token")
