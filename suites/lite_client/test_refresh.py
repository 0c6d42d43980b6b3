"""A refresh that works. Source: docs/contract/lite.md, "Token Refresh (ChatGPT)"."""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin.lite_client.fixture import LiteClient, Run
from suites.lite_client.exact import BODY_TYPE, METHOD, REFRESH_BODY
from suites.lite_client.expected import ADD, CHATGPT, JWT, NEW_JWT, always, call

NEW: dict[str, Any] = {"access_token": "access-2", "refresh_token": "refresh-2", "id_token": NEW_JWT}
EXPIRED: dict[str, Any] = {"status": 401, "error": {"code": "token_expired", "message": "The access token has expired."}}
#: A login with more fields than a client needs.
RICH: dict[str, Any] = {
    **CHATGPT,
    "tokens": {**CHATGPT["tokens"], "scope": "all", "nested": {"kept": [1, None, "ü"]}},
    "last_refresh": "2026-01-01T00:00:00Z",
    "other": {"kept": True},
}


def script(*turns: object, **answer: Any) -> dict[str, Any]:
    """Return a script in which the token URL returns the tokens `NEW`, changed by `answer`."""
    given = answer or {"status": 200, "body": NEW}
    return {"auth": {"mode": "chatgpt", "refresh_answer": given}, "turns": list(turns)}


def refreshed(lite_client: LiteClient, **given: Any) -> Run:
    """Run the client against a backend that answers 401 to the first request only."""
    run = lite_client(script=script(EXPIRED, "Hi"), **{"auth": RICH, **given})
    assert run.text() == "Hi"
    return run


@pytest.mark.spec("refresh-once", "LITE-21")
def test_a_401_is_refreshed_and_asked_again(lite_client: LiteClient) -> None:
    """After a 401 the client refreshes once, repeats the request and gets the answer."""
    run = refreshed(lite_client)
    assert len(run.refreshes) == 1, f"expected one request to the token URL, got {len(run.refreshes)}"
    assert run.turns[-1].status == 200
    assert run.requests.index(run.refreshes[0]) < run.requests.index(run.turns[-1])


@pytest.mark.spec("refresh-url", "LITE-11")
def test_the_refresh_is_a_post(lite_client: LiteClient) -> None:
    """The client sends the refresh as a POST to the token URL and to no other URL."""
    run = refreshed(lite_client)
    assert [(r.method, r.path) for r in run.refreshes] == [(METHOD, "/oauth/token")]


@pytest.mark.spec("refresh-content-type", "LITE-12")
def test_the_refresh_is_json(lite_client: LiteClient) -> None:
    """The body of the refresh is JSON, not a form."""
    run = refreshed(lite_client)
    assert [(r.header("content-type") or "").split(";")[0].strip() for r in run.refreshes] == [BODY_TYPE]


@pytest.mark.spec("refresh-body", "LITE-13", "LITE-14", "LITE-15", "LITE-16")
def test_the_body_of_the_refresh(lite_client: LiteClient) -> None:
    """The body of the refresh has exactly the four fields of the specification."""
    run = refreshed(lite_client)
    assert [r.body for r in run.refreshes] == [{**REFRESH_BODY, "refresh_token": "refresh-1"}]


@pytest.mark.spec("refresh-new-bearer", "LITE-17", "LITE-21")
def test_the_new_token_is_used(lite_client: LiteClient) -> None:
    """After a refresh, the client repeats the request with the new access token."""
    run = refreshed(lite_client)
    assert run.turns[0].header("authorization") == "Bearer access-1"
    assert run.turns[-1].header("authorization") == "Bearer access-2"


@pytest.mark.spec("refresh-same-request", "LITE-21")
def test_the_request_is_the_same(lite_client: LiteClient) -> None:
    """After a refresh, the repeated request has the same body and the same session_id."""
    run = refreshed(lite_client)
    assert run.turns[-1].body == run.turns[0].body
    assert run.turns[-1].header("session_id") == run.turns[0].header("session_id")


