"""The params of the requests to the app-server: the three requests of PAY-01, and the two requests (thread/start, turn/start)
that Codex 0.92 accepts.

A field without a value is sent as null if the specification shows it as null, and is omitted otherwise. If a field has two
spellings, one statement writes both, so that their values cannot differ.
"""

from __future__ import annotations

from typing import Any

from codex_replay.reference.proxy.asking.instructions import joined, json_rule, native_choice, tool_instructions
from codex_replay.reference.proxy.asking.normalise import Asked
from codex_replay.reference.proxy.settings import Settings

Params = dict[str, Any]


def developer_instructions(asked: Asked, settings: Settings) -> str | None:
    """Return the developer instructions: how to call tools, the system and developer items, and the client's instructions."""
    report = [tool_instructions(asked.tools)] if in_text(settings) else native_choice(asked.tools)
    system = asked.system if asked.endpoint == "responses" else ()
    return joined([*report, *system, asked.instructions or "", "" if settings.as_specified else json_rule(asked.format)])


def base_instructions(asked: Asked, settings: Settings) -> str | None:
    """Return the system messages of a chat, or None if the settings ignore them."""
    return joined(asked.system) if asked.endpoint == "chat" and not settings.ignore_system else None


def in_text(settings: Settings) -> bool:
    """Return True if the model learns about the tools only from the instructions, and gets no tool definitions."""
    return settings.as_specified or settings.omit_manifest


def _opening(asked: Asked, settings: Settings) -> Params:
    """Return the fields that open a conversation or a thread."""
    return {
        "model": asked.model.effective,
        "cwd": settings.workdir,
        "approvalPolicy": settings.approval_policy,
        "sandbox": settings.sandbox,
        "developerInstructions": developer_instructions(asked, settings),
        "baseInstructions": base_instructions(asked, settings),
    }


# -- as specified ----------------------------------------------------------------------------------------------------------


def new_conversation(asked: Asked, settings: Settings) -> Params:
    """Return the params of `newConversation`: PAY-21 to PAY-33, and HAND-25 for `dynamicTools`."""
    params: Params = {
        **_opening(asked, settings),
        "compactPrompt": None,
        "config": None,
        "includeApplyPatchTool": settings.apply_patch,
    }
    dynamic = asked.tools.dynamic()
    if asked.endpoint == "responses" and dynamic and not settings.omit_manifest:
        params["dynamicTools"] = dynamic
    return params


def send_user_turn(conversation: str, asked: Asked, settings: Settings) -> Params:
    """Return the params of `sendUserTurn`: PAY-55 to PAY-71."""
    params: Params = {
        "conversationId": conversation,
        "items": v1_items(asked),
        "cwd": settings.workdir,
        "approvalPolicy": settings.approval_policy,
        "sandboxPolicy": {"type": settings.sandbox},
        "model": asked.model.effective,
        "summary": asked.summary or "auto",
    }
    if asked.effort:
        params["effort"] = asked.effort
    if asked.choices is not None:
        params["choiceCount"] = params["choice_count"] = asked.choices
    params |= _manifest(asked, settings)
    params["outputSchema"] = params["output_schema"] = asked.schema
    report = developer_instructions(asked, settings)
    if report is not None:
        params["developerInstructions"] = report
    return params


def send_user_message(conversation: str, asked: Asked, settings: Settings) -> Params:
    """Return the params of `sendUserMessage`: PAY-72 to PAY-88."""
    params: Params = {"conversationId": conversation, "items": v1_items(asked)}
    params["includeUsage"] = params["include_usage"] = asked.include_usage
    params["stream"] = asked.stream
    params["temperature"] = asked.temperature
    params["topP"] = params["top_p"] = asked.top_p
    params["maxOutputTokens"] = params["max_output_tokens"] = asked.max_tokens
    params |= _manifest(asked, settings)
    params["responseFormat"] = params["response_format"] = asked.format
    if asked.endpoint == "responses" and asked.effort:
        params["reasoning"] = {"effort": asked.effort}
    params["finalOutputJsonSchema"] = params["final_output_json_schema"] = asked.schema
    return params


def v1_items(asked: Asked) -> list[Params]:
    """Return the items in the form of the v1 API, with their content under `data`."""
    keys = {"text": "text", "image": "image_url"}
    return [{"type": item.kind, "data": {keys[item.kind]: item.value}} for item in asked.items]


def _manifest(asked: Asked, settings: Settings) -> Params:
    if settings.omit_manifest or not asked.tools.definitions:
        return {}
    return {"tools": {"definitions": list(asked.tools.definitions)}}


# -- works on 0.92 ---------------------------------------------------------------------------------------------------------


def thread_start(asked: Asked, settings: Settings) -> Params:
    """Return the params of `thread/start`, the only request in which Codex 0.92 accepts tools.

    The params request raw events, so that the proxy sees all calls in a reply.
    """
    params: Params = {
        **_opening(asked, settings),
        "ephemeral": True,
        "experimentalRawEvents": True,
    }
    dynamic = asked.tools.dynamic()
    if settings.experimental:  # where the capability exists, a tool has a type
        dynamic = [{"type": "function", **tool} for tool in dynamic]
    if dynamic and not settings.omit_manifest:
        params["dynamicTools"] = dynamic
    return params


def turn_start(thread: str, asked: Asked) -> Params:
    """Return the params of `turn/start`, the only request in which Codex 0.92 accepts a schema of the answer."""
    keys = {"text": "text", "image": "url"}
    params: Params = {"threadId": thread, "input": [{"type": item.kind, keys[item.kind]: item.value} for item in asked.items]}
    if asked.effort:
        params["effort"] = asked.effort
    if asked.summary:
        params["summary"] = asked.summary
    if asked.schema is not None:
        params["outputSchema"] = asked.schema
    return params
