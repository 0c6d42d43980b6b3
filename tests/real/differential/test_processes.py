"""Several processes over one CODEX_HOME: the real 0.92.0 and, with `FAKE_CODEX_STATE`, the scripted fake give the same answers.

Each life is played on both; what its processes answered, what was listed and what the models were asked must be equal. Without
the state folder the same life differs, which shows that the comparison can fail.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codex_replay.core.wire.json_text import dumps
from codex_replay.shell.codex.cache import find_installed
from codex_replay.shell.codex.home import HermeticHome
from codex_replay.shell.http.backend_process import BackendProcess
from codex_replay.shell.rpc.client import Client
from tests.fakes.scripted.conversing import initialize
from tests.real.differential import asking

FAKE = str(Path(sys.executable).with_name("fake-codex"))
NOBODY = "00000000-0000-7000-8000-000000000000"
ASKED = "item/commandExecution/requestApproval"
ASKING = {"approvalPolicy": "untrusted", "sandbox": "danger-full-access"}
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.Z-]+\d?Z?|\b1[789]\d{8}\b|(?<=sessions/)[\d/]+")


class World:
    """One home and one script, and the processes that use them; `told` is what they answered, without ids and times."""

    def __init__(self, command: str, root: Path, url: str, asked: Callable[[], list[Any]], **env: str) -> None:
        self.command, self.root, self.asked = command, root, asked
        self.home = HermeticHome(root, url)
        self.env = {**self.home.env, **env}
        self.ids: dict[str, str] = {}
        self.told: list[Any] = []
        self._clients: list[Client] = []

    def play(self, life: Callable[[World], None]) -> None:
        """Play a life; end its processes."""
        try:
            life(self)
        finally:
            for client in self._clients:
                client.stop()

    def start(self) -> Client:
        client = Client([self.command, "app-server"], env=self.env, cwd=str(self.home.work), timeout=30)
        self._clients.append(client)
        initialize(client)
        return client

    def tell(self, value: Any) -> None:
        text = json.dumps(value, ensure_ascii=False).replace(str(self.root), "ROOT")
        text = _ID.sub(lambda found: self.ids.setdefault(found[0], f"ID{len(self.ids)}"), text)
        self.told.append(json.loads(json.dumps(_TIME.sub("TIME", text))))

    def ask(self, client: Client, method: str, **params: Any) -> Any:
        reply = client.call(method, params)
        self.tell([method, reply.get("result", reply.get("error"))])
        return reply.get("result")

    def written(self, text: str) -> None:
        """Wait until a file of a thread has this text: the real server writes a moment after it has sent, and the fake before."""
        limit = time.monotonic() + 30
        while self.command != FAKE and not any(text in file.read_text() for file in self.home.home.glob("sessions/**/*.jsonl")):
            assert time.monotonic() < limit, f"the real server has not written {text} within 30 s"
            time.sleep(0.02)

    def exec(self, *words: str) -> str:
        """Run `codex exec --json`; return the thread's id, if there is one."""
        command = [self.command, "exec", "--json", "--skip-git-repo-check", *words]
        done = subprocess.run(
            command, env=self.env, cwd=self.home.work, stdin=subprocess.DEVNULL, capture_output=True, timeout=60
        )
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.tell([done.returncode, lines])
        return str(lines[0].get("thread_id")) if lines else ""


def opened(client: Client, **params: Any) -> str:
    thread: str = client.request("thread/start", params)["thread"]["id"]
    client.notification("codex/event/mcp_startup_complete", conversationId=thread)
    return thread


def turn(client: Client, thread: str, text: str) -> None:
    client.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": text}]})
    client.notification("turn/completed", threadId=thread)


def shell(call: str, command: str = "printf marker") -> dict[str, Any]:
    arguments = {"command": command}
    result = {"stdout": "marker", "actions": [{"type": "unknown", "cmd": command}]}
    return {"type": "function_call", "name": "shell_command", "arguments": arguments, "call_id": call, "result": result}


