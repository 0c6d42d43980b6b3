"""File changes: the patch as an item and as an event, its approval, each decision, and the diff of the turn.

Source: docs/contract/real-0.92.md, section 4, "Turns, tools and approvals", and the bundle's FileChangeApprovalDecision and
PatchApplyStatus.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codex_replay.plugin import AppServer, Server
from suites.app_server.dialect import DECLINED, PATCHES, V1, has_events, in_events, these, turn_id
from suites.app_server.expected import all_of, event, events, item_notification, text
from suites.app_server.turns import (
    ABANDONED,
    UNHEARD,
    asked,
    conversation,
    ended,
    items_of,
    last_words,
    methods,
    msgs,
    open_thread,
    run,
    send_words,
    start,
    wait_usage,
)

REQUEST = "item/fileChange/requestApproval"
ASKS: dict[str, Any] = {"approvalPolicy": "untrusted", "sandbox": "workspace-write"}
FREE: dict[str, Any] = {"approvalPolicy": "never", "sandbox": "danger-full-access"}
ADD = "*** Begin Patch\n*** Add File: new.txt\n+one\n+two\n*** End Patch\n"
UPDATE = "*** Begin Patch\n*** Update File: old.txt\n@@\n-one\n+two\n*** End Patch\n"
MOVE = "*** Begin Patch\n*** Update File: old.txt\n*** Move to: moved.txt\n@@\n-one\n+two\n*** End Patch\n"
DELETE = "*** Begin Patch\n*** Delete File: old.txt\n*** End Patch\n"
DONE = "Success. Updated the following files:\nA new.txt\n"


def patch(words: str, call_id: str = "call_1") -> dict[str, Any]:
    """Return a script's item: the model calls apply_patch with the given patch."""
    return {"type": "custom_tool_call", "name": "apply_patch", "call_id": call_id, "input": words}


def with_old_file(root: Path) -> None:
    """Put a file old.txt into the working directory of the server."""
    (root / "work" / "old.txt").write_text("one\n")


def added(server: Server) -> dict[str, Any]:
    """Return the change that the patch ADD makes, in the form of an item."""
    return {"path": f"{server.work}/new.txt", "kind": {"type": "add"}, "diff": "one\ntwo\n"}


def statuses(server: Server) -> list[tuple[str, str]]:
    """Return the id and status of every completed file change."""
    return [(item["id"], item["status"]) for item in items_of(server, "fileChange")]


def test_request(app_server: AppServer) -> None:
    """The frames before the request come in a fixed order, and the request is exact. (REAL-60)"""
    server = app_server([{"items": [patch(ADD)]}, {"items": [text("Done")]}])
    thread = open_thread(server, **ASKS, **server.by_version(PATCHES))
    start(server, thread)
    request = server.server_request(REQUEST)
    before = [each for each in events(server, turn_id(server)) if "atch" in each[0] or "fileChange" in str(each)]
    server.reply(request, {"decision": "accept"})
    ended(server, thread)
    of = {"call_id": "call_1", "turn_id": turn_id(server)}
    changes = {f"{server.work}/new.txt": {"type": "add", "content": "one\ntwo\n"}}
    item = {"type": "fileChange", "id": "call_1", "changes": [added(server)], "status": "inProgress"}
    wanted = [
        event(thread, turn_id(server), "patch_apply_begin", **of, auto_approved=False, changes=changes),
        item_notification("started", thread, turn_id(server), item),
        event(thread, turn_id(server), "apply_patch_approval_request", **of, changes=changes),
    ]
    assert before == these(server, wanted)
    params = {"threadId": thread, "turnId": turn_id(server), "itemId": "call_1", "reason": None, "grantRoot": None}
    assert request == these(server, {"method": REQUEST, "id": 0, "params": params})


def test_accept(app_server: AppServer) -> None:
    """After accept, the server sends the output of apply_patch, patch_apply_end, one item/completed, and the diff of the turn.

    Source: REAL-53, REAL-61.
    """
    expect = {"outputs": {"call_1": f"Exit code: 0\nWall time: 0 seconds\nOutput:\n{DONE}"}}
    server = app_server([{"items": [patch(ADD)]}, {"items": [text("Done")], "expect": expect}])
    thread = open_thread(server, **ASKS, **server.by_version(PATCHES))
    start(server, thread)
    server.reply(server.server_request(REQUEST), {"decision": "accept"})
    assert ended(server, thread)["status"] == "completed"
    message = [params["delta"] for params in all_of(server, "item/fileChange/outputDelta")]
    assert "".join(message) == in_events(server, DONE)  # ended with v1
    changes = {f"{server.work}/new.txt": {"type": "add", "content": "one\ntwo\n"}}
    end = {"call_id": "call_1", "turn_id": turn_id(server), "stdout": DONE, "stderr": "", "success": True, "changes": changes}
    assert msgs(server, "patch_apply_end") == in_events(server, [end])
    item = {"type": "fileChange", "id": "call_1", "changes": [added(server)], "status": "completed"}
    assert items_of(server, "fileChange") == these(server, [item])
    assert last_words(server) == ["Done"]


