"""Random scripts for the corners: what a backend answers in place of a reply, rate limits, odd input."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.real.differential.scenarios import GO, GREETING, NEXT, WORDS, conversation, patch, shell, words

_PLANS = ["plus", "pro", "free", "go", "team", "business", "enterprise", "edu", "nonesuch"]
_NUMBERS = ["0", "0.0", "12.5", "100", "2.5", "-1.5", "nan", "5x", "1_0", "+5", "1e1", ".5", ""]
_INTEGERS = ["0", "300", "-3", "3.5", "+3", "1704069000", "99999999999999999999", "1_0"]
_FLAGS = ["true", "false", "TRUE", "0", "1", "yes"]
_headers = st.fixed_dictionaries(
    {},
    optional={
        **{f"x-codex-{name}-used-percent": st.sampled_from(_NUMBERS) for name in ("primary", "secondary")},
        **{f"x-codex-{name}-window-minutes": st.sampled_from(_INTEGERS) for name in ("primary", "secondary")},
        **{f"x-codex-{name}-reset-at": st.sampled_from(_INTEGERS) for name in ("primary", "secondary")},
        "x-codex-credits-has-credits": st.sampled_from(_FLAGS),
        "x-codex-credits-unlimited": st.sampled_from(_FLAGS),
        "x-codex-credits-balance": st.sampled_from(["9.99", " 7 ", ""]),
        "x-request-id": st.just("req_1"),
    },
)
_limits = st.fixed_dictionaries(
    {"type": st.sampled_from(["usage_limit_reached"] * 4 + ["usage_not_included", "other"]), "message": words},
    optional={"plan_type": st.sampled_from(_PLANS), "resets_at": st.sampled_from([1704067200, 1710806400, 4102444799])},
)
#: 408, 409, 425, 429 and from 500 on are repeated by the real server, which waits in between.
_STATUSES = [201, 204, 205, 301, 302, 304, 400, 401, 402, 403, 404, 405, 406, 410, 413, 418, 422, 425, 426, 428, 451, 501, 520]
_BODIES = ["", "words", '{"error": {"message": "m", "type": "t"}}', "<p>Cloudflare</p> blocked", "Cloudflare"]


def _refused(failing: dict[str, Any], retries: int) -> dict[str, Any]:
    config = {"model_providers.mock.stream_max_retries": retries, "model_providers.mock.request_max_retries": retries}
    script = [{"match": "Go.", "times": (retries + 1) ** 2, **failing}, {"match": "Go on.", **GREETING}]
    return conversation(script, [GO, NEXT], settings={"config": config})


_text = st.builds(
    lambda text, spans: {"type": "text", "text": text, **({} if spans is None else {"text_elements": spans})},
    words | st.sampled_from(["", " \n"]),
    st.none()
    | st.lists(
        st.fixed_dictionaries(
            {"byteRange": st.fixed_dictionaries({"start": st.integers(0, 9), "end": st.integers(0, 9)})},
            optional={"placeholder": st.none() | words},
        ),
        max_size=2,
    ),
)
_inputs = st.lists(
    st.one_of(
        _text,
        _text,
        st.just({"type": "image", "url": "data:image/png;base64,AAAA"}),
        st.just({"type": "localImage", "path": "/nonesuch/a.png"}),
        st.just({"type": "skill", "name": "nonesuch", "path": "/nonesuch/SKILL.md"}),
    ),
    min_size=1,  # turn/started of an empty input comes before or after its end
    max_size=4,
)


def _input(inputs: list[Any], after: list[str]) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"input": items} for items in inputs]
    calls = [{"call": what, "params": {"includeTurns": True}} if what == "thread/read" else {"load": what} for what in after]
    return conversation([GREETING] * (len(steps) + 1), [*steps, *calls, NEXT])


def _places(start: str, later: str | None) -> dict[str, Any]:
    steps = [GO, {**NEXT, "params": {} if later is None else {"cwd": later}}]
    return conversation([GREETING, GREETING], steps, settings={"cwd": start})


_paths = st.sampled_from(
    ["sub", ".", "../x", "/tmp/", "/tmp/../tmp/./x", "/tmp//x", "/nonesuch/zzz", "/", "~/x", "./sub/", "", "/.."]
)
_MODELS = st.sampled_from(
    [
        *("gpt-5.2-codex", "gpt-5.2", "gpt-5.1-codex-max", "gpt-5.1-codex-mini", "gpt-5.1", "gpt-5-codex", "gpt-5", "gpt-5-mini"),
        *("o3", "o4-mini", "gpt-4.1", "gpt-4o", "gpt-oss:20b", "codex-mini-latest", "nonesuch"),
    ]
)
_model_configs = st.fixed_dictionaries(
    {},
    optional={
        "web_search": st.sampled_from(["live", "disabled", "cached"]),
        "model_verbosity": st.sampled_from(["low", "high"]),
        "model_reasoning_effort": st.sampled_from(["low", "high"]),
        "model_reasoning_summary": st.sampled_from(["none", "detailed"]),
        "model_context_window": st.just(10_000),
        "model_supports_reasoning_summaries": st.just(True),
        "developer_instructions": st.just("D."),
        "features.collaboration_modes": st.booleans(),
        "features.shell_tool": st.booleans(),
        "features.collab": st.booleans(),
        "tools.web_search": st.booleans(),
    },
)
_turn_models = st.fixed_dictionaries(
    {},
    optional={
        "effort": st.sampled_from(["minimal", "high", "xhigh", "none"]),
        "summary": st.sampled_from(["none", "concise"]),
        "collaborationMode": st.builds(
            lambda mode, model, effort: {"mode": mode, "settings": {"model": model, "reasoning_effort": effort}},
            st.sampled_from(["plan", "code"]),
            _MODELS,
            st.sampled_from([None, "high"]),
        ),
    },
)


def _models(model: str, config: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    if "collaborationMode" in params:  # another model there: the window is one of the known differences (docs/fake-codex.md)
        mode = params["collaborationMode"]
        params = {**params, "collaborationMode": {**mode, "settings": {**mode["settings"], "model": model}}}
    steps = [GO, {**NEXT, "params": params}, NEXT]
    return conversation([GREETING] * 3, steps, settings={"model": model, "config": config})


_RULES = [["printf"], ["ls"], [5], "printf", None]
_odd_decisions = st.one_of(
    st.sampled_from(
        [None, 5, "nonsense", "accept", "approved", "acceptWithExecpolicyAmendment", {"accept": None}, {"accept": {}}]
    ),
    st.builds(
        lambda word, member, rule: {word: {member: rule}},
        st.sampled_from(["acceptWithExecpolicyAmendment", "approved_execpolicy_amendment"]),
        st.sampled_from(["execpolicy_amendment", "proposed_execpolicy_amendment", "execpolicyAmendment"]),
        st.sampled_from(_RULES),
    ),
)


def _decisions(kind: str, decision: Any, api: str) -> dict[str, Any]:
    calls = [shell("call_1", "printf marker"), shell("call_2", "printf marker")]
    if kind == "patch":
        calls = [patch("call_1", min(WORDS["patches"]))]
    settings = {"approvalPolicy": "untrusted", "sandbox": "danger-full-access"}
    script = [*({"items": [call]} for call in calls), GREETING]
    return conversation(script, [{**GO, "decide": {"*": decision}}], api, settings=settings)


_NAMES = ["weather", "shell", "shell_command", "apply_patch", "update_plan", "view_image", "list_mcp_resources"]
_ODD_NAMES = ["", " ", " a", "mcp", "mcp__a__b", "a b", "weather"]
_ARGUMENTS = ["{}", '{"a": 1}', "[1, 2]", '"x"', "5", "null", "true", "", "  ", "{", "{bad"]


def _named(name: str, arguments: str, odd: list[str], resource: str, given: str) -> dict[str, Any]:
    """Tools of the client's with odd names, and calls with odd arguments."""
    tools = [{"name": each, "description": "D", "inputSchema": {"type": "object", "properties": {}}} for each in [name, *odd]]
    calls = [(name, arguments), (resource, given)]
    script: list[Any] = [
        {"items": [{"type": "function_call", "name": called, "arguments": text, "call_id": f"call_{i}"}]}
        for i, (called, text) in enumerate(calls)
    ]
    answer = {"*": {"output": "o", "success": True}}
    start = {"call": "thread/start", "params": {"dynamicTools": tools}}
    return conversation([*script, GREETING], [start, {**GO, "answer": answer}], settings={"dynamicTools": tools[:1]})


