"""Recordings of servers that are wrong in one named way each: from the frames of a good recording to those of a bad one.

Where a variant finds nothing to break it returns the frames as they are; only the cases that can see it are run on it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Message = Any
Line = tuple[str, Message, bytes]  # sender ("": the other seam), decoded message (None: not JSON), the line itself
Variant = Callable[[list[Line]], list[Line]]
VARIANTS: dict[str, Variant] = {}


def line(message: Message) -> Line:
    return ("server", message, json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")


def variant(change: Variant) -> Variant:
    VARIANTS[change.__name__.replace("_", "-")] = change
    return change


def server_messages(change: Callable[[dict[str, Any]], Any]) -> Variant:
    """Return a variant that changes server messages one by one: into another, into several (a list), into none ([])."""

    def apply(lines: list[Line]) -> list[Line]:
        out: list[Line] = []
        for sender, message, raw in lines:
            if sender != "server" or not isinstance(message, dict):
                out.append((sender, message, raw))
                continue
            changed = change(json.loads(raw))
            wanted = changed if isinstance(changed, list) else [changed]
            out += [(sender, message, raw) if each == message and list(each) == list(message) else line(each) for each in wanted]
        return out

    return apply


def per_message(change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    VARIANTS[change.__name__.replace("_", "-")] = server_messages(change)
    return change


def walk(value: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    if isinstance(value, dict):
        return change({key: walk(item, change) for key, item in value.items()})
    return [walk(item, change) for item in value] if isinstance(value, list) else value


def renamed(value: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    return {new if key == old else key: item for key, item in value.items()}


@per_message
def jsonrpc_key(message: dict[str, Any]) -> Any:
    """Every frame has a `jsonrpc` key."""
    return {"jsonrpc": "2.0", **message}


@per_message
def user_agent_in_snake_case(message: dict[str, Any]) -> Any:
    return walk(message, lambda value: renamed(value, "userAgent", "user_agent"))


@per_message
def user_agent_without_client(message: dict[str, Any]) -> Any:
    return walk(message, lambda value: value | {"userAgent": "codex"} if "userAgent" in value else value)


@variant
def user_agent_changes(lines: list[Line]) -> list[Line]:
    """The server calls itself otherwise from the second time on."""
    out, told = [], False
    for sender, message, raw in lines:
        agent = isinstance(message, dict) and isinstance(message.get("result"), dict) and "userAgent" in message["result"]
        out.append(line(message | {"result": {"userAgent": "codex"}}) if agent and told else (sender, message, raw))
        told |= agent
    return out


@per_message
def config_warning_elsewhere(message: dict[str, Any]) -> Any:
    """A wrong setting is said to stand one line further down."""
    if message.get("method") != "configWarning":
        return message
    place = {name: point | {"line": point["line"] + 1} for name, point in message["params"]["range"].items()}
    return message | {"params": message["params"] | {"range": place}}


@per_message
def other_error_code(message: dict[str, Any]) -> Any:
    return message | {"error": message["error"] | {"code": -32601}} if "error" in message else message


@per_message
def other_error_words(message: dict[str, Any]) -> Any:
    return message | {"error": message["error"] | {"message": "Bad request"}} if "error" in message else message


@per_message
def error_with_data(message: dict[str, Any]) -> Any:
    return message | {"error": message["error"] | {"data": None}} if "error" in message else message


@per_message
def errors_become_results(message: dict[str, Any]) -> Any:
    return {"id": message["id"], "result": {}} if "error" in message else message


@per_message
def results_become_errors(message: dict[str, Any]) -> Any:
    """All but the handshake is refused."""
    if "result" in message and "userAgent" not in message["result"]:
        return {"error": {"code": -32603, "message": "internal error"}, "id": message["id"]}
    return message


@per_message
def camel_case_in_events(message: dict[str, Any]) -> Any:
    """Inside `msg` names are camelCase."""
    if not str(message.get("method")).startswith("codex/event/"):
        return message
    msg = message["params"]["msg"]
    for old, new in (("thread_id", "threadId"), ("turn_id", "turnId"), ("last_agent_message", "lastAgentMessage")):
        msg = renamed(msg, old, new)
    return message | {"params": message["params"] | {"msg": msg}}


@per_message
def snake_case_in_notifications(message: dict[str, Any]) -> Any:
    if not str(message.get("method")).startswith(("item/", "turn/")) or "id" in message:
        return message
    return message | {"params": renamed(renamed(message["params"], "threadId", "thread_id"), "turnId", "turn_id")}


def dropped(method: str) -> None:
    name = "no-" + method.replace("codex/event/", "").replace("/", "-").replace("_", "-").lower()
    VARIANTS[name] = server_messages(lambda message: [] if message.get("method") == method and "id" not in message else message)


for each in (
    *("turn/completed", "turn/started", "thread/started", "item/started", "item/completed", "item/agentMessage/delta"),
    *("codex/event/task_started", "codex/event/task_complete", "codex/event/agent_message_delta", "codex/event/user_message"),
    *("codex/event/mcp_startup_complete", "thread/tokenUsage/updated", "codex/event/token_count", "account/rateLimits/updated"),
    *("codex/event/exec_command_begin", "codex/event/exec_command_end", "item/commandExecution/outputDelta"),
    *("codex/event/exec_approval_request", "codex/event/turn_aborted"),
):
    dropped(each)


@per_message
def v1_with_v2_notifications(message: dict[str, Any]) -> Any:
    """A turn/started and a thread/started wherever a task starts."""
    if message.get("method") != "codex/event/task_started":
        return message
    thread = message["params"]["conversationId"]
    turn = {"id": message["params"]["id"], "items": [], "status": "inProgress", "error": None}
    return [{"method": "turn/started", "params": {"threadId": thread, "turn": turn}}, message]


@variant
def item_before_event(lines: list[Line]) -> list[Line]:
    """item/started and item/completed come before the event that says the same."""
    out = list(lines)
    for i in range(len(out) - 1):
        first, second = out[i][1], out[i + 1][1]
        if not isinstance(first, dict) or not isinstance(second, dict):
            continue
        item = second.get("method") in ("item/started", "item/completed")
        if item and str(first.get("method")).startswith("codex/event/"):
            out[i], out[i + 1] = out[i + 1], out[i]
    return out


@variant
def turn_before_its_response(lines: list[Line]) -> list[Line]:
    """turn/started comes before the answer to turn/start."""
    out = list(lines)
    for i in range(len(out) - 1):
        first, second = out[i][1], out[i + 1][1]
        if isinstance(second, dict) and second.get("method") == "turn/started" and isinstance(first, dict) and "result" in first:
            out[i], out[i + 1] = out[i + 1], out[i]
    return out


@per_message
def turns_fail(message: dict[str, Any]) -> Any:
    if message.get("method") != "turn/completed":
        return message
    return message | {"params": message["params"] | {"turn": message["params"]["turn"] | {"status": "failed"}}}


@per_message
def turn_ids_from_one(message: dict[str, Any]) -> Any:
    def change(value: dict[str, Any]) -> dict[str, Any]:
        for key in ("turnId", "turn_id"):
            if value.get(key, "").isdigit():
                value = value | {key: str(int(value[key]) + 1)}
        if "status" in value and "items" in value and value["id"].isdigit():
            value = value | {"id": str(int(value["id"]) + 1)}
        return value

    return walk(message, change)


@per_message
def turn_ids_stand_still(message: dict[str, Any]) -> Any:
    def change(value: dict[str, Any]) -> dict[str, Any]:
        return value | {"id": "0"} if "status" in value and "items" in value else value

    return walk(message, change)


@per_message
def altered_text(message: dict[str, Any]) -> Any:
    """The model's words are not what the model said."""

    def change(value: dict[str, Any]) -> dict[str, Any]:
        for key in ("delta", "last_agent_message"):
            if isinstance(value.get(key), str):
                value = value | {key: value[key] + " "}
        if value.get("type") in ("agentMessage", "commandExecution"):
            value = {key: f"{item} " if key in ("text", "command") else item for key, item in value.items()}
        return value

    return walk(message, change)


