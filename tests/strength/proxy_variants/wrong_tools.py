"""The definitions of tools in turn and message, and what is said to the choice among them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from codex_replay.reference.proxy.asking import normalise, payloads, tools
from codex_replay.reference.proxy.errors import bad_request
from tests.strength.proxy_variants.patching import after, in_params, variant


def in_definitions(change: Callable[[list[Any]], list[Any]]) -> None:
    """Change the definitions of turn and message: `change` gets a copy of its own."""

    def changed(found: Any, *_: Any) -> Any:
        return {"tools": {"definitions": change(copy.deepcopy(found["tools"]["definitions"]))}} if found else found

    after(payloads, "_manifest", changed)


def in_schemas(change: Callable[[Any], Any]) -> None:
    """Change the schema of each definition."""

    def changed(found: list[Any]) -> list[Any]:
        for each in found:
            if "parameters" in each["function"]:
                each["function"]["parameters"] = change(each["function"]["parameters"])
        return found

    in_definitions(changed)


def refusing(unwanted: Callable[[Any], bool], name: str) -> None:
    """Refuse requests with a field that cannot be coped with."""

    def checked(found: Any, body: Any) -> Any:
        if unwanted(body.get(name)):
            raise bad_request(f"{name} is not supported.", name)
        return found

    after(normalise, "read_tools", checked)


@variant
def definitions_flat() -> None:
    in_definitions(lambda found: [{"type": "function", **each["function"]} for each in found])


@variant
def definitions_without_type() -> None:
    in_definitions(lambda found: [{"function": each["function"]} for each in found])


@variant
def definitions_reversed() -> None:
    in_definitions(lambda found: found[::-1])


@variant
def definitions_without_description() -> None:
    in_definitions(lambda found: [(each["function"].pop("description", None) and each) or each for each in found])


@variant
def schemas_sorted() -> None:
    def ordered(value: Any) -> Any:
        return {key: ordered(value[key]) for key in sorted(value)} if isinstance(value, dict) else value

    in_schemas(ordered)


@variant
def schemas_closed() -> None:
    in_schemas(
        lambda schema: {**schema, "additionalProperties": False, "$schema": "https://json-schema.org/draft/2020-12/schema"}
    )


@variant
def schemas_in_ascii() -> None:
    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items()}
        return value.encode("ascii", "replace").decode() if isinstance(value, str) else value

    in_schemas(plain)


@variant
def schemas_cut_at_100_properties() -> None:
    def cut(schema: Any) -> Any:
        found = schema.get("properties", {})
        return {**schema, "properties": dict(list(found.items())[:100])} if found else schema

    in_schemas(cut)


@variant
def strict_dropped() -> None:
    in_definitions(lambda found: [{**d, "function": {k: v for k, v in d["function"].items() if k != "strict"}} for d in found])


@variant
def null_strict_added() -> None:
    in_definitions(lambda found: [{**each, "function": {"strict": None, **each["function"]}} for each in found])


@variant
def description_made_up() -> None:
    in_definitions(lambda found: [{**d, "function": {"description": d["function"]["name"], **d["function"]}} for d in found])


@variant
def message_without_schemas() -> None:
    def change(params: Any, *_: Any) -> None:
        for each in copied(params):
            each["function"]["parameters"] = {"type": "object"}

    def copied(params: Any) -> Any:
        params["tools"] = copy.deepcopy(params.get("tools", {"definitions": []}))
        return params["tools"]["definitions"]

    in_params("sendUserMessage", lambda params, *given: "tools" in params and change(params, *given))


@variant
def message_without_tools() -> None:
    in_params("sendUserMessage", lambda params, *_: params.pop("tools", None))


@variant
def turn_without_tools() -> None:
    in_params("sendUserTurn", lambda params, *_: params.pop("tools", None))


@variant
def choice_none_refused() -> None:
    refusing(lambda value: value == "none", "tool_choice")


@variant
def forced_choice_refused() -> None:
    refusing(lambda value: isinstance(value, dict), "tool_choice")


@variant
def single_calls_refused() -> None:
    refusing(lambda value: value is False, "parallel_tool_calls")


@variant
def tools_of_chat_only() -> None:
    def definition(tool: Any, where: str) -> Any:
        return old(tool, where)

    old = tools._definition
    tools._definition = definition
    after(normalise, "read_tools", lambda found, body: tools.Tools() if "input" in body else found)
