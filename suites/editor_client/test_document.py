"""The statements of codex.nvim's documentation about the server, compared with the app-server under test.

docs/contract/editor.md lists these statements; some are not true for the real server. Each statement about the server is
one case. Each row in the table of this module states whether the statement is true for 0.92. If a statement is false, its
row states the behaviour of the server. The run prints the rows of all statements as a table. A case fails if the server no
longer behaves as the row of the statement says.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from codex_replay.plugin.editor_client.fixture import EditorClient
from suites.editor_client.test_approvals import PATCH, SHELL

PLAN = {
    "type": "function_call",
    "name": "update_plan",
    "call_id": "call_0",
    "arguments": {"plan": [{"step": "Look", "status": "in_progress"}]},
}
COMMAND = "item/commandExecution/requestApproval"
CHANGE = "item/fileChange/requestApproval"
#: Section 4, "Notifications from codex".
KNOWN = {
    "thread/started",
    "turn/started",
    "turn/completed",
    "item/started",
    "item/completed",
    "item/agentMessage/delta",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/textDelta",
    "item/commandExecution/outputDelta",
    "item/fileChange/outputDelta",
    "turn/diff/updated",
    "turn/plan/updated",
}


class Seen:
    """The messages of the server in a conversation with a plan, a command, a change, an answer, and a cancelled command."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self.messages = messages

    def params(self, method: str) -> list[dict[str, Any]]:
        """Return the params of every received message with a method; there must be at least one."""
        found = [message["params"] for message in self.messages if message.get("method") == method]
        assert found, f"expected at least one {method} from the server, got none"
        return found

    def every(self, method: str, keys: set[str]) -> bool:
        """Return True if the params of every received message with a method have the given keys."""
        return all(keys <= set(params) for params in self.params(method))

    @property
    def methods(self) -> set[str]:
        """Return the methods of all received notifications."""
        return {message["method"] for message in self.messages if "method" in message and "id" not in message}

    @property
    def results(self) -> list[Any]:
        """Return the results of all responses, in order: initialize, thread/start, turn/start ..."""
        return [message["result"] for message in self.messages if "result" in message]

    def fields(self) -> set[str]:
        """Return the keys of the params of all v2 messages."""
        plain = [m for m in self.messages if "method" in m and not m["method"].startswith("codex/event/")]
        return {key for message in plain for key in message["params"]}


@dataclass(frozen=True)
class Statement:
    """A statement of the contract: its text, whether it is true for 0.92, and, if it is false, the behaviour of the server."""

    cites: str
    says: str
    holds: bool
    test: Callable[[Seen], bool]
    does: str = ""
    instead: Callable[[Seen], bool] | None = None


def cancelled(seen: Seen) -> list[str]:
    """Return the final status of each item of the last turn."""
    last = seen.params("turn/completed")[-1]["turn"]["id"]
    items = [params for params in seen.params("item/completed") if params.get("turnId", params.get("turn_id")) == last]
    return [params["item"]["status"] for params in items if params["item"]["type"] == "commandExecution"]


