"""Random scenarios for a later version: commands that the client runs, and commands of the model that go on after their call."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

from hypothesis import strategies as st

from tests.real.differential.later import FREE

_FREE = {"type": "dangerFullAccess"}
_EXEC = "command/exec"
_NAME = "p 1"

# -- commands of the client -------------------------------------------------------------------------------------------------


def _written(text: str | None, close: bool = False) -> dict[str, Any]:
    given = {"deltaBase64": b64encode(text.encode()).decode()} if text is not None else {}
    return {"ask": f"{_EXEC}/write", "params": {"processId": _NAME, **given, **({"closeStdin": True} if close else {})}}


def _scenario(steps: list[dict[str, Any]], answers: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a scenario; `answers` are the results of the commands, which only the fake needs."""
    script = {"turns": ["Hello."], "answers": {_EXEC: [{"result": result} for result in answers]}}
    return {"script": script, "conversation": {"api": "v2", "commands": steps, "steps": []}, "experimental": True}


def _once(out: str, err: str, code: int, more: dict[str, Any], cap: dict[str, Any]) -> dict[str, Any]:
    """Return a scenario of a command that ends at once; a terminal writes each line end as two characters."""
    tty = more.get("tty", False)
    line = f"printf %s '{out}'; printf %s '{err}' >&2; exit {code}".replace("\n", "'\"\n\"'")
    run = {"command": ["sh", "-c", line], "sandboxPolicy": _FREE, **more, **cap}
    shown, error = (text.replace("\n", "\r\n") if tty else text for text in (out, err))
    answer = {"stdout": shown, "stderr": error, "exitCode": code}
    return _scenario([{"run": run}, {"end": more.get("processId", "")}], [answer])


def _fed(lines: list[str], streams: dict[str, Any], ends: str, code: int) -> dict[str, Any]:
    """Return a scenario of a command that answers each line of its input, and how it ends."""
    tty, sent = streams.get("tty", False), streams.get("tty") or "streamStdoutStderr" in streams
    loop = f'while read -r x; do echo "got $x"; [ "$x" = quit ] && exit {code}; done; exit 0'
    limit = {"timeoutMs": 4000} if ends == "limit" else {}  # on a busy machine, the inputs before it take more than a second
    run = {"command": ["sh", "-c", loop], "sandboxPolicy": _FREE, "processId": _NAME, **streams, **limit}
    fed = [*lines, "quit"] if ends == "quit" else lines
    inputs: list[dict[str, Any]] = []
    steps: list[dict[str, Any]] = [{"run": run}, {"pause": 0.2}]
    for line in fed:
        text = f"{line}\r\ngot {line}\r\n" if tty else f"got {line}\n"
        inputs.append({"stdout": text, **({"exitCode": code} if line == "quit" else {})})
        steps += [_written(f"{line}\n"), {"printed": [_NAME, len(text.encode())]} if sent else {"pause": 0.1}]
    if ends == "close":
        # A terminal is closed by a line end and Ctrl-D.
        inputs.append({"exitCode": 0, **({"stdout": "\r\ngot \r\n"} if tty else {})})
        steps.append(_written(None, close=True))
    elif ends == "terminate":
        steps.append({"ask": f"{_EXEC}/terminate", "params": {"processId": _NAME}})
    # The real server answers the command first and removes its name later: an earlier input is "no longer running".
    steps += [{"end": _NAME}, {"pause": 0.3}, _written("late\n")]
    return _scenario(steps, [{"inputs": inputs, "hang": True}])


def _refused(asks: list[dict[str, Any]], runs: dict[str, Any] | None) -> dict[str, Any]:
    """Return a scenario of requests that are refused, most of them; the command `runs` goes on meanwhile."""
    start: list[dict[str, Any]] = [] if runs is None else [{"run": {"command": ["sleep", "60"], "sandboxPolicy": _FREE, **runs}}]
    end = [] if runs is None else [{"ask": f"{_EXEC}/terminate", "params": {"processId": _NAME}}, {"end": _NAME}]
    return _scenario([*start, *asks, *end], [{"hang": True}] if start else [])


