"""Random scripts and what a client does with them, by class; the commands and patches come from the recorded vocabulary.

A scenario is {"script": [...], "conversation": {...}} (see `tests.fakes.scripted.conversing`), small enough to be read when it
is shrunk.
Only what the real server has one right answer to is made here; what it decides by chance is left out, and said where.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from tests.real.differential import vocabulary

TOOL = {
    "name": "weather",
    "description": "Tells the weather.",
    "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
GO = {"text": "Go."}
NEXT = {"text": "Go on."}
FREE = {"approvalPolicy": "never", "sandbox": "danger-full-access"}
GREETING = {"items": ["Hello."]}
#: A gate, once released, stays open; so each run of a scenario has a name of its own for it.
GATE = "the-gate"


def numbered(scenario: dict[str, Any], number: int) -> dict[str, Any]:
    """Return the scenario with a gate that no other run has."""
    text = json.dumps(scenario).replace(f'"{GATE}"', f'"{GATE}-{number}"')
    numbered_: dict[str, Any] = json.loads(text)
    return numbered_


words = st.text(alphabet="ab é☂😀\"'\\\n\t<&{}$0", min_size=1, max_size=30)
WORDS = vocabulary.load()
commands = st.sampled_from(sorted(WORDS["commands"]))
# A patch that the real server rejects shows nothing but its output; it has a class of its own neither way.
patches = st.sampled_from(sorted(WORDS["patches"]))


def touched(text: str) -> str:
    """Return the file that a patch changes first; what a second patch to it would give is not in the vocabulary."""
    return min(WORDS["patches"][text].get("changes", {text: None}))


def shell(call: str, command: str) -> dict[str, Any]:
    return {**vocabulary.shell(command, call), "result": WORDS["commands"][command]}


def patch(call: str, text: str) -> dict[str, Any]:
    return {**vocabulary.patch(text, call), "result": WORDS["patches"][text]}


def dynamic(call: str, city: str, name: str = "weather") -> dict[str, Any]:
    return {"type": "function_call", "name": name, "arguments": {"city": city}, "call_id": call}


def plan(call: str, steps: Any, why: str | None = None) -> dict[str, Any]:
    given = {"plan": steps} if why is None else {"explanation": why, "plan": steps}
    return {"type": "function_call", "name": "update_plan", "arguments": given, "call_id": call}


texts = st.builds(lambda text: {"type": "text", "text": text}, words)
reasonings = st.builds(
    lambda summary, content: {"type": "reasoning", "summary": summary, "content": content},
    st.lists(words, max_size=3),
    st.lists(words, max_size=2),
)
searches = st.one_of(
    st.builds(lambda query: {"type": "web_search_call", "query": query}, words),
    st.builds(lambda url: {"type": "web_search_call", "action": {"type": "open_page", "url": url}}, words),
    st.builds(
        lambda url, pattern: {"type": "web_search_call", "action": {"type": "find_in_page", "url": url, "pattern": pattern}},
        words,
        words,
    ),
)
plans = st.lists(
    st.builds(
        lambda step, status: {"step": step, "status": status}, words, st.sampled_from(["pending", "in_progress", "completed"])
    ),
    max_size=3,
)
usages = st.one_of(
    st.just({}),
    st.none(),
    st.builds(
        lambda a, b, c, d: {"input_tokens": a, "output_tokens": b, "cached_tokens": c, "reasoning_tokens": d},
        *[st.integers(0, 3000)] * 4,
    ),
)
turns = st.builds(
    lambda items, delta, usage: {"items": items, "delta": delta, "usage": usage},
    st.lists(st.one_of(texts, texts, reasonings, searches), min_size=1, max_size=3),
    st.integers(1, 20),
    usages,
)


def conversation(script: list[Any], steps: list[Any], api: str = "v2", **more: Any) -> dict[str, Any]:
    return {"script": script, "conversation": {"api": api, "steps": steps, **more}}


def each_turn(script: list[Any], api: str = "v2") -> dict[str, Any]:
    return conversation(script, [{"text": f"Say {i}."} for i in range(len(script))], api)


def saying(items: st.SearchStrategy[Any], api: str = "v2") -> st.SearchStrategy[Any]:
    turn = st.builds(
        lambda items, delta, usage: {"items": items, "delta": delta, "usage": usage},
        st.lists(items, min_size=1, max_size=3),
        st.integers(1, 20),
        usages,
    )
    return st.builds(lambda script: each_turn(script, api), st.lists(turn, min_size=1, max_size=3))


def _plans(steps: Any, why: str | None, bad: bool, after: list[Any]) -> dict[str, Any]:
    call = plan("call_1", steps, why)
    if bad:
        call["arguments"] = "{bad"
    return conversation([{"items": [*after, call]}, GREETING], [GO])


def _dynamic(city: str, answer: Any, sort: str, after: list[Any]) -> dict[str, Any]:
    call = dynamic("call_1", city, "nonesuch" if sort == "unknown" else "weather")
    if sort == "bad":
        call["arguments"] = "{bad"
    step = {**GO, "answer": {"*": answer}}
    return conversation([{"items": [*after, call]}, GREETING, GREETING], [step, NEXT], settings={"dynamicTools": [TOOL]})


_answers = st.one_of(
    st.builds(lambda output, success: {"output": output, "success": success}, words, st.booleans()),
    st.sampled_from([{}, {"output": 5, "success": True}, {"output": "x"}, {"contentItems": []}, None]),
)


def _parallel(sorts: list[tuple[str, str]], text: str) -> dict[str, Any]:
    calls: list[Any] = []
    for i, (sort, word) in enumerate(sorts):
        if sort == "plan" and all(call["name"] != "update_plan" for call in calls):
            calls.append(plan(f"call_{i}", [{"step": "a", "status": "pending"}]))
        elif sort == "dynamic":
            calls.append(dynamic(f"call_{i}", word))
        else:
            calls.append(shell(f"call_{i}", word))
    answers = {call["call_id"]: {"output": call["call_id"], "success": True} for call in calls}
    settings = {**FREE, "dynamicTools": [TOOL]}
    return conversation([{"items": [*calls, text]}, GREETING], [{**GO, "answer": answers}], settings=settings)


# What changes no file, so that two may run in either order.
HARMLESS = ["printf marker", "true", "false", "exit 7", "cat old.txt", "printf err >&2; exit 3", "nonesuch-command"]
_calls = st.lists(
    st.one_of(
        st.tuples(st.just("shell"), st.sampled_from(HARMLESS)),
        st.tuples(st.sampled_from(["dynamic", "dynamic", "plan"]), st.sampled_from(HARMLESS)),
    ),
    min_size=2,
    max_size=4,
)
DECISIONS = ["accept", "acceptForSession", "decline", "cancel", "nonsense"]
AMEND = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["printf"]}}


def _exec(lines: list[str], decision: Any, api: str, policy: str, sandbox: str, again: bool) -> dict[str, Any]:
    if api == "v1" and not isinstance(decision, str):
        decision = {"approved_execpolicy_amendment": {"proposed_execpolicy_amendment": ["printf"]}}
    script: list[Any] = [{"items": [shell(f"call_{i}", line)]} for i, line in enumerate(lines)]
    if again:
        script.append({"items": [shell("call_again", lines[0])]})
    step = {**GO, "decide": {"*": decision}}
    # A cancel is only waited for properly in the first reply of a turn.
    if decision == "cancel":
        script = script[:1]
    settings: dict[str, Any] = {"approvalPolicy": policy, "sandbox": sandbox}
    if sandbox == "external":
        settings, step["params"] = {"approvalPolicy": policy}, {"sandboxPolicy": {"type": "externalSandbox"}}
        api = "v2"
        for turn in script[1:]:  # nothing is confined, so nothing asks to leave the sandbox
            turn["items"][0]["arguments"] |= {"sandbox_permissions": "require_escalated", "justification": "It must be."}
    return conversation([*script, GREETING, GREETING], [step, NEXT], api, settings=settings, kind_of_call="exec")


def _patches(texts_: list[str], decision: str, api: str, policy: str, sandbox: str) -> dict[str, Any]:
    script: list[Any] = [{"items": [patch(f"call_{i}", text)]} for i, text in enumerate(texts_)]
    if decision == "cancel":
        script = script[:1]
    settings: dict[str, Any] = {"approvalPolicy": policy, "sandbox": sandbox}
    step: dict[str, Any] = {**GO, "decide": {"*": decision}}
    if sandbox == "external":
        settings, step["params"] = {"approvalPolicy": policy}, {"sandboxPolicy": {"type": "externalSandbox"}}
        api = "v2"
    return conversation([*script, GREETING, GREETING], [step, NEXT], api, settings=settings)


def _interrupt(sort: str, before: list[Any], text: str, api: str) -> dict[str, Any]:
    gate = {"type": "gate", "name": GATE}
    settings: dict[str, Any] = {}
    step: dict[str, Any] = dict(GO)
    if sort == "message":
        items = [*before, {"type": "text", "text": text}, gate]
        step |= {"interrupt": "codex/event/agent_message", "gate": GATE}
        # The gate stands behind the last message; the interrupt must not overtake the ones before.
        items = [item for item in before if item["type"] != "text"] + items[-2:]
    elif sort == "open":
        opened = {"type": "message", "id": "open", "role": "assistant", "content": []}
        added = {"type": "response.output_item.added", "output_index": 9, "item": opened}
        delta = {"type": "response.output_text.delta", "item_id": "open", "output_index": 9, "content_index": 0, "delta": text}
        items = [{"type": "event", "event": added}, {"type": "event", "event": delta}, gate]
        step |= {"interrupt": "codex/event/agent_message_delta", "gate": GATE}
    elif sort == "exec":
        items = [*before, shell("call_1", "printf marker")]
        settings = {"approvalPolicy": "untrusted", "sandbox": "danger-full-access"}
        step |= {"interrupt": "execCommandApproval" if api == "v1" else "item/commandExecution/requestApproval"}
    elif sort == "patch":
        items = [*before, patch("call_1", sorted(WORDS["patches"])[0])]
        settings = {"approvalPolicy": "untrusted", "sandbox": "danger-full-access"}
        step |= {"interrupt": "applyPatchApproval" if api == "v1" else "item/fileChange/requestApproval"}
    elif sort == "running":
        line = "printf begun; sleep 100"
        result = {"stdout": "begun", "actions": [{"type": "unknown", "cmd": "sleep 100"}], "hang": True}
        items = [*before, {**vocabulary.shell(line, "call_1"), "result": result}]
        settings = dict(FREE)
        step |= {"interrupt": "item/commandExecution/outputDelta", "whole": True}
    else:
        items, api = [*before, dynamic("call_1", text)], "v2"
        settings = {"dynamicTools": [TOOL]}
        step |= {"interrupt": "item/tool/call"}
    return conversation([{"items": items}, GREETING], [step, NEXT], api, settings=settings)


STATUSES = [400, 403, 404, 429, 500, 503]
CODES = ["insufficient_quota", "rate_limit_exceeded", "server_error", "invalid_prompt"]
BREAKS = [
    "missing_completed",
    "cut",
    "reset",
    "refused",
    "empty",
    "cut_in_event",
    "missing_type",
    "duplicated_frames",
    "split_utf8",
]


def _errors(before: list[Any], sort: Any, retries: int, text: str) -> dict[str, Any]:
    where, what = sort
    if where == "status":
        failing: dict[str, Any] = {"status": what, "body": text}
    elif where == "json":
        failing = {"status": what, "error": {"code": "x", "message": text}}
    elif where == "code":
        failing = {"items": [*before, {"type": "failed", "code": what, "message": text}]}
    elif where == "item":
        failing = {"items": [*before, {"type": what}]}
    else:
        failing = {"items": [*before, {"type": "text", "text": text}], "fault": what}
    # A request that is tried again within itself is as many requests; the script has one turn for each.
    failing["times"] = (retries + 1) ** 2 if what in (500, 503, "refused") else retries + 1
    config = {"model_providers.mock.stream_max_retries": retries, "model_providers.mock.request_max_retries": retries}
    settings = {"config": config} if retries else {}
    return conversation(
        [{"match": "Go.", **failing}, {"match": "Say on.", **GREETING}], [GO, {"text": "Say on."}], settings=settings
    )


_failures = st.one_of(
    st.tuples(st.just("status"), st.sampled_from(STATUSES)),
    st.tuples(st.just("json"), st.sampled_from(STATUSES)),
    st.tuples(st.just("code"), st.sampled_from(CODES)),
    st.tuples(st.just("item"), st.sampled_from(["incomplete", "error"])),
    st.tuples(st.just("fault"), st.sampled_from(BREAKS)),
)


def _threads(sorts: list[list[str]], text: str) -> dict[str, Any]:
    script: list[Any] = []
    for thread, turns_ in enumerate(sorts):
        for n, sort in enumerate(turns_):
            match = {"match": f"thread {thread} turn {n}."}
            call = f"call_{thread}_{n}"
            if sort == "exec":
                script += [{**match, "items": [shell(call, "printf marker")]}, {**match, "items": [text]}]
            elif sort == "dynamic":
                script += [{**match, "items": [dynamic(call, text)]}, {**match, "items": [text]}]
            else:
                script.append({**match, "items": [{"type": "reasoning", "summary": [text]}, text]})
    answer = {"*": {"output": text, "success": True}}
    steps = [
        [{"thread": t, "text": f"thread {t} turn {n}.", "answer": answer} for t, ts in enumerate(sorts) if n < len(ts)]
        for n in range(max(map(len, sorts)))
    ]
    settings = {"approvalPolicy": "untrusted", "sandbox": "danger-full-access", "dynamicTools": [TOOL]}
    return conversation(script, steps, threads=len(sorts), settings=settings)


def _overrides(params: dict[str, Any], text: str, read: bool) -> dict[str, Any]:
    steps: list[Any] = [{"text": text, "params": params}, NEXT]
    if read:
        steps.insert(1, {"call": "thread/read", "params": {"includeTurns": True}})
    return conversation([GREETING, {"items": [text]}], steps)


_params = st.fixed_dictionaries(
    {},
    optional={
        "model": st.sampled_from(["gpt-5.2", "gpt-5.2-codex", "nonesuch"]),
        "effort": st.sampled_from(["low", "high"]),
        "summary": st.sampled_from(["auto", "none", "detailed"]),
        "approvalPolicy": st.sampled_from(["never", "untrusted"]),
        "sandboxPolicy": st.sampled_from([{"type": "readOnly"}, {"type": "dangerFullAccess"}]),
        "outputSchema": st.just({"type": "object", "properties": {}, "required": [], "additionalProperties": False}),
        "unknownField": st.just(1),
    },
)


def _steer(text: str, more: str, params: dict[str, Any], api: str) -> dict[str, Any]:
    step = {**GO, "steer": more, "steer_after": "codex/event/agent_message", "gate": GATE, "steer_params": params}
    script = [{"items": [text, {"type": "gate", "name": GATE}]}, {"items": ["Both."]}, GREETING]
    return conversation(script, [step, NEXT], api)


def _reviews(items: list[Any], more: str | None, target: dict[str, Any], then: bool) -> dict[str, Any]:
    """A review, of one request to the model or (with a plan between them) of two, and perhaps a turn after it."""
    words = [] if more is None else [plan("call_1", []), more]
    script: list[Any] = [{"items": [*items, *words[:1]]}, *([{"items": [words[1]]}] if words else []), GREETING]
    return conversation(script, [{"review": target}, *([NEXT] if then else [])])


_targets = st.sampled_from(
    [
        {"type": "uncommittedChanges"},
        {"type": "custom", "instructions": " Look at it. "},
        {"type": "commit", "sha": "0123456789abcdef"},
        {"type": "commit", "sha": "0123456789abcdef", "title": "A ☂"},
    ]
)
_finding = st.fixed_dictionaries(
    {
        "title": words,
        "body": words,
        "confidence_score": st.just(0.5),
        "priority": st.sampled_from([0, 3]),
        "code_location": st.just({"absolute_file_path": "/x/a", "line_range": {"start": 1, "end": 2}}),
    }
)
_verdicts = st.builds(
    lambda findings, text: json.dumps(
        {"findings": findings, "overall_correctness": "ok", "overall_explanation": text, "overall_confidence_score": 0.5}
    ),
    st.lists(_finding, max_size=2),
    words,
)

apis = st.sampled_from(["v1", "v2"])
policies = st.sampled_from(["untrusted", "untrusted", "on-request", "never"])
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "text": saying(texts),
    "reasoning": saying(st.one_of(reasonings, texts)),
    "plan": st.builds(
        _plans, plans, st.none() | words, st.sampled_from([False, False, False, True]), st.lists(texts, max_size=1)
    ),
    "dynamic tools": st.builds(
        _dynamic, words, _answers, st.sampled_from(["known", "known", "known", "unknown", "bad"]), st.lists(texts, max_size=1)
    ),
    "parallel calls": st.builds(_parallel, _calls, words),
    "web search": saying(st.one_of(searches, texts)),
    "command approvals": st.builds(
        _exec,
        st.lists(commands, min_size=1, max_size=2),
        st.sampled_from([*DECISIONS, AMEND]),
        apis,
        policies,
        st.sampled_from(["danger-full-access", "danger-full-access", "external"]),
        st.booleans(),
    ),
    "patch approvals": st.builds(
        _patches,
        st.lists(patches, min_size=1, max_size=2, unique_by=touched),
        st.sampled_from(DECISIONS),
        apis,
        policies,
        st.sampled_from(["danger-full-access", "danger-full-access", "workspace-write", "read-only", "external"]),
    ),
    "interrupts": st.builds(
        _interrupt,
        st.sampled_from(["message", "open", "exec", "patch", "running", "dynamic"]),
        st.lists(st.one_of(texts, reasonings), max_size=1),
        words,
        apis,
    ),
    "errors": st.builds(_errors, st.lists(texts, max_size=1), _failures, st.sampled_from([0, 0, 0, 1]), words),
    "several threads": st.builds(
        _threads,
        st.lists(st.lists(st.sampled_from(["exec", "dynamic", "text"]), min_size=1, max_size=2), min_size=2, max_size=3),
        words,
    ),
    "steering": st.builds(_steer, words, words, st.sampled_from([{}, {"effort": "low"}]), apis),
    "reviews": st.builds(
        _reviews,
        st.lists(st.one_of(texts, reasonings, searches), min_size=1, max_size=2),
        st.none() | _verdicts | words,
        _targets,
        st.booleans(),
    ),
    "overrides": st.builds(_overrides, _params, words, st.booleans()),
    "v1": saying(st.one_of(texts, reasonings, searches), "v1"),
}


def with_raw(scenario: dict[str, Any]) -> dict[str, Any]:
    """The same for a client that asks for raw items."""
    return {**scenario, "conversation": {**scenario["conversation"], "raw": True}}


_pictures = st.lists(
    st.one_of(
        st.builds(lambda text: {"type": "text", "text": text}, words),
        st.just({"type": "image", "url": "data:image/png;base64,AAAA"}),
        st.just({"type": "localImage", "path": "/nonesuch/a.png"}),
    ),
    min_size=1,
    max_size=3,
).map(lambda items: conversation([GREETING, GREETING], [{"input": items}, NEXT]))
# Calls of one reply are compared apart from each other, so they have a class of their own.
KINDS["raw items"] = st.one_of(_pictures, *(KINDS[kind] for kind in KINDS if kind != "parallel calls")).map(with_raw)
KINDS["parallel calls, raw items"] = KINDS["parallel calls"].map(with_raw)