@per_message
def items_lack_a_key(message: dict[str, Any]) -> Any:
    def change(value: dict[str, Any]) -> dict[str, Any]:
        return {key: item for key, item in value.items() if key not in ("status", "text_elements")} if "type" in value else value

    return walk(message, change)


@per_message
def results_with_a_further_key(message: dict[str, Any]) -> Any:
    return message | {"result": message["result"] | {"ok": True}} if "result" in message else message


@per_message
def other_working_directory(message: dict[str, Any]) -> Any:
    return walk(message, lambda value: value | {"cwd": "/"} if "cwd" in value else value)


@per_message
def other_model(message: dict[str, Any]) -> Any:
    return walk(message, lambda value: value | {"model": "gpt-4"} if "model" in value else value)


@per_message
def another_login(message: dict[str, Any]) -> Any:
    """account/read answers with another login: tokens for a key, a key for none, and the plan of other tokens."""

    def change(value: dict[str, Any]) -> dict[str, Any]:
        if "planType" in value and "email" in value:
            return value | {"planType": "plus" if value["planType"] == "pro" else "pro"}
        if value == {"type": "apiKey"}:
            return {"type": "chatgpt", "email": "fake@codex-replay.invalid", "planType": "pro"}
        return value | {"account": {"type": "apiKey"}} if "account" in value and value["account"] is None else value

    return walk(message, change)


