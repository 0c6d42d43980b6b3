"""Which login the server takes from auth.json and the environment, and what the server does after a 401 from the model.

Source: docs/contract/real-0.92.md, sections 1 and 2. On a live server the cases also compare the requests upstream.
"""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from codex_replay.plugin import AppServer, Server
from suites.app_server.dialect import has_events, these
from suites.app_server.expected import all_of, text
from suites.app_server.turns import last_words, open_thread, run, without_url

#: The provider of the hermetic home requires a login.
REQUIRES_LOGIN = {"model_providers": {"mock": {"requires_openai_auth": True}}}
CLAIMS = {
    "email": "fake@codex-replay.invalid",
    "https://api.openai.com/auth": {"chatgpt_plan_type": "pro", "chatgpt_user_id": "user-1"},
}
NOW = "now"


def auth_json(account: str = "account-one", refreshed: str = NOW, **more: Any) -> dict[str, Any]:
    """Return the auth.json of a ChatGPT login; `refreshed` is the time of its last refresh."""
    claims = base64.urlsafe_b64encode(json.dumps(CLAIMS).encode()).decode().rstrip("=")
    id_token = f"eyJhbGciOiJub25lIn0.{claims}.c2lnbmF0dXJl"
    tokens = {"id_token": id_token, "access_token": "fake-access-token", "refresh_token": "fake-refresh-token"}
    time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if refreshed == NOW else refreshed
    return {"OPENAI_API_KEY": None, "tokens": {**tokens, "account_id": account}, "last_refresh": time, **more}


def script(auth: Any, *turns: Any) -> dict[str, Any]:
    """Return a script whose backend expects the given login."""
    return {"auth": auth, "turns": list(turns) or [{"items": [text("Hello")]}]}


def asked_upstream(server: Server) -> list[tuple[str, int]]:
    """Return, for each request to the backend, the end of the path and the status of the response.

    The requests to the ChatGPT backend are omitted, because later versions request workspaces and settings there at
    unpredictable times.
    """
    assert server.upstream is not None
    paths = [(entry["path"].split("?")[0], entry["status"]) for entry in server.upstream.ledger()]
    return [(path.rpartition("/")[2], status) for path, status in paths if "/wham/" not in path]


#: Whether the mode `chatgpt` of an auth.json wins over its key.
CHATGPT_WINS = {"0.0.0": False, "0.169.0": True}


@pytest.mark.parametrize("mode", [None, "chatgpt", "apikey"], ids=["no-mode", "chatgpt", "apikey"])
def test_a_key_wins_over_tokens(app_server: AppServer, mode: str | None) -> None:
    """If auth.json has a key and tokens, the server uses the key for every `auth_mode`.

    (REAL-06) Since 0.169.0 the server uses the tokens if `auth_mode` is `chatgpt`.
    """
    tokens = mode == "chatgpt" and app_server.by_version(CHATGPT_WINS)
    auth = auth_json(OPENAI_API_KEY="fake-key", **({} if mode is None else {"auth_mode": mode}))
    wanted = {"mode": "chatgpt"} if tokens else {"mode": "api_key", "api_key": "fake-key"}
    server = app_server(script(wanted), auth=auth, config=REQUIRES_LOGIN)
    thread = open_thread(server)
    account = {"type": "chatgpt", "planType": "pro"} if tokens else {"type": "apiKey"}
    assert server.request("account/read", {}) == these(server, {"account": account, "requiresOpenaiAuth": True})
    assert run(server, thread)["status"] == "completed"
    if server.live:
        assert asked_upstream(server)[-1:] == [("responses", 200)]
        assert [each for each in asked_upstream(server)[:-1] if each != ("models", 200)] == []


