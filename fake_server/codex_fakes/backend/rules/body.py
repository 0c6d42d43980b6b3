"""The rules for the request body: its members, its tools, and the conversation in `input`."""

from __future__ import annotations

from collections.abc import Mapping

from codex_fakes.backend.rules.auth import Asked, RuleFinding
from codex_replay.core.text.truncate import shortened
from codex_replay.core.wire.client_json import read
from codex_replay.core.wire.json_text import NotJson
from codex_replay.protocol import data_tables

#: Characters of a client's name in a sentence.
SHOWN = 200
#: Parameters of the Responses API (the request type of the openai package) and the types to check them with.
PARAMETERS: dict[str, tuple[type, ...]] = {
    "model": (str,),
    "instructions": (str, list),
    "input": (str, list),
    "tools": (list,),
    "tool_choice": (str, dict),
    "parallel_tool_calls": (bool,),
    "reasoning": (dict,),
    "store": (bool,),
    "stream": (bool,),
    "include": (list,),
    "prompt_cache_key": (str,),
    "text": (dict,),
    "previous_response_id": (str,),
    "max_output_tokens": (int,),
    "max_tool_calls": (int,),
    "metadata": (dict,),
    "client_metadata": (dict,),
    "temperature": (int, float),
    "top_p": (int, float),
    "top_logprobs": (int,),
    "truncation": (str,),
    "user": (str,),
    "service_tier": (str,),
    "background": (bool,),
    "conversation": (str, dict),
    "prompt": (dict,),
    "safety_identifier": (str,),
    "stream_options": (dict,),
    "prompt_cache_retention": (str,),
    "prompt_cache_options": (dict,),
    "context_management": (list,),
    "access_programs": (dict,),
    "image": (dict,),
    "moderation": (dict,),
}
NOT_NULL = ("model", "input", "tools", "stream")
TYPE_NAMES = {str: "a string", list: "an array", dict: "an object", bool: "a boolean", int: "an integer", float: "a number"}
_WORDS = data_tables.load("responses/request")
TOOL_TYPES: list[str] = _WORDS["tool_types"]
ITEM_TYPES: list[str] = _WORDS["item_types"]
_ITEM_TYPES = frozenset(ITEM_TYPES)
ROLES: list[str] = _WORDS["roles"]
PART_TYPES: list[str] = _WORDS["part_types"]
_PART_TYPES = frozenset(PART_TYPES)
_ROLES = frozenset(ROLES)
#: call type -> the type of its output.
OUTPUT_OF = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
CALL_OF = {output: call for call, output in OUTPUT_OF.items()}
#: The fields that an item of each type must have, and their types.
ITEM_FIELDS: dict[str, dict[str, tuple[type, ...]]] = {
    "function_call": {"call_id": (str,), "name": (str,), "arguments": (str,)},
    "custom_tool_call": {"call_id": (str,), "name": (str,), "input": (str,)},
    "function_call_output": {"call_id": (str,), "output": (str, list)},
    "custom_tool_call_output": {"call_id": (str,), "output": (str, list)},
}


def not_json(asked: Asked) -> RuleFinding | None:
    """Find a request body that is not a JSON object. If the body is valid, the decoded body is stored for all later rules."""
    try:
        value = read(asked.data) if asked.known is None else asked.known
    except NotJson as error:
        return None, f"The body is not JSON: {error}. Send one JSON object."
    if not isinstance(value, dict):
        return None, f"The body must be a JSON object, not {_name(value)}."
    asked.body = value
    given = value.get("input")
    asked.items = items = given if isinstance(given, list) else []
    asked.kinds = [kind if type(item) is dict and type(kind := item.get("type")) is str else None for item in items]
    asked.calls = [(i, items[i], kind) for i, kind in enumerate(asked.kinds) if kind in ITEM_FIELDS]
    return None


def model_missing(asked: Asked) -> RuleFinding | None:
    """Find a request without a model.

    A request that names a stored prompt may omit the model, because the prompt may contain it.
    """
    return (
        None
        if "model" in asked.body or isinstance(asked.body.get("prompt"), dict)
        else ("model", 'The parameter "model" is required: name a model, such as "gpt-5.2-codex".')
    )


def input_missing(asked: Asked) -> RuleFinding | None:
    """Nothing to answer."""
    given = asked.body.get
    if given("input") is not None or given("prompt") is not None:
        return None
    if given("conversation") is not None or given("previous_response_id") is not None:
        return None
    return "input", 'The parameter "input" is required: send a string or an array of items.'


