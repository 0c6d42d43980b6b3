"""Random scenarios for a later version: lists and their pages, forks, reverts, goals, metadata, and settings."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.real.differential.later import ASKING, FREE, command
from tests.real.differential.scenarios import words

_ALWAYS: dict[str, Any] = {"items": ["Hello."], "times": "always"}
_NOWHERE = "00000000-0000-7000-8000-000000000000"


def _told(calls: list[dict[str, Any]], *turns: dict[str, Any], **more: Any) -> dict[str, Any]:
    told = {"api": "v2", "calls": calls, "steps": []}
    return {"script": [*turns, _ALWAYS], "conversation": told, "experimental": True, "model": "gpt-5.5", **more}


def _ask(method: str, thread: str = "$thread 0", **params: Any) -> dict[str, Any]:
    return {"ask": method, "params": {"threadId": thread, **params}}


def _some(**choices: list[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return members of a request, each with one of its values, or absent."""
    return st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in choices.items()})


# -- lists ------------------------------------------------------------------------------------------------------------------

_TURN_PAGES = _some(
    limit=[1, 2, 0, 50, None, -1], sortDirection=["asc", "desc", "up"], cursor=["$next", "$back", "zz"],
    itemsView=["full", "summary", "notLoaded", "all"],
)  # fmt: skip
_ITEM_PAGES = _some(
    limit=[1, 3, 0, 50], sortDirection=["asc", "desc"], turnId=["$turn 0", "$turn 1", "x"],
    cursor=["$next", "$back", "zz", {"type": "item", "itemId": "$item"}, {"type": "item", "itemId": "x"}, {"type": "item"}, 5],
)  # fmt: skip
_THREAD_PAGES = _some(
    limit=[1, 2, 0, None],
    cursor=["$next", "2030-01-01T00:00:00Z", "2020-01-01T00:00:00.5Z", f"2030-01-01T00:00:00Z|{_NOWHERE}", "x"],
    sortKey=["created_at", "updated_at", "recency_at", "section_position"], sortDirection=["asc", "desc"],
    searchTerm=["a", "alpha", "Alpha", "", "Name"], cwd=["sub", [], ["."], ["sub", "."], "/nowhere/"], archived=[True, False],
    excludedThreadIds=[["$thread 0"], [_NOWHERE], ["x"]], sourceKinds=[["cli"], ["vscode", "exec"], []],
    modelProviders=[["mock"], ["openai"], []], originators=[["x"], []], projectId=["x"], parentThreadId=["$thread 0"],
)  # fmt: skip


def _paged(turns: int, pages: list[tuple[str, dict[str, Any]]], resumed: dict[str, Any] | None) -> dict[str, Any]:
    calls = [{"open": FREE}, *({"turn": f"Go {n}."} for n in range(turns))]
    calls += [_ask(f"thread/{kind}/list", **params) for kind, params in pages]
    if resumed is not None:
        calls.append(_ask("thread/resume", excludeTurns=True, initialTurnsPage=resumed))
    calls.append(_ask("thread/items/read", turnId="$turn 0", itemIds=["$item", "x"]))
    return _told(calls, {"items": ["One.", command("call_1", "echo hi", "hi\n", 0)]})


def _threads(names: list[str], pages: list[dict[str, Any]]) -> dict[str, Any]:
    calls: list[dict[str, Any]] = []
    for number, name in enumerate(names):
        calls += [
            {"open": {"cwd": "sub"} if name == "beta" else {}},
            {"turn": f"{name} {number}", "thread": number},
            {"pause": 1.1},
        ]
    calls.append(_ask("thread/name/set", name="Name of it"))
    calls.append(_ask("thread/archive", "$thread 1"))
    calls += [{"ask": "thread/list", "params": params} for params in pages]
    return _told(calls)


# -- forks and reverts ------------------------------------------------------------------------------------------------------

_CUTS = _some(
    lastTurnId=["$turn 0", "$turn 1", "x"], beforeTurnId=["$turn 0", "$turn 1"], excludeTurns=[True, True, False],
    ephemeral=[True],
)  # fmt: skip


def _forked(turns: int, cuts: list[dict[str, Any]], after: list[str]) -> dict[str, Any]:
    calls = [{"open": {}}, *({"turn": f"Go {n}."} for n in range(turns))]
    calls += [_ask("thread/fork", **cut) for cut in cuts]
    calls += [{"turn": "On.", "thread": -1}, _ask("thread/read", "$thread 1", includeTurns=True)]
    calls += [{"ask": method, "params": {"threadId": "$thread 0"}} for method in after]
    return _told(calls)


