"""Processes over one CODEX_HOME: the real 0.169.0 and, with `FAKE_CODEX_STATE`, the scripted fake give the same answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codex_replay.core.wire.json_text import dumps
from codex_replay.shell.codex.cache import find_installed
from codex_replay.shell.codex.home import HermeticHome
from codex_replay.shell.http.backend_process import BackendProcess
from codex_replay.shell.rpc.client import Client, ErrorReply
from tests.fakes.scripted.conversing import CLIENT, is_started
from tests.real.differential.later import TOOL
from tests.real.differential.later_differing import VERSION
from tests.real.differential.test_later import FAKE
from tests.real.differential.test_processes import ASKING, World

CALL = {"type": "function_call", "name": "weather", "arguments": {"city": "Rome"}, "call_id": "call_1"}
SCRIPT = [{"match": "<tool>", "items": [CALL]}, {"items": ["Hello."], "times": "always"}]


class LaterWorld(World):
    """Processes of a later version."""

    def __init__(self, command: str, root: Path, url: str, **env: str) -> None:
        super().__init__(command, root, url, list, **env)
        self.home = HermeticHome(root, url, version=VERSION, model="gpt-5.5")
        self.env = {**self.home.env, **env}

    def start(self) -> Client:
        """Start a process with the capability experimentalApi."""
        client = Client([self.command, "app-server"], env=self.env, cwd=str(self.home.work), timeout=30)
        self._clients.append(client)
        client.request("initialize", {"clientInfo": CLIENT, "capabilities": {"experimentalApi": True}})
        client.notify("initialized")
        return client

    def thread(self, client: Client, **settings: Any) -> str:
        """Start a thread, and wait for its notification."""
        opened = str(client.request("thread/start", settings)["thread"]["id"])
        client.wait("thread/started", lambda m: is_started(m, opened))
        return opened

    def turn(self, client: Client, thread: str, **params: Any) -> None:
        """Run a turn to its end."""
        given = {"threadId": thread, "input": [{"type": "text", "text": "Go."}], **params}
        turn = client.request("turn/start", given)["turn"]["id"]
        ended = client.wait("turn/completed", lambda m: m.get("method") == "turn/completed" and m["params"]["turn"]["id"] == turn)
        self.tell(["turn/completed", ended["params"]["turn"]["status"]])

    def call(self, client: Client, method: str, **params: Any) -> None:
        """Call a method, and note its answer, without the cursors into a file and the order of events in time."""
        reply = client.call(method, params)
        answer = reply.get("result", reply.get("error"))
        for cursor in ("turnsBackwardsCursor", "itemsBackwardsCursor"):
            answer.pop(cursor, None)
        self.tell([method, _timeless(answer)])


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(item) for key, item in value.items() if not key.endswith(("At", "AtMs", "durationMs"))}
    return [_timeless(item) for item in value] if isinstance(value, list) else value


def kept_settings(world: LaterWorld) -> None:
    """Threads with settings of their own, an archived one and a fork, seen from a second and a third process."""
    client = world.start()
    chosen = world.thread(client, **ASKING, model="gpt-5.6-sol", serviceTier="flex", dynamicTools=[TOOL])
    changed, away = world.thread(client), world.thread(client)
    world.turn(client, chosen)
    world.turn(client, changed, approvalPolicy="on-request", effort="high", cwd=str(world.home.work.parent))
    world.turn(client, away)
    world.call(client, "thread/name/set", threadId=chosen, name="Mine")
    world.call(client, "thread/archive", threadId=away)
    client.close()
    client = world.start()
    world.call(client, "thread/loaded/list")
    for each in (chosen, changed, away):
        world.call(client, "thread/read", threadId=each)
    for each in (chosen, changed, away):
        world.call(client, "thread/resume", threadId=each)
    world.call(client, "thread/fork", threadId=changed)
    client.request("turn/start", {"threadId": chosen, "input": [{"type": "text", "text": "<tool>"}]})
    asked = client.wait("item/tool/call", lambda m: m.get("method") == "item/tool/call")
    client.reply(asked, {"contentItems": [{"type": "inputText", "text": "sunny"}], "success": True})
    client.wait("turn/completed", lambda m: m.get("method") == "turn/completed")
    world.turn(client, chosen)
    world.call(client, "thread/read", threadId=chosen, includeTurns=True)
    client.close()
    client = world.start()
    world.call(client, "thread/resume", threadId=chosen, model="gpt-5.5", excludeTurns=True)
    world.call(client, "thread/fork", threadId=chosen, sandbox="read-only")


@pytest.mark.parametrize("state", [True, False])
def test_a_second_process_answers_as_the_real_one(state: bool, tmp_path: Path) -> None:
    """Without the state folder the answers differ, which shows that the comparison can fail."""
    with BackendProcess() as backend:
        session = backend.session("later processes", SCRIPT)
        (tmp_path / "script.json").write_bytes(dumps(SCRIPT))
        env = {"FAKE_CODEX_VERSION": VERSION, "FAKE_CODEX_SCRIPT": str(tmp_path / "script.json")}
        env |= {"FAKE_CODEX_STATE": str(tmp_path / "state")} if state else {}
        real = LaterWorld(str(find_installed(VERSION)), tmp_path / "real", session.url)
        fake = LaterWorld(FAKE, tmp_path / "fake", session.url, **env)
        real.play(kept_settings)  # type: ignore[arg-type]
        if state:
            fake.play(kept_settings)  # type: ignore[arg-type]
            assert fake.told == real.told
        else:
            with pytest.raises(ErrorReply, match="thread not found"):
                fake.play(kept_settings)  # type: ignore[arg-type]
