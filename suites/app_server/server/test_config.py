"""How clients read the configuration with origins and layers, how they write keys, and which writes the server refuses.

Source: the bundle's ConfigReadResponse, ConfigWriteResponse and ConfigLayerSource; docs/contract/real-0.92.md, section 4, lists
the methods.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codex_replay.plugin import AppServer, Server
from suites.app_server.dialect import V1, these
from suites.app_server.expected import all_of, text
from suites.app_server.turns import another_thread, last_words, open_thread, run

REFUSED = -32600


def config_file(server: Server) -> str:
    """Return the path of config.toml that the server reports."""
    layers = server.request("config/read", {"includeLayers": True})["layers"]
    found: str = next(layer["name"]["file"] for layer in layers if layer["name"]["type"] == "user")
    return found


def test_read(app_server: AppServer) -> None:
    """config/read returns the settings in force and the layer that set each of them; it returns no layers by default."""
    server = app_server()
    server.initialize()
    result = server.request("config/read", {})
    assert sorted(result) == ["config", "origins"]
    config = result["config"]
    kept = ("model", "model_provider", "approval_policy", "sandbox_mode", "profile", "web_search", "tools")
    assert [config[key] for key in kept] == ["gpt-5.2-codex", "mock", "never", "read-only", None, None, None]
    assert config["model_providers"]["mock"]["wire_api"] == "responses"
    origins = result["origins"]
    assert {"model", "approval_policy", "feedback.enabled", "model_providers.mock.base_url"} <= origins.keys()
    assert "profile" not in origins
    for origin in origins.values():
        assert origin["name"]["type"] == "user"
        assert origin["name"]["file"].endswith("/config.toml")
        assert origin["version"].startswith("sha256:")
    assert len({origin["version"] for origin in origins.values()}) == 1


def test_layers(app_server: AppServer) -> None:
    """With includeLayers the response lists each possible configuration file with its settings and version."""
    server = app_server()
    server.initialize()
    result = server.request("config/read", {"includeLayers": True})
    user = next(layer for layer in result["layers"] if layer["name"]["type"] == "user")
    assert user["config"]["model"] == "gpt-5.2-codex"
    assert user["version"] == result["origins"]["model"]["version"]
    assert {layer["name"]["type"] for layer in result["layers"]} <= {"user", "system", "project"}


def with_project(root: Path) -> None:
    """Create a project with its own configuration in the home directory."""
    folder = root / "home" / "project" / ".codex"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('model = "gpt-5.2"\n')


def test_project_layer(app_server: AppServer) -> None:
    """The configuration of a trusted project is a separate layer above the user's configuration."""
    server = app_server(prepare=with_project)
    server.initialize()
    project = config_file(server).removesuffix("config.toml") + "project"
    asked = {"cwd": project, "includeLayers": True}
    assert server.request("config/read", asked)["config"]["model"] == "gpt-5.2-codex"
    trust = {"keyPath": "projects", "value": {project: {"trust_level": "trusted"}}, "mergeStrategy": "upsert"}
    server.request("config/value/write", trust)
    result = server.request("config/read", asked)
    assert result["config"]["model"] == "gpt-5.2"
    assert result["origins"]["model"]["name"] == {"type": "project", "dotCodexFolder": f"{project}/.codex"}
    types = [layer["name"]["type"] for layer in result["layers"]]
    assert types.index("project") < types.index("user")


def test_write(app_server: AppServer) -> None:
    """config/value/write changes the user's file and returns its path and new version; config/read returns the new value."""
    server = app_server()
    server.initialize()
    before = server.request("config/read", {})["origins"]["model"]
    edit = {"keyPath": "model", "value": "gpt-5.2", "mergeStrategy": "replace", "expectedVersion": before["version"]}
    written = server.request("config/value/write", edit)
    assert list(written) == ["status", "version", "filePath", "overriddenMetadata"]
    assert (written["status"], written["filePath"], written["overriddenMetadata"]) == ("ok", before["name"]["file"], None)
    after = server.request("config/read", {})
    assert after["config"]["model"] == "gpt-5.2"
    assert after["origins"]["model"]["version"] == written["version"]
    if server.live:  # a recording has no versions: they are hashes of what is masked
        assert written["version"] != before["version"]


