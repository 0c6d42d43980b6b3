"""A refresh that fails. Source: docs/contract/lite.md, "Token Refresh (ChatGPT)"; codes: REAL-16 to REAL-20."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from codex_replay.plugin.lite_client.fixture import LiteClient, Run
from suites.lite_client.exact import AUTH_FILE, REASONS
from suites.lite_client.expected import CHATGPT

#: The accepted wordings of "already used".
USED = re.compile(r"reused|\b(already|before|once|twice)\b.{0,30}\bused\b|\bused\b.{0,30}\b(already|before|once|twice)\b", re.I)
EXPIRED: dict[str, Any] = {"status": 401, "error": {"code": "token_expired", "message": "Expired."}, "times": "always"}
#: The exact text of the file, so that any rewrite is visible.
AUTH = json.dumps(CHATGPT, indent=3).encode() + b"\n\n"


def refused(lite_client: LiteClient, status: int, body: object, **given: Any) -> Run:
    """Run the client with a refused token and the given response to the refresh.

    Check that the client tried a refresh and failed.
    """
    auth = {"mode": "chatgpt", "refresh_answer": {"status": status, "body": body}}
    run = lite_client(script={"auth": auth, "turns": [EXPIRED]}, auth=AUTH, **given)
    run.failure()
    assert run.refreshes, "expected a refresh, got no request to the token URL"
    return run


@pytest.mark.parametrize("code", REASONS)
@pytest.mark.spec("refresh-error-sentence", "LITE-18", "LITE-19", "LITE-20")
def test_the_sentence(lite_client: LiteClient, code: str) -> None:
    """For each code of a refused refresh, stderr contains the text from the specification; the rest of the message is free."""
    run = refused(lite_client, 401, {"error": {"code": code, "message": "No.", "type": "invalid_request_error", "param": None}})
    assert REASONS[code] in " ".join(run.stderr.split())


@pytest.mark.spec("refresh-error-other-code", "REAL-20")
def test_a_code_of_no_meaning(lite_client: LiteClient) -> None:
    """For an unknown code, the message gives none of the reasons of the known codes."""
    stderr = " ".join(refused(lite_client, 401, {"error": {"code": "something_else", "message": "No."}}).stderr.split())
    assert not re.search(r"refresh token (has expired|was already used|was revoked)", stderr), stderr


@pytest.mark.parametrize("body", [{"error": "refresh_token_reused"}, {"code": "refresh_token_reused"}], ids=["error", "code"])
@pytest.mark.spec("refresh-error-code", "REAL-16")
def test_where_the_code_stands(lite_client: LiteClient, body: object) -> None:
    """The client finds the code in each possible place of the body, and prints the code or a description of it."""
    stderr = " ".join(refused(lite_client, 401, body).stderr.split())
    assert USED.search(stderr), stderr


@pytest.mark.parametrize("status", [401, 400, 500])
@pytest.mark.spec("refresh-error-log-in", "LITE-23")
def test_a_new_login_is_asked_for(lite_client: LiteClient, status: int) -> None:
    """After every failed refresh, the message asks for a new login and names auth.json."""
    run = refused(lite_client, status, {"error": {"code": "refresh_token_expired", "message": "No."}})
    assert re.search(r"\b(log|sign)(ging)?[ -]?in\b|\blogin\b", run.stderr, re.IGNORECASE)
    assert AUTH_FILE in run.stderr


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, {"error": {"code": "refresh_token_expired"}}),
        (400, "bad"),
        (500, "out of order"),
        (200, "no json"),
        (200, {"access_token": None}),
    ],
    ids=["401", "400", "500", "no-json", "no-token"],
)
@pytest.mark.spec("refresh-error-file", "LITE-23", "REAL-21")
def test_the_file_is_left_alone(lite_client: LiteClient, status: int, body: object) -> None:
    """After a failed refresh the client does not change auth.json and does not retry the refresh."""
    run = refused(lite_client, status, body)
    assert run.auth_bytes == AUTH
    assert len(run.refreshes) == 1, f"The client asked the token URL {len(run.refreshes)} times, not once."


@pytest.mark.spec("refresh-error-no-retry", "LITE-23")
def test_the_request_is_not_asked_again(lite_client: LiteClient) -> None:
    """After a failed refresh the client sends no further request, because it has no valid token."""
    run = refused(lite_client, 401, {"error": {"code": "refresh_token_expired"}})
    assert run.requests[-1] is run.refreshes[-1]


@pytest.mark.spec("refresh-error-server", "REAL-22")
def test_what_the_token_url_said(lite_client: LiteClient) -> None:
    """If the token URL answers with another error, the client's message has the status and the body."""
    stderr = refused(lite_client, 500, "out of order").stderr
    assert "500" in stderr
    assert "out of order" in stderr


@pytest.mark.spec("refresh-error-unreachable", "LITE-23")
def test_a_token_url_that_is_not_there(lite_client: LiteClient) -> None:
    """If no server listens at the token URL, the client prints a message and does not change auth.json."""
    run = lite_client(script=[EXPIRED], auth=AUTH, token_url="http://127.0.0.1:9/oauth/token")
    run.failure()
    assert run.auth_bytes == AUTH


@pytest.mark.spec("refresh-error-no-refresh-token", "LITE-23")
def test_no_refresh_token(lite_client: LiteClient) -> None:
    """Without a refresh token the client asks for a new login and sends no request to the token URL."""
    tokens = {key: value for key, value in CHATGPT["tokens"].items() if key != "refresh_token"}
    run = lite_client(script=[EXPIRED], auth={**CHATGPT, "tokens": tokens})
    assert re.search(r"\b(log|sign)(ging)?[ -]?in\b|\blogin\b", run.failure(), re.IGNORECASE)
    assert run.refreshes == []
