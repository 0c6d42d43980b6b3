"""Accounts: login with a key and with ChatGPT (the part that works offline), the reports about it, logout, limits, refresh.

Source: docs/contract/real-0.92.md, sections 1 and 2, and the bundle's Account, LoginAccountParams, GetAuthStatusResponse and
RateLimitSnapshot.
A recording has no secrets and no addresses, so the cases compare these on a live server only.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from codex_replay.plugin import AppServer
from suites.app_server.dialect import V1, has_events, these
from suites.app_server.expected import all_of, text
from suites.app_server.turns import last_words, open_thread, run

REFUSED = -32600
#: A key that a recording keeps unchanged, because the key has the form of a placeholder.
KEY = "redacted-key-1"
NOBODY = "00000000-0000-7000-8000-000000000000"
#: The provider of the hermetic home requires a login.
WANTS_LOGIN = {"model_providers": {"mock": {"requires_openai_auth": True}}}


def script(auth: Any, *words: str, **more: Any) -> dict[str, Any]:
    """Return a script whose backend requires the given kind of login."""
    return {"auth": auth, "turns": [{"items": [text(each, id=f"msg_{n}")]} for n, each in enumerate(words, 1)], **more}


def test_nobody(app_server: AppServer) -> None:
    """If the provider needs no login and none exists, the server reports no account and refuses to read rate limits."""
    server = app_server()
    server.initialize()
    assert server.request("account/read", {}) == these(server, {"account": None, "requiresOpenaiAuth": False})
    if has_events(server):  # getAuthStatus and userInfo are of v1
        status = {"authMethod": None, "authToken": None, "requiresOpenaiAuth": False}
        assert server.request("getAuthStatus", {"includeToken": True, "refreshToken": False}) == status
        assert server.request("userInfo") == {"allegedUserEmail": None}
    error = server.request_error("account/rateLimits/read")
    assert error == {"code": REFUSED, "message": "codex account authentication required to read rate limits"}


def test_api_key(app_server: AppServer) -> None:
    """After a login with a key, the server reports the login, sends the key only on request, and refuses to read rate limits."""
    server = app_server(script("api_key"), auth="api_key", config=WANTS_LOGIN)
    server.initialize()
    assert server.request("account/read", {}) == these(server, {"account": {"type": "apiKey"}, "requiresOpenaiAuth": True})
    if has_events(server):
        status = {"authMethod": "apikey", "authToken": None, "requiresOpenaiAuth": True}
        assert server.request("getAuthStatus", {}) == status
        with_key = server.request("getAuthStatus", {"includeToken": True})
        assert {**with_key, "authToken": None} == status
        assert type(with_key["authToken"]) is str
    error = server.request_error("account/rateLimits/read")
    assert error == {"code": REFUSED, "message": "chatgpt authentication required to read rate limits"}


@pytest.mark.since("0.108.0", "getAuthStatus outlived v1, though the bundle does not have it any more")
@pytest.mark.parametrize("login", [None, "api_key"], ids=["nobody", "api-key"])
def test_auth_status_outlived_v1(app_server: AppServer, login: str | None) -> None:
    """getAuthStatus returns the method of the login, and the token only on request."""
    server = app_server(script(login or "none"), auth=login, config=WANTS_LOGIN, bad_input=True)
    server.initialize()
    status = {"authMethod": "apikey" if login else None, "authToken": None, "requiresOpenaiAuth": True}
    assert server.request("getAuthStatus", {}) == status
    with_key = server.request("getAuthStatus", {"includeToken": True})
    assert {**with_key, "authToken": None} == status
    assert type(with_key["authToken"]) is (str if login else type(None))


def test_chatgpt(app_server: AppServer) -> None:
    """For a login by ChatGPT the server reports the email address and the plan of the id token. (REAL-07, REAL-08)"""
    server = app_server(script("chatgpt"), auth="chatgpt", config=WANTS_LOGIN)
    server.initialize()
    read = server.request("account/read", {})
    email = read["account"].pop("email")
    assert read == these(server, {"account": {"type": "chatgpt", "planType": "pro"}, "requiresOpenaiAuth": True})
    assert email == "fake@codex-replay.invalid" or not server.live
    if has_events(server):  # userInfo and getAuthStatus are of v1
        assert server.request("userInfo") == {"allegedUserEmail": email}
        assert server.request("getAuthStatus", {})["authMethod"] == "chatgpt"


def test_key_login(app_server: AppServer) -> None:
    """account/login/start with a key completes immediately; account/login/completed and account/updated follow, in this order."""
    server = app_server(script("api_key", "Hello"), config=WANTS_LOGIN)
    server.initialize()
    assert server.request("account/read", {}) == these(server, {"account": None, "requiresOpenaiAuth": True})
    assert server.request("account/login/start", {"type": "apiKey", "apiKey": KEY}) == {"type": "apiKey"}
    assert server.notification("account/updated") == these(server, {"authMode": "apikey"})
    report = [message for message in server.messages() if message.get("method", "").startswith("account/")]
    wanted = [
        {"method": "account/login/completed", "params": {"loginId": None, "success": True, "error": None}},
        {"method": "account/updated", "params": {"authMode": "apikey"}},
    ]
    assert report == these(server, wanted)
    assert server.request("account/read", {})["account"] == {"type": "apiKey"}
    thread = server.request("thread/start", {"cwd": server.work})["thread"]["id"]
    assert run(server, thread)["status"] == "completed"


def test_logout(app_server: AppServer) -> None:
    """After account/logout there is no account, and account/updated reports the logout."""
    server = app_server(script("api_key"), auth="api_key", config=WANTS_LOGIN)
    server.initialize()
    assert server.request("account/logout") == {}
    assert server.notification("account/updated") == these(server, {"authMode": None})
    assert server.request("account/read", {}) == these(server, {"account": None, "requiresOpenaiAuth": True})


@V1
def test_v1_login_and_logout(app_server: AppServer) -> None:
    """In v1, the server answers loginApiKey and logoutChatGpt with `{}`, and sends authStatusChange after each."""
    server = app_server(script("api_key"), config=WANTS_LOGIN)
    server.initialize()
    assert server.request("loginApiKey", {"apiKey": KEY}) == {}
    assert server.notification("authStatusChange") == {"authMethod": "apikey"}
    assert server.request("getAuthStatus", {})["authMethod"] == "apikey"
    assert server.request("logoutChatGpt") == {}
    assert server.notification("authStatusChange") == {"authMethod": None}
    assert server.request("getAuthStatus", {})["authMethod"] is None


def judge_url(url: str, client: str) -> None:
    """Check the login address that a client opens in a browser."""
    parts = urlsplit(url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    assert (parts.scheme, parts.path) == ("https", "/oauth/authorize")
    assert query["response_type"] == "code"
    assert query["client_id"] == "app_EMoamEEZ73f0CkXaXp7hrann"
    assert urlsplit(query["redirect_uri"]).path == "/auth/callback"
    assert query["code_challenge_method"] == "S256"
    assert query["originator"] == client


def test_chatgpt_login_cancelled(app_server: AppServer) -> None:
    """account/login/start for ChatGPT returns an id and a URL. If the client cancels, the login completes without success."""
    server = app_server(config=WANTS_LOGIN)
    server.initialize()
    begun = server.request("account/login/start", {"type": "chatgpt"})
    assert list(begun) == ["type", "loginId", "authUrl"]
    assert begun["type"] == "chatgpt"
    judge_url(begun["authUrl"], "codex-replay")
    assert server.request("account/login/cancel", {"loginId": begun["loginId"]}) == {"status": "canceled"}
    completed = server.notification("account/login/completed")
    assert (completed["loginId"], completed["success"]) == (begun["loginId"], False)
    assert completed["error"] == "Login server error: Login was not completed"
    assert server.request("account/login/cancel", {"loginId": NOBODY}) == {"status": "notFound"}
    assert server.request("account/read", {})["account"] is None


@V1
def test_v1_chatgpt_login_cancelled(app_server: AppServer) -> None:
    """In v1, after loginChatGpt and cancelLoginChatGpt, the server sends loginChatGptComplete without success."""
    server = app_server(config=WANTS_LOGIN)
    server.initialize()
    begun = server.request("loginChatGpt")
    assert list(begun) == ["loginId", "authUrl"]
    judge_url(begun["authUrl"], "codex-replay")
    assert server.request("cancelLoginChatGpt", {"loginId": begun["loginId"]}) == {}
    completed = server.notification("loginChatGptComplete")
    assert completed == {"loginId": begun["loginId"], "success": False, "error": "Login server error: Login was not completed"}
    error = server.request_error("cancelLoginChatGpt", {"loginId": NOBODY})
    assert error == {"code": REFUSED, "message": f"login id not found: {NOBODY}"}


def test_rate_limits(app_server: AppServer) -> None:
    """For account/rateLimits/read, the server asks the ChatGPT backend, and converts the windows from seconds to minutes.

    Source: REAL-23.
    """
    window = {"used_percent": 12, "limit_window_seconds": 18000, "reset_after_seconds": 60, "reset_at": 1900000000}
    limits = {
        "plan_type": "pro",
        "rate_limit": {"allowed": True, "limit_reached": False, "primary_window": window, "secondary_window": None},
    }
    server = app_server(script("chatgpt", rate_limits=limits), auth="chatgpt", config=WANTS_LOGIN)
    server.initialize()
    wanted = {
        "primary": {"usedPercent": 12, "windowDurationMins": 300, "resetsAt": 1900000000},
        "secondary": None,
        "credits": None,
        "planType": "pro",
    }
    assert server.request("account/rateLimits/read") == these(server, {"rateLimits": wanted})


def test_rate_limits_of_a_turn(app_server: AppServer) -> None:
    """The server rounds the rate limits in the headers of a model's answer, and sends them in account/rateLimits/updated."""
    headers = {
        "x-codex-primary-used-percent": "12.5",
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": "1900000000",
    }
    server = app_server([{"items": [text("Hello")], "headers": headers}])
    thread = open_thread(server)
    run(server, thread)
    primary = {"usedPercent": 13, "windowDurationMins": 300, "resetsAt": 1900000000}
    limits = {"primary": primary, "secondary": None, "credits": None, "planType": None}
    assert all_of(server, "account/rateLimits/updated")[0] == these(server, {"rateLimits": limits})
    if has_events(server):
        report = all_of(server, "codex/event/token_count")[0]["msg"]["rate_limits"]
        assert report["primary"] == {"used_percent": 12.5, "window_minutes": 300, "resets_at": 1900000000}