_BODY = ["*** Add File: n.txt\n+one\n", "*** Add File: n.txt\none\n", "*** Add File: n.txt\n", "", "nonsense\n", "\n"]
_BODY += ["*** Add File: n.txt\n+one\n*** Add File: m.txt\n+x\n", "*** Add File: \n+x\n", "*** Update File: old.txt\n"]
_BODY += [
    "*** Update File: old.txt\n@@\nx\n",
    "*** Update File: old.txt\n@@\n",
    "*** Delete File: gone.txt\n+x\n",
    "*** Foo: n\n",
]
_WRAPS = ["{}", "{}", "  {}  ", "<<'EOF'\n{}EOF\n", "<<EOF\n{}EOF", "<<'EOF'\n{}", "{}\nx"]
_COMMANDS = ["apply_patch <<'EOF'\n{}EOF\n", "applypatch <<EOF\n{}EOF", "{}"]


def _patch_text(body: str, wrap: str, crlf: bool, how: str, policy: str, decision: str) -> dict[str, Any]:
    text = f"*** Begin Patch\n{body}*** End Patch\n"
    text = wrap.format(text)
    if crlf:
        text = text.replace("\n", "\r\n")
    call: dict[str, Any] = {"type": "custom_tool_call", "name": "apply_patch", "input": text, "call_id": "call_1"}
    if how == "argv":
        command = {"command": ["apply_patch", text]}
        call = {"type": "function_call", "name": "shell", "arguments": command, "call_id": "call_1"}
    elif how != "custom":
        body = _BODY[0] if how == "{}" else body  # a text that is no patch would be run
        line = {"command": how.format(f"*** Begin Patch\n{body}*** End Patch\n")}
        call = {"type": "function_call", "name": "shell_command", "arguments": line, "call_id": "call_1"}
    step = {**GO, "decide": {"*": decision}}
    settings = {"approvalPolicy": policy, "sandbox": "danger-full-access"}
    return conversation([{"items": [call]}, GREETING], [step], settings=settings)