@pytest.mark.parametrize("strategy", ["replace", "upsert"])
def test_merge_strategy(app_server: AppServer, strategy: str) -> None:
    """If a write replaces a table, the table loses its other keys; if a write upserts a table, the table keeps them."""
    server = app_server(config={"mcp_servers": {"tiny": {"command": "tiny", "args": ["one"], "enabled": False}}})
    server.initialize()
    value = {"command": "huge", "enabled": False}
    server.request("config/value/write", {"keyPath": "mcp_servers.tiny", "value": value, "mergeStrategy": strategy})
    kept = server.request("config/read", {})["config"]["mcp_servers"]["tiny"]
    assert kept == these(server, {**value, "args": ["one"]} if strategy == "upsert" else value)
    assert kept.get("args", []) == (["one"] if strategy == "upsert" else [])


def test_delete(app_server: AppServer) -> None:
    """null deletes a key."""
    server = app_server(config={"model_reasoning_effort": "high"})
    server.initialize()
    assert server.request("config/read", {})["config"]["model_reasoning_effort"] == "high"
    server.request("config/value/write", {"keyPath": "model_reasoning_effort", "value": None, "mergeStrategy": "replace"})
    after = server.request("config/read", {})
    assert after["config"]["model_reasoning_effort"] is None
    assert "model_reasoning_effort" not in after["origins"]


def test_batch(app_server: AppServer) -> None:
    """A batch of several edits makes one new version of the configuration."""
    server = app_server()
    server.initialize()
    edits = [
        {"keyPath": "model", "value": "gpt-5.2", "mergeStrategy": "replace"},
        {"keyPath": "tools.view_image", "value": False, "mergeStrategy": "upsert"},
    ]
    assert server.request("config/batchWrite", {"edits": edits})["status"] == "ok"
    config = server.request("config/read", {})["config"]
    assert config["model"] == "gpt-5.2"
    if server.by_version({"0.0.0": True, "0.169.0": False}):  # 0.169.0 has no tools.view_image, and ignores it
        assert config["tools"]["view_image"] is False


#: The policies of a configuration, in the order in which an error names them.
POLICIES = {
    "0.0.0": "`untrusted`, `on-failure`, `on-request`, `never`",
    "0.169.0": "`untrusted`, `on-failure`, `on-request`, `granular`, `never`",
}
#: name -> (the edit, its error code, the start of the message)
REFUSALS: dict[str, tuple[dict[str, Any], str, str]] = {
    "version": (
        {"keyPath": "model", "value": "x", "expectedVersion": "sha256:0"},
        "configVersionConflict",
        "Configuration was modified since last read. Fetch latest version and retry.",
    ),
    "value": (
        {"keyPath": "approval_policy", "value": "bogus"},
        "configValidationError",
        "Invalid configuration: unknown variant `bogus`, expected one of {policies}",
    ),
    "file": (
        {"keyPath": "model", "value": "x", "filePath": "/elsewhere.toml"},
        "configLayerReadonly",
        "Only writes to the user config are allowed",
    ),
}


@pytest.mark.parametrize("row", REFUSALS)
def test_write_refused(app_server: AppServer, row: str) -> None:
    """If the server refuses a write, the error has a code in `data`, and the file does not change."""
    edit, code, message = REFUSALS[row]
    server = app_server()
    server.initialize()
    error = server.request_error("config/value/write", {**edit, "mergeStrategy": "replace"})
    assert sorted(error) == ["code", "data", "message"]
    assert (error["code"], error["data"]) == (REFUSED, {"config_write_error_code": code})
    assert error["message"].startswith(message.format(policies=server.by_version(POLICIES)))
    assert server.request("config/read", {})["config"]["model"] == "gpt-5.2-codex"


def test_a_batch_is_all_or_nothing(app_server: AppServer) -> None:
    """One invalid edit in a batch makes the server refuse the whole batch."""
    server = app_server()
    server.initialize()
    edits = [
        {"keyPath": "model", "value": "gpt-5.2", "mergeStrategy": "replace"},
        {"keyPath": "sandbox_mode", "value": "bogus", "mergeStrategy": "replace"},
    ]
    error = server.request_error("config/batchWrite", {"edits": edits})
    assert error["data"] == {"config_write_error_code": "configValidationError"}
    assert server.request("config/read", {})["config"]["model"] == "gpt-5.2-codex"


def test_a_thread_has_the_new_settings(app_server: AppServer) -> None:
    """A thread that starts after a write to the configuration has the new settings."""
    server = app_server([{"items": [text("Hello")], "expect": {"model": "gpt-5.2"}}])
    server.initialize()
    server.request("config/value/write", {"keyPath": "model", "value": "gpt-5.2", "mergeStrategy": "replace"})
    begun = server.request("thread/start", {"cwd": server.work})
    assert begun["model"] == "gpt-5.2"
    assert run(server, begun["thread"]["id"])["status"] == "completed"


