"""Which logins and headers the backend accepts. Source: docs/contract/lite.md, "Auth" and "Required Headers"."""

from __future__ import annotations

import pytest

from codex_replay.plugin.backend.conversation import CHATGPT, Backend
from suites.backend.expected import body, completed, refused

#: Each case runs over HTTP and over a WebSocket.
pytestmark = pytest.mark.both_transports


@pytest.mark.spec("auth-chatgpt", "LITE-05", "LITE-24")
def test_an_access_token_with_its_account_is_taken(backend: Backend) -> None:
    """The backend accepts a request with the headers of the specification."""
    completed(backend.ask(body()))


@pytest.mark.spec("auth-api-key", "LITE-05")
def test_an_api_key_is_taken(backend: Backend) -> None:
    """The backend accepts an API key as the bearer, without an account."""
    backend.login("api_key")
    completed(backend.ask(body()))


@pytest.mark.spec("auth-bearer-missing", "LITE-09", "LITE-24")
def test_no_bearer(backend: Backend) -> None:
    """The backend refuses a request without `Authorization`."""
    refused(backend.ask(body(), {"authorization": None}), 401)


@pytest.mark.spec("auth-bearer-scheme", "LITE-09", "LITE-24")
def test_another_scheme_is_no_bearer(backend: Backend) -> None:
    """The backend refuses a token with another scheme than Bearer."""
    refused(backend.ask(body(), {"authorization": "Basic YWNjZXNzLTE6"}), 401)


@pytest.mark.spec("auth-bearer-wrong", "LITE-05", "LITE-09")
def test_a_token_that_nobody_issued(backend: Backend) -> None:
    """The backend refuses an access token that it did not issue."""
    refused(backend.ask(body(), {"authorization": "Bearer no-such-token"}), 401)


@pytest.mark.spec("auth-key-wrong", "LITE-05", "LITE-09")
def test_a_key_that_nobody_issued(backend: Backend) -> None:
    """The backend refuses an unknown API key."""
    backend.login("api_key")
    refused(backend.ask(body(), {"authorization": "Bearer sk-no-such-key"}), 401)


@pytest.mark.spec("auth-token-expired", "LITE-09", "LITE-21")
def test_an_expired_token(backend: Backend) -> None:
    """An expired access token gets a 401 with the error code for expired tokens."""
    backend.login(access="expired")
    assert refused(backend.ask(body()), 401)["code"] == "token_expired"


@pytest.mark.spec("auth-token-revoked", "LITE-09", "LITE-21")
def test_a_revoked_token(backend: Backend) -> None:
    """A revoked access token gets a 401 with the error code for revoked tokens."""
    backend.login(access="revoked")
    assert refused(backend.ask(body()), 401)["code"] == "token_revoked"


@pytest.mark.spec("auth-account-missing", "LITE-06")
def test_no_account(backend: Backend) -> None:
    """With a ChatGPT login, a request without the account header is refused; the error message names this header."""
    error = refused(backend.ask(body(), {"chatgpt-account-id": None}), 400, 401, 403)
    assert "chatgpt-account-id" in error["message"]


@pytest.mark.spec("auth-account-wrong", "LITE-06")
def test_another_account(backend: Backend) -> None:
    """The backend refuses an access token together with the account of another login."""
    refused(backend.ask(body(), {"chatgpt-account-id": "00000000-0000-0000-0000-000000000000"}), 400, 401, 403)


@pytest.mark.spec("auth-account-under-key", "LITE-08")
def test_an_account_beside_an_api_key(backend: Backend) -> None:
    """The backend refuses an API key together with a ChatGPT account, because only a ChatGPT login has an account."""
    backend.login("api_key")
    refused(backend.ask(body(), {"chatgpt-account-id": "account-1"}), 400)


@pytest.mark.spec("header-originator", "LITE-25")
def test_no_originator(backend: Backend) -> None:
    """The originator is required."""
    refused(backend.ask(body(), {"originator": None}), 400)


@pytest.mark.spec("header-originator-custom", "LITE-25")
def test_a_custom_originator(backend: Backend) -> None:
    """The backend accepts any originator."""
    completed(backend.ask(body(), {"originator": "my_client"}))


@pytest.mark.spec("header-session-missing", "LITE-28")
def test_no_session(backend: Backend) -> None:
    """The backend refuses a request without a session id."""
    refused(backend.ask(body(), {"session_id": None}), 400)


@pytest.mark.spec("header-session-uuid", "LITE-28")
def test_a_session_that_is_no_uuid(backend: Backend) -> None:
    """The backend refuses a session_id that is not a uuid."""
    refused(backend.ask(body(), {"session_id": "conversation-1"}), 400)


@pytest.mark.spec("header-user-agent", "LITE-27")
def test_no_user_agent(backend: Backend) -> None:
    """The backend refuses a request without a User-Agent."""
    assert "User-Agent" in refused(backend.ask(body(), {"user-agent": None}), 400)["message"]


@pytest.mark.parametrize("name", ["originator", "user-agent", "session_id"])
@pytest.mark.spec("header-under-key", "LITE-29")
def test_the_headers_under_an_api_key(backend: Backend, name: str) -> None:
    """With an API key at the path of the ChatGPT backend, a request needs every header except the account header."""
    backend.login("api_key", base=CHATGPT)
    completed(backend.ask(body()))
    assert name in refused(backend.ask(body(), {name: None}), 400)["message"].lower()


@pytest.mark.spec("header-order-and-case", "REAL-24")
def test_names_of_headers_in_any_case(backend: Backend) -> None:
    """The names of headers are not case-sensitive."""
    given = {"Session_ID": "0199A1B2-0000-7000-8000-000000000001", "ORIGINATOR": "codex_cli_rs"}
    completed(backend.ask(body(), {"session_id": None, "originator": None, **given}))


@pytest.mark.spec(
    "error-shape", source="the error object of the OpenAI API", says='{"error": {"message", "type", "param", "code"}}'
)
def test_a_refusal_has_the_shape_of_the_api(backend: Backend) -> None:
    """The answer to every refused request has `error.message` and `error.code`."""
    answers = [backend.ask(body(), {"authorization": None}), backend.ask(body(), {"originator": None}), backend.ask(b"{")]
    if not backend.live:
        answers += [backend.refresh({}), backend.refresh({"grant_type": "refresh_token", "refresh_token": "refresh-1"})]
        backend.login("api_key")
        answers += [backend.ask(body(), {"authorization": None}), backend.ask(body(model=...)), backend.ask(b"{")]
    for answer in answers:
        error = refused(answer, 400, 401)
        assert set(answer.value) == {"error"}
        assert set(error) >= {"message", "type", "param", "code"}
        assert isinstance(error["type"], str)
        assert error["type"].strip() == error["type"] != ""
        for name in ("param", "code"):
            assert error[name] is None or (isinstance(error[name], str) and error[name].strip() == error[name] != ""), name
        assert answer.header("content-type").startswith("application/json")
