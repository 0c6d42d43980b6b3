"""Random scenarios for a later version: settings that the server does not know or refuses, files, and logins.

A setting is wrong in its name or in its value. Left out are the settings that open a file or start a program, which the fake
does not do.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from codex_replay.protocol.data_tables import load
from tests.real.differential.later_differing import VERSION
from tests.real.differential.scenarios import GREETING

_FORMS = load("forms", VERSION)["settings"]
#: Settings that name files, programs or profiles, or that only some values of other settings allow.
_LEFT_OUT = {
    "default_permissions", "experimental_thread_store_endpoint", "model_provider", "profile", "sqlite_home", "openai_base_url",
    "chatgpt_base_url", "notify", "forced_login_method", "cli_auth_credentials_store", "experimental_use_unified_exec_tool",
}  # fmt: skip
_VALUES = st.sampled_from([5, -1, 1.5, "zzz", "", True, None, [1], ["a"], {}, {"zzz": 1}])
_words = st.sampled_from(["nonsense", "zzz", "Model", "a-b", "a b", "é", "modle", "", "a\tb", "_"])


def _is_plain(name: str) -> bool:
    return name not in _LEFT_OUT and (
        type(_FORMS[name]) is list or _FORMS[name] in ("string", "boolean", "u16", "u64", "i64", "usize")
    )


_TABLES = ["history", "tools", "memories", "notice", "sandbox_workspace_write", "model_providers.mock", "desktop", "tui",
           "profiles.p", "analytics", "skills", "goals", "shell_environment_policy", "auto_review", "projects./x"]  # fmt: skip
_unknown = st.one_of(
    st.tuples(_words, _VALUES),
    st.builds(lambda table, word, value: (f"{table}.{word or 'x'}", value), st.sampled_from(_TABLES), _words, _VALUES),
    st.builds(lambda word, value: (f"features.{word or 'x'}", value), _words, st.booleans()),
    st.builds(
        lambda table, word: (table.partition(".")[0], {word: 1}), st.sampled_from(["history", "tools", "nonsense"]), _words
    ),
)
_wrong = st.tuples(st.sampled_from(sorted(filter(_is_plain, _FORMS))), _VALUES)
_config = st.lists(st.one_of(_unknown, _unknown, _wrong), max_size=5).map(dict)
_params = st.fixed_dictionaries(
    {},
    optional={
        "model": st.sampled_from(["gpt-5.5", "unknown", "", " ", 5]),
        "serviceTier": st.sampled_from(["flex", "nonsense", "", None, 5]),
        "personality": st.sampled_from(["friendly", "nonsense"]),
        "approvalPolicy": st.sampled_from(["never", "untrusted", "on-failure", "nonsense"]),
        "sandbox": st.sampled_from(["read-only", "danger-full-access", "nonsense", 5]),
        "cwd": st.sampled_from(["/tmp", "/none/such", "", "a/../b", "~/a", 5]),
    },
)
_turn = st.fixed_dictionaries(
    {},
    optional={
        "model": st.sampled_from(["gpt-5.5", "unknown", "", 5]),
        "effort": st.sampled_from(["low", "nonsense", "", 5]),
        "summary": st.sampled_from(["auto", "nonsense"]),
        "serviceTier": st.sampled_from(["flex", "nonsense", None]),
        "personality": st.sampled_from(["friendly", "nonsense"]),
        "approvalPolicy": st.sampled_from(["never", "untrusted", "on-failure"]),
        "sandboxPolicy": st.sampled_from([{"type": "nonsense"}, {"type": "readOnly"}, {}]),
        "cwd": st.sampled_from(["/none/such", "a"]),
    },
)


def _set(configs: list[dict[str, Any]], params: dict[str, Any], turn: dict[str, Any]) -> dict[str, Any]:
    """Return a scenario in which threads are started, forked and loaded with settings, and a turn has some."""
    first, second, third = configs
    thread = {"threadId": "$thread 0"}
    pause = {"pause": 0.1}
    calls: list[Any] = [
        {"open": {}},
        {"ask": "thread/start", "params": {"config": first, "ephemeral": True}},
        pause,
        {"ask": "thread/start", "params": {**params, "config": second}},
        pause,
        {"turn": "Go.", "params": turn},
        {"ask": "thread/fork", "params": {**thread, "config": third, "excludeTurns": True}},
        pause,
        {"ask": "thread/archive", "params": thread},
        {"ask": "thread/unarchive", "params": thread},
        {"ask": "thread/resume", "params": {**thread, "config": second, "excludeTurns": True}},
    ]
    told = {"api": "v2", "steps": [], "calls": calls}
    return {"script": [{**GREETING, "times": "always"}], "conversation": told, "experimental": True, "model": "gpt-5.5"}


KINDS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "wrong settings": st.builds(_set, st.lists(_config, min_size=3, max_size=3), _params, _turn),
}


def examples() -> dict[str, dict[str, Any]]:
    """Return one scenario of each class, for the recordings of the tests without the real binary."""
    unknown = {"zz": 1, "tools.a b": 2, "features.nonsense": True, "notice": {"x": None}, "a\tb": {}}
    return {
        "wrong-settings": _set([{"memories.x": 1}, unknown, {"model_verbosity": None}], {"model": "unknown"}, {"effort": ""}),
        "no-model": _set([{"model": " "}, {"zz": 1}, {"model": None}], {"model": ""}, {"model": "unknown"}),
    }
