"""A config.toml that cannot be used: the faults that the real 0.92.0 reported, and the server that lives on."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from codex_fakes.scripted.state.config_file import ConfigFile
from codex_fakes.scripted.state.config_forms import wrong_setting
from codex_fakes.scripted.state.toml_report import broken, place_of, shown_in
from codex_replay.protocol.data_tables import load
from tests.fakes.scripted.in_process import InProcess

DATA = Path(__file__).parents[1] / "data"
ROWS = [json.loads(line) for line in (DATA / "broken_config.ndjson").read_text(encoding="utf-8").splitlines()]
KINDS = load("forms", "0.92.0")["settings"]


def fault_of(text: str) -> dict[str, Any] | None:
    found = broken(text)
    if found is None:
        wrong = wrong_setting(tomllib.loads(text), KINDS)
        if wrong is None:
            return None
        place = place_of(text, wrong.place)
        assert place is not None
        found = wrong.in_file, place
    message, (line, first, last) = found
    return {"message": message, "line": line, "first": first, "last": last}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["text"].strip().replace("\n", "; "))
def test_a_fault_has_the_words_and_the_place_of_the_real_binary(row: dict[str, Any]) -> None:
    assert fault_of(row["text"]) == row["fault"]


@pytest.mark.parametrize("row", [row for row in ROWS if "edit" in row], ids=lambda row: row["text"].strip().replace("\n", "; "))
def test_an_edit_of_the_file_shows_the_fault_in_its_line(row: dict[str, Any]) -> None:
    found = broken(row["text"])
    assert found is not None
    assert row["edit"] == f"failed to persist model selection: {shown_in(row['text'], *found)}"


def test_a_later_line_and_a_table_of_tables_have_their_places() -> None:
    assert fault_of('a = 1\n\n[b]\nc = "x" y\n') == {
        "message": "unexpected key or value, expected newline, `#`", "line": 4, "first": 9, "last": 9,
    }  # fmt: skip
    assert fault_of("[[a]]\nb = 1\n[[a]]\nb = 2\n") is None


def client_of(tmp_path: Path, config: str) -> InProcess:
    (tmp_path / "config.toml").write_text(config)
    return InProcess(None, tmp_path, "/work")


def test_a_wrong_file_refuses_threads_and_leaves_the_rest(tmp_path: Path) -> None:
    client = client_of(tmp_path, 'approval_policy = "sometimes"\n')
    words = "unknown variant `sometimes`, expected one of `untrusted`, `on-failure`, `on-request`, `never`"
    for method in ("thread/start", "newConversation"):
        assert client.call(method, {})["error"]["message"] == f"error deriving config: {tmp_path}/config.toml:1:19: {words}"
    read = client.call("config/read", {})["error"]
    assert read == {"code": -32603, "message": f"invalid configuration: {words}\nin `approval_policy`\n"}
    assert client.call("model/list", {"limit": 1})["result"]["data"]


def test_what_is_no_toml_and_what_names_nothing_is_reported(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("model = \n")
    file = ConfigFile(str(tmp_path), [], "0.92.0")
    assert file.read_error == f"failed to read configuration layers: {file.refusal}"
    assert file.warning is not None
    assert file.warning["params"]["range"] == {"start": {"line": 1, "column": 9}, "end": {"line": 1, "column": 9}}
    client = client_of(tmp_path, 'model_provider = "gone"\n')
    assert client.session.file.warning == {
        "method": "configWarning",
        "params": {"summary": "Invalid configuration; using defaults.", "details": "Model provider `gone` not found"},
    }
    assert "error" not in client.call("config/read", {})


def test_a_profile_counts_over_the_file_and_a_request_names_another(tmp_path: Path) -> None:
    config = 'profile = "p"\nmodel = "gpt-5.1"\n[profiles.p]\nmodel = "gpt-5.2"\n[profiles.q]\nmodel = "o3"\n'
    client = client_of(tmp_path, config)
    assert client.request("thread/start", {})["model"] == "gpt-5.2"
    assert client.request("newConversation", {"profile": "q"})["model"] == "o3"
    assert client.call("newConversation", {"profile": "r"})["error"]["message"].endswith("config profile `r` not found")


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    assert client_of(tmp_path, '\ufeffmodel = "o3"\n').request("thread/start", {})["model"] == "o3"


def test_the_default_model_is_set_in_the_profile_of_the_start(tmp_path: Path) -> None:
    client = client_of(tmp_path, 'profile = "p"\nmodel = "gpt-5.1"\n[profiles.p]\nmodel_reasoning_effort = "low"\n')
    client.request("config/value/write", {"keyPath": "profile", "value": "q", "mergeStrategy": "replace"})
    client.request("setDefaultModel", {"model": "o3"})
    saved = client.request("getUserSavedConfig", None)["config"]
    assert (saved["model"], saved["modelReasoningEffort"]) == ("gpt-5.1", None)
    assert (saved["profiles"]["p"]["model"], saved["profiles"]["p"]["modelReasoningEffort"]) == ("o3", None)


def test_a_profile_that_the_client_names_gets_the_default_model_if_there_was_none(tmp_path: Path) -> None:
    client = client_of(tmp_path, 'model = "gpt-5.1"\n')
    client.request("config/value/write", {"keyPath": "profile", "value": "q", "mergeStrategy": "replace"})
    client.request("setDefaultModel", {"model": "o3"})
    assert client.session.user_config == {"model": "gpt-5.1", "profile": "q", "profiles": {"q": {"model": "o3"}}}


def test_no_profile_is_made_to_hold_nothing(tmp_path: Path) -> None:
    client = client_of(tmp_path, 'profile = "p"\n[profiles.p]\n')
    client.request("setDefaultModel", {})
    assert client.session.user_config == {"profile": "p", "profiles": {"p": {}}}


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("", "x", "keyPath must not be empty"),
        ("mcp_servers.a", {}, "Invalid configuration: invalid transport\nin `mcp_servers.a`\n"),
        ("mcp_servers.a", {"command": "x", "url": "y"},
         "Invalid configuration: url is not supported for stdio\nin `mcp_servers.a`\n"),
        ("sandbox_workspace_write.network_access", "x",
         'Invalid configuration: invalid type: string "x", expected a boolean\nin `sandbox_workspace_write.network_access`\n'),
    ],
)  # fmt: skip
def test_a_wrong_value_is_not_written(tmp_path: Path, path: str, value: Any, words: str) -> None:
    client = client_of(tmp_path, "")
    error = client.call("config/value/write", {"keyPath": path, "value": value, "mergeStrategy": "replace"})["error"]
    assert error["message"] == words


def test_written_values_are_refused_as_by_the_real_binary(tmp_path: Path) -> None:
    config = '[mcp_servers.a]\ncommand = "c"\n[mcp_servers.b]\nurl = "u"\n[model_providers.x]\nname = "x"\n[profiles.a]\n'
    client = client_of(tmp_path, config)
    for row in map(json.loads, (DATA / "written_config.ndjson").read_text(encoding="utf-8").splitlines()):
        write = {"keyPath": row["keyPath"], "mergeStrategy": "replace"}
        answer = client.call("config/value/write", {**write, "value": row["value"]})
        assert {**row, "error": answer.get("error", {}).get("message")} == row
        client.call("config/value/write", {**write, "value": None})


def test_configured_mcp_servers_are_listed(tmp_path: Path) -> None:
    client = client_of(tmp_path, '[mcp_servers.b]\nurl = "u"\n[mcp_servers.a]\ncommand = "c"\n')
    first = client.request("mcpServerStatus/list", {"limit": 0})
    assert [server["name"] for server in first["data"]] == ["a"]
    assert first["nextCursor"] == "1"
    assert client.call("mcpServerStatus/list", {"cursor": "3"})["error"]["message"] == "cursor 3 exceeds total MCP servers 2"
