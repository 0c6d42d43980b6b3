"""Words of the specification as JSON, and what a refusal looks like. Written out from the text; no builder is in between."""

from __future__ import annotations

from typing import Any

from codex_replay.plugin.backend.conversation import Answer
from suites.lite_protocol import FIXED

#: "Tool output follow-up", word for word except for the dots of the call id.
CALL: dict[str, Any] = {"type": "function_call", "name": "add", "arguments": '{"a":2,"b":3}', "call_id": "call_1"}
OUTPUT: dict[str, Any] = {"type": "function_call_output", "call_id": "call_1", "output": "5"}
CUSTOM_CALL: dict[str, Any] = {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch", "call_id": "call_2"}
CUSTOM_OUTPUT: dict[str, Any] = {"type": "custom_tool_call_output", "call_id": "call_2", "output": "Done!"}

#: What the model is asked where it should do one thing and no other.
HELLO = "Say hello in a few words, in plain text."
CALL_ADD = "Call the function add with a = 2 and b = 3. Say nothing else."
SEARCH = "Search the web for the weather in Paris today."
REPEAT = "Repeat the output of the tool word for word."


def user(text: str) -> dict[str, Any]:
    """Return a message of the user."""
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def body(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return "Request Body" with this conversation (without one: a greeting); a key of `more` that is ... is left out."""
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
    """Hold an answer to be a refusal with one of these statuses and a message; return its error object."""
    assert answer.status in statuses, f"status {answer.status}, expected {' or '.join(map(str, statuses))}\n{answer.tell()}"
    error = answer.error
    assert isinstance(error.get("message"), str), f"a refusal says why\n{answer.tell()}"
    assert error["message"], f"a refusal says why\n{answer.tell()}"
    return error


def completed(answer: Answer) -> Answer:
    """Hold an answer to be a stream that came to its good end; return it."""
    assert answer.status == 200, f"status {answer.status}, where the request is to be taken\n{answer.tell()}"
    assert answer.events, f"there is no event in the stream\n{answer.tell()}"
    last = answer.events[-1].get("type")
    assert last == "response.completed", f"the last event is {last}, and not response.completed\n{answer.tell()}"
    return answer
