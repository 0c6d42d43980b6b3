"""What a recording needs and the home of a replay does not have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.json_text import dumps
from codex_replay.protocol.recordings.needs import needs
from codex_replay.shell.cassettes.file import CassetteReader

CASSETTES = Path(__file__).parents[3] / "cassettes" / "app_server"
WHISTLE = "/home/user/skills/whistle/SKILL.md"


def tape(*messages: tuple[str, Any]) -> list[Frame]:
    return [Frame(n, 0.0, "rpc", sender, raw=dumps(message) + b"\n") for n, (sender, message) in enumerate(messages, 1)]


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("test_v2/text_turn", []),
        ("test_config/merge_strategy-upsert", []),  # it configures an MCP server that is never started
        ("test_mcp/tool_call", ["the MCP server tiny (python3 tiny.py)"]),
        ("test_methods/skills_config", [f"1 skill ({WHISTLE})"]),
        ("test_mcp/oauth_login", ["the MCP server remote"]),
        ("test_items/view_image", ["1 file (/home/user/work/a.png)"]),
        ("test_account/api_key", ["a login"]),
        ("test_account/rate_limits", ["a login"]),
        ("test_account/refresh_of_an_expired_token", ["a login"]),
        ("test_file_changes/kind-update", ["1 file (/home/user/work/old.txt)"]),
        ("test_file_changes/accept", []),
        ("test_methods/git_diff", ["a git repository"]),
    ],
)
def test_a_recording_is_known_to_need_its_surroundings(name: str, needed: list[str]) -> None:
    with CassetteReader(CASSETTES / f"{name}.ndjson") as reader:
        assert needs(list(reader), (reader.header.extra.get("upstream") or {}).get("config")) == needed


def test_what_codex_brings_itself_is_not_needed() -> None:
    listed = {
        "data": [{"cwd": "/w", "skills": [{"path": "/home/user/skills/.system/plan/SKILL.md"}, {"path": WHISTLE}], "errors": []}]
    }
    frames = tape(("client", {"id": 1, "method": "skills/list"}), ("server", {"id": 1, "result": listed}))
    assert needs(frames) == [f"1 skill ({WHISTLE})"]


def test_a_login_of_the_recorded_client_itself_is_played_too() -> None:
    read = {"id": 2, "result": {"account": {"type": "apiKey"}}}
    asked: list[tuple[str, Any]] = [("client", {"id": 2, "method": "account/read"}), ("server", read)]
    assert needs(tape(*asked)) == ["a login"]
    assert needs(tape(("client", {"id": 1, "method": "account/login/start"}), *asked)) == []


def test_the_mcp_servers_of_later_versions_and_of_a_list_are_seen() -> None:
    started = {"method": "mcpServer/startupStatus/updated", "params": {"name": "one", "status": "starting"}}
    asked = {"id": 1, "method": "mcpServerStatus/list"}
    frames = tape(("server", started), ("client", asked), ("server", {"id": 1, "result": {"data": [{"name": "two\x1b"}]}}))
    assert needs(frames) == ["the MCP server one", "the MCP server two\\x1b"]


@pytest.mark.parametrize(
    "odd", [None, 5, [], {"data": 5}, {"data": [5, {"skills": 5}]}, {"data": [{"skills": [5, {"path": 5}], "name": 5}]}]
)
@pytest.mark.parametrize("method", ["skills/list", "mcpServerStatus/list", "account/read", "getAuthStatus"])
def test_nothing_is_read_into_odd_frames(method: str, odd: Any) -> None:
    frames = tape(("client", {"id": 1, "method": method}), ("server", {"id": 1, "result": odd}), ("server", {"params": odd}))
    assert needs(frames, {"mcp_servers": odd}) == []
