"""The scripted fake at its edges: old names, histories of the client, options and configurations that cannot be used.

Each statement was watched on the real binary.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codex_replay.protocol.turn.actions import actions_of
from codex_replay.protocol.turn.tools import plain_commands
from codex_replay.shell.codex.home import HermeticHome
from codex_replay.shell.rpc.client import Client
from tests.fakes.scripted.conversing import initialize
from tests.fakes.scripted.edges.test_edges import outputs
from tests.fakes.scripted.test_scripted import FAKE, NOBODY, TOOL, Started, of, start, user

__all__ = ["start"]  # the fixture

Start = Callable[..., Started]


@pytest.mark.parametrize(
    ("config", "summaries"),
    [
        ({"features": {"web_search": True}}, ["web_search"]),
        ({"experimental_use_unified_exec_tool": True}, ["experimental_use_unified_exec_tool"]),
        ({"features": {"web_search": False}, "tools": {"web_search": True}}, ["tools.web_search", "web_search"]),
    ],
)
def test_an_old_name_of_a_feature_is_reported(start: Start, config: Any, summaries: list[str]) -> None:
    fake = start()
    thread = fake.thread(config=config)
    fake.turn(thread)
    said = [f.value["params"]["summary"] for f in fake.client.timeline if of(f.value, "deprecationNotice")]
    assert [one.split("`")[1] for one in said] == summaries


def test_a_fork_reports_unstable_features(start: Start) -> None:
    fake = start(None, "-c", "features.collab=true")
    thread = fake.thread()
    fake.turn(thread)
    begin = len(fake.client.timeline)
    fake.client.request("thread/fork", {"threadId": thread})
    fake.client.wait("the start of the fork", lambda m: of(m, "thread/started"))
    assert [f for f in fake.client.timeline[begin:] if of(f.value, "codex/event/warning")]


@pytest.mark.parametrize(
    ("name", "settings", "output"),
    [
        ("weather", {"dynamicTools": [TOOL]}, "aborted"),
        ("weather", {}, "unsupported custom tool call: weather"),
        ("local_shell", {}, "aborted"),
        ("request_user_input", {}, "unsupported custom tool call: request_user_input"),
        ("request_user_input", {"config": {"features": {"collaboration_modes": True}}}, "aborted"),
    ],
)
def test_a_custom_call_needs_a_custom_tool(start: Start, name: str, settings: Any, output: str) -> None:
    fake = start([{"items": [{"type": "custom_tool_call", "name": name, "input": "x", "call_id": "c1"}]}, "on"])
    fake.turn(fake.thread(**settings))
    assert outputs(fake) == [output]


def test_a_history_of_the_client_has_the_form_of_the_models_input(start: Start) -> None:
    fake = start(["on"])
    thought = {"type": "reasoning", "id": "r", "summary": []}
    picture = {**user("see"), "id": "m", "content": [{"type": "input_image", "image_url": "u"}]}
    history = [picture, thought, {"type": "zork"}]
    fake.turn(fake.client.request("thread/resume", {"threadId": NOBODY, "history": history})["thread"]["id"])
    asked = fake.ledger()[-1]["body"]["input"]
    nothing = {"content": None, "encrypted_content": None}
    assert asked[:2] == [{**user(""), "content": picture["content"]}, {"type": "reasoning", "summary": [], **nothing}]
    assert len(asked) == 4


@pytest.mark.parametrize(
    ("item", "missing"),
    [
        ({"type": "message", "role": "user"}, "content"),
        ({"type": "function_call"}, "name"),
        ({"type": "function_call_output", "call_id": "x"}, "output"),
        ({"type": "local_shell_call"}, "status"),
        ({"type": "ghost_snapshot"}, "ghost_commit"),
    ],
)
def test_an_item_of_a_history_needs_its_members(start: Start, item: Any, missing: str) -> None:
    error = start().client.request_error("thread/resume", {"threadId": NOBODY, "history": [item]})
    assert error["message"] == f"Invalid request: missing field `{missing}`"


@pytest.mark.parametrize(
    ("option", "error"),
    [
        ("model", "error parsing -c overrides: Invalid override (missing '='): model"),
        ("=x", "error parsing -c overrides: Empty key in override: =x"),
        ("model=5", "error loading default config after config error: invalid type: integer `5`, expected a string\nin `model`"),
        ("profile=zz", "error loading default config after config error: config profile `zz` not found"),
        ("model_provider=zz", "error loading default config after config error: Model provider `zz` not found"),
    ],
)
def test_a_bad_option_ends_the_server_at_its_start(tmp_path: Path, option: str, error: str) -> None:
    env = HermeticHome(tmp_path, "http://127.0.0.1:39999").env
    ran = subprocess.run([FAKE, "-c", option, "app-server"], input="", capture_output=True, text=True, env=env, timeout=60)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith(f"Error: {error}\n")


def configured(tmp_path: Path, config: str, *requests: Any) -> list[Any]:
    """Return the errors and results of requests to a server with this config.toml."""
    home = HermeticHome(tmp_path, "http://127.0.0.1:39999")
    (home.home / "config.toml").write_text(config, encoding="utf-8")
    client = Client([FAKE, "app-server"], env=home.env, cwd=str(home.work), timeout=60)
    initialize(client)
    answers = [client.call(method, params) for method, params in requests]
    client.stop()
    return [answer.get("error") or answer["result"] for answer in answers]


def test_a_config_that_is_not_toml_is_named_by_what_reads_it(tmp_path: Path) -> None:
    write = {"keyPath": "model", "value": "m", "mergeStrategy": "replace"}
    asked = ("config/mcpServer/reload", "mcpServerStatus/list", "getUserSavedConfig", "skills/list")
    values = [None, {}, None, {}]
    found = configured(
        tmp_path, "x = \n", *zip(asked, values, strict=True), ("config/value/write", write), ("setDefaultModel", {"model": "m"})
    )
    fault = f"{tmp_path}/home/config.toml:1:5: string values must be quoted, expected literal string"
    assert [one["message"] for one in found[:3]] == [
        f"failed to reload config: {fault}",
        f"failed to reload config: {fault}",
        f"failed to load configuration: {fault}",
    ]
    assert found[3]["data"][0]["skills"] == []
    assert [error["message"] for error in found[3]["data"][0]["errors"]] == [fault]
    assert found[4]["message"] == f"failed to load configuration: {fault}"
    shown = (
        "TOML parse error at line 1, column 5\n  |\n1 | x = \n  |     ^\nstring values must be quoted, expected literal string\n"
    )
    assert found[5] == {"code": -32603, "message": f"failed to persist model selection: {shown}"}


def test_a_wrong_config_is_checked_whole_by_a_write(tmp_path: Path) -> None:
    write = {"keyPath": "model", "value": "m", "mergeStrategy": "replace"}
    config = "[mcp_servers.a]\nargs = []\n"
    found = configured(tmp_path, config, ("config/value/write", write), ("getUserSavedConfig", None))
    wrong = "invalid transport\nin `mcp_servers.a`\n"
    assert [one["message"] for one in found] == [f"Invalid configuration: {wrong}", f"failed to parse config.toml: {wrong}"]


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("ls *", [["ls", "*"]]),
        ("ls ~ | wc", [["ls", "~"], ["wc"]]),
        ("ls [a] {b,c} !x", [["ls", "[a]", "{b,c}", "!x"]]),
        ("ls\n\npwd\n", [["ls"], ["pwd"]]),
        ("'ls'", None),
        ("l''s", None),
        ("if true; then ls; fi", None),
        ("for i in 1; do ls; done", None),
        ("[ -f x ]", None),
        ("! ls", None),
        ("\n", None),
    ],
)
def test_the_words_of_plain_commands_are_those_of_the_real_parser(line: str, commands: list[list[str]] | None) -> None:
    assert plain_commands(line) == commands


@pytest.mark.parametrize(
    ("forced", "method", "params", "message"),
    [
        (
            "chatgpt",
            "account/login/start",
            {"type": "apiKey", "apiKey": "k"},
            "API key login is disabled. Use ChatGPT login instead.",
        ),
        ("chatgpt", "loginApiKey", {"apiKey": "k"}, "API key login is disabled. Use ChatGPT login instead."),
        ("api", "account/login/start", {"type": "chatgpt"}, "ChatGPT login is disabled. Use API key login instead."),
    ],
)
def test_a_login_that_the_configuration_forbids_is_refused(
    tmp_path: Path, forced: str, method: str, params: Any, message: str
) -> None:
    [found] = configured(tmp_path, f'forced_login_method = "{forced}"\n', (method, params))
    assert found == {"code": -32600, "message": message}


def test_a_second_login_ends_the_first(start: Start) -> None:
    fake = start()
    first = fake.client.request("account/login/start", {"type": "chatgpt"})["loginId"]
    fake.client.request("loginChatGpt", None)
    [ended] = [f.value["params"] for f in fake.client.timeline if of(f.value, "account/login/completed")]
    assert ended == {"loginId": first, "success": False, "error": "Login server error: Login cancelled"}


def test_true_among_other_commands_is_not_shown() -> None:
    assert actions_of(["/bin/bash", "-lc", "true;true"]) == []
    assert actions_of(["/bin/bash", "-lc", "true"]) == [{"type": "unknown", "cmd": "true"}]


def test_the_ray_of_an_error_comes_before_its_request_id(start: Start) -> None:
    fake = start([{"status": 404, "body": "no", "headers": {"x-request-id": "r1", "cf-ray": "ray"}}])
    [error] = [m["params"]["error"]["message"] for m in fake.turn(fake.thread()) if of(m, "error")]
    assert error.endswith(", request id: ray")


def test_the_rollback_of_an_ephemeral_thread_is_done_and_refused(start: Start) -> None:
    fake = start(["a", "b"])
    thread = fake.thread(ephemeral=True)
    fake.turn(thread)
    refused = fake.client.request_error("thread/rollback", {"threadId": thread, "numTurns": 1})
    assert refused["message"] == "thread has no persisted rollout"
    assert [f for f in fake.client.timeline if of(f.value, "codex/event/thread_rolled_back")]


def test_the_head_of_a_table_that_is_there_already_is_a_duplicate_key(tmp_path: Path) -> None:
    [found] = configured(tmp_path, "feedback.x = 1\n[feedback]\n", ("config/read", {}))
    assert found["message"] == f"failed to read configuration layers: {tmp_path}/home/config.toml:2:2: duplicate key"


def test_an_archived_conversation_is_named_by_a_uuid(start: Start) -> None:
    error = start().client.request_error("archiveConversation", {"conversationId": "x", "rolloutPath": "y"})
    assert "found `x` at 1" in error["message"]