@pytest.mark.spec("refresh-stored", "LITE-17")
def test_the_new_tokens_are_stored(lite_client: LiteClient) -> None:
    """After a refresh, auth.json has the three new tokens; the id token is a JWT, or an object that contains the JWT."""
    tokens = refreshed(lite_client).auth["tokens"]
    assert (tokens["access_token"], tokens["refresh_token"]) == ("access-2", "refresh-2")
    id_token = tokens["id_token"]
    assert (id_token["raw_jwt"] if isinstance(id_token, dict) else id_token) == NEW_JWT


@pytest.mark.spec("refresh-keeps-the-rest", "LITE-17")
def test_the_rest_of_the_file_stays(lite_client: LiteClient) -> None:
    """A refresh keeps every other field of auth.json; only the time of the last refresh may change."""
    after = refreshed(lite_client).auth
    tokens = ("access_token", "refresh_token", "id_token")
    kept = {key: value for key, value in after.items() if key not in ("tokens", "last_refresh")}
    assert kept == {key: value for key, value in RICH.items() if key not in ("tokens", "last_refresh")}
    assert {k: v for k, v in after["tokens"].items() if k not in tokens} == {
        k: v for k, v in RICH["tokens"].items() if k not in tokens
    }


@pytest.mark.spec(
    "refresh-stays-private",
    source="docs/lite-client.md, What is checked",
    says="A file that only its owner can read stays private",
)
def test_a_private_file_stays_private(lite_client: LiteClient) -> None:
    """If only the owner may read auth.json, this does not change when the client stores a refresh."""
    path = lite_client.folder / "auth.json"
    path.touch(0o600)
    refreshed(lite_client)
    assert path.stat().st_mode & 0o077 == 0, f"others can read the file: mode {path.stat().st_mode & 0o777:03o}"


@pytest.mark.spec(
    "refresh-tells-no-token",
    source="docs/lite-client.md, What is checked",
    says="No token is printed on stdout or stderr",
)
def test_no_token_is_told(lite_client: LiteClient) -> None:
    """The client prints no token after an accepted or a refused refresh, so a pasted bug report has no secrets.

    (The real Codex prints no token either.)
    """
    report = refreshed(lite_client)
    refusal = {"mode": "chatgpt", "refresh_answer": {"status": 401, "body": {"error": {"code": "refresh_token_reused"}}}}
    failed = lite_client(script={"auth": refusal, "turns": always(**EXPIRED)})
    failed.failure()
    tokens = [*(RICH["tokens"][name] for name in ("access_token", "refresh_token")), *NEW.values(), JWT]
    message = [run.stdout.decode("utf-8", "replace") + run.stderr for run in (report, failed)]
    assert [token for token in tokens if any(token in text for text in message)] == []


@pytest.mark.spec("refresh-id-token-jwt", "LITE-17", "REAL-08")
def test_an_id_token_that_is_a_jwt(lite_client: LiteClient) -> None:
    """If Codex wrote auth.json, the client can still refresh the login; after this, the id token in the file is the new JWT."""
    run = refreshed(lite_client, auth={"OPENAI_API_KEY": None, "tokens": {**CHATGPT["tokens"], "id_token": JWT}})
    id_token = run.auth["tokens"]["id_token"]
    assert (id_token["raw_jwt"] if isinstance(id_token, dict) else id_token) == NEW_JWT


@pytest.mark.parametrize("absent", ["refresh_token", "id_token"])
@pytest.mark.spec(
    "refresh-without-a-token",
    source="docs/lite-client.md, What is checked",
    says="A token that is missing from the response to a refresh stays unchanged",
)
def test_a_token_that_did_not_come_stays(lite_client: LiteClient, absent: str) -> None:
    """If the response to a refresh lacks a token, the client keeps the old token (RFC 6749, section 6), like the real Codex."""
    body = {name: token for name, token in NEW.items() if name != absent}
    run = lite_client(script=script(EXPIRED, "Hi", status=200, body=body), auth=CHATGPT)
    assert run.text() == "Hi"
    tokens = run.auth["tokens"]
    assert tokens["access_token"] == "access-2"
    assert tokens[absent] == CHATGPT["tokens"][absent]