_PROGRAMS = (
    "rg", "rga", "grep", "egrep", "git grep", "git ls-files", "ag", "pt", "fd", "find", "ls", "tree", "cat", "bat", "less",
    "head", "tail", "sed -n", "awk", "nl", "python3 -c", "export", "cd src && cat", "ls | head", "cat a.txt | sed",
)  # fmt: skip
_OPERANDS = (
    "one", "a.txt", "src/b.txt", ".", "5", "+5", "1,5p", "5p", "'os.walk'", "'{print}'", "A=1", "--", "-n", "-n5", "-A", "-e",
    "-f", "-g", "--type", "--files", "-name", "--theme", "-p", "-5",
)  # fmt: skip


def _command_lines(line: list[str], tail: str, api: str) -> dict[str, Any]:
    """A line that needs an approval, because of its last command, and gets none: its actions and the proposed rule show."""
    call = {
        "type": "function_call",
        "name": "shell_command",
        "call_id": "call_1",
        "arguments": {"command": " ".join(line) + tail},
    }
    settings = {"approvalPolicy": "untrusted", "sandbox": "danger-full-access"}
    return conversation([{"items": [call]}, GREETING], [{**GO, "decide": {"*": "decline"}}], api, settings=settings)


def _shells(name: str, folder: Any, extra: dict[str, Any]) -> dict[str, Any]:
    """A command that says nothing, of each tool that runs commands, in a folder that is odd or absent."""
    command = "true" if name == "shell_command" else ["true"]
    arguments = {"command": command, **({} if folder == "absent" else {"workdir": folder}), **extra}
    call = {"type": "function_call", "name": name, "call_id": "call_1", "arguments": arguments}
    settings = {"approvalPolicy": "never", "sandbox": "danger-full-access"}
    return conversation(
        [{"items": [call]}, GREETING], [GO, {"call": "thread/read", "params": {"includeTurns": True}}], settings=settings
    )


_ID = "01a1fa4b-cfe6-7981-9efe-a552b8cdd4f3"
_WRONG_IDS = [
    _ID, _ID[:-1], f"{_ID}0", _ID[1:], _ID.replace("-", ""), _ID.replace("-", "")[1:], _ID[:8], f"{_ID}-", f"-{_ID}", "", "-",
    "----", f" {_ID}", f"g{_ID[1:]}", "é", f"urn:uuid:{_ID[:-1]}", "urn:uuid:x", _ID.replace("cfe6-7981", "cfe67-981"),
]  # fmt: skip


def _wrong_ids(ids: list[str], methods: list[str]) -> dict[str, Any]:
    more = {"turnId": "0", "numTurns": 1, "target": {"type": "uncommittedChanges"}, "input": []}
    return conversation([], [{"call": name, "params": {"threadId": one, **more}} for one in ids for name in methods])