def test_refresh_of_an_expired_token(app_server: AppServer) -> None:
    """After a 401 the server reads auth.json; after a second 401 it refreshes once; the client sees only success. (REAL-12)"""
    auth = {"access_token": "fake-access-token", "access": "expired", "refresh_token": "fake-refresh-token"}
    server = app_server(script(auth, "Hello"), auth="chatgpt", config=WANTS_LOGIN, refused=True)
    thread = open_thread(server)
    assert run(server, thread)["status"] == "completed"
    assert last_words(server) == ["Hello"]
    assert all_of(server, "error") == []
    if server.upstream is not None:
        ledger = [(entry["path"].split("?")[0].rpartition("/")[2], entry["status"]) for entry in server.upstream.ledger()]
        asked = [each for each in ledger if each[0] in ("responses", "token")]
        assert asked == [("responses", 401), ("responses", 401), ("token", 200), ("responses", 200)]


RELOGIN = "Please log out and sign in again."
#: the reason of a refused refresh -> the error message of the turn
REFRESHES = {
    "expired": f"Your access token could not be refreshed because your refresh token has expired. {RELOGIN}",
    "reused": f"Your access token could not be refreshed because your refresh token was already used. {RELOGIN}",
    "revoked": f"Your access token could not be refreshed because your refresh token was revoked. {RELOGIN}",
    "unknown": f"Your access token could not be refreshed. {RELOGIN}",
}


