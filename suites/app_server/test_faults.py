"""What a client gets if the model fails: messages, codexErrorInfo, retries; and the model's input in the next turn.

Source: docs/contract/real-0.92.md, section 5, row by row. The fake backend makes the faults; it is the upstream of a live server.
Retries are off unless a case turns them on.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from codex_replay.plugin import AppServer, Server
from suites.app_server.dialect import has_events, in_events, these, turn_id
from suites.app_server.expected import Events, all_of, events, text
from suites.app_server.turns import (
    ESTIMATE,
    asked_upstream,
    ended,
    items_of,
    last_words,
    methods,
    msgs,
    open_thread,
    run,
    texts,
    without_url,
)

WORDS = [text("Part of it")]
#: The provider gives up on a silent stream after 0.2 s.
IMPATIENT = {"model_providers": {"mock": {"stream_idle_timeout_ms": 200}}}
DISCONNECTED = "stream disconnected before completion: "
CLOSED = DISCONNECTED + "stream closed before response.completed"
DECODING = DISCONNECTED + "Transport error: network error: error decoding response body"


def fault(name: str, **more: Any) -> dict[str, Any]:
    """Return a turn of the script that sends WORDS and makes a mistake on purpose."""
    return {"items": WORDS, "fault": {"name": name, **more}}


def status(number: int, name: str) -> tuple[dict[str, Any], str, Any, bool]:
    """Return the row of the table for an HTTP status that the server passes on to the client unchanged."""
    body = {"error": {"message": "No.", "code": "no"}}
    answer = {"status": number, "body": body}
    return answer, f'unexpected status {number} {name}: {{"error":{{"message":"No.","code":"no"}}}}, url: URL', "other", False


#: name -> (the model's answer, the message, codexErrorInfo, True if the text before the fault is kept)
FAULTS: dict[str, tuple[dict[str, Any], str, Any, bool]] = {
    "end-of-stream": (fault("missing_completed"), CLOSED, "other", True),
    "incomplete": ({"items": [*WORDS, {"type": "incomplete", "reason": "max_output_tokens"}]}, CLOSED, "other", True),
    "error-event": ({"items": [*WORDS, {"type": "error", "code": "server_error", "message": "No."}]}, CLOSED, "other", True),
    "empty": (fault("empty"), CLOSED, "other", False),
    "reset": (fault("reset", after=5), DECODING, "other", False),
    "cut": (fault("cut", after=5), DECODING, "other", False),
    "cut-in-an-event": (fault("cut_in_event", after=5), DECODING, "other", False),
    "idle": (fault("idle", after=5), DISCONNECTED + "idle timeout waiting for SSE", "other", False),
    "quota": (
        fault("failed_insufficient_quota"),
        "Quota exceeded. Check your plan and billing details.",
        "usageLimitExceeded",
        True,
    ),
    "rate-limit": (
        fault("failed_rate_limit_exceeded", message="Please try again in 0.05s."),
        DISCONNECTED + "Please try again in 0.05s.",
        "other",
        True,
    ),
    "other-failure": (
        {"items": [{"type": "failed", "code": "server_error", "message": "No."}]},
        DISCONNECTED + "No.",
        "other",
        False,
    ),
    "status-400": ({"status": 400, "body": {"error": {"message": "No."}}}, '{"error":{"message":"No."}}', "other", False),
    "status-403": status(403, "Forbidden"),
    "status-404": status(404, "Not Found"),
    "status-429": (
        fault("http_429", retry_after="60"),
        "exceeded retry limit, last status: 429 Too Many Requests",
        {"responseTooManyFailedAttempts": {"httpStatusCode": 429}},
        False,
    ),
    "status-500": (
        fault("http_500"),
        "We're currently experiencing high demand, which may cause temporary errors.",
        "internalServerError",
        False,
    ),
    "status-502": status(502, "Bad Gateway"),
    "status-503": status(503, "Service Unavailable"),
    "usage-limit": (
        {"status": 429, "body": {"error": {"type": "usage_limit_reached", "plan_type": "pro", "resets_at": 1900000000}}},
        "You've hit your usage limit. Visit https://chatgpt.com/codex/settings/usage to purchase more credits "
        "or try again at Mar 17th, 2030 5:46 PM.",
        "usageLimitExceeded",
        False,
    ),
    "refused": (fault("refused"), DISCONNECTED + "error sending request for url (URL)", "other", False),
    "no-response-id": (
        {"items": [*WORDS, {"type": "event", "event": {"type": "response.completed", "response": {}}}], "end": False},
        DISCONNECTED + "failed to parse ResponseCompleted: missing field `id`",
        "other",
        True,
    ),
}


#: name -> message and codexErrorInfo, if 0.169.0 has others.
LATER: dict[str, tuple[str, Any]] = {
    "incomplete": ("Incomplete response returned, reason: max_output_tokens", "other"),
    "rate-limit": ("rate limit exceeded: Please try again in 0.05s.", "rateLimitExceeded"),
    "status-403": ("unexpected status 403 Forbidden: No., url: URL", {"httpConnectionFailed": {"httpStatusCode": 403}}),
    "status-404": ("unexpected status 404 Not Found: No., url: URL", {"httpConnectionFailed": {"httpStatusCode": 404}}),
    "status-500": (
        "We\N{RIGHT SINGLE QUOTATION MARK}re currently experiencing high demand, which may cause temporary errors.",
        "internalServerError",
    ),
    "status-502": ("unexpected status 502 Bad Gateway: No., url: URL", {"httpConnectionFailed": {"httpStatusCode": 502}}),
    "status-503": ("unexpected status 503 Service Unavailable: No., url: URL", {"httpConnectionFailed": {"httpStatusCode": 503}}),
    "usage-limit": (
        "You\N{RIGHT SINGLE QUOTATION MARK}ve hit your usage limit. Visit https://chatgpt.com/settings/usage "
        "to purchase more credits or try again at Mar 17th, 2030 5:46 PM.",
        "usageLimitExceeded",
    ),
    "refused": ("stream disconnected before completion: error sending request", "other"),
}


def snake(info: Any) -> Any:
    """Return codexErrorInfo in snake_case, the spelling of the events."""
    if isinstance(info, dict):
        return {snake(key): snake(value) for key, value in info.items()}
    return re.sub(r"[A-Z]", lambda found: "_" + found[0].lower(), info) if isinstance(info, str) else info


def end_of(server: Server, turn: str) -> Events:
    """Return the frames of a turn from its error to its end."""
    seen = events(server, turn)
    first = "codex/event/error" if has_events(server) else "error"
    at = next(n for n, (method, _) in enumerate(seen) if method == first)
    return seen[at:]


@pytest.mark.parametrize("name", FAULTS)
def test_fault(app_server: AppServer, name: str) -> None:
    """After each fault in the table, the turn fails with the listed message in three frames, and the next turn works.

    Source: REAL-98, REAL-99, REAL-100, REAL-101, REAL-103, REAL-104, REAL-105, REAL-106, REAL-107, REAL-108, REAL-109, REAL-112.
    """
    answer, message, info, kept = FAULTS[name]
    message, info = app_server.by_version({"0.0.0": (message, info), "0.169.0": LATER.get(name, (message, info))})
    server = app_server([answer, {"items": [text("Again", id="msg_2")]}], config=IMPATIENT)
    thread = open_thread(server)
    turn = run(server, thread, "first")
    assert turn["status"] == "failed"
    output = turn["error"]["message"]
    assert without_url(output) == message
    error = {"message": output, "codexErrorInfo": info, "additionalDetails": None}
    of = {"threadId": thread, "turnId": turn_id(server)}
    first = turn_id(server)
    wanted = [
        (
            "codex/event/error",
            {"id": "0", "msg": {"type": "error", "message": output, "codex_error_info": snake(info)}, "conversationId": thread},
        ),
        ("error", {"error": error, "willRetry": False, **of}),
        (
            "codex/event/task_complete",
            {"id": "0", "msg": {"type": "task_complete", "last_agent_message": None}, "conversationId": thread},
        ),
        ("turn/completed", {"threadId": thread, "turn": {"id": first, "items": [], "status": "failed", "error": error}}),
    ]
    assert end_of(server, first) == these(server, wanted)
    assert [item["text"] for item in items_of(server, "agentMessage")] == ["Part of it"] * kept
    assert run(server, thread, "second")["status"] == "completed"
    assert last_words(server) == [None if has_events(server) or not kept else "Part of it", "Again"]
    report = [("user", "first"), *[("assistant", "Part of it")] * kept, ("user", "second")]
    assert [texts(given) for given in asked_upstream(server)[1:]] in ([], [report])


#: A harmless irregularity of a stream -> the model's answer.
HARMLESS: dict[str, dict[str, Any]] = {
    "malformed-event": fault("malformed_event"),
    "unknown-event": fault("unknown_event"),
    "event-without-type": fault("missing_type", after=2),
    "comments": fault("comments"),
    "crlf": fault("crlf"),
    "split-characters": {"items": [text("Part of it")], "fault": "split_utf8"},
    "slow": fault("slow_drip", bytes=300, ms=2),
    "huge-event": fault("huge_event", bytes=200_000),
    "no-usage": {"items": WORDS, "usage": None},
}


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless(app_server: AppServer, name: str) -> None:
    """The turn succeeds, and the client gets no error. (REAL-110, REAL-111)"""
    server = app_server([HARMLESS[name]])
    thread = open_thread(server)
    assert run(server, thread)["status"] == "completed"
    assert last_words(server) == ["Part of it"]
    assert [item["text"] for item in items_of(server, "agentMessage")] == ["Part of it"]
    assert not {"error", "codex/event/error", "codex/event/stream_error", "codex/event/warning"} & set(methods(server))


def test_no_usage_is_no_count(app_server: AppServer) -> None:
    """The server sends thread/tokenUsage/updated only if the model's answer has `usage`. (REAL-111)"""
    server = app_server([{"items": WORDS, "usage": None}, {"items": [text("Again", id="msg_2")]}])
    thread = open_thread(server)
    run(server, thread)
    assert all_of(server, "thread/tokenUsage/updated") == []
    run(server, thread)
    assert [params["turnId"] for params in all_of(server, "thread/tokenUsage/updated")] == [turn_id(server, 1)]


