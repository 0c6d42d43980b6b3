"""`codex app-server --listen` of the real server and of the fake: the same to two connections, and the same refusals."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from codex_replay.protocol.versions import LISTENS, STEPS
from codex_replay.shell.codex.home import ApiKey, HermeticHome
from codex_replay.shell.codex.install import ensure
from codex_replay.shell.http.backend_process import BackendProcess
from tests.support.two_connections import INITIALIZE, MODEL, One, conversation

VERSION = "0.169.0"
FAKE = str(Path(sys.executable).with_name("fake-codex"))
ADDRESSES = (
    "off",
    "",
    "tcp://1",
    "ws://localhost:1",
    "ws://127.0.0.1",
    "ws://127.0.0.1:99999",
    "ws://127.0.0.1:1/x",
    "ws://0.0.0.0:0",
)


@contextmanager
def listening(program: str, home: HermeticHome, **env: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run an app-server that listens; yield its URL and its process."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    argv = [program, "app-server", "--listen", f"ws://127.0.0.1:{port}"]
    process = subprocess.Popen(argv, env={**home.env, **env}, cwd=home.work, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        limit = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                assert process.poll() is None
                assert time.monotonic() < limit
                time.sleep(0.05)
        yield f"ws://127.0.0.1:{port}", process
        process.terminate()
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()


def settled(steps: list[tuple[str, list[str], list[str]]]) -> list[tuple[str, list[str], list[str]]]:
    """Return the steps with the results first: on a busy machine the real server answers turn/start after its notifications."""
    return [(name, *(sorted(kinds, key=lambda kind: kind != "result") for kinds in (a, b))) for name, a, b in steps]


def test_two_connections(tmp_path: Path) -> None:
    """Each step brings both connections the same messages, in the same order, from the real server and from the fake."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"turns": MODEL}))
    with BackendProcess() as backend:
        session = backend.session("two")
        session.script({"turns": MODEL})
        home = HermeticHome(tmp_path / "home", session.url, version=VERSION, auth=ApiKey())
        with listening(str(ensure(VERSION)), home) as (url, _):
            real = conversation(url)
    with listening(FAKE, home, FAKE_CODEX_VERSION=VERSION, FAKE_CODEX_SCRIPT=str(script)) as (url, _):
        assert settled(conversation(url)) == settled(real)


SLOW: list[Any] = [{"items": ["One.", {"type": "gate", "name": "middle"}, "Two."]}]
#: Only input of the client opens a gate of the fake: its model waits for a time instead.
GATE, WAIT = '"type": "gate", "name": "middle"', '"type": "wait", "ms": 5000'


@pytest.mark.parametrize("program", ["real", "fake"])
@pytest.mark.parametrize(("model", "signals"), [(SLOW, 1), (MODEL[2:], 2)], ids=["a turn", "an open request"])
def test_sigterm_waits_for_the_running_turn(tmp_path: Path, program: str, model: list[Any], signals: int) -> None:
    """Meanwhile the server answers; a turn that waits for its client ends with the second signal."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"turns": model}).replace(GATE, WAIT))
    with BackendProcess() as backend:
        session = backend.session("slow", {"turns": model})
        home = HermeticHome(tmp_path / "home", session.url, version=VERSION, auth=ApiKey())
        command = str(ensure(VERSION)) if program == "real" else FAKE
        with listening(command, home, FAKE_CODEX_VERSION=VERSION, FAKE_CODEX_SCRIPT=str(script)) as (url, process):
            with connect(url, compression=None, close_timeout=1, proxy=None) as websocket:
                one = One(websocket)
                one.result("initialize", **INITIALIZE)
                thread = one.result("thread/start", approvalPolicy="on-request")["result"]["thread"]["id"]
                one.ask("turn/start", threadId=thread, input=[{"type": "text", "text": "Hi"}])
                wanted = ("item/agentMessage/delta", "item/commandExecution/requestApproval")
                one.until(lambda message: message.get("method") in wanted)
                process.terminate()
                time.sleep(0.5)
                assert one.result("thread/loaded/list")["result"]["data"] == [thread]
                session.release("middle")
                if signals == 2:
                    assert process.poll() is None
                    process.terminate()
                later: list[Any] = []
                with pytest.raises(ConnectionClosed):
                    later.extend(map(json.loads, websocket))
            assert process.wait(20) == 0
    deltas = [message["params"]["delta"] for message in later if message.get("method") == "item/agentMessage/delta"]
    assert deltas == (["Two."] if signals == 1 else [])


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_that_is_refused(tmp_path: Path, address: str) -> None:
    """The fake has the real server's status and message."""
    home = HermeticHome(tmp_path, "http://127.0.0.1:9", version=VERSION, auth=ApiKey())
    ends = []
    for program in (str(ensure(VERSION)), FAKE):
        argv = [program, "app-server", "--listen", address]
        env = {**home.env, "FAKE_CODEX_VERSION": VERSION}
        done = subprocess.run(argv, env=env, cwd=home.work, capture_output=True, text=True, timeout=30, check=False)
        lines = done.stderr.splitlines()
        begins = next(i for i, line in enumerate(lines) if line.lower().startswith("error:"))
        ends.append((done.returncode, lines[begins:]))
    assert ends[0] == ends[1]


def test_the_first_version_that_listens() -> None:
    """The version before it, of those that were examined, has no such option."""
    before = STEPS[STEPS.index(LISTENS) - 1]
    for version, listens in ((before, False), (LISTENS, True)):
        help_ = subprocess.run([str(ensure(version)), "app-server", "--help"], capture_output=True, text=True, check=False).stdout
        assert ("--listen" in help_) is listens, version
