"""After a fault the client prints a message and exits with a status other than 0, within its time limit.

Source: docs/contract/real-0.92.md, section 5.
"""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin.lite_client.fixture import LiteClient
from suites.lite_client.exact import FAILED
from suites.lite_client.expected import ADD, always, call

TEXT = "This text never comes to its end."
#: A client may wait half a second for a byte; each case waits no longer than that.
SHORT = {"LITE_TIMEOUT": "0.5"}
#: The client's time limit for a byte that never comes.
SHORTER = {"LITE_TIMEOUT": "0.25"}


@pytest.mark.parametrize(
    "fault", ["cut", "cut_before_completed", "cut_in_event", "reset", "missing_completed", "empty", "refused", "idle"]
)
@pytest.mark.spec("fault-stream", "REAL-99", "REAL-100", "REAL-101")
def test_a_stream_that_breaks_off(lite_client: LiteClient, fault: str) -> None:
    """If a stream breaks off before `response.completed`, the client fails, even if text has arrived."""
    lite_client(script=always(items=[TEXT], fault=fault), env=SHORTER if fault == "idle" else SHORT).failure()


@pytest.mark.spec("fault-silent", "REAL-101")
def test_a_backend_that_never_answers(lite_client: LiteClient) -> None:
    """The client's time limit also applies while the client waits for the headers of the response."""
    lite_client(script=always(items=[TEXT], gate="never"), env=SHORTER).failure()


@pytest.mark.expects_failure
@pytest.mark.spec("fault-unreachable", "REAL-98")
def test_a_backend_that_is_not_there(lite_client: LiteClient) -> None:
    """The client reports a backend that does not listen at the base URL."""
    lite_client(base="http://127.0.0.1:9/backend-api/codex", env=SHORT).failure(asked=False)


@pytest.mark.spec("fault-malformed-end", "REAL-99", "REAL-110")
def test_an_end_that_cannot_be_read(lite_client: LiteClient) -> None:
    """The client does not accept a last event `response.completed` whose data is not JSON."""
    broken = {"type": "raw", "data": 'event: response.completed\ndata: {"type":"response.completed","respon\n\n'}
    lite_client(script=always(items=[TEXT, broken], end=False)).failure()


@pytest.mark.spec("fault-malformed-event", "REAL-110")
def test_an_event_that_cannot_be_read(lite_client: LiteClient) -> None:
    """The client may ignore an invalid event (as Codex does) or fail, but it never presents an incomplete text as the answer."""
    run = lite_client(script=always(items=[TEXT], fault="malformed_event"))
    if run.status == 0:
        assert run.text() == TEXT
    else:
        run.failure()


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 502, 503])
@pytest.mark.spec("fault-status", "REAL-105", "REAL-106", "REAL-107", "REAL-108", "REAL-109")
def test_an_error_status(lite_client: LiteClient, status: int) -> None:
    """After an HTTP error, the client's message has the status or the backend's error message."""
    headers = {"retry-after": "1"} if status == 429 else {}
    turn = always(status=status, headers=headers, error={"code": "some_code", "message": "The reason in words."})
    auth: dict[str, Any] = {"auth_mode": "api_key", "OPENAI_API_KEY": "sk-live"}
    run = lite_client(script={"auth": "api_key", "turns": turn}, auth=auth, base="/v1")
    stderr = run.failure()
    assert str(status) in stderr or "The reason in words" in stderr


@pytest.mark.spec("fault-status-text", "REAL-109")
def test_an_error_that_is_not_json(lite_client: LiteClient) -> None:
    """If the body of an error is not JSON, the client does not crash, and prints an error message."""
    turn = always(status=503, headers={"content-type": "text/html"}, body="<html><h1>Overloaded</h1>")
    run = lite_client(script=turn)
    stderr = run.failure()
    assert "503" in stderr or "Overloaded" in stderr


@pytest.mark.parametrize(
    "code",
    ["context_length_exceeded", "insufficient_quota", "rate_limit_exceeded", "server_error", "invalid_prompt", "never_heard_of"],
)
@pytest.mark.spec("fault-failed", "REAL-102", "REAL-103")
def test_response_failed(lite_client: LiteClient, code: str) -> None:
    """If the response fails during the stream, the client fails with a message that has the reason."""
    run = lite_client(script=always(items=["Some text", {"type": "failed", "code": code, "message": "The reason in words."}]))
    stderr = run.failure()
    words = (code, "The reason in words", FAILED.get(code, code))
    assert [word for word in words if word.lower() in stderr.lower()], (
        f"The client's message has none of the texts {words}: {stderr!r}"
    )


@pytest.mark.parametrize("reason", ["max_output_tokens", "content_filter"])
@pytest.mark.spec("fault-incomplete", "REAL-99")
def test_response_incomplete(lite_client: LiteClient, reason: str) -> None:
    """If the response is incomplete, the client fails."""
    lite_client(script=always(items=["Some text", {"type": "incomplete", "reason": reason}])).failure()


@pytest.mark.spec("fault-error-event", "REAL-99")
def test_an_error_event(lite_client: LiteClient) -> None:
    """If the stream has an `error` event, the client fails."""
    lite_client(script=always(items=["Some text", {"type": "error", "code": "server_error", "message": "No."}])).failure()


@pytest.mark.parametrize("fault", ["cut_before_completed", "http_500", "failed_server_error"])
@pytest.mark.spec("fault-in-a-follow-up", "LITE-57", "REAL-98")
def test_a_follow_up_that_fails(lite_client: LiteClient, fault: str) -> None:
    """If the response after a call fails, the client does not print the text before the call as its answer."""
    script = [{"items": ["Let me see.", call()]}, *always(items=["Half"], fault=fault)]
    run = lite_client(script=script, tools=ADD)
    run.failure()
    assert len(run.turns) >= 2


@pytest.mark.parametrize("fault", ["duplicated_frames", "delta_before_added", "missing_type"])
@pytest.mark.spec("fault-no-wrong-text", "REAL-110")
def test_a_stream_out_of_order_gives_no_wrong_text(lite_client: LiteClient, fault: str) -> None:
    """With repeated, early or untyped events the client prints the correct text or reports a failure."""
    run = lite_client(script=always(items=[TEXT], fault=fault))
    if run.status == 0:
        assert run.text() == TEXT
    else:
        run.failure()
