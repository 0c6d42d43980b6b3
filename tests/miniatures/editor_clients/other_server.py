"""Servers that are not as the real 0.92 is, in one way each: `other_server.py WAY CODEX app-server` is CODEX, its words changed.

They show that the statements of suites/editor_client/test_document.py can fail.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

Message = dict[str, Any]
#: way -> the statements that it turns red.
WAYS: dict[str, tuple[Callable[[Message], list[Message]], tuple[str, ...]]] = {}


def way(*statements: str) -> Callable[[Callable[[Message], list[Message]]], Callable[[Message], list[Message]]]:
    def keep(change: Callable[[Message], list[Message]]) -> Callable[[Message], list[Message]]:
        WAYS[change.__name__.replace("_", "-")] = (change, statements)
        return change

    return keep


def snaked(value: Any) -> Any:
    if isinstance(value, dict):
        return {re.sub("[A-Z]", lambda m: "_" + m[0].lower(), key): snaked(item) for key, item in value.items()}
    return [snaked(item) for item in value] if isinstance(value, list) else value


def of(message: Message, method: str) -> bool:
    return bool(message.get("method") == method)


@way("initialize-user-agent", "delta-snake-case", "command-approval-snake-case", "field-naming")
def says_it_as_the_document(message: Message) -> list[Message]:
    """All keys in snake_case."""
    return [snaked(message)]


@way("server-sends-initialized")
def sends_initialized(message: Message) -> list[Message]:
    """initialized, from the server."""
    return [message, {"method": "initialized", "params": {}}] if "userAgent" in message.get("result", {}) else [message]


@way("no-jsonrpc-key")
def says_jsonrpc(message: Message) -> list[Message]:
    """A jsonrpc key in every message."""
    return [{"jsonrpc": "2.0", **message}]


@way("thread-id-in-response")
def thread_without_id(message: Message) -> list[Message]:
    """No id in the thread of thread/start's answer, but in thread/started."""
    thread = message.get("result", {}).get("thread")
    return [{**message, "result": {"thread": {k: v for k, v in thread.items() if k != "id"}}}] if thread else [message]


@way("turn-completed")
def ends_without_status(message: Message) -> list[Message]:
    """turn/completed without a status."""
    if of(message, "turn/completed"):
        message["params"]["turn"].pop("status")
    return [message]


@way("turn-diff")
def no_unified_diff(message: Message) -> list[Message]:
    """A list of files in the place of a diff."""
    if of(message, "turn/diff/updated"):
        message["params"]["diff"] = "A new.txt\n"
    return [message]


@way("turn-diff-alone")
def a_diff_alone(message: Message) -> list[Message]:
    """turn/diff/updated without ids."""
    if of(message, "turn/diff/updated"):
        message["params"] = {"diff": message["params"]["diff"]}
    return [message]


@way("approvals-are-requests")
def approvals_without_id(message: Message) -> list[Message]:
    """The approval of a command twice, the first time as a notification."""
    if of(message, "item/commandExecution/requestApproval"):
        return [{key: value for key, value in message.items() if key != "id"}, message]
    return [message]


@way("command-approval-fields", "change-approval-fields")
def terse_approvals(message: Message) -> list[Message]:
    """Approvals with the fields of the document."""
    if str(message.get("method")).endswith("requestApproval"):
        keys = ("threadId", "turnId", "itemId") + ("reason",) * ("command" in message["params"])
        message["params"] = {key: message["params"][key] for key in keys}
    return [message]


@way("cancel-is-a-decline")
def goes_on_after_cancel(message: Message) -> list[Message]:
    """A turn that completes after a cancel."""
    if of(message, "turn/completed"):
        message["params"]["turn"]["status"] = "completed"
    return [message]


@way("listed-notifications")
def no_plans(message: Message) -> list[Message]:
    """No turn/plan/updated."""
    return [] if of(message, "turn/plan/updated") else [message]


@way("no-other-notifications")
def no_events(message: Message) -> list[Message]:
    """Nothing that the document does not list."""
    method = str(message.get("method"))
    return [] if method.startswith(("codex/event/", "thread/tokenUsage", "account/")) else [message]


def main(argv: list[str]) -> int:
    change = WAYS[argv[0]][0]
    child = subprocess.Popen(argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert child.stdin is not None
    assert child.stdout is not None

    def feed() -> None:
        for line in sys.stdin.buffer:
            child.stdin.write(line)
        child.stdin.close()

    threading.Thread(target=feed, daemon=True).start()
    for line in child.stdout:
        for message in change(json.loads(line)):
            sys.stdout.buffer.write(json.dumps(message).encode() + b"\n")
        sys.stdout.buffer.flush()
    return child.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