def test_context_window(app_server: AppServer) -> None:
    """When the context window is full, the turn fails; the next turn starts with a summary of the thread. (REAL-102)"""
    full = fault("failed_context_length_exceeded")
    script = [full, {"items": [text("So far: one.", id="msg_2")]}, {"items": [text("Again", id="msg_3")]}]
    server = app_server(script, racy=ESTIMATE)
    thread = open_thread(server)
    turn = run(server, thread, "first")
    words = "Codex ran out of room in the model's context window. Start a new thread or clear earlier history before retrying."
    error = {"message": words, "codexErrorInfo": "contextWindowExceeded", "additionalDetails": None}
    assert (turn["status"], turn["error"]) == ("failed", these(server, error))
    assert run(server, thread, "second")["status"] == "completed"
    if has_events(server):
        assert all_of(server, "thread/compacted") == [{"threadId": thread, "turnId": "1"}]
    assert msgs(server, "context_compacted") == in_events(server, [{}])
    assert last_words(server) == [None if has_events(server) else "Part of it", "Again"]
    for given in asked_upstream(server)[2:]:
        message = texts(given)
        assert message[-1] == ("user", "second")
        assert "So far: one." in str(message)


def test_bad_image(app_server: AppServer) -> None:
    """A 400 about an image has its own message, and only this fault has the codexErrorInfo badRequest. (REAL-105)"""
    answer = {"status": 400, "body": {"error": {"message": "The image data you provided does not represent a valid image"}}}
    server = app_server([answer])
    thread = open_thread(server)
    given = [{"type": "image", "url": "data:image/png;base64,AAAA"}]
    server.request("turn/start", {"threadId": thread, "input": given})
    words = "Invalid image in your last message. Please remove it and try again."
    error = {"message": words, "codexErrorInfo": "badRequest", "additionalDetails": None}
    turn = ended(server, thread)
    assert (turn["status"], turn["error"]) == ("failed", these(server, error))
    assert msgs(server, "error") == in_events(server, [{"message": words, "codex_error_info": "bad_request"}])