def _some(**choices: list[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in choices.items()})


_EXECS = st.builds(
    lambda command, given: {"ask": _EXEC, "params": {"command": command, **given}},
    st.sampled_from([["true"], ["true"], ["true"], [], "true", [5], None]),
    _some(
        processId=[_NAME, "other", 5], tty=[True, False, None],
        size=[{"cols": 80, "rows": 24}, {"cols": 0, "rows": 1}, {"cols": 1}, 5],
        streamStdin=[True, 1], streamStdoutStderr=[True, "x"], timeoutMs=[-1, 5000, "x", 1.5], disableTimeout=[True, False],
        outputBytesCap=[0, 9, -1], disableOutputCap=[True, False], permissionProfile=[":workspace", ":no", "no", "", 5],
        env=[{"A": "b"}, {"A": None}, {"A": 5}, [], "x"], cwd=["/tmp", 5],
        sandboxPolicy=[_FREE, {"type": "readOnly"}, {"type": "no"}, {"type": "externalSandbox", "networkAccess": "no"}, "x"],
    ),
)  # fmt: skip
_OTHERS = st.one_of(
    st.builds(
        lambda given: {"ask": f"{_EXEC}/write", "params": given},
        _some(
            processId=[_NAME, _NAME, 'no "one" é', 5],
            deltaBase64=["aGk=", "aGk", "a", "a===", "aB==", "aGl=", "aG=k", "%%%%", "aGkx\n", "é", "aGk=aGk=", "=", "", 5, None],
            closeStdin=[False, None, "x"],
        ),
    ),
    st.builds(
        lambda given: {"ask": f"{_EXEC}/resize", "params": given},
        _some(processId=[_NAME, "no"], size=[{"cols": 80, "rows": 24}, {"cols": 0, "rows": 1}, {"cols": -1, "rows": 1}, None, 5]),
    ),
    st.builds(lambda given: {"ask": f"{_EXEC}/terminate", "params": given}, _some(processId=["no", "", 5])),
)
_texts = st.text("ab é☂\n", max_size=12)
_STREAMS = st.sampled_from([{"tty": True}, {"streamStdin": True}, {"streamStdin": True, "streamStdoutStderr": True}])
_buffered = st.sampled_from([{}, {"processId": _NAME}])
_streamed = st.sampled_from([{"processId": _NAME, "tty": True}, {"processId": _NAME, "streamStdoutStderr": True}])
#: A cap that cuts a character in two shows another character in its place; so the lines of a capped command are of one byte each.
_caps = st.sampled_from([{"outputBytesCap": 3}, {"outputBytesCap": 0}, {"outputBytesCap": 50}])


# -- commands of the model that go on ---------------------------------------------------------------------------------------

#: A reply for a request that has the number of a command that goes on.
_GOING = {"match": {"tool_pattern": "running with session ID ([0-9]+)"}}
_LONG = {"hang": True}


