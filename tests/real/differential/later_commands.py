"""Random scenarios for a later version: commands that the client runs, and commands of the model that go on after their call."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from hypothesis import strategies as st

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
    limit = {"timeoutMs": 900} if ends == "limit" else {}
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
    steps += [{"end": _NAME}, _written("late\n")]
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

KINDS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
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