def retrying(streams: int, requests: int = 0) -> dict[str, Any]:
    """Return a configuration with the given numbers of retries."""
    return {"model_providers": {"mock": {"stream_max_retries": streams, "request_max_retries": requests}}}


def retried(server: Server, thread: str, n: int, of: int) -> dict[str, Any]:
    """Return the `error` notification for a stream that the server requests again."""
    error = {
        "message": f"Reconnecting... {n}/{of}",
        "codexErrorInfo": {"responseStreamDisconnected": {"httpStatusCode": None}},
        "additionalDetails": CLOSED,
    }
    found: dict[str, Any] = these(server, {"error": error, "willRetry": True, "threadId": thread, "turnId": turn_id(server)})
    return found


def test_a_stream_is_begun_anew(app_server: AppServer) -> None:
    """Each retry of a stream sends an `error` with willRetry; the turn succeeds as soon as one retry does. (REAL-97)"""
    broken = {**fault("missing_completed"), "times": 2}
    server = app_server([broken, {"items": [text("Well", id="msg_2")]}], config=retrying(3))
    thread = open_thread(server)
    assert run(server, thread)["status"] == "completed"
    assert all_of(server, "error") == [retried(server, thread, n, 3) for n in (1, 2)]
    report = [(msg["message"], msg["codex_error_info"]) for msg in msgs(server, "stream_error")]
    info = {"response_stream_disconnected": {"http_status_code": None}}
    assert report == in_events(server, [("Reconnecting... 1/3", info), ("Reconnecting... 2/3", info)])
    assert msgs(server, "error") == in_events(server, [])
    assert last_words(server) == ["Well"]