def _call(call: str, name: str, arguments: dict[str, Any] | str, result: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function_call", "name": name, "call_id": call, "arguments": arguments, "result": result}


def _exec(call: str, line: str, wait: int, result: dict[str, Any], **more: Any) -> dict[str, Any]:
    return _call(call, "exec_command", {"cmd": line, "yield_time_ms": wait, **more}, result)


def _typed(call: str, text: str | None, result: dict[str, Any], number: str = "${1}") -> dict[str, Any]:
    given = "" if text is None else f', "chars": {json.dumps(text)}'
    return _call(call, "write_stdin", f'{{"session_id": {number}{given}, "yield_time_ms": 300}}', result)


def _background(call: str) -> dict[str, dict[str, Any]]:
    """Return what a client may ask for while a command goes on, by a short name."""
    asks = {
        "list": {}, "first": {"limit": 1}, "after": {"cursor": f"$process {call}"}, "odd": {"cursor": "x"}, "none": {"limit": 0},
    }  # fmt: skip
    ends = {"clean": ("clean", {}), "end": ("terminate", {"processId": f"$process {call}"})}
    ends |= {"other": ("terminate", {"processId": "5"}), "bad": ("terminate", {"processId": "x"})}
    found = {name: ("list", given) for name, given in asks.items()} | ends
    made = {
        name: {"ask": f"thread/backgroundTerminals/{method}", "params": {"threadId": "$thread 0", **given}}
        for name, (method, given) in found.items()
    }
    # What has ended is listed a moment later.
    return {
        **made,
        "over": {"ended": call, "pause": 0.3},
        "archive": {"ask": "thread/archive", "params": {"threadId": "$thread 0"}},
    }


def _going(replies: list[Any], turns: list[dict[str, Any]], asks: list[str]) -> dict[str, Any]:
    """Return a scenario of turns whose model has these replies, and of a client that asks for what goes on after them."""
    # The number of a command has four or five digits: a counted usage would depend on them.
    turns_ = [replies[0], *({**_GOING, **reply} for reply in replies[1:]), {"items": ["Bye."], "times": "always"}]
    script = [{**turn, "usage": {"input_tokens": 9, "output_tokens": 1}} for turn in turns_]
    calls = [{"open": FREE}, *turns, *(_background("call_1")[name] for name in asks)]
    items = {"ask": "thread/items/list", "params": {"threadId": "$thread 0"}}
    told = {"api": "v2", "calls": [*calls, *([] if "archive" in asks else [items])], "steps": [], "raw": True}
    return {"script": script, "conversation": told, "experimental": True, "model": "gpt-5.5"}


def _typing(lines: list[str], ends: str, code: int, later: bool, asks: list[str]) -> dict[str, Any]:
    """Return a scenario of a terminal that answers each line; `later`: in a second turn."""
    loop = f'while read -r x; do echo "got $x"; [ "$x" = quit ] && exit {code}; done'
    replies: list[Any] = [{"items": [_exec("call_1", loop, 250, _LONG, tty=True)]}, *([{"items": ["Soon."]}] if later else [])]
    for n, line in enumerate([*lines, *(["quit", "more"] if ends == "quit" else [])]):
        result = {"stdout": f"{line}\r\ngot {line}\r\n", **({"exit_code": code} if line == "quit" else {})}
        replies.append({"items": [_typed(f"write_{n}", f"{line}\n", result)]})
    if ends == "break":
        replies.append({"items": [_typed("break", "\x03", {"stdout": "^C", "exit_code": 1})]})
    if ends == "unknown":
        replies.append({"items": [_typed("unknown", "a", {}, "5")]})
    return _going(replies, [{"turn": "Go."}, *([{"turn": "On."}] if later else [])], asks)


def _sleeping(out: str, last: str, code: int, how: str, tty: bool) -> dict[str, Any]:
    """Return a scenario of a command that ends by itself, and what the model or the client does until it has ended."""
    long = 2 if how == "cut" else 1  # the interrupt must come before the command ends, and before the model's wait for it
    line = f"printf '{out}'; sleep {long}; printf '{last}'; exit {code}"
    result = {"stdout": out, "duration_ms": long * 1000, "later": last, "exit_code": code}
    first = _exec("call_1", line, 5000 if how in ("waits", "cut") else 250, result, **({"tty": True} if tty else {}))
    poll = {"items": [_typed("poll", None if tty else "", {})]}
    other = {"items": [_exec("call_2", "sleep 2", 5000, {"duration_ms": 2000})]}
    replies = {"polls": [poll, poll], "other": [other, poll], "refused": [{"items": [_typed("write", "a", {})]}, poll]}
    turns: list[dict[str, Any]] = [{"turn": "Go.", **({"cut": "call_1"} if how == "cut" else {})}]
    if how in ("left", "cut"):
        turns.append({"ended": "call_1"})
    if how == "read":
        turns += [{"ended": "call_1"}, {"turn": "On."}]
        replies["read"] = [{"items": ["Soon."]}, poll]
    return _going([{"items": [first]}, *replies.get(how, [])], turns, ["list"])


_ends = st.lists(st.sampled_from(["list", "first", "after", "odd", "none", "other", "bad"]), max_size=3)

KINDS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "terminal with input": st.builds(
        _typing,
        st.lists(st.text("abé☂", min_size=1, max_size=9), max_size=3),
        st.sampled_from(["quit", "quit", "break", "unknown"]),
        st.integers(1, 100),
        st.booleans(),
        st.just(["list"]),
    ),
    "terminal that is ended": st.builds(
        lambda lines, later, asks, end: _typing(
            lines, "", 0, later, [*asks, end, *([] if end == "archive" else ["over", "list"])]
        ),
        st.lists(st.text("ab", min_size=1, max_size=9), max_size=2),
        st.booleans(),
        _ends,
        st.sampled_from(["clean", "end", "archive"]),
    ),
    "command that goes on": st.builds(
        _sleeping,
        st.text("abé☂", max_size=9),
        st.text("abé☂", max_size=9),
        st.integers(0, 100),
        st.sampled_from(["waits", "polls", "other", "refused", "left", "read", "cut"]),
        st.just(False),
    ),
    "client's command": st.one_of(
        st.builds(_once, _texts, _texts, st.integers(0, 200), st.one_of(_buffered, _streamed), st.just({})),
        st.builds(_once, st.text("ab\n", max_size=9), st.text("ab\n", max_size=9), st.integers(0, 9), _buffered, _caps),
    ),
    "client's command with input": st.builds(
        _fed,
        st.lists(st.text("abé☂", min_size=1, max_size=9), max_size=3),
        _STREAMS,
        st.sampled_from(["quit", "quit", "close", "terminate", "limit"]),
        st.integers(1, 200),
    ),
    "client's command refused": st.builds(
        _refused,
        st.lists(st.one_of(_EXECS, _OTHERS), min_size=2, max_size=8),
        st.sampled_from(
            [None, {"processId": _NAME}, {"processId": _NAME, "tty": True}, {"processId": _NAME, "streamStdin": True}]
        ),
    ),
}


