"""Find the settings of a request that the response repeats, and apply their effects to the reply: limits and omitted parts.

A response of the Responses API repeats the settings of the request. A setting that the request omits gets its documented
default. The defaults are from the type `Response` of the openai package (copied to data/openai-*), and from the API
reference, "Create a model response". Clients need the settings in a response: langchain-openai, for example, parses a
streamed text by the response's `text.format`. Codex ignores the settings in a response, and the recordings of Codex contain
none.
"""

from __future__ import annotations

import marshal

from codex_replay.core.wire.json_text import compact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

#: Setting -> its documented default, for those that are repeated unchanged.
PLAIN: dict[str, Any] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt": None,
    "prompt_cache_key": None,
    "prompt_cache_retention": None,
    "safety_identifier": None,
    "store": True,
    "temperature": 1.0,
    "tool_choice": "auto",
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}
#: All settings that a reply depends on.
READ = (*PLAIN, "model", "conversation", "include", "reasoning", "service_tier", "text", "tools")
#: Item -> the key of the text that counts as output.
_TEXTS = {"text": "text", "refusal": "refusal", "function_call": "arguments", "custom_tool_call": "input"}
#: Item -> the key that its response has only if `include` names it.
_ON_REQUEST = {"file_search_call": "results", "code_interpreter_call": "outputs"}
#: Characters of a token, wherever tokens are counted: an estimate that is the same in every run.
TOKEN = 4


def settings(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a request that the response repeats; a setting with the value null counts as missing."""
    found = {key: default if body.get(key) is None else body[key] for key, default in PLAIN.items()}
    conversation, tier = body.get("conversation"), body.get("service_tier")
    found["conversation"] = {"id": conversation} if isinstance(conversation, str) else conversation
    found["reasoning"] = {"effort": None, "summary": None, **_object(body.get("reasoning"))}
    found["service_tier"] = "default" if tier in (None, "auto") else tier
    text = {"format": None, "verbosity": None, **_object(body.get("text"))}
    found["text"] = {**text, "format": text["format"] or {"type": "text"}, "verbosity": text["verbosity"] or "medium"}
    found["tools"] = [_tool(tool) for tool in _list(body.get("tools"))]
    return found


def _object(value: Any) -> dict[str, Any]:
    """Return `value` if it is an object, otherwise an empty object.

    A setting may have a wrong type, because a script can switch off the type checks.
    """
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _tool(tool: Any) -> Any:
    """Return a tool in the form for the response: a function gets all four keys that the type of the response requires."""
    if not isinstance(tool, dict) or tool.get("type") != "function":
        return tool
    return {"description": None, "parameters": None, **tool, "strict": tool.get("strict") is not False}


def read_key(body: Mapping[str, Any], names: Iterable[str] = READ) -> bytes:
    """Return bytes that are equal for two bodies only if both bodies have the same values under the keys `names`.

    The bytes are computed with `marshal`, because JSON would take ten times as long. In version 0 of the marshal format,
    equal values give equal bytes.
    """
    return marshal.dumps([body.get(name) for name in names], 0)


def shows_reasoning(body: Mapping[str, Any]) -> bool:
    """Return True if a request asks for encrypted reasoning (API reference, `include`).

    A response contains encrypted reasoning only if the request asks for it.
    """
    return "reasoning.encrypted_content" in _list(body.get("include"))


def left_out(body: Mapping[str, Any]) -> dict[str, str]:
    """Return for each kind of item the key that the response leaves out, because the request's `include` does not name it (API
    reference, `include`).
    """
    asked = _list(body.get("include"))
    return {kind: key for kind, key in _ON_REQUEST.items() if f"{kind}.{key}" not in asked}


def within(items: Iterable[Mapping[str, Any]], body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Cut the items of a turn after the `max_output_tokens` of the request; a shortened reply gets the status incomplete.

    Tokens of reasoning also count; a reasoning item is kept or removed as a whole.
    """
    limit = body.get("max_output_tokens")
    left = limit * TOKEN if isinstance(limit, int) and limit is not True and limit > 0 else None
    kept: list[Mapping[str, Any]] = []
    for item in items:
        key = _TEXTS.get(item["type"])
        size = _size(item, key)
        if left is not None and size > left:
            if key is not None and left:
                whole = item[key] if isinstance(item[key], str) else compact(item[key])
                kept.append({**{k: v for k, v in item.items() if k not in ("deltas", "annotations")}, key: whole[:left]})
            return [*kept, {"type": "incomplete", "reason": "max_output_tokens"}]
        if left is not None:
            left -= size
        kept.append(item)
    return kept


def _size(item: Mapping[str, Any], key: str | None) -> int:
    if item["type"] == "reasoning":
        texts = (item.get("summary", ""), item.get("content", ""))
        return sum(len(text) if isinstance(text, str) else sum(map(len, text)) for text in texts)
    given = item.get(key, "") if key else ""
    return len(given if isinstance(given, str) else compact(given))
