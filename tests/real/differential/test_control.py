"""A client that breaks into a turn, on the real 0.92.0 and on the scripted fake: interrupts, late replies, steering, resuming.

Each case is played on both; frames (but for declared races) and requests to the model must be equal.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.json_text import dumps
from codex_replay.shell.codex.cache import find_installed
from codex_replay.shell.codex.home import HermeticHome
from codex_replay.shell.http.backend_process import BackendProcess
from codex_replay.shell.rpc.client import Client
from tests.fakes.scripted.conversing import initialize
from tests.fakes.scripted.differing import differences
from tests.real.differential import asking
from tests.real.differential.scenarios import TOOL

FAKE = str(Path(sys.executable).with_name("fake-codex"))
OUTPUT = "item/commandExecution/outputDelta"
EXEC, PATCH, CALL = "item/commandExecution/requestApproval", "item/fileChange/requestApproval", "item/tool/call"
FREE = {"approvalPolicy": "never", "sandbox": "danger-full-access"}
ASKING = {"approvalPolicy": "untrusted", "sandbox": "danger-full-access"}
ERROR = {"error": {"code": -1, "message": "x"}}
PAUSE = 0.3  # seconds in which the real server comes to rest
ANSWER = 2.0  # seconds that the client waits for the replies to interrupts, at most: some come only with the next turn
LAST = 1.0  # seconds without a frame behind the last deed: late replies to interrupts come with the turn after them
MOST = 10.0  # seconds that the client waits for rest, at most


def shell(call: str, seconds: float = 0) -> dict[str, Any]:
    line = f"printf begun; sleep {seconds}" if seconds else "printf begun"
    ran = f"sleep {seconds}" if seconds else "printf begun"
    result = {"stdout": "begun", "duration_ms": int(seconds * 1000), "actions": [{"type": "unknown", "cmd": ran}]}
    return {"type": "function_call", "name": "shell_command", "arguments": {"command": line}, "call_id": call, "result": result}


ADDED = "*** Begin Patch\n*** Add File: a.txt\n+x\n*** End Patch\n"
LONG = [{"items": ["a", shell("c1", 20)]}, {"items": ["next"], "times": "always"}]
SHORT = [{"match": "Next.", "items": ["next"]}, {"items": ["a", shell("c1", 1.2)]}, {"items": ["after"], "times": "always"}]
ONE = [{"items": [shell("c1")]}, {"items": ["next"], "times": "always"}]
TWO = [{"items": [shell("c1")]}, {"items": [shell("c2", 20)]}, {"items": ["next"], "times": "always"}]
WEATHER = [{"items": [{"type": "function_call", "name": "weather", "arguments": {}, "call_id": "c1"}]}, "next", "last"]
PATCHED = [{"items": [{"type": "custom_tool_call", "name": "apply_patch", "call_id": "c1", "input": ADDED}]}, "next", "last"]

#: name -> script, settings, deeds: ("turn", text), ("output",), ("interrupt", how often), ("reply", message), ("ended",), and
#: requests as (method, params). After each deed the client waits until the server has come to rest.
CASES: dict[str, tuple[Any, dict[str, Any], list[tuple[Any, ...]]]] = {
    "three interrupts": (LONG, FREE, [("turn", "Go."), ("output",), ("interrupt", 3), ("ended",), ("turn", "Next."), ("ended",)]),
    "interrupts before and after": (
        LONG,
        FREE,
        [
            ("interrupt", 1), ("turn", "Go."), ("output",), ("interrupt", 2), ("ended",), ("interrupt", 1), ("turn", "Next."),
            ("ended",),
        ],
    ),
    "a review replaces": (
        LONG,
        FREE,
        [
            ("interrupt", 1), ("turn", "Go."), ("output",),
            ("review/start", {"target": {"type": "custom", "instructions": "Look."}}),
        ],
    ),
    "an archive ends": (LONG, FREE, [("turn", "Go."), ("output",), ("thread/archive", {})]),
    "steered": (SHORT, FREE, [("turn", "Go."), ("output",), ("turn", "More."), ("ended",)]),
    "steered and interrupted": (
        LONG, FREE, [("turn", "Go."), ("output",), ("turn", "More."), ("interrupt", 1), ("ended",), ("turn", "Next.")],
    ),
    "resumed": (SHORT, FREE, [("turn", "Go."), ("output",), ("thread/resume", FREE), ("turn", "Next."), ("ended",), ("ended",)]),
    "resumed and awaited": (
        SHORT, FREE, [("turn", "Go."), ("output",), ("thread/resume", FREE), ("ended",), ("turn", "Next."), ("ended",)],
    ),
    "resumed and interrupted": (
        SHORT,
        FREE,
        [
            ("turn", "Go."), ("output",), ("thread/resume", FREE), ("interrupt", 1), ("ended",), ("turn", "Next."), ("ended",),
            ("thread/read", {"includeTurns": True}),
        ],
    ),
    "resumed in an approval": (
        ONE, ASKING, [("turn", "Go."), (EXEC,), ("thread/resume", ASKING), ("reply", {"result": {"decision": "accept"}})],
    ),
    "a late reply after a resume": (
        ONE,
        ASKING,
        [
            ("turn", "Go."), (EXEC,), ("interrupt", 1), ("thread/resume", ASKING), ("reply", {"result": {"decision": "cancel"}}),
            ("turn", "Next."), ("ended",),
        ],
    ),
    "an error and an interrupt": (ONE, ASKING, [("turn", "Go."), (EXEC,), ("reply", ERROR), ("interrupt", 1), ("turn", "Next.")]),
    "a late cancel": (
        TWO,
        ASKING,
        [
            ("turn", "Go."), (EXEC,), ("interrupt", 1), ("ended",), ("turn", "Next.", FREE["approvalPolicy"]), ("output",),
            ("reply", {"result": {"decision": "cancel"}}), ("ended",), ("turn", "Last.", FREE["approvalPolicy"]), ("ended",),
        ],
    ),
    **{
        f"a late reply, {kind} {n}": (
            script,
            settings,
            [
                ("turn", "Go."), (asked,), ("interrupt", 1), ("ended",), ("reply", reply), ("turn", "Next."), ("ended",),
                ("turn", "Last."), ("ended",),
            ],
        )
        for kind, asked, script, settings in (
            ("command", EXEC, ONE, ASKING), ("patch", PATCH, PATCHED, ASKING), ("tool", CALL, WEATHER, {"dynamicTools": [TOOL]}),
        )
        for n, reply in enumerate(
            ({"result": {"decision": "accept"}}, {"result": {"decision": "decline"}}, {"result": {"nonsense": 1}}, ERROR)
        )
    },
}  # fmt: skip


def rejected(frame: Frame) -> bool:
    """Return True for the end of a call whose approval an interrupt ends: it is rejected or not, whichever is quicker."""
    params = frame.value.get("params") if isinstance(frame.value, dict) else None
    found = (params.get("msg") or params.get("item") or {}) if isinstance(params, dict) else {}
    if found.get("type") in ("exec_command_end", "patch_apply_end"):
        return "rejected by user" in str(found.get("stderr"))
    return found.get("type") in ("commandExecution", "fileChange") and found.get("status") == "failed"


def play(client: Client, case: str, work: str) -> list[Frame]:
    """Play a case to its end; return its frames."""
    _, settings, deeds = CASES[case]
    initialize(client)
    begin = len(client.timeline)
    thread = client.request("thread/start", {**settings, "cwd": work})["thread"]["id"]
    client.notification("codex/event/mcp_startup_complete", conversationId=thread)
    request: Any = None
    for what, *more in deeds:
        if what == "turn":
            params = {"threadId": thread, "input": [{"type": "text", "text": more[0]}]}
            client.request("turn/start", {**params, **({"approvalPolicy": more[1]} if more[1:] else {})})
        elif what == "output":
            client.notification(OUTPUT)
        elif what == "ended":
            client.notification("turn/completed", threadId=thread)
        elif what == "interrupt":
            wait_for(client, interrupt(client, thread, more[0]))
        elif what == "reply":
            client.send({"id": request["id"], **more[0]})
        elif not more:
            request = client.server_request(what)
        else:
            client.request(what, {"threadId": thread, **more[0]})
        time.sleep(PAUSE)
    rest(client)
    return client.timeline[begin:]


def interrupt(client: Client, thread: str, often: int) -> list[str]:
    """Send the interrupts in one write: a server that reads them apart may end the turn between two. Return their ids."""
    ids = [f"interrupt {len(client.timeline)} {n}" for n in range(often)]
    params = {"threadId": thread, "turnId": "0"}
    client.send(b"".join(dumps({"id": name, "method": "turn/interrupt", "params": params}) + b"\n" for name in ids))
    return ids


def wait_for(client: Client, ids: list[Any]) -> None:
    """Wait until the requests are answered, for `ANSWER` seconds at most: a busy machine needs longer than `PAUSE`."""
    deadline = time.monotonic() + ANSWER
    while time.monotonic() < deadline:
        answered = {message.get("id") for message in client.messages() if message and "method" not in message}
        if answered.issuperset(ids):
            return
        time.sleep(0.02)


def rest(client: Client) -> None:
    """Wait until the server has sent nothing for `LAST` seconds: on a busy machine it needs longer than `PAUSE`."""
    seen, deadline = -1, time.monotonic() + MOST
    while seen != len(client.timeline) and time.monotonic() < deadline:
        seen = len(client.timeline)
        time.sleep(LAST)


@pytest.fixture(scope="module")
def backend() -> Iterator[BackendProcess]:
    with BackendProcess() as process:
        yield process


def compared(case: str, backend: BackendProcess, root: Path, change: Callable[[Any], Any] = lambda script: script) -> list[str]:
    """Return the differences of a case; `change` makes another script for the fake."""
    session = backend.session(f"control {case}", CASES[case][0])
    home = HermeticHome(root / "real", session.url)
    ours = HermeticHome(root / "fake", session.url)
    script, ledger = root / "script.json", root / "ledger.ndjson"
    script.write_bytes(dumps(change(CASES[case][0])))
    env = {**ours.env, "FAKE_CODEX_SCRIPT": str(script), "FAKE_CODEX_LEDGER": str(ledger)}
    frames = []
    for command, environ, work in ((str(find_installed("0.92.0")), home.env, home.work), (FAKE, env, ours.work)):
        client = Client([command, "app-server"], env=environ, cwd=str(work), timeout=30)
        (work / "0").mkdir()
        try:
            frames.append(play(client, case, str(work / "0")))
        finally:
            client.stop()
    asked = [entry for entry in session.ledger() if entry["path"].endswith("/responses")]
    wanted = [json.loads(line) for line in ledger.read_text().splitlines()]
    shown = [[frame for frame in side if not rejected(frame)] for side in frames]
    return differences("interrupts", *shown) + asking.differences(asked, wanted)


@pytest.mark.parametrize("case", CASES)
def test_the_fake_does_what_the_real_one_does(case: str, backend: BackendProcess, tmp_path: Path) -> None:
    assert compared(case, backend, tmp_path) == []


def test_a_command_that_takes_no_time_is_found(backend: BackendProcess, tmp_path: Path) -> None:
    def hasty(script: Any) -> Any:
        return json.loads(json.dumps(script).replace('"duration_ms": 1200', '"duration_ms": 0'))

    assert compared("steered", backend, tmp_path, hasty) != []


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ("Wall time: 0.5 seconds\naborted by user", []),
        ("aborted by user after 0.1s", []),
        ("exec command rejected by user", ["thread 0: the real server asked 2 times, the fake 1 times"]),
        ("begun", ["thread 0: the real server asked 2 times, the fake 1 times"]),
    ],
)
def test_a_request_after_an_interrupt_does_not_count(output: str, found: list[str]) -> None:
    prompt = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]}
    asked = [{"body": {"input": [prompt]}}]
    late = {"body": {"input": [prompt, {"type": "function_call_output", "call_id": "c1", "output": output}]}}
    assert asking.differences([*asked, late], asked) == found
