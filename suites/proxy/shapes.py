"""The objects of the OpenAI API, described as data: the members that a client reads, and the types of these members.

Source: the OpenAI API reference and the types of the `openai` package. A member with `?` may be absent. Members that no shape
names are allowed, because clients ignore them. A type is one word or several with a bar between them; `=a|b` is one of these
texts.
"""

from __future__ import annotations

from typing import Any

from suites.proxy.saying import short

TYPES: dict[str, Any] = {
    "null": lambda it: it is None,
    "text": lambda it: isinstance(it, str),
    "word": lambda it: isinstance(it, str) and it.strip() == it != "",
    "boolean": lambda it: isinstance(it, bool),
    "integer": lambda it: isinstance(it, int) and not isinstance(it, bool),
    "count": lambda it: isinstance(it, int) and not isinstance(it, bool) and it >= 0,
    "time": lambda it: isinstance(it, int | float) and not isinstance(it, bool) and it > 0,
    "number": lambda it: isinstance(it, int | float) and not isinstance(it, bool),
    "array": lambda it: isinstance(it, list),
    "object": lambda it: isinstance(it, dict),
}

#: How a failure names a type whose own name does not say enough.
READ = {"word": "text without blanks around it", "count": "whole number of 0 or more", "time": "number of seconds above 0"}
#: A union of objects, chosen by their `type`; a type that it does not name is another object of the API.
LOGPROBS = ("null", [{"token": "text"}])
PART = {"type": {"output_text": {"text": "text", "annotations?": [{"type": "word"}], "logprobs?": LOGPROBS}}}
ITEM = {
    "type": {
        "message": {"id": "word", "role": "=assistant", "status": "=in_progress|completed|incomplete", "content": [PART]},
        "function_call": {
            "id?": "word|null",
            "call_id": "word",
            "name": "word",
            "arguments": "text",
            "status?": "=in_progress|completed|incomplete",
        },
    }
}
RESPONSE: dict[str, Any] = {
    "id": "word",
    "object": "=response",
    "created_at": "time",
    "completed_at?": "time|null",
    "status": "=in_progress|completed|incomplete|failed",
    "model": "word",
    "output": [ITEM],
    "error": ("null", {"code": "word", "message": "word"}),
    "incomplete_details?": ("null", {"reason?": "text"}),
    "usage?": (
        "null",
        {
            "input_tokens": "count",
            "input_tokens_details?": ("null", {"cached_tokens?": "count", "cache_write_tokens?": "count"}),
            "output_tokens": "count",
            "output_tokens_details?": ("null", {"reasoning_tokens?": "count"}),
            "total_tokens": "count",
        },
    ),
    "instructions?": "text|array|null",
    "max_output_tokens?": "count|null",
    "metadata?": "object|null",
    "parallel_tool_calls?": "boolean",
    "previous_response_id?": "word|null",
    "reasoning?": ("null", {"effort?": "word|null", "summary?": "word|null"}),
    "store?": "boolean|null",
    "temperature?": "number|null",
    "text?": ("null", {"format?": {"type": "word"}}),
    "tool_choice?": "word|object",
    "tools?": [{"type": "word"}],
    "top_p?": "number|null",
    "truncation?": "word|null",
}
_AT = {"item_id": "word", "output_index": "count"}
_IN_PART = {**_AT, "content_index": "count"}
EVENTS: dict[str, dict[str, Any]] = {
    **{f"response.{name}": {"response": RESPONSE} for name in ("created", "in_progress", "completed", "failed", "incomplete")},
    **{f"response.output_item.{name}": {"output_index": "count", "item": ITEM} for name in ("added", "done")},
    **{f"response.content_part.{name}": {**_IN_PART, "part": PART} for name in ("added", "done")},
    "response.output_text.delta": {**_IN_PART, "delta": "text", "logprobs?": LOGPROBS},
    "response.output_text.done": {**_IN_PART, "text": "text", "logprobs?": LOGPROBS},
    "response.function_call_arguments.delta": {**_AT, "delta": "text"},
    "response.function_call_arguments.done": {**_AT, "arguments": "text", "name?": "word"},
    "error": {"message": "word", "code?": "word|null", "param?": "text|null"},
}

