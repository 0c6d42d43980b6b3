"""Examples of the specification as JSON, replies to ask for, and checks of refusals and streams: values written by hand."""

from __future__ import annotations

from typing import Any

from codex_replay.plugin.backend.conversation import Answer, Backend
from suites.lite_protocol import FIXED, FUNCTION_TOOL, WEB_SEARCH_TOOL

#: The exact example of "Tool output follow-up", except for the dots of the call id.
CALL: dict[str, Any] = {"type": "function_call", "name": "add", "arguments": '{"a":2,"b":3}', "call_id": "call_1"}
OUTPUT: dict[str, Any] = {"type": "function_call_output", "call_id": "call_1", "output": "5"}
CUSTOM_CALL: dict[str, Any] = {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch", "call_id": "call_2"}
CUSTOM_OUTPUT: dict[str, Any] = {"type": "custom_tool_call_output", "call_id": "call_2", "output": "Done!"}


#: Prompts that ask the model for exactly one action.
HELLO = "Say hello in a few words, in plain text."
CALL_ADD = "Call the function add with a = 2 and b = 3. Say nothing else."
SEARCH = "Search the web for the weather in Paris today."
REPEAT = "Repeat the output of the tool word for word."


def user(text: str) -> dict[str, Any]:
    """Return a message of the user."""
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def body(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the request body of the specification with the given conversation (default: a greeting), and with the keys in
    `more`.

    A key with the value `...` is removed.
    """
    whole: dict[str, Any] = {
        "model": "gpt-5.2-codex",
        "instructions": "You are a helpful assistant.",
        "input": list(items) or [user(HELLO)],
        "tools": [],
        **FIXED,
        "prompt_cache_key": "0199a1b2-0000-7000-8000-000000000001",
        "text": {"verbosity": "medium"},
        **more,
    }
    return {key: value for key, value in whole.items() if value is not ...}


def refused(answer: Answer, *statuses: int) -> dict[str, Any]:
    """Check that a response is a refusal with one of the given statuses and a message; return its error object."""
    assert answer.status in statuses, (
        f"expected status {' or '.join(map(str, statuses))}, got {answer.status}\n{answer.report_on()}"
    )
    error = answer.error
    assert isinstance(error.get("message"), str), f"expected error.message in a refusal, got none\n{answer.report_on()}"
    assert error["message"], f"expected error.message in a refusal, got none\n{answer.report_on()}"
    return error


def completed(answer: Answer) -> Answer:
    """Check that a response is a stream that ends with response.completed; return the response."""
    assert answer.status == 200, f"expected status 200 for a valid request, got {answer.status}\n{answer.report_on()}"
    assert answer.events, f"expected a stream of events, got no event\n{answer.report_on()}"
    last = answer.events[-1].get("type")
    assert last == "response.completed", f"expected response.completed as the last event, got {last}\n{answer.report_on()}"
    return answer


#: Replies that do not come to a good end.
BROKEN: dict[str, list[Any]] = {
    "failed": ["half", {"type": "failed", "code": "server_error"}],
    "incomplete": ["half", {"type": "incomplete", "reason": "max_output_tokens"}],
}
#: One reply of each kind, for cases that need a fake with a script.
KINDS: dict[str, list[Any]] = {
    "text": ["Hello é✓ there, all of you."],
    "empty text": [""],
    "refusal": [{"type": "refusal", "refusal": "I will not."}],
    "function call": [{"type": "function_call", "name": "add", "arguments": {"a": 2, "b": 3}}],
    "parallel calls": [{"type": "function_call", "name": "add", "arguments": {"a": i}} for i in range(3)],
    "custom tool call": [{"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch\n*** End Patch\n"}],
    "web search": [{"type": "web_search_call", "query": "cats"}, "Found."],
    "reasoning": [{"type": "reasoning", "summary": ["One", "Two"], "content": "raw", "encrypted_content": "x"}, "ok"],
    "nothing": [],
}


def greeted(backend: Backend) -> Answer:
    """Request a greeting and return the response."""
    return completed(backend.ask(body()))


def called(backend: Backend) -> Answer:
    """Request a call of `add` and return the response."""
    return completed(backend.ask(body(user(CALL_ADD), tools=[FUNCTION_TOOL])))


def searched(backend: Backend) -> Answer:
    """Request a web search and return the response."""
    return completed(backend.ask(body(user(SEARCH), tools=[WEB_SEARCH_TOOL])))


def kinds(answer: Answer) -> list[str]:
    """Return the types of all events, in order."""
    return [str(event.get("type")) for event in answer.events]


#: What of a response changes while it is made.
MOVING = {"status", "output", "usage", "error", "incomplete_details", "completed_at"}


def must_come_once(answer: Answer, kind: str, place: int) -> None:
    """Check that an event comes once, at a place that is counted from 0."""
    found = [i for i, each in enumerate(kinds(answer)) if each == kind]
    assert found == [place], f"expected {kind} once, as event {place}; it came as events {found}\n{answer.report_on()}"


def must_add_up(events: list[dict[str, Any]]) -> None:
    """Check that added parts are empty and counted from 0, and that finished parts equal their joined deltas."""
    joined: dict[Any, str] = {}
    counts: dict[Any, int] = {}
    for event in events:
        kind = event["type"]
        place = (event.get("item_id"), event.get("content_index"), event.get("summary_index"))
        if kind == "response.output_item.added":
            item = event["item"]
            assert [item[name] for name in ("arguments", "input", "content", "summary") if item.get(name)] == [], item
        elif kind.endswith("_part.added"):
            assert text_of(event["part"]) == "", event
            index = "summary_index" if "summary" in kind else "content_index"
            before = counts.setdefault((event["item_id"], index), 0)
            assert event[index] == before, f"{kind}: expected {index} {before}, the number of earlier parts, got {event[index]}"
            counts[event["item_id"], index] += 1
        elif kind.endswith(".delta"):
            joined[place] = joined.get(place, "") + event["delta"]
        elif kind.endswith("_part.done"):
            assert text_of(event["part"]) == joined.get(place, ""), event


def text_of(part: dict[str, Any]) -> Any:
    """Return the text of a part, or its refusal."""
    return part.get("text", part.get("refusal"))


def must_be_one_response(events: list[dict[str, Any]]) -> None:
    """Compare the responses of all events with the response of the first event."""
    found = [(event["type"], event["response"]) for event in events if "response" in event]
    first = {key: value for key, value in found[0][1].items() if key not in MOVING}
    for kind, response in found:
        assert {key: value for key, value in response.items() if key not in MOVING} == first, f"{kind} has another response"
        if kind in ("response.created", "response.in_progress"):
            assert (response["status"], response["output"], response.get("usage")) == ("in_progress", [], None), kind
        if kind != "response.failed":
            assert response.get("error") is None, kind
