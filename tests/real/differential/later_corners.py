"""More random scenarios for a later version: what the classes of `later` do not reach, and where a client breaks into a turn."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from tests.real.differential.later import ASKING, ESCALATED, FREE, GO, NEXT, TOOL, command, turns
from tests.real.differential.scenarios import GREETING, conversation, words

_HI, _BYE = ("echo hi", "hi\n", 0), ("echo bye; exit 3", "bye\n", 3)
_LINES = st.sampled_from([_HI, _BYE])
_EXEC, _PATCH, _CALL = "item/commandExecution/requestApproval", "item/fileChange/requestApproval", "item/tool/call"


def _weather(call: str, city: str = "Rome") -> dict[str, Any]:
    return {"type": "function_call", "name": "weather", "arguments": {"city": city}, "call_id": call}


def _patched(call: str, text: str) -> dict[str, Any]:
    given = f"*** Begin Patch\n{text}*** End Patch\n"
    return {"type": "custom_tool_call", "name": "apply_patch", "call_id": call, "input": given}


_SUNNY = {"contentItems": [{"type": "inputText", "text": "sunny"}], "success": True}


# -- a client that breaks into an open request ------------------------------------------------------------------------------


def _open(kind: str) -> tuple[dict[str, Any], str, dict[str, Any]]:
    """Return a call that waits for the client, the request, and the settings of the thread."""
    if kind == "command":
        return command("call_1", *_HI, **ESCALATED), _EXEC, ASKING
    if kind == "patch":
        return _patched("call_1", "*** Add File: new.txt\n+one\n"), _PATCH, ASKING
    return _weather("call_1"), _CALL, {"dynamicTools": [TOOL]}


def _broken_in(kind: str, before: list[Any], then: dict[str, Any]) -> dict[str, Any]:
    call, method, settings = _open(kind)
    told = conversation([{"items": [*before, call]}, GREETING], [{**GO, "interrupt": method}, then], settings=settings)
    return {**told, "experimental": True, "model": "gpt-5.5"}


def _steered(kind: str, texts: list[tuple[str, str]], decision: str) -> dict[str, Any]:
    call, _, settings = _open(kind)
    step = {**GO, "first": texts, "decide": {"*": decision}, "answer": {"*": _SUNNY}}
    told = conversation([{"items": [call]}, GREETING, GREETING], [step, NEXT], settings=settings)
    return {**told, "experimental": True, "model": "gpt-5.5"}


# -- decisions that last ----------------------------------------------------------------------------------------------------

_ECHO = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["echo"]}}
_WHOLE = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["echo", "hi"]}}
_decisions = st.sampled_from(
    ["accept", "acceptForSession", "acceptForSession", _ECHO, _WHOLE, "decline", "nonsense", None, {"accept": None},
     {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": []}}, {"acceptWithExecpolicyAmendment": {}}]
)  # fmt: skip


def _lasting(lines: list[Any], decisions: list[Any], again: bool) -> dict[str, Any]:
    script: list[Any] = [{"items": [command(f"call_{n}", *line, **ESCALATED)]} for n, line in enumerate(lines)]
    decide = {f"call_{n}": decision for n, decision in enumerate(decisions)}
    steps: list[Any] = [{**GO, "decide": {**decide, "*": "accept"}}, {**NEXT, "decide": {"*": "accept"}}]
    more = [{"items": [command("call_again", *lines[0], **ESCALATED)]}] if again else []
    return conversation([*script, GREETING, *more, GREETING], steps, settings=ASKING)


# -- patches ----------------------------------------------------------------------------------------------------------------

_BODIES = [
    "*** Add File: new.txt\n+one\n+two\n",
    "*** Add File: sub/dir/x.py\n+print('é')\n",
    "*** Add File: empty.txt\n",
    "*** Add File: a.txt\n+one\n*** Add File: b.txt\n+two\n",
    "nonsense\n",
    "",
    "*** Update File: nowhere.txt\n",
    "*** Foo: n\n",
    "*** Add File: n.txt\none\n",
]


def _patches(bodies: list[str], settings: dict[str, Any], decisions: list[str]) -> dict[str, Any]:
    script: list[Any] = [{"items": [_patched(f"call_{n}", body)]} for n, body in enumerate(bodies)]
    decide = {f"call_{n}": decision for n, decision in enumerate(decisions)}
    told = conversation([*script, GREETING, GREETING], [{**GO, "decide": {**decide, "*": "accept"}}, NEXT], settings=settings)
    return {**told, "model": "gpt-5.5"}


# -- several threads, and lives of them -------------------------------------------------------------------------------------


def _threads(sorts: list[list[str]], text: str) -> dict[str, Any]:
    script: list[Any] = []
    for thread, turns_ in enumerate(sorts):
        for n, sort in enumerate(turns_):
            match, call = {"match": f"thread {thread} turn {n}."}, f"call_{thread}_{n}"
            items = {"exec": command(call, *_HI), "asked": command(call, *_HI, **ESCALATED), "dynamic": _weather(call, text)}
            if sort in items:
                script += [{**match, "items": [items[sort]]}, {**match, "items": [text]}]
            else:
                script.append({**match, "items": [{"type": "reasoning", "summary": [text]}, text]})
    steps = [
        {"thread": t, "text": f"thread {t} turn {n}.", "answer": {"*": _SUNNY}}
        for n in range(max(map(len, sorts)))
        for t, ts in enumerate(sorts)
        if n < len(ts)
    ]
    settings = {**ASKING, "dynamicTools": [TOOL]}
    return {**conversation(script, steps, threads=len(sorts), settings=settings), "experimental": True}


_LIVES = st.sampled_from(
    [
        {"call": "thread/unsubscribe"},
        {"call": "thread/read", "params": {"includeTurns": True}},
        {"call": "thread/list", "params": {"limit": 1}},
        {"call": "thread/list", "params": {"limit": 1, "cursor": "nonsense"}},
        {"call": "thread/list", "params": {"sortKey": "updated_at"}},
        {"call": "thread/loaded/list", "params": {"limit": 1}},
        {"call": "thread/read", "params": {"threadId": "x"}},
        {"call": "thread/read", "params": {"threadId": "00000000-0000-7000-8000-000000000000"}},
        {"call": "thread/archive", "params": {"threadId": "00000000-0000-7000-8000-000000000000"}},
        {"call": "thread/unarchive"},
        {"call": "thread/name/set", "params": {"name": " Mine é "}, "then": "thread/name/updated"},
        {"call": "thread/name/set", "params": {"name": 5}},
        {"call": "turn/steer", "params": {"expectedTurnId": "x", "input": []}},
        {"call": "turn/start", "params": {"input": [{"type": "text"}]}},
        {"call": "turn/start", "params": {"threadId": "x", "input": []}},
        {"call": "turn/start", "params": {"input": [{"type": "image", "url": "https://example.com/a.png"}]}},
        {"call": "mcpServerStatus/list"},
        {"call": "collaborationMode/list"},
        {"call": "getAuthStatus"},
        {"call": "nonsense"},
        {"load": "thread/resume"},
        {"load": "thread/resume", "params": {"excludeTurns": True}},
        {"load": "thread/fork"},
        {"load": "thread/fork", "params": {"excludeTurns": True, "ephemeral": True}},
        {"load": "thread/fork", "params": {"model": "gpt-5.5", "approvalPolicy": "never"}},
        NEXT,
        NEXT,
        {**NEXT, "thread": -1},
    ]
)


def _life(
    first: list[dict[str, Any]], steps: list[dict[str, Any]], turn: dict[str, Any], settings: dict[str, Any]
) -> dict[str, Any]:
    heard = [*(step.get("call") for step in steps), "thread/unsubscribe"].index("thread/unsubscribe")
    # The server does not send the end of a turn to a client that has unsubscribed.
    steps = [step for number, step in enumerate(steps) if number < heard or "text" not in step]
    told = conversation([{**turn, "times": "always"}], [*first, *steps], settings=settings)
    return {**told, "experimental": True}


# -- input ------------------------------------------------------------------------------------------------------------------


def _element(start: int) -> dict[str, Any]:
    return {"byteRange": {"start": start, "end": start + 1}, "placeholder": "p"}


_inputs = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, words),
    st.builds(lambda text: {"type": "text", "text": text, "text_elements": []}, words),
    st.builds(
        lambda text, start: {"type": "text", "text": text, "text_elements": [_element(start)]}, words, st.integers(0, 3),
    ),
    st.just({"type": "text", "text": ""}),
    st.just({"type": "image", "url": "data:image/png;base64,AAAA"}),
    st.just({"type": "mention", "name": "a", "path": "app://a"}),
    st.just({"type": "skill", "name": "none", "path": "/nowhere/SKILL.md"}),
)  # fmt: skip


def _input(inputs: list[list[Any]], loads: list[dict[str, Any]]) -> dict[str, Any]:
    steps: list[Any] = [{"input": each} for each in inputs]
    return {**conversation([{**GREETING, "times": "always"}], [*steps, *loads]), "model": "gpt-5.5"}


# -- tools one after the other ----------------------------------------------------------------------------------------------


def _mixed(sorts: list[str], said: list[str], usage: Any) -> dict[str, Any]:
    calls = {
        "command": command("call", *_HI), "failing": command("call", *_BYE), "dynamic": _weather("call"),
        "patch": _patched("call", "*** Add File: new.txt\n+one\n"),
        "unknown": {"type": "function_call", "name": "nonesuch", "arguments": {}},
        "bad": {"type": "function_call", "name": "exec_command", "arguments": "{bad"},
        "no command": {"type": "function_call", "name": "exec_command", "arguments": {}},
    }  # fmt: skip
    script: list[Any] = []
    for n, (sort, text) in enumerate(zip(sorts, said, strict=False)):
        call = {**calls[sort], "call_id": f"call_{n}"}
        if sort == "patch":
            call["input"] = call["input"].replace("new.txt", f"new{n}.txt")
        reasoned = {"type": "reasoning", "summary": [text], "content": []}
        script.append({"items": [*([reasoned] if n % 2 else [text]), call], "usage": usage})
    step = {**GO, "answer": {"*": _SUNNY}}
    told = conversation([*script, GREETING, GREETING], [step, NEXT], settings={**FREE, "dynamicTools": [TOOL]})
    return {**told, "experimental": True, "model": "gpt-5.5"}


# -- compaction -------------------------------------------------------------------------------------------------------------

COMPACT = {"call": "thread/compact/start", "then": "turn/completed"}
FULL = {"items": [{"type": "failed", "code": "context_length_exceeded", "message": "full"}]}
FAILED = {"status": 400, "error": {"message": "no"}}
#: A command, and the summary that follows it if no more than 1000 tokens are allowed; a text with as many tokens.
BUSY: list[dict[str, Any]] = [
    {"items": [command("call_1", *_HI)], "usage": {"input_tokens": 1500, "output_tokens": 1}},
    GREETING,
    {"items": ["Long."], "usage": {"input_tokens": 1500, "output_tokens": 1}},
]
_replies = st.one_of(
    st.builds(
        lambda text, tokens: {"items": [text], "usage": {"input_tokens": tokens, "output_tokens": 1}},
        words, st.sampled_from([1, 900, 2000]),
    ),
    st.just(BUSY[0]),
    st.sampled_from([FAILED, FULL, {"items": ["a"], "fault": "cut_before_completed"}, {"items": []}]),
)  # fmt: skip
_READ = {"call": "thread/read", "params": {"includeTurns": True}}
MODELS = [{**GO, "params": {"model": model}} for model in ("gpt-5.5", "gpt-6-sol", "gpt-5.6-luna", "unknown")]
_steps = st.sampled_from(
    [
        COMPACT, COMPACT, GO, *MODELS, {"load": "thread/fork"}, {"call": "thread/turns/list"}, {"call": "thread/items/list"},
        _READ, {"call": "thread/list"},
    ]
)  # fmt: skip


def _numbered(script: list[Any], first: int = 0) -> list[Any]:
    """Return a copy of a script in which each call has an id of its own."""
    script = json.loads(json.dumps(script))
    for number, call in enumerate((item for turn in script for item in turn.get("items", ()) if "call_id" in item), first):
        call["call_id"] = f"call_{number}"
    return script


def compacted(replies: list[Any], steps: list[dict[str, Any]], limit: int | None, retries: int, raw: bool) -> dict[str, Any]:
    """Return a scenario in which a thread is compacted, by request or because more tokens than `limit` are used."""
    told = conversation(_numbered([*replies, {**GREETING, "times": "always"}], 1), steps, settings=FREE)
    told["conversation"]["raw"] = raw
    config = {} if limit is None else {"config": {"model_auto_compact_token_limit": limit}}
    return {**told, **config, "experimental": True, "model": "gpt-5.5", "retries": retries}


def _compacted(replies: list[Any], steps: list[dict[str, Any]], *more: Any) -> dict[str, Any]:
    """Return a random scenario without what docs/fake-codex.md names: a full context in a compaction before the first turn."""
    return compacted([GREETING, *replies], [GO, *steps], *more) if FULL in replies else compacted(replies, steps, *more)


# -- reviews ----------------------------------------------------------------------------------------------------------------

_TARGETS = st.one_of(
    st.builds(lambda text: {"type": "custom", "instructions": f"See {text}"}, words),
    st.sampled_from(
        [
            {"type": "uncommittedChanges"},
            {"type": "commit", "sha": "abcdef012345", "title": " T "},
            {"type": "commit", "sha": "a"},
        ]
    ),
)
_WRONG = st.sampled_from(
    [
        {"target": {"type": "x"}}, {"target": 5}, {"target": {}}, {}, {"target": {"type": "commit", "sha": " "}},
        {"target": {"type": "custom", "instructions": "a"}, "delivery": "detached"}, {"target": {"type": "baseBranch"}},
    ]
)  # fmt: skip
_FINDING = {"title": "T", "body": "B", "confidence_score": 0.5, "priority": 1,
    "code_location": {"absolute_file_path": "/a", "line_range": {"start": 1, "end": 2}}}  # fmt: skip
_FOUND = {"overall_correctness": "patch is incorrect", "overall_explanation": "E", "overall_confidence_score": 0.5}
_reviews = st.one_of(
    st.lists(st.one_of(words, st.just(json.dumps({"findings": [_FINDING], **_FOUND}))), min_size=1, max_size=2),
    st.builds(lambda text: [{"type": "reasoning", "summary": [text]}, "Now.", command("call_1", *_HI)], words),
    st.just([]),
).map(lambda items: {"items": items})


def reviewed(targets: list[Any], replies: list[Any], steps: list[dict[str, Any]], wrong: Any, model: str) -> dict[str, Any]:
    """Return a scenario with reviews, each followed by a step, and then a review that is refused."""
    told = [each for target, step in zip(targets, steps, strict=False) for each in ({"review": target}, step)]
    asked = [{"call": "review/start", "params": wrong}]
    script = _numbered([*replies, {**GREETING, "times": "always"}])
    return {**conversation(script, [*told, *asked], settings=FREE), "experimental": True, "model": model}


_texts = st.lists(words, max_size=1).map(lambda found: [{"type": "text", "text": text} for text in found])
_kinds = st.sampled_from(["command", "patch", "tool"])
KINDS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "broken in": st.builds(_broken_in, _kinds, _texts, st.just(NEXT)),
    "steered": st.builds(
        _steered,
        _kinds,
        st.lists(st.tuples(st.sampled_from(["turn/steer", "turn/start"]), words), min_size=1, max_size=2),
        st.sampled_from(["accept", "decline", "nonsense"]),
    ),
    "lasting decisions": st.builds(
        _lasting, st.lists(_LINES, min_size=1, max_size=3), st.lists(_decisions, min_size=3, max_size=3), st.booleans()
    ),
    "patches": st.builds(
        _patches,
        st.lists(st.sampled_from(_BODIES), min_size=1, max_size=3),
        st.sampled_from([FREE, ASKING, {**FREE, "approvalPolicy": "untrusted"}, {"approvalPolicy": "never"}]),
        st.lists(st.sampled_from(["accept", "acceptForSession", "decline", "nonsense"]), min_size=3, max_size=3),
    ),
    "several threads": st.builds(
        _threads,
        st.lists(st.lists(st.sampled_from(["text", "exec", "asked", "dynamic"]), min_size=1, max_size=2), min_size=2, max_size=3),
        words,
    ),
    "lives": st.builds(
        _life, st.sampled_from([[], [GO], [GO]]), st.lists(_LIVES, min_size=2, max_size=5), turns,
        st.sampled_from([{}, {}, {"ephemeral": True}]),
    ),
    "compaction": st.builds(
        _compacted, st.lists(_replies, min_size=1, max_size=5),
        st.builds(lambda first, steps: [first, *steps], st.sampled_from([GO, COMPACT]), st.lists(_steps, min_size=1, max_size=4)),
        st.sampled_from([None, 1500]), st.integers(0, 1), st.booleans(),
    ),
    "reviews": st.builds(
        reviewed, st.lists(_TARGETS, min_size=1, max_size=2),
        st.lists(st.one_of(_reviews, st.just(FAILED)), min_size=1, max_size=3),
        st.lists(
            st.sampled_from([GO, COMPACT, {"call": "thread/turns/list"}, _READ]),
            min_size=2, max_size=2,
        ),
        _WRONG, st.sampled_from(["gpt-5.5", "unknown"]),
    ),
    "input": st.builds(
        _input,
        st.lists(st.lists(_inputs, max_size=3), min_size=1, max_size=2),
        st.lists(
            st.sampled_from([{"call": "thread/read", "params": {"includeTurns": True}}, {"load": "thread/fork"}]), max_size=1
        ),
    ),
    "mixed tools": st.builds(
        _mixed,
        st.lists(
            st.sampled_from(["command", "failing", "dynamic", "patch", "unknown", "bad", "no command"]), min_size=1, max_size=3
        ),
        st.lists(words, min_size=3, max_size=3),
        st.sampled_from([{}, None, {"input_tokens": 10, "output_tokens": 5}]),
    ),
}  # fmt: skip