def test_overrides_of_a_thread(app_server: AppServer) -> None:
    """The `config` of thread/start overrides the configuration file, but only for this thread."""
    server = app_server([{"items": [text("Hello")], "expect": {"body": {"reasoning": {"effort": "low"}}}}])
    thread = open_thread(server, config={"model_reasoning_effort": "low"})
    assert run(server, thread)["status"] == "completed"
    assert last_words(server) == ["Hello"]
    assert server.request("thread/start", {"cwd": server.work})["reasoningEffort"] is None


def test_requirements(app_server: AppServer) -> None:
    """configRequirements/read takes no params and returns null if no administrator has set requirements."""
    server = app_server()
    server.initialize()
    assert server.request("configRequirements/read") == these(server, {"requirements": None})


@V1
def test_v1_saved_config(app_server: AppServer) -> None:
    """In v1, getUserSavedConfig returns the configuration in camelCase; setDefaultModel writes the model and the effort."""
    server = app_server()
    server.initialize()
    config: dict[str, Any] = {
        "approvalPolicy": "never",
        "sandboxMode": "read-only",
        "sandboxSettings": None,
        "forcedChatgptWorkspaceId": None,
        "forcedLoginMethod": None,
        "model": "gpt-5.2-codex",
        "modelReasoningEffort": None,
        "modelReasoningSummary": None,
        "modelVerbosity": None,
        "tools": None,
        "profile": None,
        "profiles": {},
    }
    assert server.request("getUserSavedConfig") == {"config": config}
    assert server.request("setDefaultModel", {"model": "gpt-5.2", "reasoningEffort": "high"}) == {}
    changed = {**config, "model": "gpt-5.2", "modelReasoningEffort": "high"}
    assert server.request("getUserSavedConfig") == {"config": changed}


def test_a_file_that_is_wrong(app_server: AppServer) -> None:
    """An invalid configuration does not stop the server: it sends a warning with the place of the error and uses its defaults."""
    server = app_server(config={"approval_policy": "bogus"})
    server.initialize()
    warning = server.notification("configWarning")
    assert list(warning) == ["summary", "details", "path", "range"]
    assert warning["summary"] == "Invalid configuration; using defaults."
    assert warning["details"] == (
        f"{warning['path']}:2:19: unknown variant `bogus`, expected one of {server.by_version(POLICIES)}"
    )
    assert warning["range"] == {"start": {"line": 2, "column": 19}, "end": {"line": 2, "column": 25}}
    report = [each for each in all_of(server, "configWarning") if "bubblewrap" not in each["summary"]]
    assert report == [warning]


@pytest.mark.since("0.169.0", "earlier versions know the key, or ignore it silently")
def test_ignored_key(app_server: AppServer) -> None:
    """The server reports an unknown configuration key twice: when a client connects, and when a thread starts."""
    server = app_server(config={"no_such_key": 1})
    server.initialize()
    report = server.notification("configWarning")
    assert report["summary"].startswith("Codex is ignoring 1 unrecognized configuration setting.")
    assert report["summary"].endswith("`no_such_key` is ignored.")
    thread = another_thread(server)
    warning = server.notification("warning")
    assert warning == {"threadId": thread, "message": report["summary"]}


#: Whether the server knows the key, and says that it is deprecated; otherwise the key is one that it does not know.
KNOWS_DEPRECATED = {"0.0.0": True, "0.169.0": False}


def test_deprecated(app_server: AppServer) -> None:
    """When a thread starts, an event and deprecationNotice report a deprecated key; deprecationNotice has no thread id.

    Since 0.169.0 the server warns that it ignores the deprecated key.
    """
    server = app_server(config={"experimental_instructions_file": "instructions.md"})
    thread = open_thread(server)
    if not server.by_version(KNOWS_DEPRECATED):
        warning = server.notification("warning")
        assert warning["threadId"] == thread
        assert warning["message"].endswith("`experimental_instructions_file` is ignored.")
        assert all_of(server, "deprecationNotice") == []
        return
    report = server.notification("codex/event/deprecation_notice")
    notice = server.notification("deprecationNotice")
    assert notice == {
        "summary": "`experimental_instructions_file` is deprecated and ignored. Use `model_instructions_file` instead.",
        "details": "Move the setting to `model_instructions_file` in config.toml (or under a profile) "
        "to load instructions from a file.",
    }
    assert report == {"id": "", "msg": {"type": "deprecation_notice", **notice}, "conversationId": thread}