def test_turn_diff(app_server: AppServer) -> None:
    """turn/diff/updated has the unified diff of the whole turn so far, and codex/event/turn_diff comes first, with the same diff.

    (REAL-61)
    """
    second = "*** Begin Patch\n*** Add File: second.txt\n+three\n*** End Patch\n"
    server = app_server([{"items": [patch(ADD)]}, {"items": [patch(second, "call_2")]}, {"items": [text("Done")]}])
    thread = open_thread(server, **FREE, **server.by_version(PATCHES))
    run(server, thread)
    report = [params["diff"] for params in all_of(server, "turn/diff/updated")]
    assert {(params["threadId"], params["turnId"]) for params in all_of(server, "turn/diff/updated")} == {
        (thread, turn_id(server))
    }
    if has_events(server):
        assert report == [msg["unified_diff"] for msg in msgs(server, "turn_diff")]
    head, body = report[0].split("--- /dev/null\n")
    folder = f"{server.work}/"
    if server.by_version({"0.0.0": False, "0.169.0": True}):  # relative to the repository, or to the working directory
        relative = head.removeprefix("diff --git a/").partition("new.txt ")[0]
        assert folder.endswith(relative)
        folder = relative
    name = f"{folder}new.txt"
    assert head.startswith(f"diff --git a/{name} b/{name}\nnew file mode 100644\nindex ")
    assert body == f"+++ b/{name}\n@@ -0,0 +1,2 @@\n+one\n+two\n"
    assert report[-1].startswith(report[0])
    assert report[-1].endswith(f"+++ b/{folder}second.txt\n@@ -0,0 +1 @@\n+three\n")
    seen = methods(server)
    at = seen.index("turn/diff/updated")
    if has_events(server):
        assert seen[at - 1] == "codex/event/turn_diff"
    assert "item/completed" in seen[:at]


@pytest.mark.parametrize("decision", ["decline", "anything"])
def test_decline(app_server: AppServer, decision: str) -> None:
    """After decline or an invalid decision, the server sends two item/completed with one id, `declined` and `failed`.

    The turn continues.

    Source: REAL-54, REAL-56.
    """
    why = "patch rejected by user"
    if decision == "anything":
        why = app_server.by_version({"0.0.0": why, "0.169.0": "approval request failed"})
    script = [{"items": [patch(ADD)]}, {"items": [text("Then not.")], "expect": {"outputs": {"call_1": why}}}]
    server = app_server(script, bad_input=decision == "anything")
    thread = open_thread(server, **ASKS, **server.by_version(PATCHES))
    start(server, thread)
    server.reply(server.server_request(REQUEST), {"decision": decision})
    assert ended(server, thread)["status"] == "completed"
    assert statuses(server) == [("call_1", status) for status in server.by_version(DECLINED)]
    if has_events(server):
        end = msgs(server, "patch_apply_end")[0]
        assert (end["success"], end["stdout"], end["stderr"]) == (False, "", why)
    assert all_of(server, "turn/diff/updated") == []
    assert last_words(server) == ["Then not."]


def test_cancel(app_server: AppServer) -> None:
    """cancel: the file change is declined, and the turn is interrupted. (REAL-55)"""
    server = app_server([{"items": [patch(ADD)]}, UNHEARD], racy=ABANDONED)
    thread = open_thread(server, **ASKS, **server.by_version(PATCHES))
    start(server, thread)
    wait_usage(server)
    server.reply(server.server_request(REQUEST), {"decision": "cancel"})
    assert ended(server, thread)["status"] == "interrupted"
    # 0.169.0 leaves the item open.
    declined = server.by_version({"0.0.0": [("call_1", "declined")], "0.169.0": []})
    assert statuses(server)[:1] == declined
    assert msgs(server, "turn_aborted") == in_events(server, [{"reason": "interrupted"}])
    assert last_words(server) == []


