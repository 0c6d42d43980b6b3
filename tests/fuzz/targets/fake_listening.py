"""WebSocket frames to a fake-codex that listens: it answers or closes, and its other client is not disturbed."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

from websockets.sync.client import connect

from codex_replay.core.wire.json_text import dumps
from tests.fuzz.frame import HANG
from tests.fuzz.http_wire import exchange
from tests.fuzz.mutate import json_text
from tests.fuzz.targets import fake_replaying
from tests.fuzz.targets.fake_replaying import ASKED, FAKE, INITIALIZE
from tests.fuzz.ws_wire import frames, handshake

ADDRESS = "listening on: "


class Target(fake_replaying.Target):
    """A scripted server, and a client that stays; a case has six frames on the average, so this is a run of 20,000."""

    total, share = 4000, 120

    def __enter__(self) -> Target:
        self._folder = tempfile.TemporaryDirectory(prefix="codex-replay-fuzz-")
        path = Path(self._folder.name, "stderr")
        self._said = path.open("w+b")
        self._number = 0
        env = {"PATH": os.environ["PATH"], "HOME": self._folder.name, "FAKE_CODEX_VERSION": "0.169.0"}
        argv = [FAKE, "app-server", "--listen", "ws://127.0.0.1:0"]
        self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=self._said, env=env, cwd=self._folder.name)
        until = time.monotonic() + HANG
        while ADDRESS not in path.read_text():
            assert time.monotonic() < until, "it does not listen"
            time.sleep(0.02)
        address = path.read_text().partition(ADDRESS)[2].split()[0]
        self._url = address.replace("ws:", "http:")
        self._stack = ExitStack()
        options: dict[str, Any] = {
            "compression": None,
            "max_size": None,
            "close_timeout": 1,
            "ping_interval": None,
            "proxy": None,
        }
        self._other = self._stack.enter_context(connect(address, **options))
        assert self._is_answered(INITIALIZE)
        return self

    def __exit__(self, *problem: object) -> None:
        self._stack.close()
        super().__exit__(*problem)

    def case(self, random: Random) -> bytes:
        """Return a handshake and the frames after it."""
        head = handshake(random, random.choice(("/", "/v1/responses", "/a?b=c", "/healthz")), random.random() < 0.3)
        return head + (frames(random, message, masked=True, packed=False) if head.endswith(b"\r\n\r\n") else b"")

    def run(self, data: bytes) -> str | None:
        """Send them on a connection of their own, and let the other client ask something."""
        head, end, sent = data.partition(b"\r\n\r\n")
        early = len(data) % 8 == 0  # some do not wait for the answer to their handshake
        answer = exchange(self._url, sent, head + end) if end and not early else exchange(self._url, data)
        if isinstance(answer, str):
            return answer
        if answer and not answer.startswith(b"HTTP/1.1 "):
            return f"the answer is no HTTP: {answer[:100]!r}"
        self._number += 1
        asked = {"id": f"after {self._number}", "method": "thread/loaded/list", "params": {}}
        return None if self._is_answered(asked) else "the other client gets no answer"

    def _is_answered(self, request: dict[str, object]) -> bool:
        until = time.monotonic() + HANG
        self._other.send(json.dumps(request))
        try:
            while json.loads(self._other.recv(timeout=max(0.0, until - time.monotonic()))).get("id") != request["id"]:
                pass
        except TimeoutError:
            return False
        return True


def message(random: Random) -> bytes:
    """Return one message of a client, whole or not."""
    how = random.random()
    if how < 0.25:
        return dumps(INITIALIZE)
    if how < 0.8:
        method, params = random.choice(ASKED)
        return json_text(random, {"id": random.choice((7, "x", -1)), "method": method, "params": params})
    return json_text(random, {"id": 99, "result": {"decision": "accept"}})