def _reverted(turns: int, before: list[str]) -> dict[str, Any]:
    calls = [{"open": {}}, *({"turn": f"Go {n}."} for n in range(turns))]
    for turn in before:
        calls += [_ask("thread/revert", beforeTurnId=turn), _ask("thread/turns/list"), {"turn": "Then."}]
    return _told([*calls, _ask("thread/read", includeTurns=True), _ask("thread/items/list")])


# -- what a client writes down ----------------------------------------------------------------------------------------------

_GOALS = _some(
    objective=["Win", " Win \n", "", "  ", "x" * 4000, "x" * 4001],
    status=["paused", "complete", "blocked", "budgetLimited", "no"],
    tokenBudget=[None, 1, 0, -5, 1000], origin=["user", "automatic", "x"],
)  # fmt: skip
_GIT = _some(branch=["main", " x ", "", None], sha=["abc", None], originUrl=["", "https://x/y", None, 5])


def _goals(ephemeral: bool, given: list[dict[str, Any]], asks: list[str], turn: bool) -> dict[str, Any]:
    calls: list[dict[str, Any]] = [{"open": {"ephemeral": True} if ephemeral else {}}, *([{"turn": "Go."}] if turn else [])]
    for goal in given:  # an active goal makes the real server begin turns of its own
        calls += [_ask("thread/goal/set", **{**({"status": "paused"} if "objective" in goal else {}), **goal})]
    calls += [
        _ask(f"thread/goal/{name}", thread) for name, thread in zip(asks, ["$thread 0", "x", _NOWHERE, "$thread 0"], strict=False)
    ]
    return _told([*calls, *([_ask("thread/resume", excludeTurns=True)] if turn else [])])


def _metadata(given: list[dict[str, Any]], turn: bool, name: Any) -> dict[str, Any]:
    calls: list[dict[str, Any]] = [{"open": {}}, *([{"turn": "Go."}] if turn else [])]
    calls += [_ask("thread/metadata/update", **({"gitInfo": git} if git is not None else {})) for git in given]
    calls += [_ask("thread/name/set", name=name), _ask("thread/read"), _ask("thread/read", includeTurns=True)]
    calls += [_ask("thread/archive"), {"ask": "thread/list", "params": {"archived": True}}, _ask("thread/unarchive")]
    return _told([*calls, _ask("thread/read"), _ask("thread/resume", excludeTurns=True)])


# -- settings ---------------------------------------------------------------------------------------------------------------

_CONFIG = _some(
    model_verbosity=["low"], model_reasoning_effort=["high"], history=[{"persistence": "none"}], tools=[{"web_search": True}],
    sandbox_workspace_write=[{"network_access": True}], tui=[{"notifications": True}],
    projects=[{"/x": {"trust_level": "trusted"}}], mcp_servers=[{"a": {"url": "http://127.0.0.1:1/mcp", "enabled": False}}],
    notice=[{"hide_full_access_warning": True}], shell_environment_policy=[{"inherit": "core"}], hide_agent_reasoning=[True],
    features=[{"goals": True}, {"memories": True}], apps=[{"_default": {"enabled": False}}],
    notify=[["x"]], agents=[{"max_threads": 2}],
)  # fmt: skip
_EDITS = st.sampled_from(
    [("model_verbosity", "high"), ("model_verbosity", "loud"), ("approval_policy", "untrusted"), ("approval_policy", "nonsense"),
     ("profiles.x.model", "a"), ("model", 5), ("tui.theme", "x"), ("features.goals", "x"), ("sandbox_mode", 4), ("notify", ["a"])]
)  # fmt: skip
_WRONG = st.sampled_from(
    [{"model": 4}, {"approval_policy": "x"}, {"approval_policy": "untrusted"}, {"sandbox_mode": 4}, {"model_verbosity": "x"},
     {"features": 4}, {"features.x": "y"}, {"profile": "x"}, {"model_provider": "nope"}, {"web_search": "x"}, {"tools": 4},
     {"history.persistence": "x"}, {"model_context_window": "x"}, {"model_reasoning_effort": "odd"}]
)  # fmt: skip


def _configured(config: dict[str, Any], edits: list[tuple[str, Any]], layers: Any, wrong: list[dict[str, Any]]) -> dict[str, Any]:
    read = {"ask": "config/read", "params": {} if layers is None else {"includeLayers": layers}}
    calls = [read]
    for path, value in edits:
        calls.append({"ask": "config/value/write", "params": {"keyPath": path, "value": value, "mergeStrategy": "upsert"}})
    calls += [read, *({"ask": "thread/start", "params": {"config": each}} for each in wrong)]
    return _told(calls, config=config)


