"""What is served, and where.

Source: docs/contract/lite.md, "Overview: Endpoint"; docs/contract/real-0.92.md, sections 1 and 2.
"""

from __future__ import annotations

import pytest

from codex_replay.plugin.backend.conversation import Backend
from suites.backend.expected import body, refused


@pytest.mark.spec("endpoint-method", "LITE-02")
def test_responses_are_posted(backend: Backend) -> None:
    """Another method is refused, and not taken for a request."""
    answer = backend.ask(body(), method="PUT")
    assert answer.status in (404, 405), answer.tell()


@pytest.mark.spec("endpoint-path", "LITE-02")
def test_another_path_is_not_found(backend: Backend) -> None:
    """A slip in the base URL is said."""
    assert backend.ask(body(), path="/respond").status == 404


@pytest.mark.spec("endpoint-websocket", "REAL-05")
def test_a_websocket_is_answered_at_once(backend: Backend) -> None:
    """A later Codex tries a WebSocket first, and must learn at once that there is none."""
    upgrade = {"upgrade": "websocket", "connection": "Upgrade", "sec-websocket-version": "13", "sec-websocket-key": "AAAA"}
    assert backend.get("/v1/responses", upgrade).status == 426


@pytest.mark.spec("models-codex", "REAL-03")
def test_the_models_for_codex(backend: Backend) -> None:
    """A list under `models`."""
    answer = backend.get("/v1/models?client_version=0.92.0")
    assert answer.status == 200
    assert isinstance(answer.value["models"], list)


@pytest.mark.spec("models-api", source="openai 3.52.0, client.models.list()", says='{"object": "list", "data": [...]}')
def test_the_models_for_an_sdk(backend: Backend) -> None:
    """A list under `data`, of objects with an id."""
    value = backend.get("/v1/models").value
    assert value["object"] == "list"
    assert all(isinstance(model["id"], str) for model in value["data"])


@pytest.mark.spec("models-etag", "REAL-03")
def test_unchanged_models_are_not_sent_again(backend: Backend) -> None:
    """The tag of one answer makes the next one 304, and another tag does not."""
    etag = backend.get("/v1/models").header("etag")
    assert etag
    again = backend.get("/v1/models", {"if-none-match": etag})
    assert (again.status, again.body) == (304, b"")
    assert backend.get("/v1/models", {"if-none-match": '"other"'}).status == 200


@pytest.mark.spec("usage", "REAL-23")
def test_usage(backend: Backend) -> None:
    """The plan, and a window with what is used of it."""
    value = backend.get("/backend-api/wham/usage").value
    assert isinstance(value["plan_type"], str)
    assert isinstance(value["rate_limit"]["primary_window"]["used_percent"], int | float)


@pytest.mark.spec("usage-auth", "LITE-24")
def test_usage_needs_the_login(backend: Backend) -> None:
    """The limits are those of an account."""
    refused(backend.get("/backend-api/wham/usage", {"authorization": "Bearer no-such-token"}), 401)
