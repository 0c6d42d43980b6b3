"""The paths of the backend, and their responses.

Source: docs/contract/lite.md, "Overview: Endpoint"; docs/contract/real-0.92.md, sections 1 and 2.
"""

from __future__ import annotations

import pytest

from codex_replay.plugin.backend.conversation import Backend
from suites.backend.expected import body, refused


@pytest.mark.spec("endpoint-method", "LITE-02")
def test_responses_are_posted(backend: Backend) -> None:
    """The backend refuses every method except POST."""
    answer = backend.ask(body(), method="PUT")
    assert answer.status in (404, 405), answer.report_on()


@pytest.mark.spec("endpoint-path", "LITE-02")
def test_another_path_is_not_found(backend: Backend) -> None:
    """A wrong path gets a 404."""
    assert backend.ask(body(), path="/respond").status == 404


@pytest.mark.spec("endpoint-websocket", "REAL-05")
def test_a_websocket_is_answered_at_once(backend: Backend) -> None:
    """The backend answers a WebSocket request immediately, because newer Codex versions first try a WebSocket."""
    upgrade = {"upgrade": "websocket", "connection": "Upgrade", "sec-websocket-version": "13", "sec-websocket-key": "AAAA"}
    assert backend.get("/v1/responses", upgrade).status == 426


@pytest.mark.spec("models-codex", "REAL-03")
def test_the_models_for_codex(backend: Backend) -> None:
    """The response for Codex has the models in a list under `models`."""
    answer = backend.get("/v1/models?client_version=0.92.0")
    assert answer.status == 200
    assert isinstance(answer.value["models"], list)


@pytest.mark.spec("models-api", source="openai 3.52.0, client.models.list()", says='{"object": "list", "data": [...]}')
def test_the_models_for_an_sdk(backend: Backend) -> None:
    """The response for an SDK has the models under `data`, as objects with an id."""
    value = backend.get("/v1/models").value
    assert value["object"] == "list"
    assert all(isinstance(model["id"], str) for model in value["data"])


@pytest.mark.spec("models-etag", "REAL-03")
def test_unchanged_models_are_not_sent_again(backend: Backend) -> None:
    """A request with the current ETag gets a 304; a request with another ETag gets the models."""
    etag = backend.get("/v1/models").header("etag")
    assert etag
    again = backend.get("/v1/models", {"if-none-match": etag})
    assert (again.status, again.body) == (304, b"")
    assert backend.get("/v1/models", {"if-none-match": '"other"'}).status == 200


@pytest.mark.spec("usage", "REAL-23")
def test_usage(backend: Backend) -> None:
    """The usage has the plan and a rate limit window with its used percentage."""
    value = backend.get("/backend-api/wham/usage").value
    assert isinstance(value["plan_type"], str)
    assert isinstance(value["rate_limit"]["primary_window"]["used_percent"], int | float)


@pytest.mark.spec("usage-auth", "LITE-24")
def test_usage_needs_the_login(backend: Backend) -> None:
    """The backend refuses a request for the usage without a valid login, because limits belong to an account."""
    refused(backend.get("/backend-api/wham/usage", {"authorization": "Bearer no-such-token"}), 401)


@pytest.mark.spec(
    "workspaces",
    source="known behaviour of the real service",
    says="wham/accounts/check has the account of the login, an https origin, a routing",
)
def test_the_workspaces_have_the_account_and_where_it_is_served(backend: Backend) -> None:
    """The answer about workspaces has the members without which account/read of 0.169.0 fails."""
    answer = backend.get("/backend-api/wham/accounts/check", {"chatgpt-account-id": "account-1"})
    assert answer.status == 200, answer.report_on()
    (account,) = [each for each in answer.value["accounts"] if each["id"] == "account-1"]
    assert account["workspace_backend_origin"].startswith("https://")
    assert account["account_routing_override"] in ("NO_CONSTRAINT", "us", "us_cr")
    assert "account-1" in answer.value["account_ordering"]


@pytest.mark.spec("workspaces-auth", "LITE-24")
def test_the_workspaces_need_the_login(backend: Backend) -> None:
    """The backend refuses a request for the workspaces without a valid login, because workspaces belong to an account."""
    refused(backend.get("/backend-api/wham/accounts/check", {"authorization": "Bearer no-such-token"}), 401)


@pytest.mark.spec(
    "settings-user", source="known behaviour of the real service", says="wham/settings/user has `commit_attribution_enabled`"
)
def test_the_settings_of_the_user(backend: Backend) -> None:
    """The settings of the user state whether commits name Codex."""
    answer = backend.get("/backend-api/wham/settings/user")
    assert answer.status == 200, answer.report_on()
    assert isinstance(answer.value["commit_attribution_enabled"], bool)


@pytest.mark.spec(
    "reset-credits",
    source="known behaviour of the real service",
    says="wham/rate-limit-reset-credits has `available_count` and the list `credits`",
)
def test_the_credits_that_reset_rate_limits(backend: Backend) -> None:
    """The answer counts and lists the credits that reset the rate limits; 0.169.0 requests these credits with the usage."""
    answer = backend.get("/backend-api/wham/rate-limit-reset-credits")
    assert answer.status == 200, answer.report_on()
    assert type(answer.value["available_count"]) is int
    assert isinstance(answer.value["credits"], list)


@pytest.mark.spec("reset-credits-auth", "LITE-24")
def test_the_credits_need_the_login(backend: Backend) -> None:
    """The backend refuses a request for the credits without a valid login, because credits belong to an account."""
    refused(backend.get("/backend-api/wham/rate-limit-reset-credits", {"authorization": "Bearer no-such-token"}), 401)
