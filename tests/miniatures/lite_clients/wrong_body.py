"""Clients that ask for the wrong thing: the body, and the tools in it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from codex_replay.reference.lite_client import settings
from codex_replay.reference.lite_client.errors import Problem
from tests.miniatures.lite_clients.patching import in_body, variant, without

# -- body -----------------------------------------------------------------------------------------------------------------------


@variant
def model_fixed() -> None:
    """Asks for gpt-5.2-codex whatever it was told."""
    in_body(lambda body: {**body, "model": "gpt-5.2-codex"})


@variant
def model_default_other() -> None:
    """Asks for another model when it is told none."""
    settings.MODEL = "gpt-5.2"


@variant
def system_message() -> None:
    """Sends the instructions as a message of the input."""
    in_body(
        lambda body: {
            **body,
            "instructions": "",
            "input": [{"type": "message", "role": "developer", "content": body["instructions"]}, *body["input"]],
        }
    )


@variant
def input_is_a_string() -> None:
    """Sends the first prompt as a plain string."""

    def plain(body: dict[str, Any]) -> dict[str, Any]:
        return {**body, "input": body["input"][0]["content"][0]["text"]} if len(body["input"]) == 1 else body

    in_body(plain)


@variant
def tool_choice_missing() -> None:
    """Leaves tool_choice out."""
    in_body(lambda body: without(body, "tool_choice"))


@variant
def parallel_calls() -> None:
    """Asks for parallel tool calls."""
    in_body(lambda body: {**body, "parallel_tool_calls": True})


@variant
def no_reasoning() -> None:
    """Sends no reasoning settings."""
    in_body(lambda body: without(body, "reasoning"))


@variant
def stores() -> None:
    """Asks the backend to store the response."""
    in_body(lambda body: {**body, "store": True})


@variant
def does_not_stream() -> None:
    """Asks for the response as one JSON document."""
    in_body(lambda body: {**body, "stream": False})


@variant
def no_include() -> None:
    """Does not ask for encrypted reasoning."""
    in_body(lambda body: without(body, "include"))


@variant
def cache_key_per_request() -> None:
    """Makes a new prompt_cache_key for each request."""
    in_body(lambda body: {**body, "prompt_cache_key": str(uuid.uuid4())})


@variant
def more_fields() -> None:
    """Sends fields of another API."""
    in_body(lambda body: {**body, "max_output_tokens": 4096, "temperature": 0.2})


@variant
def schema_not_strict() -> None:
    """Sends the output schema without strict."""
    in_body(
        lambda body: {
            **body,
            "text": {
                **body["text"],
                **({"format": {**body["text"]["format"], "strict": False}} if "format" in body["text"] else {}),
            },
        }
    )


@variant
def low_verbosity() -> None:
    """Asks for low verbosity."""
    in_body(lambda body: {**body, "text": {**body["text"], "verbosity": "low"}})


@variant
def json_always() -> None:
    """Asks for JSON though no schema is given."""
    in_body(lambda body: {**body, "text": {"format": {"type": "json_object"}, **body["text"]}})


# -- tools ----------------------------------------------------------------------------------------------------------------------


def in_tools(change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
    in_body(lambda body: {**body, "tools": [tool for tool in map(change, body["tools"]) if tool is not None]})


@variant
def nested_functions() -> None:
    """Declares functions as the chat completions API has them."""
    in_tools(lambda t: {"type": "function", "function": without(t, "type")} if t["type"] == "function" else t)


@variant
def strict_functions() -> None:
    """Declares every function as strict."""
    in_tools(lambda tool: {**tool, "strict": True} if tool["type"] == "function" else tool)


@variant
def search_without_access() -> None:
    """Leaves external_web_access out of the web search tool."""
    in_tools(lambda tool: without(tool, "external_web_access"))


@variant
def custom_as_function() -> None:
    """Declares freeform tools as functions with one string."""
    in_tools(lambda tool: {**without(tool, "format"), "type": "function"} if tool["type"] == "custom" else tool)


@variant
def tools_sorted() -> None:
    """Declares the tools sorted by type."""
    in_body(lambda body: {**body, "tools": sorted(body["tools"], key=lambda tool: str(tool["type"]), reverse=True)})


@variant
def tools_once() -> None:
    """Declares the tools in the first request only."""
    in_body(lambda body: body if len(body["input"]) == 1 else {**body, "tools": []})


@variant
def instructions_once() -> None:
    """Sends the system text in the first request only."""
    in_body(lambda body: body if len(body["input"]) == 1 else {**body, "instructions": ""})


@variant
def own_tool() -> None:
    """Declares a tool of its own when it is given none."""
    in_body(lambda body: {**body, "tools": body["tools"] or [{"type": "web_search", "external_web_access": True}]})


@variant
def checks_schemas() -> None:
    """Refuses to send a tool whose schema it takes for invalid."""

    def strict(body: dict[str, Any]) -> dict[str, Any]:
        if any(tool.get("parameters", {}).get("type", "object") != "object" for tool in body["tools"]):
            raise Problem("A tool has an invalid schema.")
        return body

    in_body(strict)