STATEMENTS: dict[str, Statement] = {
    "initialize-user-agent": Statement(
        "EDIT-08", '"result": { "user_agent": "codex/..." }', False, lambda s: "user_agent" in s.results[0],
        'it sends "userAgent"', lambda s: isinstance(s.results[0].get("userAgent"), str),
    ),
    "server-sends-initialized": Statement(
        "EDIT-03", "The plugin sends `initialize`, receives `initialized`", False, lambda s: "initialized" in s.methods,
        "it never sends initialized: that is a notification of the client, as section 2 says",
        lambda s: len(s.results) >= 3,
    ),
    "no-jsonrpc-key": Statement(
        "REAL-35", '{ "id": 1, "result": ... }', True, lambda s: all("jsonrpc" not in message for message in s.messages),
    ),
    "thread-id-in-response": Statement(
        "EDIT-11", "Response carries `thread.id`.", True, lambda s: isinstance(s.results[1]["thread"]["id"], str),
    ),
    "delta-snake-case": Statement(
        "EDIT-16", '"item/agentMessage/delta", "params": { "thread_id", "turn_id", "item_id", "delta" }', False,
        lambda s: s.every("item/agentMessage/delta", {"thread_id", "turn_id", "item_id", "delta"}),
        "threadId, turnId, itemId, delta",
        lambda s: s.every("item/agentMessage/delta", {"threadId", "turnId", "itemId", "delta"}),
    ),
    "turn-completed": Statement(
        "EDIT-20", '"turn/completed", "params": { "turn": { "id": "turn_456", "status": "completed" } }', True,
        lambda s: all({"id", "status"} <= set(params["turn"]) for params in s.params("turn/completed")),
    ),
    "turn-diff": Statement(
        "EDIT-18", '"turn/diff/updated", "params": { "diff": "...unified diff..." }', True,
        lambda s: all("\n+++ " in params["diff"] for params in s.params("turn/diff/updated")),
    ),
    "turn-diff-alone": Statement(
        "EDIT-19", '"turn/diff/updated" has only `diff`', False,
        lambda s: all(set(params) == {"diff"} for params in s.params("turn/diff/updated")),
        "it also has threadId and turnId", lambda s: s.every("turn/diff/updated", {"diff", "threadId", "turnId"}),
    ),
    "approvals-are-requests": Statement(
        "EDIT-22", "The server sends a JSON-RPC **request** (not notification)", True,
        lambda s: all("id" in message for message in s.messages if message.get("method") in (COMMAND, CHANGE)),
    ),
    "command-approval-snake-case": Statement(
        "EDIT-23", f'"{COMMAND}", "params": {{ "thread_id", "turn_id", "item_id", "reason" }}', False,
        lambda s: s.every(COMMAND, {"thread_id", "turn_id", "item_id", "reason"}),
        "threadId, turnId, itemId, reason", lambda s: s.every(COMMAND, {"threadId", "turnId", "itemId", "reason"}),
    ),
    "command-approval-fields": Statement(
        "EDIT-24", "it has only these four fields", False, lambda s: all(len(params) == 4 for params in s.params(COMMAND)),
        "it also has command, cwd and commandActions, which the user must see",
        lambda s: s.every(COMMAND, {"command", "cwd", "commandActions"}),
    ),
    "change-approval-fields": Statement(
        "EDIT-27", f'"{CHANGE}" has thread, turn and item, and no reason', False,
        lambda s: all(len(params) == 3 for params in s.params(CHANGE)),
        "it also has reason and grantRoot", lambda s: s.every(CHANGE, {"threadId", "turnId", "itemId", "reason", "grantRoot"}),
    ),
    "cancel-is-a-decline": Statement(
        "EDIT-29", '"cancel": Codex will treat it as a decline', False,
        lambda s: s.params("turn/completed")[-1]["turn"]["status"] == "completed",
        "the item is declined and the turn is interrupted",
        lambda s: cancelled(s)[0] == "declined" and s.params("turn/completed")[-1]["turn"]["status"] == "interrupted",
    ),
    "listed-notifications": Statement(
        "EDIT-31", "thread/started, turn/started, turn/completed, item/started, item/completed, ... come", True,
        lambda s: (KNOWN - {"item/reasoning/summaryTextDelta", "item/reasoning/textDelta"}) <= s.methods,
    ),
    "no-other-notifications": Statement(
        "EDIT-35", "these are the notifications from codex", False, lambda s: s.methods <= KNOWN,
        "it also sends codex/event/*, thread/tokenUsage/updated and account/rateLimits/updated",
        lambda s: {"codex/event/agent_message", "thread/tokenUsage/updated", "account/rateLimits/updated"} <= s.methods,
    ),
    "field-naming": Statement(
        "EDIT-37", "the server generally uses `snake_case`", False, lambda s: any("_" in key for key in s.fields()),
        "no key of a v2 message has an underscore; only the content of codex/event/* is snake_case",
        lambda s: {"threadId", "turnId"} <= s.fields() and "turn_id" in s.params("codex/event/exec_command_begin")[0]["msg"],
    ),
}  # fmt: skip

_SEEN: dict[tuple[str, str], Seen] = {}


def look(editor_client: EditorClient) -> Seen:
    """Run the conversation once for all cases; return the messages of the server."""
    key = (editor_client.command, editor_client.subject.name)
    if key not in _SEEN:
        editor = editor_client(
            script=[
                {"items": [item]}
                for item in (PLAN, SHELL, {**PATCH, "call_id": "call_2"}, "Done.", {**SHELL, "call_id": "call_3"})
            ]
        )
        editor.prompt("Go on.")
        editor.decide(editor.wait("approval", kind="command"), "accept")
        editor.decide(editor.wait("approval", kind="fileChange"), "accept")
        assert editor.end().status == "completed"
        editor.prompt("And again.")
        editor.decide(editor.wait("approval"), "dismiss")
        editor.end()
        _SEEN[key] = Seen(editor.server_messages())
    return _SEEN[key]


#: Statements about `codex/event/*`, which later versions do not send.
_OF_EVENTS = ("listed-notifications", "no-other-notifications", "field-naming")
_WITH_EVENTS = pytest.mark.until("0.107.0", "codex/event/* ended with v1")


@pytest.mark.parametrize("name", [pytest.param(n, marks=[_WITH_EVENTS] if n in _OF_EVENTS else []) for n in STATEMENTS])
def test_statement(editor_client: EditorClient, name: str, record_property: Callable[[str, object], None]) -> None:
    """On the server under test, each statement is true or false as its row says; the correction of a false statement is true."""
    statement = STATEMENTS[name]
    seen = look(editor_client)
    holds = statement.test(seen)
    report = {"id": name, "where": statement.cites, "says": statement.says, "holds": holds, "does": statement.does}
    record_property("statement", report)
    assert holds is statement.holds, f"{statement.cites}: {statement.says}: now " + ("true" if holds else "false")
    assert statement.instead is None or statement.instead(seen), f"expected the behaviour in the row: {statement.does}"


def test_every_row_says_what_happens_instead() -> None:
    """Each false statement has a correction, and no true statement has one."""
    for name, statement in STATEMENTS.items():
        assert re.fullmatch("[a-z-]+", name)
        assert (statement.instead is None, statement.does == "") == (statement.holds, statement.holds), name