SCRIPT = [
    {"match": "Think", "items": [{"type": "reasoning", "summary": ["s"], "content": ["r"]}, "thought"], "times": "always"},
    {"match": "Amend", "items": [shell("amend")]},
    {"match": "Run", "items": ["I run it.", shell("run")]},
    {"items": ["ok"], "times": "always"},
]


def two_processes(world: World) -> None:
    """Threads of every kind, seen from a second process."""
    client = world.start()
    thread = opened(client, **ASKING, model="gpt-5.2", baseInstructions="Base.", developerInstructions="Be kind.")
    turn(client, thread, "Think.")
    empty, away, passing = opened(client), opened(client), opened(client, ephemeral=True)
    turn(client, away, "Away.")
    client.request("thread/archive", {"threadId": away})
    talk = client.request("newConversation", {})
    client.request("addConversationListener", {"conversationId": talk["conversationId"]})
    items = [{"type": "text", "data": {"text": "Talk."}}]
    client.request("sendUserMessage", {"conversationId": talk["conversationId"], "items": items})
    client.notification("codex/event/task_complete", conversationId=talk["conversationId"])
    time.sleep(1.1)  # lists are in the order of the seconds in which threads were changed
    turn(client, thread, "Back.")
    client.request("thread/rollback", {"threadId": thread, "numTurns": 1})
    client.close()
    client = world.start()
    for each in (thread, empty, away, passing, NOBODY):
        world.ask(client, "thread/read", threadId=each)
        world.ask(client, "turn/start", threadId=each, input=[{"type": "text", "text": "x"}])
    world.ask(client, "thread/read", threadId=thread, includeTurns=True)
    world.ask(client, "thread/loaded/list")
    world.ask(client, "thread/list")
    world.ask(client, "thread/list", archived=True)
    world.ask(client, "thread/list", limit=1)
    world.ask(client, "listConversations")
    world.ask(client, "getConversationSummary", conversationId=thread)
    for each in (passing, away, NOBODY):
        world.ask(client, "thread/resume", threadId=each)
        world.ask(client, "thread/fork", threadId=each)
    for each in (thread, empty):
        world.ask(client, "thread/resume", threadId=each)
        turn(client, each, "Go on.")
    world.ask(client, "resumeConversation", conversationId=talk["conversationId"])
    world.ask(client, "thread/unarchive", threadId=away)
    fork = world.ask(client, "thread/fork", threadId=away)["thread"]["id"]
    turn(client, fork, "Think of the fork.")
    world.ask(client, "thread/list")
    world.ask(client, "thread/archive", threadId=away)
    client.close()


def killed(world: World) -> None:
    """A process that is killed while an approval is open, one with an amendment, and what the next ones know."""
    client = world.start()
    thread = opened(client, **ASKING)
    client.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "Run."}]})
    client.server_request(ASKED)
    client.notification("thread/tokenUsage/updated", threadId=thread)
    world.written("total_token_usage")
    client.stop()
    client = world.start()
    world.ask(client, "thread/resume", threadId=thread, **ASKING)
    turn(client, thread, "Go on.")
    client.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "Amend."}]})
    decision = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["printf"]}}
    client.reply(client.server_request(ASKED), {"decision": decision})
    client.notification("turn/completed", threadId=thread)
    client.close()
    client = world.start()
    fresh = opened(client, **ASKING)
    turn(client, fresh, "Run.")
    world.ask(client, "thread/read", threadId=thread, includeTurns=True)
    world.ask(client, "thread/read", threadId=fresh, includeTurns=True)
    client.close()


def at_once(world: World) -> None:
    """Two processes with one thread, and with each other's threads."""
    one, two = world.start(), world.start()
    thread = opened(one)
    turn(one, thread, "First.")
    world.ask(two, "thread/resume", threadId=thread)
    for client, text in ((two, "Two."), (one, "Three."), (two, "Four.")):
        turn(client, thread, text)
    world.ask(one, "thread/read", threadId=thread, includeTurns=True)
    world.ask(two, "thread/read", threadId=thread, includeTurns=True)
    other = opened(one)
    turn(one, other, "Other.")
    world.ask(two, "thread/list")
    world.ask(two, "thread/resume", threadId=other)
    world.ask(one, "thread/archive", threadId=other)
    world.ask(two, "thread/list")
    turn(two, other, "After.")
    world.ask(two, "thread/archive", threadId=other)
    world.ask(two, "thread/resume", threadId=other)
    one.close()
    two.close()