@pytest.mark.parametrize("row", REFRESHES)
def test_refresh_refused(app_server: AppServer, row: str) -> None:
    """If the refresh of the login is refused, the turn fails with a message for the reason; codexErrorInfo is unauthorized.

    Source: REAL-17, REAL-18, REAL-19, REAL-20.
    """
    server = app_server(script({"access": "expired", "refresh": row}), auth="chatgpt", config=WANTS_LOGIN, refused=True)
    thread = open_thread(server)
    turn = run(server, thread)
    error = these(server, {"message": REFRESHES[row], "codexErrorInfo": "unauthorized", "additionalDetails": None})
    assert (turn["status"], turn["error"]) == ("failed", error)
    assert all_of(server, "error") == [{"error": error, "willRetry": False, "threadId": thread, "turnId": turn["id"]}]


#: Whether tokens without the time of their last refresh are usable, because the server refreshes them.
UNDATED_TOKENS = {"0.0.0": False, "0.169.0": True}


def test_no_last_refresh(app_server: AppServer) -> None:
    """Tokens without the time of their last refresh are unusable: the turn fails before any request to the model. (REAL-09)

    Since 0.169.0 the server refreshes such tokens; before the refresh it requests the workspaces without a token.
    """
    usable = app_server.by_version(UNDATED_TOKENS)
    tokens = {"id_token": "", "access_token": "fake-access-token", "refresh_token": "fake-refresh-token", "account_id": "fake"}
    claims = "eyJhbGciOiJub25lIn0.e30.c2lnbmF0dXJl"
    auth = {"OPENAI_API_KEY": None, "tokens": {**tokens, "id_token": claims}}
    server = app_server(script("chatgpt", *(["Hello"] if usable else [])), auth=auth, config=WANTS_LOGIN, refused=usable)
    thread = open_thread(server)
    turn = run(server, thread)
    if usable:
        assert (turn["status"], last_words(server)) == ("completed", ["Hello"])
    else:
        assert (turn["status"], turn["error"]["message"]) == ("failed", "Token data is not available.")
    if server.upstream is not None:
        posted = [entry["path"].rpartition("/")[2] for entry in server.upstream.ledger() if entry["method"] == "POST"]
        assert posted == (["token", "responses"] if usable else [])