def wrong_type(asked: Asked) -> RuleFinding | None:
    """Find a known parameter with a value of a wrong type."""
    for key, value in asked.body.items():
        types = PARAMETERS.get(key)
        # the exact type, because true is not an integer
        if types is None or type(value) in types or (value is None and key not in NOT_NULL):
            continue
        wanted = " or ".join(TYPE_NAMES[kind] for kind in types)
        return key, f'The parameter "{key}" must be {wanted}, not {_name(value)}.'
    return None


def unknown_parameter(asked: Asked) -> RuleFinding | None:
    """Find a parameter that the API does not have."""
    for key in asked.body:
        if key not in PARAMETERS:
            return key, f'Unknown parameter: "{key}". Leave it out.'
    return None


def previous_response(asked: Asked) -> RuleFinding | None:
    """Find a request on the ChatGPT path with `previous_response_id`, which the ChatGPT backend does not support."""
    if not asked.chatgpt_path or asked.body.get("previous_response_id") is None:
        return None
    return "previous_response_id", (
        'The parameter "previous_response_id" is not supported by the ChatGPT backend: send the whole conversation in "input".'
    )


def store_not_false(asked: Asked) -> RuleFinding | None:
    """Check that `store` is false on the ChatGPT path."""
    if not asked.chatgpt_path or asked.body.get("store") is False:
        return None
    return "store", 'The parameter "store" must be false on the ChatGPT backend.'


def stream_not_true(asked: Asked) -> RuleFinding | None:
    """Check that `stream` is true on the ChatGPT path."""
    if not asked.chatgpt_path or asked.body.get("stream") is True:
        return None
    return "stream", 'The parameter "stream" must be true on the ChatGPT backend.'


def tool_type(asked: Asked) -> RuleFinding | None:
    """Find a tool without a type, or of an unknown type."""
    for i, tool in enumerate(asked.body.get("tools") or ()):
        if not isinstance(tool, Mapping):
            return f"tools[{i}]", f"tools[{i}] must be an object, not {_name(tool)}."
        if tool.get("type") not in TOOL_TYPES:
            given = f"{_shown(tool['type'])} is not a type of tool" if "type" in tool else "its type is missing"
            return f"tools[{i}].type", f"tools[{i}]: {given}. The types are {', '.join(TOOL_TYPES)}."
    return None


def tool_name(asked: Asked) -> RuleFinding | None:
    """Find a function or custom tool without a name. (An invalid schema is ignored instead: edge case 1.)"""
    for i, tool in enumerate(asked.body.get("tools") or ()):
        name = tool.get("name")
        if tool["type"] in ("function", "custom") and not (isinstance(name, str) and name):
            return f"tools[{i}].name", (
                f'tools[{i}]: a {tool["type"]} tool needs a "name" (next to "type", not inside "function").'
            )
    return None


def tool_choice(asked: Asked) -> RuleFinding | None:
    """Find a `tool_choice` that is an unknown word, or that names an undeclared tool."""
    choice = asked.body.get("tool_choice")
    if isinstance(choice, str) and choice not in ("none", "auto", "required"):
        return "tool_choice", f'tool_choice must be "none", "auto", "required" or an object, not "{choice}".'
    if isinstance(choice, Mapping) and choice.get("type") in ("function", "custom"):
        names = [tool.get("name") for tool in asked.body.get("tools") or ()]
        if choice.get("name") not in names:
            return "tool_choice", f'tool_choice names the tool "{choice.get("name")}", which is not among the tools.'
    return None


def item_type(asked: Asked) -> RuleFinding | None:
    """Find an input item that is not an object, or that has an unknown type. A message may omit its type."""
    if _ITEM_TYPES.issuperset(asked.kinds):
        return None
    for i, item in enumerate(asked.items):
        if not isinstance(item, dict):
            return f"input[{i}]", f"input[{i}] must be an object, not {_name(item)}."
        if asked.kinds[i] in _ITEM_TYPES or ("type" not in item and "role" in item) or _reference(item):
            continue
        given = f"{_shown(item['type'])} is not a type of item" if "type" in item else "its type is missing"
        return f"input[{i}].type", f"input[{i}]: {given}. The types are {', '.join(ITEM_TYPES[:7])} and others."
    return None