def test_accept_for_session(app_server: AppServer) -> None:
    """After acceptForSession, the next change of the same file needs no approval."""
    again = "*** Begin Patch\n*** Update File: new.txt\n@@\n one\n-two\n+three\n*** End Patch\n"
    server = app_server([{"items": [patch(ADD)]}, {"items": [patch(again, "call_2")]}, {"items": [text("Done")]}])
    thread = open_thread(server, **ASKS, **server.by_version(PATCHES))
    start(server, thread)
    server.reply(server.server_request(REQUEST), {"decision": "acceptForSession"})
    assert ended(server, thread)["status"] == "completed"
    assert asked(server) == [REQUEST]
    assert statuses(server) == [("call_1", "completed"), ("call_2", "completed")]


#: name -> (the patch, kind of the change, its diff)
KINDS: dict[str, tuple[str, dict[str, Any], str]] = {
    "update": (UPDATE, {"type": "update", "move_path": None}, "@@ -1 +1 @@\n-one\n+two\n"),
    "delete": (DELETE, {"type": "delete"}, "one\n"),
    "move": (MOVE, {"type": "update", "move_path": "moved.txt"}, "@@ -1 +1 @@\n-one\n+two\n"),
}


@pytest.mark.parametrize("row", KINDS)
def test_kind(app_server: AppServer, row: str) -> None:
    """The diff of a change depends on its kind: the hunks of an update, or the content of a deleted file."""
    words, kind, diff = KINDS[row]
    server = app_server([{"items": [patch(words)]}, {"items": [text("Done")]}], prepare=with_old_file)
    thread = open_thread(server, **FREE, **server.by_version(PATCHES))
    assert run(server, thread)["status"] == "completed"
    started, done = items_of(server, "fileChange", "started")[0], items_of(server, "fileChange")[0]
    if kind.get("move_path"):
        kind = {**kind, "move_path": f"{server.work}/moved.txt"}
        diff += f"\n\nMoved to: {server.work}/moved.txt"
    assert started["changes"] == done["changes"] == [{"path": f"{server.work}/old.txt", "kind": kind, "diff": diff}]
    assert (started["status"], done["status"]) == ("inProgress", "completed")
    if has_events(server):
        assert msgs(server, "patch_apply_begin")[0]["auto_approved"] is True
    assert asked(server) == []


def test_patch_that_does_not_apply(app_server: AppServer) -> None:
    """If a patch cannot be applied, the server sends no item for it; only the model gets an error."""
    script = [{"items": [patch(UPDATE)]}, {"items": [text("Pity.")]}]
    server = app_server(script)
    thread = open_thread(server, **FREE, **server.by_version(PATCHES))
    assert run(server, thread)["status"] == "completed"
    assert items_of(server, "fileChange", "started") == []
    assert last_words(server) == ["Pity."]


@V1
@pytest.mark.parametrize(
    ("decision", "status"),
    [("approved", [["completed"]]), ("denied", [["failed"]]), ("abort", [[], ["failed"]])],
    ids=["approved", "denied", "abort"],
)
def test_v1(app_server: AppServer, decision: str, status: list[list[str]]) -> None:
    """In v1, the server sends applyPatchApproval, and no diff of the turn; after an abort, the item may stay open.

    Source: REAL-48, REAL-59.
    """
    script = [{"items": [patch(ADD)]}, {"items": [text("Done")]}]
    aborts = decision == "abort"
    server = app_server([script[0], UNHEARD] if aborts else script, racy=ABANDONED if aborts else "")
    talk = conversation(server, **ASKS)
    send_words(server, talk)
    server.notification("thread/tokenUsage/updated")
    request = server.server_request("applyPatchApproval")
    server.reply(request, {"decision": decision})
    turn = ended(server, talk)
    assert request == {
        "method": "applyPatchApproval",
        "id": 0,
        "params": {
            "conversationId": talk,
            "callId": "call_1",
            "fileChanges": {f"{server.work}/new.txt": {"type": "add", "content": "one\ntwo\n"}},
            "reason": None,
            "grantRoot": None,
        },
    }
    assert turn["status"] == ("interrupted" if aborts else "completed")
    assert [end for _, end in statuses(server)] in status
    assert last_words(server) == ([] if aborts else ["Done"])
    assert all_of(server, "turn/diff/updated") == []
    assert bool(msgs(server, "turn_diff")) is (decision == "approved")
