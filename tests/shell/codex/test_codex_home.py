"""The hermetic home: its files, its environment, and the table of what each version needs."""

from __future__ import annotations

import base64
import json
import stat
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_replay.shell.codex.home import ENVIRONMENT, ApiKey, ChatGpt, HermeticHome, make_id_token, merged, toml

URL = "http://127.0.0.1:1234"


def written(home: HermeticHome) -> dict[str, Any]:
    return tomllib.loads((home.home / "config.toml").read_text(encoding="utf-8"))


def test_the_default_config_is_the_documented_one(tmp_path: Path) -> None:
    home = HermeticHome(tmp_path, URL + "/")
    assert written(home) == home.config
    assert home.config == {
        "model": "gpt-5.2-codex",
        "model_provider": "mock",
        "approval_policy": "never",
        "sandbox_mode": "read-only",
        "chatgpt_base_url": "http://127.0.0.1:1234/backend-api/",
        "cli_auth_credentials_store": "file",
        "analytics": {"enabled": False},
        "feedback": {"enabled": False},
        "model_providers": {
            "mock": {
                "name": "mock",
                "base_url": "http://127.0.0.1:1234/v1",
                "wire_api": "responses",
                "request_max_retries": 0,
                "stream_max_retries": 0,
            }
        },
    }
    assert not home.auth_file.exists()


@pytest.mark.parametrize(
    ("version", "features"),
    [
        ("0.92.0", None),
        ("0.116.0", None),
        ("0.117.0", {"plugins": False, "apps": False}),
        ("0.117.0-alpha.3", {"plugins": False, "apps": False}),
        ("0.141.0", {"plugins": False, "apps": False}),
    ],
)
def test_later_versions_turn_off_what_would_call_out(version: str, features: dict[str, bool] | None, tmp_path: Path) -> None:
    """Later versions turn off what would call out. (REAL-04)"""
    assert HermeticHome(tmp_path, URL, version=version).config.get("features") == features


def test_what_the_caller_asks_for_wins_and_the_rest_stays(tmp_path: Path) -> None:
    home = HermeticHome(
        tmp_path,
        URL,
        version="0.141.0",
        model="gpt-5.2",
        approval_policy="untrusted",
        sandbox_mode="workspace-write",
        requires_openai_auth=True,
        features={"apps": True, "collaboration_modes": True},
        extra_config={"model_providers": {"mock": {"stream_max_retries": 2}}, "notify": ["a", "{home}/x"]},
    )
    config = written(home)
    assert config["features"] == {"plugins": False, "apps": True, "collaboration_modes": True}
    assert config["model_providers"]["mock"]["stream_max_retries"] == 2
    assert config["model_providers"]["mock"]["request_max_retries"] == 0
    assert config["model_providers"]["mock"]["requires_openai_auth"] is True
    assert config["notify"] == ["a", f"{home.home}/x"]
    assert (config["model"], config["approval_policy"], config["sandbox_mode"]) == (
        "gpt-5.2",
        "untrusted",
        "workspace-write",
    )


def test_the_environment_is_whole_and_nothing_of_the_caller_gets_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leaks = ("OPENAI_API_KEY", "CODEX_API_KEY", "HTTPS_PROXY", "http_proxy", "ALL_PROXY", "PATH", "HOME", "LD_PRELOAD")
    for name in leaks:
        monkeypatch.setenv(name, "planted")
    home = HermeticHome(tmp_path, URL)
    assert set(home.env) == set(ENVIRONMENT)
    assert "planted" not in home.env.values()
    assert home.env["CODEX_HOME"] == home.env["HOME"] == str(home.home)
    assert home.env["OPENAI_BASE_URL"] == "http://127.0.0.1:1234/v1"
    assert home.env["CODEX_REFRESH_TOKEN_URL_OVERRIDE"] == "http://127.0.0.1:1234/oauth/token"
    assert Path(home.env["TMPDIR"]) not in [home.home, *home.home.parents]
    assert all(folder.is_dir() for folder in (home.home, home.tmp, home.work))


def test_a_relative_root_gives_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Path(HermeticHome(Path("root"), URL).env["HOME"]) == Path.cwd() / "root" / "home"


def test_an_api_key_login(tmp_path: Path) -> None:
    home = HermeticHome(tmp_path, URL, auth=ApiKey("sk-x"))
    assert json.loads(home.auth_file.read_text()) == {"OPENAI_API_KEY": "sk-x"}
    assert stat.S_IMODE(home.auth_file.stat().st_mode) == 0o600
    assert sorted(path.name for path in home.home.iterdir()) == ["auth.json", "config.toml"]


def test_a_chatgpt_login(tmp_path: Path) -> None:
    value = json.loads(HermeticHome(tmp_path, URL, auth=ChatGpt(account_id="acc")).auth_file.read_text())
    assert value["OPENAI_API_KEY"] is None
    assert set(value["tokens"]) == {"id_token", "access_token", "refresh_token", "account_id"}
    assert claims(value["tokens"]["id_token"])["https://api.openai.com/auth"]["chatgpt_account_id"] == "acc"
    age = datetime.now(UTC) - datetime.fromisoformat(value["last_refresh"])
    assert abs(age) < timedelta(days=1)


def test_a_chatgpt_login_with_a_chosen_or_no_last_refresh() -> None:
    assert ChatGpt(last_refresh="2020-01-01T00:00:00Z").encode()["last_refresh"] == "2020-01-01T00:00:00Z"
    assert "last_refresh" not in ChatGpt(last_refresh=None).encode()


def claims(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    value: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return value


def test_the_id_token_parses_as_a_jwt_and_is_clearly_fake() -> None:
    """The id token parses as a jwt and is clearly fake. (REAL-08)"""
    token = make_id_token("someone@example.invalid", "plus", "acc-1")
    assert [bool(part) and "=" not in part for part in token.split(".")] == [True, True, True]
    assert claims(token) == {
        "iss": "https://codex-replay.invalid",
        "email": "someone@example.invalid",
        "https://api.openai.com/auth": {
            "chatgpt_plan_type": "plus",
            "chatgpt_account_id": "acc-1",
            "chatgpt_user_id": "user-1",
        },
    }


keys = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
scalars = keys | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3))


@given(st.dictionaries(keys, values, max_size=4))
def test_what_is_written_as_toml_reads_back_the_same(config: dict[str, Any]) -> None:
    assert tomllib.loads(toml(config)) == config


@pytest.mark.parametrize("value", [None, object(), b"x"])
def test_toml_has_no_form_for_some_values(value: object) -> None:
    with pytest.raises(ValueError, match="cannot be written as TOML"):
        toml({"a": value})


def test_merging_keeps_both_and_changes_neither() -> None:
    base = {"a": {"x": 1, "y": 2}, "b": 3}
    assert merged(base, {"a": {"y": 4}, "b": {"z": 5}}) == {"a": {"x": 1, "y": 4}, "b": {"z": 5}}
    assert base == {"a": {"x": 1, "y": 2}, "b": 3}
