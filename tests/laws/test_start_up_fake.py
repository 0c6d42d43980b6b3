"""What fake-codex loads for a whole turn: a run of the suites starts it by the hundred, and a start is imports, nearly all.

`test_laws` holds what it may load before its first answer.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.shell.codex import HermeticHome

LAUNCHER = Path(sys.executable).with_name("fake-codex")
CASSETTES = Path(__file__).resolve().parent.parent / "cassettes" / "app_server"
#: Each takes milliseconds, of the ten that a start has beyond the interpreter's own.
SLOW = {
    *("typing", "dataclasses", "inspect", "enum", "re", "json", "os", "signal", "random", "functools", "collections"),
    *("collections.abc", "contextlib", "tomllib", "datetime", "uuid", "copy", "hashlib", "pathlib", "subprocess"),
}
IMPORTED = re.compile(r"import time: +\d+ \| +\d+ \| +(\S+)")
INITIALIZE = {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "another", "title": None, "version": "9"}}}
ITEMS: list[Any] = [
    {"type": "reasoning", "summary": ["Let me see."]},
    {"type": "function_call", "name": "shell", "arguments": {"command": ["ls"]}, "result": {"stdout": "a.txt"}},
    {"type": "function_call", "name": "update_plan", "arguments": {"plan": [{"step": "Look", "status": "completed"}]}},
]


class Client:
    """Says one message after another to a server, and waits for what it asks for."""

    def __init__(self, server: subprocess.Popen[bytes]) -> None:
        assert server.stdin is not None
        assert server.stdout is not None
        self.said, self.heard = server.stdin, server.stdout

    def say(self, message: dict[str, Any]) -> None:
        self.said.write(json.dumps(message).encode() + b"\n")
        self.said.flush()

    def until(self, key: str, value: Any) -> dict[str, Any]:
        """Read on to the message of this id or method."""
        for line in self.heard:
            message: dict[str, Any] = json.loads(line)
            if message.get(key) == value:
                return message
        raise AssertionError(f"The server ended before a message with {key} {value}.")


def replayed(folder: Path) -> tuple[dict[str, str], Callable[[Client], None]]:
    """The recorded client, under another name and in a folder of its own."""
    cassette = CASSETTES / "test_v2" / "text_turn.ndjson"
    mine = [line for line in cassette.read_text().splitlines() if '"seam":"rpc","from":"client"' in line]
    assert any('"cwd":"/home/user/work"' in line for line in mine)
    frames = [json.loads(line.replace("/home/user/work", str(folder)))["msg"] for line in mine]

    def talk(client: Client) -> None:
        for frame in frames:
            client.say(frame)
        client.until("method", "turn/completed")

    return {"FAKE_CODEX_CASSETTE": str(cassette)}, talk


def scripted(folder: Path) -> tuple[dict[str, str], Callable[[Client], None]]:
    """A turn with a thought, a command, a plan and a text; the configuration is as the suites write it."""
    script = {"turns": [{"match": "Hi", "items": ITEMS}, {"items": ["Done."]}]}
    (folder / "script.json").write_text(json.dumps(script))
    environ = {
        **HermeticHome(folder, "http://127.0.0.1:9", sandbox_mode="danger-full-access").env,
        "FAKE_CODEX_SCRIPT": str(folder / "script.json"),
        "FAKE_CODEX_LEDGER": str(folder / "ledger.ndjson"),
    }

    def talk(client: Client) -> None:
        client.say(INITIALIZE)
        client.say({"id": 2, "method": "thread/start", "params": {"cwd": str(folder)}})
        thread = client.until("id", 2)["result"]["thread"]["id"]
        client.say({"id": 3, "method": "turn/start", "params": {"threadId": thread, "input": [{"type": "text", "text": "Hi"}]}})
        client.until("method", "turn/plan/updated")
        client.until("method", "turn/completed")

    return environ, talk


def faulty(folder: Path) -> tuple[dict[str, str], Callable[[Client], None]]:
    """The same turn, with one of its notifications said twice."""
    environ, talk = scripted(folder)
    return {**environ, "FAKE_CODEX_FAULT": "doubled-event:3"}, talk


CASES = [(replayed, "harness.core.masking"), (scripted, "harness.protocol.responses"), (faulty, "fake_server.rpc_faults")]


def loaded(start: list[str], environ: dict[str, str], talk: Callable[[Client], None], folder: Path) -> set[str]:
    """Lead a conversation with fake-codex to its end in good order; return what it imported."""
    with (folder / "stderr").open("wb") as stderr:
        argv = [sys.executable, "-I", "-S", "-X", "importtime", *start, "app-server"]
        server = subprocess.Popen(argv, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr)
        with server:
            client = Client(server)
            talk(client)
            client.said.close()
            client.heard.read()
    said = (folder / "stderr").read_text()
    assert server.returncode == 0, said
    return set(IMPORTED.findall(said))


@pytest.mark.parametrize(("case", "own"), CASES, ids=[case.__name__ for case, _ in CASES])
def test_a_turn_loads_nothing_slow(case: Any, own: str, tmp_path: Path) -> None:
    found = loaded([str(LAUNCHER)], *case(tmp_path), tmp_path)
    assert own in found
    assert sorted(found & SLOW) == []


@pytest.mark.parametrize(("case", "own"), CASES, ids=[case.__name__ for case, _ in CASES])
@pytest.mark.parametrize("module", ["typing", "dataclasses"])
def test_a_turn_that_loads_more_is_noticed(case: Any, own: str, module: str, tmp_path: Path) -> None:
    """The broken ones: a module that the turn needs has one import that it does without."""
    more = (
        "import builtins, sys; launcher, old = sys.argv.pop(1), __import__; sys.argv[0] = launcher\n"
        "def late(name, *rest):\n"
        f"    if name == {own!r}: old({module!r})\n"
        "    return old(name, *rest)\n"
        "builtins.__import__ = late\n"
        "exec(compile(open(launcher).read(), launcher, 'exec'))"
    )
    assert module in loaded(["-c", more, str(LAUNCHER)], *case(tmp_path), tmp_path) & SLOW
