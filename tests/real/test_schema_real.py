"""The bundle against the real binary: the same files, and results that satisfy the types we map their methods to."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from codex_replay.cli.schema import group
from codex_replay.core.wire.jsonrpc import kind
from codex_replay.protocol.schema import bundle
from codex_replay.protocol.schema.validate import RpcChecker
from codex_replay.shell.codex.cache import find_installed
from codex_replay.shell.codex.home import ChatGpt, HermeticHome
from codex_replay.shell.http.backend_process import BackendProcess
from codex_replay.shell.rpc.client import Client, SubjectFailure

VERSION = "0.92.0"
LOGIN = "00000000-0000-0000-0000-000000000000"
#: Requests that have no good answer offline: they need a browser, an account elsewhere or a running MCP server.
UNREACHED = {"feedback/upload", "mcpServer/oauth/login"}


@pytest.fixture(scope="module")
def binary() -> str:
    found = find_installed(VERSION)
    assert found is not None, f"Codex {VERSION} is missing: run `codex-replay codex install {VERSION}` first"
    return str(found)


@pytest.fixture(scope="module")
def answered() -> set[str]:
    """The methods whose real results satisfied their type, over all the tests of this module."""
    return set()


class Session:
    """A real app-server, and the checker that sees each of its frames."""

    def __init__(self, binary: str, root: Path, url: str, **home: Any) -> None:
        self.home = HermeticHome(root, url, version=VERSION, **home)
        self.client = Client([binary, "app-server"], env=self.home.env, cwd=str(self.home.work), timeout=30.0)

    def begin(self) -> None:
        self.client.request("initialize", {"clientInfo": {"name": "schema", "title": None, "version": "1"}})
        self.client.notify("initialized")

    def ask(self, method: str, params: Any = None) -> Any:
        reply = self.client.call(method) if params is None else self.client.call(method, params)
        assert kind(reply) == "response", (method, reply)
        return reply["result"]

    def finish(self, answered: set[str]) -> None:
        """Close the server and require that each of its frames is valid and known, our own too."""
        with contextlib.suppress(SubjectFailure):  # its end is no subject here: the real server hung there once in ninety runs
            self.client.close(10.0)
        checker = RpcChecker(bundle.load(VERSION))
        asked: dict[Any, str] = {}
        for frame in self.client.timeline:
            found = checker.check(frame.sender, frame.value)
            assert found == [], (frame.value, found)
            if kind(frame.value) == "request" and frame.sender == "client":
                asked[frame.value["id"]] = frame.value["method"]
            elif kind(frame.value) == "response" and frame.sender == "server":
                answered.add(asked[frame.value["id"]])


Start = Callable[..., Session]


@pytest.fixture
def start(binary: str, tmp_path: Path) -> Iterator[Start]:
    """Start an app-server behind the upstream `url`; it ends with the test."""
    started: list[Session] = []

    def begin(url: str, **home: Any) -> Session:
        started.append(Session(binary, tmp_path, url, **home))
        started[-1].begin()
        return started[-1]

    yield begin
    for session in started:
        session.client.stop()


@pytest.fixture(scope="module")
def backend() -> Iterator[BackendProcess]:
    with BackendProcess() as process:
        yield process


def test_schema_check_finds_identical_bytes(binary: str) -> None:
    """Schema check finds identical bytes. (SCHEMA-01)"""
    done = CliRunner().invoke(group, ["check", VERSION, "--codex", binary])
    assert done.exit_code == 0, done.output
    assert "154 files, all identical" in done.output


def test_results_of_v2_methods(start: Start, backend: BackendProcess, answered: set[str], tmp_path: Path) -> None:
    url = backend.session("schema-v2", {"turns": [{"items": ["Hello"]} for _ in range(3)]}).url
    session = start(url)
    ask = session.ask
    thread = ask("thread/start", {})["thread"]["id"]
    ask("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "hi"}]})
    session.client.notification("turn/completed")
    for method in ("thread/list", "thread/loaded/list", "skills/list", "app/list", "model/list", "collaborationMode/list"):
        ask(method, {})
    ask("thread/read", {"threadId": thread, "includeTurns": True})
    ask("mcpServerStatus/list", {})
    ask("config/mcpServer/reload")
    ask("configRequirements/read")
    ask("config/read", {"includeLayers": True})
    ask("config/value/write", {"keyPath": "model_verbosity", "value": "low", "mergeStrategy": "replace"})
    ask("config/batchWrite", {"edits": [{"keyPath": "model_verbosity", "value": "high", "mergeStrategy": "upsert"}]})
    ask("skills/config/write", {"path": str(tmp_path / "skill"), "enabled": False})
    danger = {"type": "dangerFullAccess"}
    ask("command/exec", {"command": ["echo", "hello"], "sandboxPolicy": danger})
    ask("account/read", {"refreshToken": False})
    ask("account/login/cancel", {"loginId": LOGIN})
    ask("account/login/start", {"type": "apiKey", "apiKey": "sk-fake"})
    ask("account/logout")
    ask("thread/fork", {"threadId": thread})
    ask("review/start", {"threadId": thread, "target": {"type": "custom", "instructions": "look"}})
    session.client.notification("turn/completed", threadId=thread)
    turn = ask("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "again"}]})["turn"]["id"]
    session.client.notification("turn/completed", threadId=thread)
    ask("thread/rollback", {"threadId": thread, "numTurns": 1})
    ask("thread/archive", {"threadId": thread})
    ask("thread/unarchive", {"threadId": thread})
    ask("thread/resume", {"threadId": thread})
    assert turn
    session.finish(answered)


def test_result_of_an_interrupt(start: Start, backend: BackendProcess, answered: set[str], tmp_path: Path) -> None:
    gated = backend.session("schema-gate", {"turns": [{"items": [{"type": "gate", "name": "wait"}, "Hello"]}]})
    session = start(gated.url)
    thread = session.ask("thread/start", {})["thread"]["id"]
    turn = session.ask("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "hi"}]})["turn"]["id"]
    assert gated.wait_at_gate("wait", 30)
    session.ask("turn/interrupt", {"threadId": thread, "turnId": turn})
    session.client.notification("turn/completed", threadId=thread)
    gated.release("wait")
    session.finish(answered)


def test_result_of_rate_limits(start: Start, backend: BackendProcess, answered: set[str], tmp_path: Path) -> None:
    url = backend.session("schema-limits", {"turns": []}).url
    session = start(url, auth=ChatGpt(), requires_openai_auth=True)
    session.ask("account/rateLimits/read")
    session.ask("account/read", {})
    session.ask("getAuthStatus", {"includeToken": True, "refreshToken": False})
    session.finish(answered)


def test_results_of_v1_methods(start: Start, backend: BackendProcess, answered: set[str], tmp_path: Path) -> None:
    url = backend.session("schema-v1", {"turns": [{"items": ["Hello"]} for _ in range(2)]}).url
    session = start(url)
    ask, work = session.ask, session.home.work
    started = ask("newConversation", {})
    talk = {"conversationId": started["conversationId"]}
    listener = ask("addConversationListener", talk)["subscriptionId"]
    items = {"items": [{"type": "text", "data": {"text": "hi"}}]}
    ask("sendUserMessage", {**talk, **items})
    session.client.notification("codex/event/task_complete")
    policy = {"approvalPolicy": "never", "sandboxPolicy": {"type": "read-only"}}
    ask("sendUserTurn", {**talk, **items, **policy, "cwd": str(work), "model": "gpt-5.2", "summary": "auto"})
    session.client.notification("codex/event/task_complete")
    ask("getConversationSummary", talk)
    ask("getConversationSummary", {"rolloutPath": started["rolloutPath"]})
    ask("listConversations", {})
    ask("gitDiffToRemote", {"cwd": make_repository(tmp_path / "git")})
    ask("loginApiKey", {"apiKey": "sk-fake"})
    ask("getAuthStatus", {"includeToken": False, "refreshToken": False})
    for method in ("getUserSavedConfig", "getUserAgent", "userInfo", "logoutChatGpt"):
        ask(method)
    ask("setDefaultModel", {"model": "gpt-5.2", "reasoningEffort": "low"})
    ask("fuzzyFileSearch", {"query": "a", "roots": [str(work)]})
    ask("execOneOffCommand", {"command": ["echo", "1"], "sandboxPolicy": {"type": "danger-full-access"}})
    ask("cancelLoginChatGpt", {"loginId": ask("loginChatGpt")["loginId"]})
    browser = ask("account/login/start", {"type": "chatgpt"})
    ask("account/login/cancel", {"loginId": browser["loginId"]})
    ask("forkConversation", talk)
    ask("resumeConversation", talk)
    ask("removeConversationListener", {"subscriptionId": listener})
    ask("archiveConversation", {**talk, "rolloutPath": started["rolloutPath"]})
    session.finish(answered)


def test_result_of_a_v1_interrupt(start: Start, backend: BackendProcess, answered: set[str], tmp_path: Path) -> None:
    gated = backend.session("schema-gate-v1", {"turns": [{"items": [{"type": "gate", "name": "wait"}, "Hello"]}]})
    session = start(gated.url)
    talk = {"conversationId": session.ask("newConversation", {})["conversationId"]}
    session.ask("addConversationListener", talk)
    session.ask("sendUserMessage", {**talk, "items": [{"type": "text", "data": {"text": "hi"}}]})
    assert gated.wait_at_gate("wait", 30)
    session.ask("interruptConversation", talk)
    gated.release("wait")
    session.finish(answered)


def make_repository(folder: Path) -> str:
    """Return a working copy whose branch follows a remote and has one change."""
    remote, copy = folder / "remote", folder / "copy"
    remote.mkdir(parents=True)
    name = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]
    for where, command in (
        (remote, ["init", "-q", "-b", "main"]),
        (remote, ["commit", "-q", "--allow-empty", "-m", "first"]),
        (folder, ["clone", "-q", str(remote), str(copy)]),
        (copy, ["commit", "-q", "--allow-empty", "-m", "second"]),
    ):
        subprocess.run(["git", *name, *command], cwd=where, check=True, capture_output=True)
    return str(copy)


def test_which_methods_were_answered(answered: set[str]) -> None:
    """Runs last: every method but the unreachable ones was seen to answer with the type it is mapped to."""
    if not answered:
        pytest.skip("the tests before this one were not run")
    assert set(bundle.load(VERSION).methods("client-request")) - answered == UNREACHED
