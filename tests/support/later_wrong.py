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
#: Of two settings of one table, and of two wrong values, the real server takes any first: a table is named once.
_config = st.builds(
    lambda unknown, wrong: dict([*unknown, *wrong]),
    st.lists(_unknown, max_size=4, unique_by=lambda pair: pair[0].partition(".")[0]),
    st.lists(_wrong, max_size=1),
)
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


# -- files ------------------------------------------------------------------------------------------------------------------

_names = st.sampled_from(["a.txt", "b.txt", "d", "d/e", "d/f.txt", "d/e/g", "a.txt/x", "no/x", "", "d/../b.txt", "./d//e/"])
_paths = st.one_of(
    *[st.builds(lambda name: f"$work/{name}", _names)] * 9,
    st.sampled_from(["a.txt", "~/a", 5, None, "$work/a\0b", "$work/" + "x" * 300]),
)
_base64 = st.one_of(
    st.sampled_from(["aGVsbG8=", "", "aGVsbG8", "aGVsbG9=", "a", "aG=k", "aGVs=", "aGVs bG8=", 5]),
    st.text("aGVsbG8=\n-é", max_size=9),
)
_switch = st.sampled_from([True, True, False, None, "x"])
_flags = {"recursive": _switch}
_file_calls = st.one_of(
    st.tuples(st.just("fs/readFile"), st.fixed_dictionaries({}, optional={"path": _paths})),
    *[st.tuples(st.just("fs/writeFile"), st.fixed_dictionaries({"path": _paths, "dataBase64": _base64}))] * 2,
    *[st.tuples(st.just("fs/createDirectory"), st.fixed_dictionaries({"path": _paths}, optional=_flags))] * 2,
    st.tuples(st.just("fs/getMetadata"), st.fixed_dictionaries({"path": _paths})),
    st.tuples(st.just("fs/readDirectory"), st.fixed_dictionaries({"path": _paths})),
    st.tuples(st.just("fs/remove"), st.fixed_dictionaries({"path": _paths}, optional={**_flags, "force": _switch})),
    st.tuples(st.just("fs/copy"), st.fixed_dictionaries({"sourcePath": _paths}, optional={"destinationPath": _paths, **_flags})),
)
_LOOK = [("fs/readDirectory", {"path": f"$work/{name}"}) for name in ("", "d", "d/e", "b.txt")]
_READ = [("fs/readFile", {"path": f"$work/{name}"}) for name in ("a.txt", "b.txt", "d/f.txt")]


def _asked(calls: list[tuple[str, Any]], pause: float = 0, *, login: bool = False) -> dict[str, Any]:
    """Return a scenario without threads, in which a client calls one method after the other."""
    steps = [step for method, params in calls for step in ({"ask": method, "params": params}, {"pause": pause})]
    return {"script": [GREETING], "conversation": {"api": "v2", "steps": [], "calls": steps}, "login": login}


# -- logins -----------------------------------------------------------------------------------------------------------------

_KEY = {"type": "apiKey", "apiKey": "redacted-key-1"}  # as the redactor of a recording names it
_STARTS: list[Any] = [
    *[{"type": "apiKey", "apiKey": key} for key in ("sk-a", "sk-b", "", " ", 5)], {"type": "chatgpt"}, {"type": "chatgpt"},
    {"type": "nonsense"}, {"type": "apiKey"}, {}, [], 5, None, {"type": None}, {"type": "chatgptAuthTokens"},
]  # fmt: skip
_logins = st.one_of(
    *[st.tuples(st.just("account/login/start"), st.sampled_from(_STARTS))] * 3,
    st.tuples(st.just("account/logout"), st.sampled_from([None, None, {}, 5])),
    *[st.tuples(st.just("account/read"), st.sampled_from([{}, {"refreshToken": True}, {"refreshToken": 5}, None, []]))] * 2,
    st.tuples(st.just("getAuthStatus"), st.sampled_from([{}, {"includeToken": True}, {"includeToken": 5}])),
    st.tuples(
        st.just("account/login/cancel"),
        st.builds(lambda text: {"loginId": text}, st.sampled_from(["$login", "$login", "x", "", 5])),
    ),
    st.tuples(st.sampled_from(["account/rateLimits/read", "account/usage/read"]), st.none()),
)

KINDS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "wrong settings": st.builds(_set, st.lists(_config, min_size=3, max_size=3), _params, _turn),
    "files": st.builds(lambda calls: _asked([*calls, *_LOOK, *_READ]), st.lists(_file_calls, min_size=4, max_size=12)),
    "logins": st.builds(
        lambda calls, login: _asked(calls, 0.1, login=login), st.lists(_logins, min_size=3, max_size=8), st.booleans()
    ),
}


def examples() -> dict[str, dict[str, Any]]:
    """Return one scenario of each class, for the recordings of the tests without the real binary."""
    unknown = {"zz": 1, "tools.a b": 2, "features.nonsense": True, "notice": {"x": None}, "a\tb": {}}
    return {
        "wrong-settings": _set([{"memories.x": 1}, unknown, {"model_verbosity": None}], {"model": "unknown"}, {"effort": ""}),
        "files": _asked(
            [
                ("fs/createDirectory", {"path": "$work/d/e"}),
                ("fs/writeFile", {"path": "$work/d/f.txt", "dataBase64": "aGVsbG8="}),
                ("fs/writeFile", {"path": "$work/d/f.txt", "dataBase64": "aGVsbG9="}),
                ("fs/copy", {"sourcePath": "$work/d", "destinationPath": "$work/c", "recursive": True}),
                ("fs/copy", {"sourcePath": "$work/d", "destinationPath": "$work/d/e", "recursive": True}),
                ("fs/remove", {"path": "$work/d", "recursive": False}),
                ("fs/remove", {"path": "$work/d"}),
                ("fs/getMetadata", {"path": "$work/c/f.txt"}),
                ("fs/readFile", {"path": "a.txt"}),
                *_LOOK,
                ("fs/readFile", {"path": "$work/c/f.txt"}),
            ]
        ),
        "logins": _asked(
            [
                *[("account/login/start", each) for each in ({"type": "chatgpt"}, _KEY)],
                *[("account/read", {}), ("account/usage/read", None), ("getAuthStatus", {"includeToken": True})],
                *[("account/login/start", {"type": "chatgpt"}), ("account/login/cancel", {"loginId": "$login"})],
                *[("account/login/cancel", {"loginId": "$login"}), ("account/logout", None), ("account/read", {})],
            ],
            0.1,
            login=True,
        ),
        "no-model": _set([{"model": " "}, {"zz": 1}, {"model": None}], {"model": ""}, {"model": "unknown"}),
    }