def examples() -> dict[str, dict[str, Any]]:
    """Return the scenarios that are recorded, by name."""
    own = {"processId": _NAME}
    asks = [
        {"ask": f"{_EXEC}/write", "params": {"processId": _NAME, "deltaBase64": "%%"}},
        {"ask": f"{_EXEC}/write", "params": {"processId": _NAME, "deltaBase64": "aGk="}},
        {"ask": f"{_EXEC}/resize", "params": {"processId": _NAME, "size": {"cols": 9, "rows": 9}}},
        {"ask": _EXEC, "params": {"command": ["true"], "processId": _NAME}},
        {"ask": _EXEC, "params": {"command": ["true"], "env": {"A": 5}}},
        {"ask": _EXEC, "params": {"command": ["true"], "tty": True, "size": {"cols": 0, "rows": 9}}},
    ]
    return {
        "client-command": _once("a\nb", "c\n", 3, {}, {}),
        "client-command-capped": _once("abc", "", 0, {**own, "streamStdoutStderr": True}, {"outputBytesCap": 2}),
        "client-command-with-input": _fed(["a", "b"], {"tty": True}, "quit", 7),
        "client-command-terminated": _fed(["a"], {"streamStdin": True}, "terminate", 7),
        "client-command-refused": _refused(asks, own),
        "terminal-with-input": _typing(["a"], "quit", 7, True, []),
        "terminals-ended": _typing([], "", 0, False, ["first", "after", "odd", "bad", "other", "end", "over", "list"]),
        "command-goes-on": _sleeping("a", "b", 3, "polls", False),
        "command-goes-on-after-an-interrupt": _sleeping("a", "b", 0, "cut", False),
    }