@pytest.mark.parametrize("days", [7, 9])
def test_an_old_login_is_refreshed_at_the_start(app_server: AppServer, days: int) -> None:
    """At its start, the server refreshes a login only if the last refresh was more than eight days ago.

    Source: REAL-10. The plan `plus` comes from the refreshed tokens.
    """
    refreshed = (datetime.now(UTC) - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")
    server = app_server(script({"mode": "chatgpt", "plan": "plus"}), auth=auth_json(refreshed=refreshed), config=REQUIRES_LOGIN)
    thread = open_thread(server)
    assert server.request("account/read", {})["account"]["planType"] == ("plus" if days == 9 else "pro")
    assert run(server, thread)["status"] == "completed"
    if server.live:
        before = [("token", 200)] if days == 9 else []
        asked = asked_upstream(server)
        assert asked[: len(before) + 1] == [*before, ("models", 200)]
        assert [each for each in asked if each[0] != "models"] == [*before, ("responses", 200)]


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "CODEX_API_KEY"])
def test_keys_of_the_environment_are_ignored(app_server: AppServer, name: str) -> None:
    """A key in the environment is not a login. (REAL-11)"""
    server = app_server(script("none"), config=REQUIRES_LOGIN, env={name: "fake-key"})
    thread = open_thread(server)
    assert server.request("account/read", {}) == these(server, {"account": None, "requiresOpenaiAuth": True})
    if has_events(server):  # getAuthStatus is of v1
        status = {"authMethod": None, "authToken": None, "requiresOpenaiAuth": True}
        assert server.request("getAuthStatus", {"includeToken": True}) == status
    assert run(server, thread)["status"] == "completed"
    if server.upstream is not None:
        assert [entry["headers"] for entry in server.upstream.ledger() if "authorization" in str(entry["headers"]).lower()] == []


#: The error of the turn if auth.json has another account in the meantime; None if the login that the server has read goes on.
OTHER_ACCOUNT = {
    "0.0.0": None,
    "0.169.0": "Your access token could not be refreshed because you have since logged out or signed in to another account. "
    "Please sign in again.",
}


@pytest.mark.parametrize("account", ["account-one", "account-two"], ids=["same-account", "other-account"])
def test_the_retry_is_for_the_same_account(app_server: AppServer, account: str) -> None:
    """After a 401 the server retries with the tokens now in auth.json if they belong to the same account. (REAL-12, REAL-13)

    If the new tokens belong to another account, the server refreshes its old login; since 0.169.0, the turn fails instead.
    """
    same = account == "account-one"
    message = None if same else app_server.by_version(OTHER_ACCOUNT)
    turns = [{"items": [text("Hello")]}] if message is None else []
    whole = {"auth": {"access": "expired"}, "turns": turns}
    server = app_server(whole, auth=auth_json(), config=REQUIRES_LOGIN, refused=True)
    thread = open_thread(server)
    Path(server.work).with_name("home").joinpath("auth.json").write_text(json.dumps(auth_json(account)))
    turn = run(server, thread)
    if message is None:
        assert (turn["status"], last_words(server)) == ("completed", ["Hello"])
    else:
        assert (turn["status"], turn["error"]["message"], turn["error"]["codexErrorInfo"]) == ("failed", message, "unauthorized")
    if server.live:
        retried = [("responses", 401)] if same else []
        renewed = [("token", 200), ("responses", 200)] if message is None else []
        asked = [each for each in asked_upstream(server) if each[0] != "models"]
        assert asked == [("responses", 401), *retried, *renewed]


#: login -> the requests of a turn whose requests all get a 401
REFUSED_REQUESTS = {"api_key": ["responses"], "chatgpt": ["responses", "responses", "token", "responses"]}


#: The error of the turn: later versions show the message of the response.
REFUSAL: dict[str, tuple[str, Any]] = {
    "0.0.0": ("unexpected status 401 Unauthorized: ", "other"),
    "0.169.0": (
        "unexpected status 401 Unauthorized: This is not shown., url: URL",
        {"httpConnectionFailed": {"httpStatusCode": 401}},
    ),
}


@pytest.mark.parametrize("login", ["api_key", "chatgpt"])
def test_a_401_that_remains(app_server: AppServer, login: str) -> None:
    """The error of the turn has the status 401, but not the body of the response. (REAL-14)"""
    refusal = {"status": 401, "error": {"message": "This is not shown."}, "times": "always"}
    server = app_server(script(login, refusal), auth=login, config=REQUIRES_LOGIN, refused=True)
    thread = open_thread(server)
    turn = run(server, thread)
    words, info = server.by_version(REFUSAL)
    failed, (sent,) = turn["error"], all_of(server, "error")
    if "URL" in words:
        failed = {**failed, "message": without_url(failed["message"])}
        sent = {**sent, "error": {**sent["error"], "message": without_url(sent["error"]["message"])}}
    error = these(server, {"message": words, "codexErrorInfo": info, "additionalDetails": None})
    assert (turn["status"], failed) == ("failed", error)
    assert sent == these(server, {"error": error, "willRetry": False, "threadId": thread, "turnId": turn["id"]})
    if server.live:
        assert [path for path, _ in asked_upstream(server) if path != "models"] == REFUSED_REQUESTS[login]