_METHODS = ["thread/read", "thread/rollback", "thread/archive", "turn/interrupt", "turn/start", "review/start"]
_SETTINGS = [
    "history.max_bytes", "history.persistence", "tui.animations", "shell_environment_policy.exclude",
    "shell_environment_policy.set", "agents.max_threads", "notice.model_migrations", "mcp_oauth_callback_port",
    "model_personality", "forced_chatgpt_workspace_id",
    "ghost_snapshot.disable_warnings", "profiles.a.tools_web_search", "profiles.a.features.x", "web_search", "model_verbosity",
]  # fmt: skip
_SET = [5, "x", True, {}, {"a": 5}, {"a": "x"}, -1, 1.5, 70000]


def _writes(writes: list[Any]) -> dict[str, Any]:
    """Values of settings, written and removed again."""
    steps: list[Any] = []
    for key, value in writes:
        more = {"keyPath": key, "mergeStrategy": "replace"}
        steps += [{"call": "config/value/write", "params": {**more, "value": each}} for each in (value, None)]
        # Whatever the write left behind, the next scenario finds the file without it.
        steps.append({"call": "config/value/write", "params": {**more, "keyPath": key.partition(".")[0], "value": None}})
    return conversation([], steps)


KINDS: dict[str, st.SearchStrategy[Any]] = {
    "shells": st.builds(
        _shells,
        st.sampled_from(["shell_command", "shell", "container.exec", "local_shell"]),
        st.sampled_from(["absent", "", ".", "./", None, "/tmp"]),
        st.sampled_from([{}, {"justification": "x"}, {"unknown": 1}, {"timeout_ms": "x"}]),
    ),
    "wrong ids": st.builds(
        _wrong_ids,
        st.lists(st.sampled_from(_WRONG_IDS), min_size=1, max_size=3),
        st.lists(st.sampled_from(_METHODS), min_size=1, max_size=3),
    ),
    "written settings": st.builds(
        _writes, st.lists(st.tuples(st.sampled_from(_SETTINGS), st.sampled_from(_SET)), min_size=1, max_size=3)
    ),
    "command lines": st.builds(
        _command_lines,
        st.tuples(st.sampled_from(_PROGRAMS), st.lists(st.sampled_from(_OPERANDS), max_size=4)).map(
            lambda two: [two[0], *two[1]]
        ),
        st.sampled_from([" && touch z", " | mine", "; touch z"]),
        st.sampled_from(["v1", "v2"]),
    ),
    "usage limits": st.builds(
        lambda error, headers, retries, delay: _refused(
            {"status": 429, "headers": headers, "body": {"error": error}, "first_delay_ms": delay}, retries
        ),
        _limits,
        _headers,
        st.just(0),
        st.sampled_from([0, 0, 50]),
    ),
    "other statuses": st.builds(
        lambda status, body, headers: _refused({"status": status, "body": body, "headers": headers}, 0),
        st.sampled_from(_STATUSES),
        st.sampled_from(_BODIES),
        _headers,
    ),
    "rate limits": st.lists(_headers, min_size=1, max_size=3).map(
        lambda headers: conversation([{"headers": each, **GREETING} for each in headers], [GO] * len(headers))
    ),
    "input": st.builds(
        _input,
        st.lists(_inputs, min_size=1, max_size=2),
        st.lists(st.sampled_from(["thread/read", "thread/resume", "thread/fork"]), max_size=2),
    ),
    "models": st.builds(_models, _MODELS, _model_configs, _turn_models),
    "patch texts": st.builds(
        _patch_text,
        st.sampled_from(_BODY),
        st.sampled_from(_WRAPS),
        st.sampled_from([False, False, True]),
        st.sampled_from(["custom", "custom", "argv", *_COMMANDS]),
        st.sampled_from(["never", "untrusted"]),
        st.sampled_from(["accept", "decline"]),
    ),
    "decisions": st.builds(_decisions, st.sampled_from(["exec", "patch"]), _odd_decisions, st.sampled_from(["v1", "v2"])),
    "odd tools": st.builds(
        _named,
        st.sampled_from(_NAMES),
        st.sampled_from(_ARGUMENTS),
        st.lists(st.sampled_from(_ODD_NAMES), max_size=1),
        st.sampled_from(["read_mcp_resource", "list_mcp_resource_templates"]),
        st.sampled_from(
            ["", "{}", '{"server": "s"}', '{"server": "s", "uri": "u"}', '{"server": " ", "uri": ""}', '{"cursor": "c"}']
        ),
    ),
    "places": st.builds(_places, _paths, st.none() | _paths),
}