def item_fields(asked: Asked) -> RuleFinding | None:
    """Find a call or an output that lacks a required member."""
    for i, item, kind in asked.calls:
        for field, types in ITEM_FIELDS[kind].items():
            if type(item.get(field)) not in types:
                wanted = " or ".join(TYPE_NAMES[t] for t in types)
                had = f"is {_name(item[field])}" if field in item else "is missing"
                return f"input[{i}].{field}", f'input[{i}]: a {kind} needs "{field}", {wanted}; it {had}.'
    return None


def message_content(asked: Asked) -> RuleFinding | None:
    """Find a message with an unknown role or part."""
    for i, kind in enumerate(asked.kinds):
        if kind != "message" and kind is not None:
            continue
        item = asked.items[i]
        if kind is None and (not isinstance(item, dict) or "type" in item):
            continue
        role = _text(item, "role")
        if role not in _ROLES and _reference(item):
            continue
        if role not in _ROLES:
            return f"input[{i}].role", f"input[{i}]: the role must be one of {', '.join(ROLES)}, not {_shown(item.get('role'))}."
        content = item.get("content")
        if isinstance(content, str):
            continue
        if not isinstance(content, list):
            return f"input[{i}].content", f"input[{i}]: content must be a string or an array of parts, not {_name(content)}."
        for j, part in enumerate(content):
            if not isinstance(part, dict) or _text(part, "type") not in _PART_TYPES:
                given = _shown(part.get("type")) if isinstance(part, dict) else _name(part)
                problem = f"{given} is not a type of part. The types are {', '.join(PART_TYPES)}."
                return f"input[{i}].content[{j}]", f"input[{i}].content[{j}]: {problem}"
    return None


def _call_ids(asked: Asked) -> dict[str, set[str]]:
    """Return the call ids in a request, for each type of call and output.

    The ids are computed only once, because two rules need them.
    """
    if asked.call_ids is None:
        asked.call_ids = {kind: set() for kind in ITEM_FIELDS}
        for _, item, kind in asked.calls:
            asked.call_ids[kind].add(str(item.get("call_id")))
        # Codex runs the command of a local_shell_call, and its output is that of a function.
        shells = [asked.items[i] for i, kind in enumerate(asked.kinds) if kind == "local_shell_call"]
        asked.call_ids["function_call"].update(str(item.get("call_id")) for item in shells)
    return asked.call_ids


def output_without_call(asked: Asked) -> RuleFinding | None:
    """Find an output whose call is not in `input` (edge case 3).

    If the request has `previous_response_id`, the call may be in the previous response.
    """
    if asked.body.get("previous_response_id") is not None or asked.body.get("conversation") is not None:
        return None
    if (found := _unpaired(asked, CALL_OF)) is None:
        return None
    i, call_id, output, call = found
    return f"input[{i}]", (
        f'No {call} with call_id "{call_id}" is in "input", but input[{i}] is its output: send both the {call} and its {output}.'
    )


def call_without_output(asked: Asked) -> RuleFinding | None:
    """Find a call without an output in `input`."""
    if (found := _unpaired(asked, OUTPUT_OF)) is None:
        return None
    i, call_id, _, output = found
    return f"input[{i}]", (
        f'No {output} with call_id "{call_id}" is in "input", but input[{i}] is its call: send the output too, '
        'a plain text such as "err: ..." if the tool failed.'
    )


def _unpaired(asked: Asked, partners: Mapping[str, str]) -> tuple[int, str, str, str] | None:
    """Return the first item (a call or an output) whose partner is not in `input`: the place, call id and type of the item, and
    the type of the partner.

    `partners` maps each type of item to the type of its partner.
    """
    if not asked.calls:
        return None
    ids = _call_ids(asked)
    if all(ids[kind] <= ids[partner] for kind, partner in partners.items()):
        return None
    for i, item, kind in asked.calls:
        partner = partners.get(kind)
        if partner is not None and (call_id := str(item.get("call_id"))) not in ids[partner]:
            return i, call_id, kind, partner
    return None


def _text(item: Mapping[str, object], key: str) -> str | None:
    """Return the value of a member that should be a name, or None if the value is not a string."""
    value = item.get(key)
    return value if type(value) is str else None


def _shown(value: object) -> str:
    """Return a string of the client in quotes, for an error message.

    For a value that is not a string, return the name of its type.
    """
    return f'"{shortened(value, SHOWN)}"' if isinstance(value, str) else _name(value)


def _reference(item: Mapping[str, object]) -> bool:
    return len(item) == 1 and "id" in item


def _name(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    return TYPE_NAMES.get(type(value), "a value")
