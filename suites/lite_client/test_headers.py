"""The headers of a request. Source: docs/contract/lite.md, "Required Headers"."""

from __future__ import annotations

import re
import uuid

import pytest

from codex_replay.plugin.lite_client.fixture import LiteClient
from suites.lite_client.exact import ACCEPT, BODY_TYPE, PRODUCT
from suites.lite_client.expected import ADD, API_KEY, call, then


@pytest.mark.spec("header-originator", "LITE-25")
def test_originator(lite_client: LiteClient) -> None:
    """The header originator has the value codex_cli_rs or the client's own name."""
    run = lite_client(script=["Hi"])
    run.text()
    assert re.fullmatch(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?", run.turns[0].header("originator") or "")


@pytest.mark.spec("header-user-agent", "LITE-26")
def test_user_agent(lite_client: LiteClient) -> None:
    """The User-Agent has codex_cli_rs or the client's originator, and a version, instead of the name of the HTTP library."""
    run = lite_client(script=["Hi"])
    run.text()
    request = run.turns[0]
    name, _, version = (request.header("user-agent") or "").partition("/")
    assert name in (PRODUCT, request.header("originator"))
    assert re.match(r"\d+(\.\d+)*", version), f"expected a version in User-Agent, got {request.header('user-agent')!r}"


@pytest.mark.spec("header-session-id", "LITE-28")
def test_session_id(lite_client: LiteClient) -> None:
    """The session_id is a uuid in its usual form."""
    run = lite_client(script=["Hi"])
    run.text()
    given = run.turns[0].header("session_id")
    assert given is not None
    assert str(uuid.UUID(given)) == given.lower()


@pytest.mark.spec("header-accept", "REAL-24")
def test_accept(lite_client: LiteClient) -> None:
    """The header Accept names text/event-stream, as in Codex; the default `*/*` of an HTTP library fails the check."""
    run = lite_client(script=["Hi"])
    run.text()
    taken = [kind.partition(";")[0].strip().lower() for kind in (run.turns[0].header("accept") or "").split(",")]
    assert ACCEPT in taken


@pytest.mark.spec("header-content-type", "REAL-24")
def test_content_type(lite_client: LiteClient) -> None:
    """The header Content-Type is application/json, as in Codex; an HTTP library may send text/plain for a string, or nothing."""
    run = lite_client(script=["Hi"])
    run.text()
    assert (run.turns[0].header("content-type") or "").partition(";")[0].strip().lower() == BODY_TYPE


@pytest.mark.spec("header-session-stays", "LITE-28")
def test_a_conversation_has_one_session_id(lite_client: LiteClient) -> None:
    """All requests of one conversation have the same session_id; another conversation has a different session_id."""
    first = lite_client(script=[*then(call()), "again"], tools=ADD)
    assert first.stdout, first.report_on()
    second = lite_client()
    second.text()
    ids = [request.header("session_id") for request in first.turns]
    assert ids == [ids[0]] * 2
    assert second.turns[0].header("session_id") != ids[0]


@pytest.mark.parametrize("base", ["/v1", "/backend-api/codex"], ids=["api", "chatgpt"])
@pytest.mark.spec("header-under-key", "LITE-25", "LITE-26", "LITE-28", "LITE-29")
def test_the_headers_under_an_api_key(lite_client: LiteClient, base: str) -> None:
    """With an API key the client sends originator, User-Agent and session_id as with a ChatGPT login, for any base URL."""
    chatgpt = lite_client(script=["Hi"])
    chatgpt.text()
    run = lite_client(script={"auth": "api_key", "turns": ["Hi"]}, auth=API_KEY, base=base)
    run.text()
    first, second = chatgpt.turns[0], run.turns[0]
    for name in ("originator", "user-agent"):
        assert second.header(name) == first.header(name), f"header {name} differs under an API key"
    given = second.header("session_id")
    assert given is not None, "header session_id is missing under an API key"
    assert str(uuid.UUID(given)) == given.lower()


@pytest.mark.spec("header-all-again", "LITE-30")
def test_a_follow_up_has_the_same_headers(lite_client: LiteClient) -> None:
    """A follow-up request has the same required headers as the first request."""
    run = lite_client(script=then(call()), tools=ADD)
    run.text()
    names = ("authorization", "chatgpt-account-id", "originator", "user-agent", "session_id")
    first, second = [[request.header(name) for name in names] for request in run.turns]
    assert None not in first
    assert first == second