_CHAT = {"id": "word", "created": "count", "model": "word"}
_USAGE: dict[str, Any] = {
    "prompt_tokens": "count",
    "completion_tokens": "count",
    "total_tokens": "count",
    "prompt_tokens_details?": ("null", {"cached_tokens?": "count"}),
    "completion_tokens_details?": ("null", {"reasoning_tokens?": "count"}),
}
_CALL = {"id": "word", "type": "=function", "function": {"name": "word", "arguments": "text"}}
_ENDS = "=stop|length|tool_calls|content_filter|function_call"
_MESSAGE = {"role": "=assistant", "content": "text|null", "refusal?": "text|null", "tool_calls?": ("null", [_CALL])}
COMPLETION: dict[str, Any] = {
    **_CHAT,
    "object": "=chat.completion",
    "choices": [{"index": "count", "message": _MESSAGE, "finish_reason": _ENDS, "logprobs?": "object|null"}],
    "usage?": ("null", _USAGE),
}
#: A call in a chunk; a later chunk of the same call has more of its arguments alone.
_CALL_PIECE = {
    "index": "count",
    "id?": "word|null",
    "type?": ("null", "=function"),
    "function?": {"name?": "word|null", "arguments?": "text|null"},
}
_DELTA = {
    "role?": ("null", "=assistant"),
    "content?": "text|null",
    "refusal?": "text|null",
    "tool_calls?": ("null", [_CALL_PIECE]),
}
CHUNK: dict[str, Any] = {
    **_CHAT,
    "object": "=chat.completion.chunk",
    "choices": [{"index": "count", "delta": _DELTA, "finish_reason?": ("null", _ENDS), "logprobs?": "object|null"}],
    "usage?": ("null", _USAGE),
}
ERROR: dict[str, Any] = {
    "error": {"message": "word", "type": "word", "param?": "word|null", "code?": "word|integer|null"},
}
MODELS: dict[str, Any] = {
    "object": "=list",
    "data": [{"id": "word", "object": "=model", "created?": "count", "owned_by?": "word"}],
}


def must_fit(where: str, value: Any, shape: Any) -> None:
    """Check that a value has its shape; the AssertionError names the first member that is missing or has the wrong type."""
    __tracebackhide__ = True
    if problem := misfit(where, value, shape):
        raise AssertionError(problem)


def misfit(where: str, value: Any, shape: Any) -> str:
    """Return a sentence about the first member that does not fit the shape, or "" if all members fit."""
    if isinstance(shape, str):
        return _misfit_word(where, value, shape)
    if isinstance(shape, tuple):  # one of several
        problems = [misfit(where, value, each) for each in shape]
        return "" if "" in problems else problems[-1]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{where} must be an array, but it is {short(value)}."
        return next(filter(None, (misfit(f"{where}[{at}]", each, shape[0]) for at, each in enumerate(value))), "")
    if not isinstance(value, dict):
        return f"{where} must be an object, but it is {short(value)}."
    for name, each in shape.items():
        member = name.removesuffix("?")
        if member not in value:
            if member == name:
                return f"{where} must have the member {member!r}, but it is {short(value)}."
        elif isinstance(each, dict) and member == "type":
            kind = value[member]
            problem = _misfit_word(f"{where}.type", kind, "word") or misfit(where, value, each.get(kind, {}))
            if problem:
                return problem
        elif problem := misfit(f"{where}.{member}", value[member], each):
            return problem
    return ""


def _misfit_word(where: str, value: Any, shape: str) -> str:
    if shape.startswith("="):
        allowed = shape[1:].split("|")
        return (
            "" if isinstance(value, str) and value in allowed else f"{where} must be {' or '.join(allowed)}, not {short(value)}."
        )
    if any(TYPES[name](value) for name in shape.split("|")):
        return ""
    words = [READ.get(name, name) for name in shape.split("|")]
    return f"{where} must be {' or '.join(words)}, but it is {short(value)}."
