"""Two http frames of which one is written as Codex's own JSON is and the other is not are compared by what they say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_replay.core.cassette.frames import Frame
from codex_replay.protocol.recordings.compare import compare

EVENT = {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "Hello"}


def plain(event: dict[str, Any]) -> dict[str, Any]:
    return {"event": event["type"], "data": event}


def spaced(event: dict[str, Any]) -> dict[str, Any]:
    return {"event": event["type"], "text": f"event: {event['type']}\ndata: {json.dumps(event)}\n\n", "view": event}


def chunk(text: str) -> dict[str, Any]:
    value = json.loads(text)
    return {"body": value} if json.dumps(value, separators=(",", ":")) == text else {"text": text, "view": value}


def run(kind: str, payload: dict[str, Any]) -> list[Frame]:
    request = {"method": "POST", "path": "/v1/responses", "headers": [], "body": {}}
    return [
        Frame(1, 0.0, "http", "client", "request", payload=request, conn=1),
        Frame(2, 0.1, "http", "server", "response", payload={"status": 200, "headers": []}, conn=1),
        Frame(3, 0.2, "http", "server", kind, payload=payload, conn=1),
    ]


def told(kind: str, one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return [
        each.sentence().partition("frame 3 of the second ")[2] for each in compare(run(kind, one), run(kind, other)).differences
    ]


WRITTEN = "have the same content but other bytes: spaces, order of keys or escapes"


@pytest.mark.parametrize(("one", "other"), [(plain, spaced), (spaced, plain)])
def test_an_event_that_says_the_same_is_written_otherwise(one: Any, other: Any) -> None:
    """It is a difference, since a client may trip over it; but none of what was said, and none to be read from a skeleton."""
    assert told("sse", one(EVENT), other(EVENT)) == [WRITTEN]


def test_what_an_event_says_is_compared_however_it_is_written() -> None:
    assert told("sse", plain(EVENT), spaced({**EVENT, "delta": "Hel"})) == [
        'differ at $.sse.data.delta: "Hello" and "Hel"',
        WRITTEN,
    ]


def test_two_of_one_form_are_compared_as_they_stand() -> None:
    assert told("sse", plain(EVENT), plain(EVENT)) == []
    assert told("sse", spaced(EVENT), spaced(EVENT)) == []
    assert told("sse", spaced(EVENT), spaced({**EVENT, "delta": "x"})) == ['differ at $.sse.view.delta: "Hello" and "x"']


def test_a_body_that_is_no_event_is_compared_alike() -> None:
    assert told("chunk", chunk('{"models":[]}'), chunk('{"models": []}')) == [WRITTEN]
    assert told("chunk", chunk('{"models":[]}'), chunk('{"models": 1}')) == ["differ at $.chunk.body.models: [] and 1", WRITTEN]


def test_a_text_that_is_no_json_keeps_its_own_difference() -> None:
    (said,) = told("chunk", {"body": {"models": []}}, {"text": "<h1>no</h1>"})
    assert "written otherwise" not in said
    assert "<h1>no</h1>" in said


def heads(one: list[list[str]], other: list[list[str]]) -> list[str]:
    runs = [run("sse", plain(EVENT)) for _ in range(2)]
    runs[0][1].payload["headers"], runs[1][1].payload["headers"] = one, other
    return [each.sentence("one", "two").partition("frame 2 of two ")[2] for each in compare(runs[0], runs[1]).differences]


OWN = [["content-type", "text/event-stream"], ["etag", '"1"'], ["x-request-id", "req"]]


def test_headers_are_compared_by_name_where_one_has_more() -> None:
    """By their places each would differ, in its name and in its value, from another."""
    told = heads(OWN, [["Server", "mine"], ["Content-Type", "text/plain"], ["x-request-id", "req"]])
    assert sorted(told) == [
        'differ at $.response.headers.etag: "\\"1\\"" in one, nothing in two',
        'differ at $.response.headers.server: "mine" in two, nothing in one',
        'differ at $.response.headers["content-type"]: "text/event-stream" and "text/plain"',
    ]


def test_headers_of_the_same_names_are_compared_by_place() -> None:
    twice = [["set-cookie", "a"], ["set-cookie", "b"]]
    assert heads(twice, [twice[0], ["set-cookie", "c"]]) == ['differ at $.response.headers[1][1]: "b" and "c"']


def test_an_order_or_a_case_of_headers_that_alone_differs_is_told() -> None:
    assert len(heads(OWN, [OWN[1], OWN[0], OWN[2]])) > 0
    assert heads(OWN, [["ETag", pair[1]] if pair[0] == "etag" else pair for pair in OWN]) == [
        'differ at $.response.headers[1][0]: "etag" and "ETag"'
    ]


def test_a_header_that_came_twice_is_joined() -> None:
    assert heads([*OWN, ["etag", '"2"']], OWN) == ['differ at $.response.headers.etag: "\\"1\\", \\"2\\"" and "\\"1\\""']


def test_headers_that_have_little_in_common_are_told_one_by_one() -> None:
    told = heads(OWN, [["Server", "mine"], ["Date", "now"], ["Connection", "close"], ["Content-Type", "text/plain"]])
    assert len(told) == 6
    assert all(" at $.response.headers" in each and "{" not in each for each in told)