def execs(world: World) -> None:
    """A process per turn, and an app-server between them."""
    first = world.exec("Think.")
    world.exec("resume", first, "Second.")
    world.exec("resume", "--last", "Third.")
    world.exec("resume", NOBODY, "Nobody.")
    world.exec("resume", "no-such-thread", "No name.")
    world.exec("resume", first)
    time.sleep(1.1)  # the last thread is the one that was changed in the latest second
    world.exec("-m", "gpt-5.2", "Other model.")
    world.exec("resume", "--last", "Its own again.")
    time.sleep(1.1)
    elsewhere = world.home.work / "elsewhere"
    elsewhere.mkdir()
    world.exec("-C", str(elsewhere), "Elsewhere.")
    world.exec("resume", "--last", "Not elsewhere.")
    time.sleep(1.1)
    world.exec("-C", str(elsewhere), "resume", "--last", "Elsewhere again.")
    world.exec("resume", "--last", "--all", "Anywhere.")
    client = world.start()
    world.ask(client, "thread/list")
    world.ask(client, "thread/list", sourceKinds=["exec"])
    world.ask(client, "listConversations")
    world.ask(client, "thread/resume", threadId=first)
    turn(client, first, "From the app-server.")
    thread = opened(client)
    turn(client, thread, "Of the app-server.")
    client.request("thread/archive", {"threadId": first})
    client.close()
    world.exec("resume", thread, "By exec.")
    world.exec("resume", first, "It is archived.")
    world.exec("resume", "-c", 'model_provider="nope"', thread, "No such provider.")


LIVES = [two_processes, killed, at_once, execs]


@pytest.fixture(scope="module")
def backend() -> Iterator[BackendProcess]:
    with BackendProcess() as process:
        yield process


def real(backend: BackendProcess, root: Path, name: str) -> World:
    session = backend.session(name, SCRIPT)

    def asked() -> list[Any]:
        return [entry for entry in session.ledger() if entry["path"].endswith("/responses")]

    return World(str(find_installed("0.92.0")), root, session.url, asked)


def fake(root: Path, url: str, *, state: bool) -> World:
    root.mkdir(exist_ok=True)
    script, ledger = root / "script.json", root / "ledger.ndjson"
    script.write_bytes(dumps(SCRIPT))
    env = {"FAKE_CODEX_SCRIPT": str(script), "FAKE_CODEX_LEDGER": str(ledger)}

    def asked() -> list[Any]:
        return [json.loads(line) for line in ledger.read_text().splitlines()]

    return World(FAKE, root, url, asked, **env, **({"FAKE_CODEX_STATE": str(root / "state")} if state else {}))


@pytest.mark.parametrize("life", LIVES)
def test_processes_share_what_the_real_ones_share(life: Callable[[World], None], backend: BackendProcess, tmp_path: Path) -> None:
    theirs = real(backend, tmp_path / "real", life.__name__)
    ours = fake(tmp_path / "fake", theirs.env["OPENAI_BASE_URL"].removesuffix("/v1"), state=True)
    for world in (theirs, ours):
        world.play(life)
    assert ours.told == theirs.told
    assert asking.differences(theirs.asked(), ours.asked()) == []


def test_without_the_state_folder_it_differs(backend: BackendProcess, tmp_path: Path) -> None:
    def short(world: World) -> None:
        world.exec("resume", world.exec("Think."), "Second.")

    theirs = real(backend, tmp_path / "real", "without")
    ours = fake(tmp_path / "fake", theirs.env["OPENAI_BASE_URL"].removesuffix("/v1"), state=False)
    for world in (theirs, ours):
        world.play(short)
    assert ours.told != theirs.told
