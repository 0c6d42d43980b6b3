"""Two processes over one CODEX_HOME: the real 0.169.0 and, with `FAKE_CODEX_STATE`, the scripted fake give the same answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codex_replay.core.wire.json_text import dumps
from codex_replay.shell.codex.cache import find_installed
from codex_replay.shell.codex.home import HermeticHome
from codex_replay.shell.http.backend_process import BackendProcess
from codex_replay.shell.rpc.client import Client
from tests.fakes.scripted.conversing import CLIENT, is_started
from tests.real.differential.later_differing import VERSION
from tests.real.differential.test_later import FAKE
from tests.real.differential.test_processes import ASKING, World

SCRIPT = [{"items": ["Hello."], "times": "always"}]


class LaterWorld(World):
    """Processes of a later version; `seen` is all that they sent after the handshake, without ids and times."""

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
        self.tell("turn/completed", ended["params"]["turn"]["status"])

    def call(self, client: Client, method: str, **params: Any) -> Any:
        """Call a method, and note its answer."""
        reply = client.call(method, params)
        answer = {key: reply[key] for key in ("result", "error") if key in reply}
        self.tell(method, answer)
        return answer.get("result")

    def tell(self, method: str, value: Any) -> None:
        """Note what a process answered."""
        self.told.append([method, self.plain(value)])
