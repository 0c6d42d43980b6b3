"""A response repeats the settings of its request, or the documented default of each.

Source: the openai package's type `Response`.
"""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin.backend.conversation import Backend
from suites.backend.expected import HELLO
from suites.lite_protocol import FUNCTION_TOOL

FORMAT = {"type": "json_schema", "name": "greeting", "schema": {"type": "object"}, "strict": False}
#: Setting -> a value of a request that is not the default.
GIVEN: dict[str, Any] = {
    "instructions": "Be short.",
    "max_output_tokens": 4000,
    "max_tool_calls": 3,
    "metadata": {"topic": "greeting"},
    "parallel_tool_calls": False,
    "prompt_cache_key": "cache-1",
    "safety_identifier": "person-1",
    "store": False,
    "temperature": 0.5,
    "tool_choice": "none",
    "tools": [FUNCTION_TOOL],
    "top_p": 0.5,
    "truncation": "auto",
    "user": "user-1",
}
#: Setting -> the default that the API reference documents.
DEFAULTS: dict[str, Any] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "service_tier": "default",
    "store": True,
    "temperature": 1.0,
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "truncation": "disabled",
}


def responses(backend: Backend, streamed: bool, **settings: Any) -> list[dict[str, Any]]:
    """Send a request as an SDK does, with an API key; return every state of the response, in order."""
    backend.login("api_key")
    request = {"model": "gpt-5.2", "input": HELLO, "stream": streamed, **settings}
    answer = backend.ask(request, {"originator": None})
    if streamed:
        return [event["response"] for event in answer.events if "response" in event]
    assert answer.status == 200, f"expected status 200 for a valid request, got {answer.status}\n{answer.report_on()}"
    return [answer.value]


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "not streamed"])
@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.spec("echo-setting", source="openai 3.52.0, the type Response", says="a response has the settings of its request")
def test_a_setting_comes_back(backend: Backend, name: str, streamed: bool) -> None:
    """Every state of the response repeats the value of the setting in the request."""
    more = {"tools": [FUNCTION_TOOL]} if name == "tool_choice" else {}
    found = responses(backend, streamed, **more, **{name: GIVEN[name]})
    if name == "tools":  # a service may add keys with their defaults
        found = [{"tools": [{key: tool.get(key) for key in FUNCTION_TOOL} for tool in each.get("tools", ())]} for each in found]
    assert [each.get(name) for each in found] == [GIVEN[name]] * len(found), found[-1]
    assert {type(each.get(name)) for each in found} == {type(GIVEN[name])}, "0 and 1 are not booleans"


@pytest.mark.parametrize("name", DEFAULTS)
@pytest.mark.spec("echo-default", source="openai 3.52.0, the type Response", says="a setting has its documented default")
def test_a_setting_that_is_left_out_has_its_default(backend: Backend, name: str) -> None:
    """If the request leaves out a setting, the response has the documented default."""
    for each in responses(backend, True):
        assert name in each, f"expected {name}: {DEFAULTS[name]!r} in the response, got no such key"
        assert each[name] == DEFAULTS[name]
        assert type(each[name]) is type(DEFAULTS[name]), f"expected {DEFAULTS[name]!r}, got {each[name]!r}"


@pytest.mark.spec("echo-text", source="openai 3.52.0, the type ResponseTextConfig", says="format, verbosity")
def test_the_format_of_the_text_comes_back(backend: Backend) -> None:
    """The response has `text.format` and `text.verbosity`, because SDKs need them to parse structured output."""
    for each in responses(backend, True, text={"format": FORMAT, "verbosity": "low"}):
        assert (each["text"]["format"]["type"], each["text"]["format"]["name"]) == ("json_schema", "greeting")
        assert each["text"]["format"]["schema"] == FORMAT["schema"]
        assert each["text"]["verbosity"] == "low"


@pytest.mark.spec("echo-text-default", source="openai 3.52.0, the type ResponseTextConfig", says="the default format is text")
def test_the_format_of_the_text_has_its_default(backend: Backend) -> None:
    """The default of `text.format` is plain text."""
    assert [each["text"]["format"] for each in responses(backend, True)] == [{"type": "text"}] * 3


@pytest.mark.spec("echo-reasoning", source="openai 3.52.0, the type Reasoning", says="effort")
def test_the_effort_comes_back(backend: Backend) -> None:
    """The response has the `reasoning.effort` of the request."""
    assert {each["reasoning"]["effort"] for each in responses(backend, True, reasoning={"effort": "low"})} == {"low"}


@pytest.mark.spec(
    "echo-completed-at", source="openai 3.52.0, the type Response", says="completed_at: set if the status is completed"
)
def test_only_a_completed_response_has_the_time_of_its_end(backend: Backend) -> None:
    """`completed_at` is null until the response is completed; then it is a time in seconds, not before `created_at`."""
    *earlier, last = responses(backend, True)
    assert [each.get("completed_at") for each in earlier] == [None] * len(earlier)
    assert isinstance(last["completed_at"], int | float)
    assert last["completed_at"] >= last["created_at"]