_METHODS = [
    "turn/started", "turn/completed ", "item/started", "item/completed", "item/agentMessage/delta",
    "thread/tokenUsage/updated", "account/rateLimits/updated", "thread/status/changed", "remoteControl/status/changed", "no/such",
    "configWarning", "serverRequest/resolved", "deprecationNotice", "warning",
]  # fmt: skip


def _unwanted(methods: list[str], ids: list[Any]) -> dict[str, Any]:
    calls: list[dict[str, Any]] = [{"open": ASKING}]
    calls += [{"turn": "Go.", "params": {} if each is None else {"clientUserMessageId": each}} for each in ids]
    return _told([*calls, _ask("thread/read", includeTurns=True)], unwanted=methods)


# -- tools and questions ----------------------------------------------------------------------------------------------------


def _tool(**more: Any) -> dict[str, Any]:
    return {"type": "function", "name": "a", "description": "d", "inputSchema": {"type": "object"}, **more}


def _space(*tools: Any, **more: Any) -> dict[str, Any]:
    return {"type": "namespace", "name": "n", "description": "d", "tools": list(tools), **more}


_TOOLS = st.sampled_from(
    [[{"name": "a"}], [_tool(inputSchema=5)], [_tool(inputSchema={})], [_tool(inputSchema=[])], [_tool(name=" ")], [_tool(),
     _tool()],
     [_tool(name="a.b")], [_tool(name="mcp__x")], [_tool(name="x" * 129)], [_tool(name="x" * 128)], "x", [5], [_tool(type="x")],
     [_tool(name=5)], [_tool(deferLoading=True)], [_tool(name=" a")], [_space()], [_space(_tool(), name="")],
     [_space(_tool(), _tool())],
     [_space(_tool(), name="mcp__n")], [_space(_tool()), _space(_tool())], [_space(_tool(), name="functions")],
     [_space({"name": "a"})],
     [_tool(inputSchema={"type": "object", "properties": {"a": 5}})], [_tool(), _space(_tool(), name="a")], [],
     [_tool(), {"name": "b", "description": "d", "inputSchema": {}}], [{"name": "b", "description": "d", "inputSchema": {}},
     _space()]]
)  # fmt: skip
_LINES = st.sampled_from(["touch a.txt", "touch a.txt && touch b.txt", "touch a.txt | cat", "git status", "python3 x.py"])
_RULES = st.sampled_from([["touch"], ["rm"], [], ["touch", "a.txt"], ["git"], ["git", "status"], ["python3"], ["tou"], None])


def _tooled(given: list[Any]) -> dict[str, Any]:
    return _told([{"ask": "thread/start", "params": {"dynamicTools": tools}} for tools in given])


def _ruled(lines: list[tuple[str, Any]], decision: str) -> dict[str, Any]:
    escalated = {"sandbox_permissions": "require_escalated", "justification": "It must be."}
    calls = [
        command(f"call_{n}", line, "", 0, **escalated, **({} if rule is None else {"prefix_rule": rule}))
        for n, (line, rule) in enumerate(lines)
    ]
    steps = [{"text": "Go.", "decide": {"*": decision}}]
    told = {"api": "v2", "steps": steps, "settings": ASKING}
    return {
        "script": [*({"items": [call]} for call in calls), _ALWAYS],
        "conversation": told,
        "experimental": True,
        "model": "gpt-5.5",
    }


def _questioned(mode: str, question: dict[str, Any], answer: Any) -> dict[str, Any]:
    asked = {"id": "q1", "header": "H", "question": "Which?", "options": [{"label": "A", "description": "a"}], **question}
    call = {"type": "function_call", "name": "request_user_input", "call_id": "call_1", "arguments": {"questions": [asked]}}
    chosen = {"collaborationMode": {"mode": mode, "settings": {"model": "gpt-5.5"}}}
    told = {"api": "v2", "steps": [{"text": "Go.", "params": chosen, "answer": {"*": answer}}, {"text": "On."}]}
    return {"script": [{"items": [call]}, _ALWAYS], "conversation": told, "experimental": True, "model": "gpt-5.5"}