@pytest.mark.spec("refresh-stored-for-the-next", "LITE-17")
def test_the_next_run_uses_what_was_stored(lite_client: LiteClient) -> None:
    """A second run of the client starts with the new tokens, and refreshes with the new refresh token."""
    first = lite_client(script=script(EXPIRED, "one", EXPIRED, "two"), auth=CHATGPT)
    assert first.status == 0, first.report_on()
    second = lite_client()
    assert second.text() == "two"
    assert second.turns[0].header("authorization") == "Bearer access-2"
    assert [r.body["refresh_token"] for r in second.refreshes] == ["refresh-2"]


@pytest.mark.spec("refresh-stored-at-once", "LITE-17")
def test_the_tokens_are_stored_whatever_comes_next(lite_client: LiteClient) -> None:
    """The client stores the new tokens even if the next request fails, because the old refresh token no longer works."""
    run = lite_client(script=script(EXPIRED, *always(status=500, body="out of order")), auth=CHATGPT)
    run.failure()
    assert run.auth["tokens"]["refresh_token"] == "refresh-2"


@pytest.mark.spec("refresh-in-a-follow-up", "LITE-21")
def test_a_token_that_expires_between_two_requests(lite_client: LiteClient) -> None:
    """After a 401 to a follow-up the client refreshes and repeats the whole conversation."""
    run = lite_client(script=script({"items": [call()]}, EXPIRED, "done"), auth=CHATGPT, tools=ADD)
    assert run.text() == "done"
    assert len(run.refreshes) == 1, f"expected one request to the token URL, got {len(run.refreshes)}"
    assert run.turns[-1].header("authorization") == "Bearer access-2"
    assert run.turns[-1].body == run.turns[1].body
    assert len(run.turns[-1].body["input"]) == 3


@pytest.mark.spec("refresh-only-once", "LITE-21")
def test_a_401_after_the_refresh_is_the_end(lite_client: LiteClient) -> None:
    """After a second 401 the client does not refresh again; it prints an error message and fails."""
    run = lite_client(script=script(*always(**EXPIRED)), auth=CHATGPT)
    run.failure()
    assert len(run.refreshes) == 1, f"expected one request to the token URL, got {len(run.refreshes)}"
    assert run.turns[-1].header("authorization") == "Bearer access-2"


@pytest.mark.spec("refresh-not-under-a-key", "LITE-22")
def test_an_api_key_is_not_refreshed(lite_client: LiteClient) -> None:
    """The client does not refresh after a 401 to an API key, even if the file has a refresh token."""
    auth = {**CHATGPT, "auth_mode": "api_key", "OPENAI_API_KEY": "sk-wrong"}
    turn = {"status": 401, "error": {"code": "invalid_api_key", "message": "Incorrect API key provided."}, "times": "always"}
    run = lite_client(script={"auth": "api_key", "turns": [turn]}, auth=auth, base="/v1")
    assert run.failure()
    assert run.turns
    assert run.refreshes == []
    assert run.auth == auth


@pytest.mark.parametrize("status", [400, 403, 500])
@pytest.mark.spec("refresh-on-401-alone", "LITE-22")
def test_other_errors_are_not_refreshed(lite_client: LiteClient, status: int) -> None:
    """Only a 401 causes a refresh; other error statuses do not."""
    run = lite_client(script=script(*always(status=status, error={"code": "x", "message": "No."})), auth=CHATGPT)
    run.failure()
    assert run.refreshes == []
    assert run.auth == CHATGPT
