"""Details of the scripted fake that were watched on the real 0.92.0: denied patches, reviews, previews."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codex_fakes.scripted.server import _is_header
from codex_fakes.scripted.turns.review import rendered, review_output, single, told_model
from codex_replay.core.wire.jsonrpc import kind
from tests.fakes.scripted.in_process import InProcess

FREE = {"approvalPolicy": "never", "sandbox": "danger-full-access"}


def client_of(tmp_path: Path, script: Any) -> InProcess:
    file = tmp_path / "script.json"
    file.write_text(json.dumps(script))
    return InProcess(file, tmp_path, "/work")


def turn(client: InProcess, thread: str, decision: str = "accept") -> list[Any]:
    """Run a turn; return what the server sent in it."""
    begin = len(client.timeline)
    client.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "Go."}]})
    while True:
        message = client.wait("the end", lambda m: kind(m) == "request" or m.get("method") == "turn/completed")
        if kind(message) != "request":
            return [frame.value for frame in client.timeline[begin:] if frame.sender == "server"]
        client.reply(message, {"decision": decision})


def test_the_sandbox_denies_a_patch_before_the_client_is_asked_again(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** Add File: n.txt\n+x\n*** End Patch\n"
    item = {"type": "custom_tool_call", "name": "apply_patch", "call_id": "c1", "input": patch}
    client = client_of(tmp_path, [{"items": [item]}, "Ok."])
    thread = client.request("thread/start", {"approvalPolicy": "on-failure", "sandbox": "read-only"})["thread"]["id"]
    sent = turn(client, thread)
    deltas = [m["params"]["delta"] for m in sent if m.get("method") == "item/fileChange/outputDelta"]
    assert deltas[0] == "Failed to write file n.txt\n"
    assert [m["params"]["reason"] for m in sent if kind(m) == "request"] == ["command failed; retry without sandbox?"]


def test_a_deletion_that_the_sandbox_denies_fails_for_good(tmp_path: Path) -> None:
    item = {
        "type": "custom_tool_call", "name": "apply_patch", "call_id": "c1",
        "input": "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch\n",
        "result": {"changes": {"a.txt": {"type": "delete", "content": "x\n"}}},
    }  # fmt: skip
    client = client_of(tmp_path, [{"items": [item]}, "Ok."])
    thread = client.request("thread/start", {"approvalPolicy": "on-failure", "sandbox": "read-only"})["thread"]["id"]
    sent = turn(client, thread)
    assert [m for m in sent if kind(m) == "request"] == []
    [end] = [m["params"]["msg"] for m in sent if m.get("method") == "codex/event/patch_apply_end"]
    assert (end["success"], end["stderr"]) == (False, "Failed to delete file a.txt\n")


def test_a_score_is_kept_in_single_precision() -> None:
    assert (single(0.8), single(1), single(1e50)) == (0.800000011920929, 1.0, None)
    given = {"findings": [], "overall_correctness": "", "overall_explanation": "", "overall_confidence_score": 0.1}
    found = review_output(json.dumps(given))
    assert found is not None
    assert found["overall_confidence_score"] == 0.10000000149011612
    assert told_model(found) == ""


def test_the_model_gets_the_findings_of_a_review_with_the_blanks_at_their_end() -> None:
    place = {"absolute_file_path": "/x/a", "line_range": {"start": 1, "end": 2}}
    finding = {"title": "A", "body": "} ", "confidence_score": 0.5, "priority": 0, "code_location": place}
    found = {"findings": [finding], "overall_explanation": "\t"}
    assert told_model(found) == "\n\nReview comment:\n\n- A \u2014 /x/a:1-2\n  } "
    assert told_model({**found, "overall_explanation": " B. "}).startswith("B.\n\nReview comment:")
    assert rendered(found, "") == "Review comment:\n\n- A \u2014 /x/a:1-2\n  }"


def test_a_review_without_a_repository_fails_the_next_turn(tmp_path: Path) -> None:
    client = client_of(tmp_path, ["One.", "Two."])
    thread = client.request("thread/start", FREE)["thread"]["id"]
    client.request("review/start", {"threadId": thread, "target": {"type": "baseBranch", "branch": "main"}})
    ends = [turn(client, thread)[-1]["params"]["turn"] for _ in range(2)]
    assert [end["status"] for end in ends] == ["failed", "completed"]
    assert ends[0]["error"]["message"] == '"/work" is not a git repository'


@pytest.mark.parametrize(
    "text", ["<environment_context>x", " <ENVIRONMENT_CONTEXT>", "# AGENTS.md instructions for x", "<skill>\n"]
)
def test_a_text_like_one_of_codex_names_no_thread(tmp_path: Path, text: str) -> None:
    client = client_of(tmp_path, ["One."])
    thread = client.request("thread/start", FREE)["thread"]["id"]
    client.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": text}]})
    client.wait("the end", lambda m: m.get("method") == "turn/completed")
    assert client.request("thread/list", {})["data"] == []
    assert client.request("thread/read", {"threadId": thread})["thread"]["preview"] == ""


def test_turn_started_comes_in_a_conversation_of_v1_too(tmp_path: Path) -> None:
    client = client_of(tmp_path, ["One."])
    thread = client.request("newConversation", FREE)["conversationId"]
    client.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "Go."}]})
    assert [f.value for f in client.timeline if f.value.get("method") == "turn/started"]


def test_a_search_has_the_members_that_the_version_reads(tmp_path: Path) -> None:
    search = {"type": "web_search_call", "action": {"type": "search", "query": "q", "queries": ["a"]}}
    client = client_of(tmp_path, [{"items": [search, {"type": "web_search_call", "action": {"type": "strange"}}, "Ok."]}])
    thread = client.request("thread/start", FREE)["thread"]["id"]
    ends = [m["params"]["msg"] for m in turn(client, thread) if m.get("method") == "codex/event/web_search_end"]
    assert [end["action"] for end in ends] == [{"type": "search", "query": "q"}, {"type": "other"}]


@pytest.mark.parametrize(("name", "valid"), [("a b", True), ("ümlaut", True), ("a\tb", True), ("a\nb", False), ("\x7f", False)])
def test_a_client_name_must_be_a_header(name: str, valid: bool) -> None:
    assert _is_header(name) is valid