def test_retries_come_to_an_end(app_server: AppServer) -> None:
    """When no retry is left, the turn fails with the message of the last fault. (REAL-97)"""
    server = app_server([{**fault("missing_completed"), "times": 2}], config=retrying(1))
    thread = open_thread(server)
    turn = run(server, thread)
    error = {"message": CLOSED, "codexErrorInfo": "other", "additionalDetails": None}
    assert (turn["status"], turn["error"]) == ("failed", these(server, error))
    of = {"threadId": thread, "turnId": turn_id(server)}
    assert all_of(server, "error") == [retried(server, thread, 1, 1), these(server, {"error": error, "willRetry": False, **of})]


def test_five_retries_of_a_stream_by_default(app_server: AppServer) -> None:
    """Without a setting, the server retries a stream five times. (REAL-96)"""
    plain = {"name": "plain", "base_url": "{upstream}/v1", "wire_api": "responses"}
    config = {"model_provider": "plain", "model_providers": {"plain": plain}}
    script = [{**fault("missing_completed"), "times": 5}, {"items": [text("Well", id="msg_2")]}]
    server = app_server(script, config=config)
    thread = open_thread(server)
    assert run(server, thread)["status"] == "completed"
    assert all_of(server, "error") == [retried(server, thread, n, 5) for n in (1, 2, 3, 4, 5)]
    assert last_words(server) == ["Well"]


def test_requests_are_repeated_unheard(app_server: AppServer) -> None:
    """A 5xx is retried as often as configured; the client gets no notification. (REAL-96)"""
    server = app_server([{"fault": "http_500", "times": 2}, {"items": [text("Well")]}], config=retrying(0, 2))
    thread = open_thread(server)
    assert run(server, thread)["status"] == "completed"
    assert all_of(server, "error") == []
    assert msgs(server, "stream_error") == in_events(server, [])
    assert last_words(server) == ["Well"]


#: Whether a 429 is retried as often as the settings for streams allow.
REPEATS_A_429 = {"0.0.0": False, "0.169.0": True}


def test_a_429_is_not_repeated(app_server: AppServer) -> None:
    """After a 429, the turn fails immediately: the server does not retry, even with a retry-after header.

    (REAL-107) Since 0.169.0 the server retries as often as the configuration allows for streams, and then the turn fails in the
    same way.
    """
    repeats = app_server.by_version(REPEATS_A_429)
    fault: dict[str, Any] = {"fault": {"name": "http_429", "retry_after": "1"}}
    server = app_server([{**fault, "times": 3} if repeats else fault], config=retrying(2, 2))
    thread = open_thread(server)
    turn = run(server, thread)
    info = {"responseTooManyFailedAttempts": {"httpStatusCode": 429}}
    assert (turn["status"], turn["error"]["codexErrorInfo"]) == ("failed", info)
    assert [error["willRetry"] for error in all_of(server, "error")] == ([True, True, False] if repeats else [False])


def test_turn_state_is_echoed_within_a_turn(app_server: AppServer) -> None:
    """The server repeats `x-codex-turn-state` of an answer in later requests of the same turn, but not in the next turn.

    Source: REAL-25.
    """
    # Any call that the server answers by itself.
    call = {"type": "function_call", "name": "update_plan", "call_id": "call_1", "arguments": {"plan": []}}
    name = "x-codex-turn-state"
    script = [
        {"items": [call], "headers": {name: "state-1"}},
        {"items": [text("One")], "expect": {"headers": {name: "state-1"}}},
        {"items": [text("Two", id="msg_2")], "expect": {"headers": {name: None}}},
    ]
    server = app_server(script)
    thread = open_thread(server)
    run(server, thread)
    assert run(server, thread)["status"] == "completed"
    assert last_words(server) == ["One", "Two"]