KINDS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "pages of turns and items": st.builds(
        _paged,
        st.integers(0, 3),
        st.lists(
            st.one_of(st.tuples(st.just("turns"), _TURN_PAGES), st.tuples(st.just("items"), _ITEM_PAGES)), min_size=2, max_size=6
        ),
        st.one_of(st.none(), _some(limit=[1, 5, None, "x"], sortDirection=["asc", "desc"], itemsView=["full", "notLoaded"])),
    ),
    "lists of threads": st.builds(
        _threads, st.lists(st.sampled_from(["alpha", "beta"]), min_size=2, max_size=3),
        st.lists(_THREAD_PAGES, min_size=3, max_size=6)
    ),
    "forks": st.builds(
        _forked, st.integers(2, 3), st.lists(_CUTS, min_size=1, max_size=3),
        st.lists(st.sampled_from(["thread/turns/list", "thread/items/list", "thread/list"]), max_size=2),
    ),
    "reverts": st.builds(_reverted, st.integers(2, 3),
        st.lists(st.sampled_from(["$turn 1", "$turn 2", "x"]), min_size=1, max_size=2)),
    "goals": st.builds(
        _goals, st.sampled_from([False, False, True]), st.lists(_GOALS, min_size=1, max_size=4),
        st.lists(st.sampled_from(["get", "clear"]), min_size=1, max_size=4), st.booleans(),
    ),
    "metadata": st.builds(
        _metadata, st.lists(st.one_of(_GIT, st.none()), min_size=1, max_size=3), st.booleans(),
        st.one_of(words, st.sampled_from(["", " a "]))
    ),
    "configuration": st.builds(
        _configured, _CONFIG, st.lists(_EDITS, max_size=3), st.sampled_from([None, True, False]), st.lists(_WRONG, max_size=3)
    ),
    "wrong dynamic tools": st.builds(_tooled, st.lists(_TOOLS, min_size=3, max_size=8)),
    "rules of the model": st.builds(_ruled, st.lists(st.tuples(_LINES, _RULES), min_size=1, max_size=3), st.just("decline")),
    "questions": st.builds(
        _questioned, st.sampled_from(["plan", "plan", "default"]),
        _some(isOther=[True, False], isSecret=[True], options=[[], None]),
        st.sampled_from([{"answers": {"q1": {"answers": ["A"]}}}, {"answers": {}}, {"answers": 5}, {}]),
    ),
    "unwanted notifications": st.builds(
        _unwanted, st.lists(st.sampled_from(_METHODS), max_size=5, unique=True),
        st.lists(st.sampled_from([None, "m-1", "", 5]), min_size=1, max_size=3),
    ),
}  # fmt: skip


def examples() -> dict[str, dict[str, Any]]:
    """Return one scenario of each class, for the recordings of the tests without the real binary."""
    turns = [
        ("turns", {"limit": 1}),
        ("turns", {"limit": 1, "cursor": "$next"}),
        ("turns", {"itemsView": "full", "cursor": "$back"}),
    ]
    items = [("items", {"limit": 3}), ("items", {"cursor": "$next", "sortDirection": "desc"}), ("items", {"turnId": "$turn 0"})]
    threads = [
        {"limit": 1},
        {"limit": 1, "cursor": "$next"},
        {"searchTerm": "alpha"},
        {"sortDirection": "asc"},
        {"archived": True},
    ]
    git = [{"branch": "main", "sha": "abc"}, {"branch": None}, {"originUrl": "", "branch": "", "sha": ""}, {}, None]
    goals = [{"tokenBudget": 1}, {"objective": " Win "}, {"tokenBudget": 5}, {"status": "complete"}, {"objective": " "}]
    goals += [{"status": status} for status in ("budgetLimited", "paused", "blocked", "complete", "paused")]
    edits = [("model_verbosity", "high"), ("approval_policy", "untrusted"), ("profiles.x.model", "a")]
    return {
        "pages": _paged(2, [*turns, *items, ("items", {"cursor": "zz"})], {"limit": 1}),
        "thread-pages": _threads(["alpha", "beta", "alpha"], threads),
        "forks-cut": _forked(2, [{"lastTurnId": "$turn 0", "excludeTurns": True}, {"beforeTurnId": "x"}], ["thread/turns/list"]),
        "reverted": _reverted(3, ["$turn 1", "x"]),
        "goals": _goals(False, goals, ["get", "get", "clear", "clear"], True),
        "metadata": _metadata(git, True, " A name "),
        "config-read": _configured(
            {"notify": ["x"], "history": {"persistence": "none"}, "agents": {"max_threads": 2}},
            edits,
            True,
            [{"model": 4}, {"profile": "x"}],
        ),
        "wrong-tools": _tooled([[{"name": "a"}], [_tool(name=" ")], [_tool(), _tool()], [_space()], [_tool(inputSchema=5)]]),
        "rules": _ruled([("touch a.txt", ["touch"]), ("git status", ["git"]), ("touch a.txt | cat", ["touch"])], "decline"),
        "questions": _questioned("plan", {"isSecret": True}, {"answers": {"q1": {"answers": ["A"]}}}),
        "unwanted": _unwanted(["turn/started", "item/agentMessage/delta", "configWarning"], ["m-1", None]),
    }