@per_message
def body_of_a_401(message: dict[str, Any]) -> Any:
    """The error of a turn that ends with a 401 has the body of the answer in it."""

    def change(value: dict[str, Any]) -> dict[str, Any]:
        shown = str(value.get("message", "")).startswith("unexpected status 401")
        return value | {"message": value["message"] + '{"error":{}}'} if shown else value

    return walk(message, change)


@per_message
def usage_of_nothing(message: dict[str, Any]) -> Any:
    zero = {"totalTokens", "inputTokens", "input_tokens", "total_tokens"}
    return walk(message, lambda value: {key: 0 if key in zero else item for key, item in value.items()})


@variant
def pretty_printed(lines: list[Line]) -> list[Line]:
    """The server's JSON has spaces."""
    return [
        (sender, message, json.dumps(message, ensure_ascii=False).encode() + b"\n" if sender == "server" else raw)
        for sender, message, raw in lines
    ]


@variant
def carriage_returns(lines: list[Line]) -> list[Line]:
    """The server ends its lines as Windows does."""
    return [(sender, message, raw[:-1] + b"\r\n" if sender == "server" else raw) for sender, message, raw in lines]


@per_message
def approval_asked_twice(message: dict[str, Any]) -> Any:
    """The request for an approval comes as an event, too late: after the request itself."""
    if message.get("method") == "codex/event/exec_approval_request":
        return [message, message]
    return message


@per_message
def approval_without_command(message: dict[str, Any]) -> Any:
    if "method" in message and "id" in message:
        return message | {
            "params": {key: item for key, item in message["params"].items() if key != "parsedCmd"} | {"reason": "x"}
        }
    return message


@variant
def completes_the_open_turn(lines: list[Line]) -> list[Line]:
    """A turn that was left open at the end of input is completed."""
    methods = [message.get("method") for _, message, _ in lines if isinstance(message, dict)]
    started = [message for _, message, _ in lines if isinstance(message, dict) and message.get("method") == "turn/started"]
    if not started or "turn/completed" in methods:
        return lines
    return [*lines, line({**started[0], "method": "turn/completed"})]


@variant
def events_without_a_listener(lines: list[Line]) -> list[Line]:
    """The conversation is told to a client that no longer listens."""
    event = next(
        (item for item in lines if isinstance(item[1], dict) and item[1].get("method") == "codex/event/task_started"), None
    )
    gone = [
        i
        for i, (_, message, _) in enumerate(lines)
        if isinstance(message, dict) and message.get("method") == "removeConversationListener"
    ]
    if event is None or not gone:
        return lines
    at = next(
        i
        for i in range(gone[0], len(lines))
        if lines[i][0] == "client" and (lines[i][1] or {}).get("method") == "sendUserMessage"
    )
    return [*lines[: at + 2], event, *lines[at + 2 :]]
