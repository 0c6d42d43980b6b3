"""The expected frames of a turn, written by hand from docs/contract/real-0.92.md, section 4 and docs/contract/payloads.md.

`thread` is the id of the thread, `turn` the id of the turn (a counter from "0"), `item` the id of the user's message. `SOME_INT`
represents the numbers that the documents do not fix (the size of the model's context, durations).
"""

from __future__ import annotations

from typing import Any

from codex_replay.plugin import Server

Events = list[tuple[str, dict[str, Any]]]
MARKER = "printf marker"


class _SomeInt:
    """An expected number, which equals any whole number that is not negative."""

    def __eq__(self, other: object) -> bool:
        return type(other) is int and other >= 0

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "<some whole number>"


SOME_INT = _SomeInt()

#: Notifications that may come at any place among the others (section 6): the end of the MCP start-up, and the token usage of a
#: model's answer, which may come before or after the start of a tool call.
UNORDERED = (
    "codex/event/mcp_startup_complete",
    "codex/event/token_count",
    "thread/tokenUsage/updated",
    "account/rateLimits/updated",
)


def text(words: str, *deltas: str, id: str = "msg_1") -> dict[str, Any]:  # noqa: A002 - the protocol's name
    """Return a script's item: the model sends the given words in these chunks."""
    return {"type": "text", "text": words, "deltas": list(deltas or (words,)), "id": id}


def shell_call(command: str, call_id: str = "call_1") -> dict[str, Any]:
    """Return a script's item: the model calls the shell tool with `command`."""
    return {"type": "function_call", "name": "shell_command", "call_id": call_id, "arguments": {"command": command}}


def usage(input_tokens: int, output_tokens: int) -> dict[str, int]:
    """Return the token usage of a script's turn."""
    return {"input_tokens": input_tokens, "output_tokens": output_tokens}


def events(server: Server, turn: str) -> Events:
    """Return the notifications of one turn so far, in order, without the notifications whose place depends on chance."""
    found: Events = []
    for message in server.messages():
        if isinstance(message, dict) and "method" in message and "id" not in message and message["method"] not in UNORDERED:
            params = message["params"]
            of = params.get("turnId", params["turn"]["id"] if "turn" in params else params.get("id"))
            if of == turn:
                found.append((message["method"], params))
    return found


def all_of(server: Server, method: str) -> list[dict[str, Any]]:
    """Return the params of every notification of the method `method` that the server has sent so far."""
    return [m["params"] for m in server.messages() if isinstance(m, dict) and m.get("method") == method and "id" not in m]


def event(thread: str, turn: str, type: str, **msg: Any) -> tuple[str, dict[str, Any]]:  # noqa: A002 - the protocol's name
    """A `codex/event/<type>` notification: `{id, msg: EventMsg, conversationId}`, snake_case inside `msg`."""
    return f"codex/event/{type}", {"id": turn, "msg": {"type": type, **msg}, "conversationId": thread}


def turn_notification(name: str, thread: str, turn: str, status: str) -> tuple[str, dict[str, Any]]:
    """Return the frame `turn/started` or `turn/completed`."""
    return f"turn/{name}", {"threadId": thread, "turn": {"id": turn, "items": [], "status": status, "error": None}}


def item_notification(name: str, thread: str, turn: str, item: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the frame `item/started` or `item/completed`, with keys in camelCase."""
    return f"item/{name}", {"item": item, "threadId": thread, "turnId": turn}


def prompt(thread: str, turn: str, item: str, words: str) -> Events:
    """Return the frames that repeat the user's message: an item that starts and completes immediately, and an event."""
    content = [{"type": "text", "text": words, "text_elements": []}]
    old, new = {"type": "UserMessage", "id": item, "content": content}, {"type": "userMessage", "id": item, "content": content}
    of = {"thread_id": thread, "turn_id": turn, "item": old}
    return [
        event(thread, turn, "item_started", **of),
        item_notification("started", thread, turn, new),
        event(thread, turn, "item_completed", **of),
        item_notification("completed", thread, turn, new),
        event(thread, turn, "user_message", message=words, images=[], local_images=[], text_elements=[]),
    ]


def answer(thread: str, turn: str, item: str, *deltas: str) -> Events:
    """Return the frames of the model's message: start of the item, three frames per chunk, end of the item, whole message."""
    words = "".join(deltas)
    of = {"thread_id": thread, "turn_id": turn}
    old = {"type": "AgentMessage", "id": item}
    found = [
        event(thread, turn, "item_started", **of, item={**old, "content": []}),
        item_notification("started", thread, turn, {"type": "agentMessage", "id": item, "text": ""}),
    ]
    for delta in deltas:
        found += [
            event(thread, turn, "agent_message_content_delta", **of, item_id=item, delta=delta),
            ("item/agentMessage/delta", {"threadId": thread, "turnId": turn, "itemId": item, "delta": delta}),
            event(thread, turn, "agent_message_delta", delta=delta),
        ]
    return [
        *found,
        event(thread, turn, "item_completed", **of, item={**old, "content": [{"type": "Text", "text": words}]}),
        item_notification("completed", thread, turn, {"type": "agentMessage", "id": item, "text": words}),
        event(thread, turn, "agent_message", message=words),
    ]


def begin(thread: str, turn: str, *, v1: bool = False) -> Events:
    """Return the first frames of a turn; a v1 conversation has no turn/started."""
    begun = [] if v1 else [turn_notification("started", thread, turn, "inProgress")]
    return [*begun, event(thread, turn, "task_started", model_context_window=SOME_INT)]


def end(thread: str, turn: str, last: str | None) -> Events:
    """Return the last frames of a turn that succeeds; `last` is the last message of the model."""
    return [
        event(thread, turn, "task_complete", last_agent_message=last),
        turn_notification("completed", thread, turn, "completed"),
    ]


def command_item(
    shell: list[str], cwd: str, status: str, output: str | None = None, exit_code: int | None = None
) -> dict[str, Any]:
    """Return the commandExecution item of the call `call_1`, which runs `shell` (program, option, command)."""
    return {
        "type": "commandExecution",
        "id": "call_1",
        "command": f"{shell[0]} {shell[1]} '{shell[2]}'",
        "cwd": cwd,
        "processId": None,
        "status": status,
        "commandActions": [{"type": "unknown", "command": shell[2]}],
        "aggregatedOutput": output,
        "exitCode": exit_code,
        "durationMs": None if exit_code is None else SOME_INT,
    }
