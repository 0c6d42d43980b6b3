"""The real Codex with the fake backend behind it: every item kind, the fault table, auth and refresh, word for word.

The expected sentences are those of REAL-17 to REAL-20 and REAL-99 to REAL-109; the fake is good enough when the real client
says them.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from codex_replay.shell.codex.cache import find_installed
from codex_replay.shell.codex.home import ApiKey, ChatGpt, HermeticHome
from codex_replay.shell.http.backend_process import BackendProcess, BackendSession
from codex_replay.shell.rpc.client import Client

CLIENT = {"name": "codex-replay", "title": None, "version": "1"}
ONCE = {"request_max_retries": 0, "stream_max_retries": 0}
PATCH = "*** Begin Patch\n*** Add File: a.txt\n+hi\n*** End Patch\n"


@pytest.fixture(scope="module")
def backend() -> Iterator[BackendProcess]:
    with BackendProcess() as process:
        yield process


@contextmanager
def codex(
    session: BackendSession, root: Path, *, thread: dict[str, Any] | None = None, **home: Any
) -> Iterator[tuple[Client, str]]:
    """Run the real app-server on a session, with a thread started."""
    binary = find_installed("0.92.0")
    assert binary is not None, "Codex 0.92.0 is missing: run `codex-replay codex install 0.92.0` first"
    home["extra_config"] = {"model_providers": {"mock": {**ONCE, **home.pop("provider", {})}}, **home.pop("config", {})}
    place = HermeticHome(root, session.url, **home)
    client = Client([str(binary), "app-server"], env=place.env, cwd=str(place.work), timeout=20)
    try:
        client.request("initialize", {"clientInfo": CLIENT})
        started = client.request("thread/start", {"cwd": str(place.work), **(thread or {})})
        yield client, started["thread"]["id"]
    finally:
        client.stop()


def turn(client: Client, thread: str, text: str = "go") -> dict[str, Any]:
    """Run one turn; return the turn of its turn/completed."""
    client.post("turn/start", {"threadId": thread, "input": [{"type": "text", "text": text}]})
    completed: dict[str, Any] = client.notification("turn/completed")["turn"]
    return completed


def completed_items(client: Client) -> list[dict[str, Any]]:
    found = [m["params"]["item"] for m in client.messages() if m.get("method") == "item/completed"]
    return [item for item in found if item["type"] != "userMessage"]


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "function_call", "name": name, "arguments": arguments, "call_id": "call_a"}


KINDS: dict[str, tuple[list[Any], list[tuple[str, dict[str, Any]]]]] = {
    "text": (["Hello ✓"], [("agentMessage", {"text": "Hello ✓"})]),
    "reasoning": (
        [{"items": [{"type": "reasoning", "summary": ["**One**"], "content": "raw", "encrypted_content": "x"}, "ok"]}],
        [("reasoning", {"summary": ["**One**"], "content": ["raw"]}), ("agentMessage", {"text": "ok"})],
    ),
    "web search": (
        [{"items": [{"type": "web_search_call", "query": "cats"}, "ok"]}],
        [("webSearch", {"query": "cats"}), ("agentMessage", {"text": "ok"})],
    ),
    "shell": (
        [{"items": [call("shell_command", command="echo hi")]}, "done"],
        [("commandExecution", {"id": "call_a", "exitCode": 0, "aggregatedOutput": "hi\n"}), ("agentMessage", {"text": "done"})],
    ),
    "apply_patch": (
        [{"items": [{"type": "custom_tool_call", "name": "apply_patch", "input": PATCH, "call_id": "call_a"}]}, "done"],
        [("fileChange", {"id": "call_a", "status": "completed"}), ("agentMessage", {"text": "done"})],
    ),
    "update_plan": (
        [{"items": [call("update_plan", plan=[{"step": "one", "status": "in_progress"}])]}, "done"],
        [("agentMessage", {"text": "done"})],
    ),
    # a finding: the real client starts an agentMessage for a refusal and never completes it
    "refusal": ([{"items": [{"type": "refusal", "refusal": "no"}]}], []),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_item_reaches_the_client(backend: BackendProcess, tmp_path: Path, kind: str) -> None:
    """Every kind of item reaches the client. (REAL-71, REAL-72)"""
    turns, expected = KINDS[kind]
    session = backend.session(f"kind {kind}", turns)
    with codex(session, tmp_path, sandbox_mode="workspace-write") as (client, thread):
        assert turn(client, thread)["status"] == "completed"
        items = completed_items(client)
    assert [item["type"] for item in items] == [kind for kind, _ in expected]
    for item, (_, fields) in zip(items, expected, strict=True):
        assert {key: item[key] for key in fields} == fields
    assert session.problems() == []
    assert session.unused_turns() == []


def test_parallel_and_dynamic_calls_come_back_in_call_order(backend: BackendProcess, tmp_path: Path) -> None:
    """Parallel and dynamic calls come back in call order. (REAL-70)"""
    items = [{"type": "function_call", "name": "add", "arguments": {"n": i}, "call_id": f"call_{i}"} for i in range(3)]
    session = backend.session("dynamic", [{"items": items}, {"items": ["done"], "expect": {"outputs": {"call_1": "n=1"}}}])
    tool = {"name": "add", "description": "adds", "inputSchema": {"type": "object"}}
    with codex(session, tmp_path, thread={"dynamicTools": [tool]}) as (client, thread):
        client.post("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "go"}]})
        for _ in range(3):
            request = client.server_request("item/tool/call")
            client.reply(request, {"output": f"n={request['params']['arguments']['n']}", "success": True})
        assert client.notification("turn/completed")["turn"]["status"] == "completed"
    outputs = [item for item in session.ledger()[-1]["body"]["input"] if item["type"] == "function_call_output"]
    assert [(item["call_id"], item["output"]) for item in outputs] == [(f"call_{i}", f"n={i}") for i in range(3)]
    assert session.problems() == []


BEFORE = "stream disconnected before completion: "
CLOSED = BEFORE + "stream closed before response.completed"
BROKEN = BEFORE + "Transport error: network error: error decoding response body"
FAULTS: dict[str, tuple[str, Any]] = {
    "missing_completed": (CLOSED, "other"),
    "empty": (CLOSED, "other"),
    "cut_before_completed": (BROKEN, "other"),
    "cut_in_event": (BROKEN, "other"),
    "cut": (BROKEN, "other"),
    "reset": (BROKEN, "other"),
    "idle": (BEFORE + "idle timeout waiting for SSE", "other"),
    "failed_context_length_exceeded": (
        "Codex ran out of room in the model's context window. Start a new thread or clear earlier history before retrying.",
        "contextWindowExceeded",
    ),
    "failed_insufficient_quota": ("Quota exceeded. Check your plan and billing details.", "usageLimitExceeded"),
    "failed_rate_limit_exceeded": (BEFORE + "Rate limit reached. Please try again in 0.05s.", "other"),
    "http_403": ("unexpected status 403 Forbidden: <body>, url: <url>", "other"),
    "http_404": ("unexpected status 404 Not Found: <body>, url: <url>", "other"),
    "http_400": ("<body>", "other"),
    "http_429": (
        "exceeded retry limit, last status: 429 Too Many Requests",
        {"responseTooManyFailedAttempts": {"httpStatusCode": 429}},
    ),
    "http_500": (
        "We're currently experiencing high demand, which may cause temporary errors.",
        "internalServerError",
    ),
    "http_503": ("unexpected status 503 Service Unavailable: <body>, url: <url>", "other"),
}
SURVIVED = (
    "split_utf8",
    "crlf",
    "comments",
    "malformed_event",
    "unknown_event",
    "missing_type",
    "duplicated_frames",
    "huge_event",
    "slow_drip",
)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_fault_table_word_for_word(backend: BackendProcess, tmp_path: Path, fault: str) -> None:
    """The fault table, word for word.

    Source: REAL-98, REAL-99, REAL-100, REAL-101, REAL-102, REAL-103, REAL-104, REAL-105, REAL-106, REAL-107, REAL-108, REAL-109.
    """
    session = backend.session(f"fault {fault}", [{"items": ["Hello there, all of you."], "fault": fault}])
    with codex(session, tmp_path, provider={"stream_idle_timeout_ms": 500}) as (client, thread):
        completed = turn(client, thread)
    message, info = FAULTS[fault]
    if "<body>" in message:
        body = completed["error"]["message"]
        start = body.index("{")
        error = json.loads(body[start : body.rindex("}") + 1])
        assert set(error["error"]) == {"message", "type", "param", "code"}
        message = message.replace("<body>", body[start : body.rindex("}") + 1]).replace("<url>", session.url + "/v1/responses")
    assert (completed["status"], completed["error"]["message"]) == ("failed", message)
    assert completed["error"]["codexErrorInfo"] == info


@pytest.mark.parametrize("fault", SURVIVED)
def test_what_the_real_client_survives(backend: BackendProcess, tmp_path: Path, fault: str) -> None:
    """What the real client survives. (REAL-110, REAL-111)"""
    session = backend.session(f"survived {fault}", [{"items": ["Hello é✓ there, all of you."], "fault": fault}])
    with codex(session, tmp_path) as (client, thread):
        assert turn(client, thread)["status"] == "completed"


@pytest.mark.parametrize("end", ["incomplete", "error"])
def test_incomplete_and_error_events_are_an_early_end(backend: BackendProcess, tmp_path: Path, end: str) -> None:
    """Incomplete and error events are an early end. (REAL-99)"""
    session = backend.session(f"end {end}", [{"items": ["half", {"type": end}]}])
    with codex(session, tmp_path) as (client, thread):
        assert turn(client, thread)["error"]["message"] == CLOSED


def test_a_stream_is_retried_and_the_next_turn_answers(backend: BackendProcess, tmp_path: Path) -> None:
    """A stream is retried and the next turn answers. (REAL-97)"""
    session = backend.session("retry", [{"items": ["x"], "fault": "reset"}, "after all"])
    with codex(session, tmp_path, provider={"stream_max_retries": 2}) as (client, thread):
        assert turn(client, thread)["status"] == "completed"
        assert completed_items(client)[-1]["text"] == "after all"
        assert [m["params"]["error"]["message"] for m in client.messages() if m.get("method") == "error"] == [
            "Reconnecting... 1/2"
        ]


LOGIN = ChatGpt(access_token="at-1", refresh_token="rt-1", account_id="acc-1")
TOKENS = {"mode": "chatgpt", "access_token": "at-1", "refresh_token": "rt-1", "account_id": "acc-1"}
AGAIN = "Please log out and sign in again."
NOT_REFRESHED = "Your access token could not be refreshed"
REFRESHES: dict[str, tuple[dict[str, Any], str, str]] = {
    "expired": ({"refresh": "expired"}, f"{NOT_REFRESHED} because your refresh token has expired. {AGAIN}", "unauthorized"),
    "reused": ({"refresh": "reused"}, f"{NOT_REFRESHED} because your refresh token was already used. {AGAIN}", "unauthorized"),
    "revoked": ({"refresh": "revoked"}, f"{NOT_REFRESHED} because your refresh token was revoked. {AGAIN}", "unauthorized"),
    "unknown": ({"refresh": "unknown"}, f"{NOT_REFRESHED}. {AGAIN}", "unauthorized"),
    "code as a string": (
        {"refresh_answer": {"status": 401, "body": {"error": "refresh_token_expired"}}},
        f"{NOT_REFRESHED} because your refresh token has expired. {AGAIN}",
        "unauthorized",
    ),
    "code at the top": (
        {"refresh_answer": {"status": 401, "body": {"code": "refresh_token_reused"}}},
        f"{NOT_REFRESHED} because your refresh token was already used. {AGAIN}",
        "unauthorized",
    ),
    "500": (
        {"refresh_answer": {"status": 500, "body": "oops"}},
        "Failed to refresh token: 500 Internal Server Error: oops",
        "other",
    ),
    "400": ({"refresh_answer": {"status": 400, "body": "bad"}}, "Failed to refresh token: 400 Bad Request: bad", "other"),
}


def posts(session: BackendSession) -> list[tuple[str, int]]:
    """The POSTs of a session: the end of each path and the status it got."""
    return [(e["path"].rsplit("/", 1)[-1], e["status"]) for e in session.ledger() if e["method"] == "POST"]


def test_an_expired_token_is_read_again_refreshed_and_used(backend: BackendProcess, tmp_path: Path) -> None:
    """An expired token is read again, refreshed and used. (REAL-12, REAL-15)"""
    session = backend.session("refresh", {"turns": ["one", "two"], "auth": {**TOKENS, "access": "expired"}})
    with codex(session, tmp_path, auth=LOGIN, requires_openai_auth=True) as (client, thread):
        assert turn(client, thread)["status"] == "completed"
        assert turn(client, thread)["status"] == "completed"
    assert posts(session) == [("responses", 401), ("responses", 401), ("token", 200), ("responses", 200), ("responses", 200)]
    asked = next(e["body"] for e in session.ledger() if e["path"].endswith("/oauth/token"))
    assert asked == {
        "client_id": "app_EMoamEEZ73f0CkXaXp7hrann",
        "grant_type": "refresh_token",
        "refresh_token": "rt-1",
        "scope": "openid profile email",
    }
    stored = json.loads((tmp_path / "home" / "auth.json").read_text())["tokens"]
    assert (stored["access_token"], stored["refresh_token"]) == ("access-token-2", "refresh-token-2")


@pytest.mark.parametrize("state", REFRESHES)
def test_each_refresh_error_has_its_sentence(backend: BackendProcess, tmp_path: Path, state: str) -> None:
    """Each refresh error has its sentence. (REAL-17, REAL-18, REAL-19, REAL-20)"""
    given, message, info = REFRESHES[state]
    session = backend.session(f"refresh {state}", {"turns": ["one"], "auth": {**TOKENS, "access": "expired", **given}})
    with codex(session, tmp_path, auth=LOGIN, requires_openai_auth=True) as (client, thread):
        completed = turn(client, thread)
    assert (completed["error"]["message"], completed["error"]["codexErrorInfo"]) == (message, info)
    assert [path for path, _ in posts(session)] == ["responses", "responses", "token"]


def test_an_api_key_is_sent_as_it_is(backend: BackendProcess, tmp_path: Path) -> None:
    session = backend.session("key", {"turns": ["one"], "auth": {"mode": "api_key", "api_key": "sk-1"}})
    with codex(session, tmp_path, auth=ApiKey("sk-1"), requires_openai_auth=True) as (client, thread):
        assert turn(client, thread)["status"] == "completed"
    assert session.problems() == []


def test_the_chatgpt_path_is_satisfied_by_the_real_client(backend: BackendProcess, tmp_path: Path) -> None:
    """The chatgpt path is satisfied by the real client. (REAL-24, REAL-27)"""
    turns = [{"items": [call("shell_command", command="echo hi")]}, "done"]
    session = backend.session("chatgpt", {"turns": turns, "auth": {**TOKENS, "mode": "auto"}})
    provider = {"base_url": session.url + "/backend-api/codex"}
    with codex(session, tmp_path, auth=LOGIN, requires_openai_auth=True, provider=provider) as (client, thread):
        assert turn(client, thread)["status"] == "completed"
    assert session.problems() == []
    assert [e["path"] for e in session.ledger() if e["method"] == "POST"] == ["/s/chatgpt/backend-api/codex/responses"] * 2


def test_zstd_bodies_of_the_real_client_are_read(backend: BackendProcess, tmp_path: Path) -> None:
    """Zstd bodies of the real client are read. (REAL-26)"""
    session = backend.session("zstd", {"turns": ["one"], "auth": TOKENS})
    more: dict[str, Any] = {"features": {"enable_request_compression": True}, "config": {"model_provider": "openai"}}
    with codex(session, tmp_path, auth=LOGIN, **more) as (client, thread):  # only the built-in provider compresses
        assert turn(client, thread)["status"] == "completed"
    entry = session.ledger()[-1]
    assert ["content-encoding", "zstd"] in entry["headers"]
    assert entry["body"]["model"] == "gpt-5.2-codex"


def test_an_interrupted_call_satisfies_the_rules_in_the_next_turn(backend: BackendProcess, tmp_path: Path) -> None:
    session = backend.session("interrupted", [{"items": [call("shell_command", command="sleep 60")]}, "next"])
    with codex(session, tmp_path) as (client, thread):
        client.post("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "go"}]})
        client.wait(
            "a command", lambda m: m.get("method") == "item/started" and m["params"]["item"]["type"] == "commandExecution"
        )
        client.post("turn/interrupt", {"threadId": thread, "turnId": "0"})
        assert client.notification("turn/completed")["turn"]["status"] == "interrupted"
        assert turn(client, thread)["status"] == "completed"
    assert session.problems() == []


def test_codex_exec_runs_a_tool_and_says_the_text(backend: BackendProcess, tmp_path: Path) -> None:
    session = backend.session("exec", [{"items": [call("shell_command", command="echo hi")]}, "finished"])
    binary = find_installed("0.92.0")
    assert binary is not None
    home = HermeticHome(tmp_path, session.url)
    argv = [str(binary), "exec", "--skip-git-repo-check", "do it"]
    done = subprocess.run(argv, env=home.env, cwd=home.work, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (0, "finished\n")
    assert session.problems() == []
    assert session.unused_turns() == []
