"""Examples of the specification as JSON, and small functions that read requests. Source: docs/contract/lite.md.

All values are written by hand from the specification; the suite shares no code with the clients under test.
"""

from __future__ import annotations

from typing import Any

from codex_replay.plugin.base.ledger import Request
from suites.lite_protocol import FUNCTION_TOOL

#: {"alg":"none"}, {"email":"zoë@example.com", ..., "https://api.openai.com/auth":{..., "chatgpt_account_id":"account-jwt"}}, sig.
#: Its middle part needs padding and has characters that plain base64 does not.
JWT = (
    "eyJhbGciOiJub25lIn0.eyJlbWFpbCI6Inpvw6tAZXhhbXBsZS5jb20iLCJuYW1lIjoiWm_DqyA_Pz5-IMO_IiwiaHR0cHM6Ly9h"
    "cGkub3BlbmFpLmNvbS9hdXRoIjp7ImNoYXRncHRfcGxhbl90eXBlIjoicHJvIiwiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjb3Vu"
    "dC1qd3QifX0.c2ln"
)
#: As above, for "account-2": the id token of a refresh.
NEW_JWT = (
    "eyJhbGciOiJub25lIn0.eyJlbWFpbCI6Inpvw6tAZXhhbXBsZS5jb20iLCJuYW1lIjoiWm_DqyA_Pz5-IMO_IiwiaHR0cHM6Ly9h"
    "cGkub3BlbmFpLmNvbS9hdXRoIjp7ImNoYXRncHRfcGxhbl90eXBlIjoicHJvIiwiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjb3Vu"
    "dC0yIn19.c2ln"
)

#: The login file of the section "Auth" with values. Account and id token differ only in the cases that need it.
CHATGPT: dict[str, Any] = {
    "auth_mode": "chatgpt",
    "OPENAI_API_KEY": None,
    "tokens": {
        "access_token": "access-1",
        "refresh_token": "refresh-1",
        "account_id": "account-1",
        "id_token": {"raw_jwt": JWT, "chatgpt_account_id": "account-1"},
    },
}
API_KEY: dict[str, Any] = {**CHATGPT, "auth_mode": "api_key", "OPENAI_API_KEY": "sk-live"}

MUL_TOOL: dict[str, Any] = {**FUNCTION_TOOL, "name": "mul", "description": "Multiply two numbers"}

#: Tools and canned results for most cases: add works, mul fails.
ADD: dict[str, Any] = {
    "tools": [FUNCTION_TOOL, MUL_TOOL],
    "results": [
        {"name": "add", "arguments": {"a": 2, "b": 3}, "output": "5"},
        {"name": "add", "arguments": {"a": 20, "b": 30}, "output": "50"},
        {"name": "mul", "error": "mul failed"},
    ],
}


def call(arguments: object = None, call_id: str = "call_1", name: str = "add") -> dict[str, Any]:
    """Return a script's item: the model calls a function; by default `add` with 2 and 3."""
    given = {"a": 2, "b": 3} if arguments is None else arguments
    return {"type": "function_call", "name": name, "arguments": given, "call_id": call_id}


def then(*items: object) -> list[dict[str, Any]]:
    """Return a script of two turns: the given items, and then the text "done"."""
    return [{"items": list(items)}, {"items": ["done"]}]


def always(**turn: Any) -> list[dict[str, Any]]:
    """Return a script that gives the same answer to every request."""
    return [{**turn, "times": "always"}]


def items(request: Request, kind: str) -> list[dict[str, Any]]:
    """Return the items of one type in a request's input, in order; an item without a type is a message."""
    found = request.body["input"]
    assert isinstance(found, list), f"expected input to be a list of items, got {found!r}"
    return [item for item in found if item.get("type", "message") == kind]


def outputs(request: Request, kind: str = "function_call_output") -> dict[str, Any]:
    """Return the outputs in a request's input by call id; each call id must occur once."""
    found = items(request, kind)
    assert len({item["call_id"] for item in found}) == len(found), f"expected one output for each call_id, got {found}"
    return {item["call_id"]: item["output"] for item in found}


def user_texts(request: Request) -> list[str]:
    """Return the texts of the user's messages in a request's input."""
    texts: list[str] = []
    for item in items(request, "message"):
        if item["role"] == "user":
            content = item["content"]
            parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
            assert all(part["type"] == "input_text" for part in parts), parts
            texts.append("".join(part["text"] for part in parts))
    return texts


def part_of(wanted: dict[str, Any], given: dict[str, Any]) -> bool:
    """Return True if `given` has all keys and values of `wanted`; `given` may have more keys, such as an id."""
    return all(key in given and given[key] == value for key, value in wanted.items())
