"""The token URL. Source: docs/contract/lite.md, "Token Refresh (ChatGPT)", and docs/contract/real-0.92.md, section 2."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from codex_replay.plugin.backend.conversation import Backend
from suites.backend.expected import body, completed, refused

#: The exact example of "Request body (from codex-rs)".
REQUEST: dict[str, Any] = {
    "client_id": "app_EMoamEEZ73f0CkXaXp7hrann",
    "grant_type": "refresh_token",
    "refresh_token": "refresh-1",
    "scope": "openid profile email",
}


def changed(**fields: str | None) -> dict[str, Any]:
    """Return the refresh request with the given fields changed; the value None removes a field."""
    return {name: value for name, value in {**REQUEST, **fields}.items() if value is not None}


def claims_of(answer: Any) -> Any:
    """Return the claims of the id token in the response to a refresh; the token is a JWT of three parts."""
    parts = answer["id_token"].split(".")
    assert len(parts) == 3
    return json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))


@pytest.mark.spec("refresh-answer", "LITE-17")
def test_the_answer_of_a_refresh(backend: Backend) -> None:
    """The response to a refresh has three tokens, all of them strings."""
    answer = backend.refresh(REQUEST)
    assert answer.status == 200, answer.report_on()
    assert answer.header("content-type").partition(";")[0] == "application/json"
    assert all(
        isinstance(answer.value.get(name), str) and answer.value[name] for name in ("access_token", "refresh_token", "id_token")
    )


@pytest.mark.spec("refresh-form", "REAL-12")
def test_a_form_is_taken_as_well(backend: Backend) -> None:
    """The token URL accepts the fields as JSON and as a form, the encoding of OAuth (RFC 6749, section 6)."""
    answer = backend.refresh(REQUEST, form=True)
    assert answer.status == 200, answer.report_on()
    assert isinstance(answer.value.get("access_token"), str)


@pytest.mark.spec("refresh-id-token", "REAL-08")
def test_the_id_token_is_a_jwt_with_the_account(backend: Backend) -> None:
    """The id token is a JWT of three parts; its claims have the email address, the plan and the account."""
    claims = claims_of(backend.refresh(REQUEST).value)
    assert isinstance(claims["email"], str)
    auth = claims["https://api.openai.com/auth"]
    assert auth["chatgpt_account_id"] == "account-1"
    assert isinstance(auth["chatgpt_plan_type"], str)


@pytest.mark.spec(
    "refresh-user",
    source="known behaviour of the real service",
    says="a refresh must name the same user, or 0.169.0 ends the turn",
)
def test_two_refreshes_name_the_same_user(backend: Backend) -> None:
    """The id token of a refresh has the id of the user; the id token of a second refresh has the same id."""
    first = backend.refresh(REQUEST).value
    second = backend.refresh(changed(refresh_token=first["refresh_token"])).value
    user, later = (claims_of(answer)["https://api.openai.com/auth"].get("chatgpt_user_id") for answer in (first, second))
    assert isinstance(user, str)
    assert user
    assert later == user


@pytest.mark.spec("refresh-new-token", "REAL-12")
def test_the_new_access_token_is_good(backend: Backend) -> None:
    """After a refresh the backend accepts the new access token."""
    backend.login(access="expired")
    refused(backend.ask(body()), 401)
    fresh = backend.refresh(REQUEST).value["access_token"]
    completed(backend.ask(body(), backend.with_token(fresh)))


@pytest.mark.spec("refresh-old-token", "REAL-12")
def test_the_old_access_token_is_good_no_more(backend: Backend) -> None:
    """After a refresh the old access token gets the error for an expired token."""
    backend.refresh(REQUEST)
    assert refused(backend.ask(body()), 401)["code"] == "token_expired"


@pytest.mark.spec("refresh-rotates", "LITE-19", "REAL-18")
def test_a_refresh_token_is_good_once(backend: Backend) -> None:
    """The second use of a refresh token is refused with the code for a used token, and the new refresh token works."""
    fresh = backend.refresh(REQUEST).value["refresh_token"]
    assert fresh != REQUEST["refresh_token"]
    assert refused(backend.refresh(REQUEST), 401)["code"] == "refresh_token_reused"
    assert backend.refresh({**REQUEST, "refresh_token": fresh}).status == 200


@pytest.mark.spec("refresh-expired", "LITE-18", "REAL-17")
def test_an_expired_refresh_token(backend: Backend) -> None:
    """The error for an expired refresh token has the code that the real client expects."""
    backend.login(refresh="expired")
    assert refused(backend.refresh(REQUEST), 401)["code"] == "refresh_token_expired"


@pytest.mark.spec("refresh-revoked", "LITE-20", "REAL-19")
def test_a_revoked_refresh_token(backend: Backend) -> None:
    """The error for a revoked refresh token has the code that the real client expects."""
    backend.login(refresh="revoked")
    assert refused(backend.refresh(REQUEST), 401)["code"] == "refresh_token_invalidated"


@pytest.mark.spec("refresh-unknown", "REAL-20")
def test_a_refresh_token_that_nobody_issued(backend: Backend) -> None:
    """The error for an unknown refresh token does not have the code for an expired, used or revoked token."""
    error = refused(backend.refresh({**REQUEST, "refresh_token": "made-up"}), 401)
    assert error["code"] not in ("refresh_token_expired", "refresh_token_reused", "refresh_token_invalidated")


@pytest.mark.spec("refresh-grant", "LITE-15")
def test_another_grant(backend: Backend) -> None:
    """The token URL refuses every grant_type except refresh_token."""
    refused(backend.refresh({**REQUEST, "grant_type": "password"}), 400)


@pytest.mark.spec("refresh-token-missing", "LITE-13")
def test_no_refresh_token(backend: Backend) -> None:
    """The token URL refuses a request without a refresh token, and a body that is not JSON."""
    refused(backend.refresh({key: value for key, value in REQUEST.items() if key != "refresh_token"}), 400)
    refused(backend.refresh(b"{"), 400)


@pytest.mark.parametrize("client", [None, "", "app_of_another"], ids=["none", "empty", "another"])
@pytest.mark.spec("refresh-client", "LITE-14")
def test_another_client(backend: Backend, client: str | None) -> None:
    """The token URL accepts only the client id of Codex."""
    assert "client_id" in refused(backend.refresh(changed(client_id=client)), 400)["message"]


@pytest.mark.spec(
    "refresh-no-scope", source="known behaviour of the real service", says="Codex 0.116.0 to 0.169.0 refreshes without a scope"
)
def test_no_scope(backend: Backend) -> None:
    """The token URL accepts a refresh without a scope; the scope of the login then applies."""
    answer = backend.refresh(changed(scope=None))
    assert answer.status == 200, answer.report_on()


@pytest.mark.parametrize("scope", ["openid", "openid profile email offline_access"], ids=["less", "more"])
@pytest.mark.spec("refresh-scope", "LITE-16")
def test_another_scope(backend: Backend, scope: str | None) -> None:
    """The token URL accepts only the exact scope of the login."""
    assert "scope" in refused(backend.refresh(changed(scope=scope)), 400)["message"]
