"""Which login the client uses, and from which file it reads the login. Source: docs/contract/lite.md, "Auth"."""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin.lite_client.fixture import LiteClient, Run
from suites.lite_client.expected import API_KEY, CHATGPT, JWT


def run_with(lite_client: LiteClient, auth: Any, mode: str = "chatgpt") -> Run:
    """Run the client with the given login, check that the client succeeds, and return the run."""
    base = "/backend-api/codex" if mode == "chatgpt" else "/v1"
    run = lite_client("Hello", script={"auth": mode, "turns": ["Hi"]}, auth=auth, base=base)
    assert run.text() == "Hi"
    return run


def with_tokens(**tokens: Any) -> dict[str, Any]:
    """Return the login with the given tokens changed; the value None removes a token."""
    return {**CHATGPT, "tokens": {k: v for k, v in {**CHATGPT["tokens"], **tokens}.items() if v is not None}}


@pytest.mark.spec("auth-chatgpt-bearer", "LITE-05", "LITE-24")
def test_chatgpt_bearer(lite_client: LiteClient) -> None:
    """With a ChatGPT login, the client sends the access token as the bearer token."""
    assert run_with(lite_client, CHATGPT).turns[0].header("authorization") == "Bearer access-1"


@pytest.mark.spec("auth-api-key-bearer", "LITE-05", "LITE-24")
def test_api_key_bearer(lite_client: LiteClient) -> None:
    """With an API key, the client sends the key as the bearer token."""
    key = {"auth_mode": "api_key", "OPENAI_API_KEY": "sk-live"}
    assert run_with(lite_client, key, "api_key").turns[0].header("authorization") == "Bearer sk-live"


@pytest.mark.spec("auth-mode-chatgpt", "LITE-04")
def test_auth_mode_chatgpt_chooses_the_tokens(lite_client: LiteClient) -> None:
    """If auth.json has tokens and a key, the client follows `auth_mode`. (Codex 0.92 uses the key for every `auth_mode`.)"""
    run = run_with(lite_client, {**CHATGPT, "OPENAI_API_KEY": "sk-live"})
    assert run.turns[0].header("authorization") == "Bearer access-1"


@pytest.mark.spec("auth-mode-api-key", "LITE-04")
def test_auth_mode_api_key_chooses_the_key(lite_client: LiteClient) -> None:
    """If auth.json has tokens and a key, the client follows `auth_mode`."""
    assert run_with(lite_client, API_KEY, "api_key").turns[0].header("authorization") == "Bearer sk-live"


@pytest.mark.spec("auth-account-from-tokens", "LITE-06")
def test_account_from_tokens(lite_client: LiteClient) -> None:
    """The client sends `tokens.account_id` in the account header."""
    run = run_with(lite_client, with_tokens(id_token={"raw_jwt": "e30.e30.e30"}))
    assert run.turns[0].header("chatgpt-account-id") == "account-1"


@pytest.mark.parametrize("missing", ["absent", "null"])
@pytest.mark.spec("auth-account-from-id-token", "LITE-07")
def test_account_from_the_id_token(lite_client: LiteClient, missing: str) -> None:
    """Without `tokens.account_id` the client takes the account from the id token."""
    auth = with_tokens(account_id=None, id_token={"raw_jwt": "e30.e30.e30", "chatgpt_account_id": "account-id"})
    if missing == "null":
        auth["tokens"]["account_id"] = None
    assert run_with(lite_client, auth).turns[0].header("chatgpt-account-id") == "account-id"


@pytest.mark.spec("auth-account-from-jwt", "REAL-08")
def test_account_from_an_id_token_that_is_a_jwt(lite_client: LiteClient) -> None:
    """If the id token is a plain JWT, as Codex writes it, the client takes the account from the claims of the JWT."""
    run = run_with(lite_client, with_tokens(account_id=None, id_token=JWT))
    assert run.turns[0].header("chatgpt-account-id") == "account-jwt"


@pytest.mark.spec("auth-account-chatgpt-only", "LITE-08")
def test_no_account_under_an_api_key(lite_client: LiteClient) -> None:
    """With an API key, the client sends no account, even if auth.json has an account."""
    assert run_with(lite_client, API_KEY, "api_key").turns[0].header("chatgpt-account-id") is None


@pytest.mark.spec("auth-file-of-codex", "REAL-07", "REAL-08")
def test_the_file_that_codex_writes(lite_client: LiteClient) -> None:
    """The client reads an auth.json of Codex 0.92, which has no `auth_mode`, a null key, and a JWT as the id token."""
    auth = {
        "OPENAI_API_KEY": None,
        "tokens": {"id_token": JWT, "access_token": "access-9", "refresh_token": "refresh-9", "account_id": "account-9"},
        "last_refresh": "2026-01-01T00:00:00.000000Z",
    }
    run = run_with(lite_client, auth)
    assert run.turns[0].header("authorization") == "Bearer access-9"
    assert run.turns[0].header("chatgpt-account-id") == "account-9"


@pytest.mark.spec("auth-file-of-home", "LITE-03")
def test_the_file_below_home(lite_client: LiteClient) -> None:
    """Without LITE_AUTH_FILE, the client reads the login from $HOME/.codex/auth.json, and stores refreshed tokens there."""
    answer = {"access_token": "access-2", "refresh_token": "refresh-2", "id_token": JWT}
    expired = {"status": 401, "error": {"code": "token_expired", "message": "The access token has expired."}}
    auth = {"mode": "chatgpt", "refresh_answer": {"status": 200, "body": answer}}
    run = lite_client(script={"auth": auth, "turns": [expired, "Hi"]}, auth=CHATGPT, at_home=True)
    assert run.text() == "Hi"
    assert [turn.header("authorization") for turn in run.turns] == ["Bearer access-1", "Bearer access-2"]
    assert run.auth["tokens"]["access_token"] == "access-2"
    assert not (lite_client.folder / "auth.json").exists()


@pytest.mark.spec("auth-file-unchanged", "LITE-22")
def test_a_good_login_is_left_alone(lite_client: LiteClient) -> None:
    """With a valid login, the client does not change auth.json and sends no request to the token URL."""
    run = run_with(lite_client, b'{"auth_mode":"chatgpt", "tokens":{"access_token":"a","account_id":"b"}, "x":1}\n\n')
    assert run.auth_bytes == b'{"auth_mode":"chatgpt", "tokens":{"access_token":"a","account_id":"b"}, "x":1}\n\n'
    assert run.refreshes == []


@pytest.mark.parametrize(
    "auth",
    [
        b"",
        b'{"auth_mode": "chatgpt", "tok',
        b"[]",
        {"auth_mode": "chatgpt", "OPENAI_API_KEY": None, "tokens": None},
        {"auth_mode": "api_key", "OPENAI_API_KEY": None, "tokens": None},
        {},
    ],
    ids=["no-file", "no-json", "no-object", "no-tokens", "no-key", "nothing"],
)
@pytest.mark.expects_failure
@pytest.mark.spec("auth-file-bad", "LITE-24")
def test_a_login_that_cannot_be_used(lite_client: LiteClient, auth: object) -> None:
    """Without a token or a key the client sends no request and prints an error message."""
    run = lite_client("Hello", script={"turns": []}, auth=auth)
    run.failure(asked=False)
    assert run.requests == []
