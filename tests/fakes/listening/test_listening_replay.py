"""fake-codex over WebSocket with a recording, and clients that leave or do not read."""

from __future__ import annotations

import json
import socket
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame as Sent
from websockets.frames import Opcode
from websockets.sync.client import connect

from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.shell.cassettes.file import CassetteWriter
from tests.fakes.listening.test_listening import PLAIN, VERSION, ready, running, script
from tests.support.two_connections import INITIALIZE

FRAMES: list[tuple[str, Any]] = [
    ("client", {"id": 1, "method": "initialize", "params": INITIALIZE}),
    ("server", {"id": 1, "result": {"userAgent": "two/0.169.0"}}),
    ("client", {"id": 2, "method": "thread/loaded/list", "params": {}}),
    ("server", {"id": 2, "result": {"data": ["é" * 100_000], "nextCursor": None}}),
    ("server", {"method": "skills/changed", "params": {}}),
]


def recording(folder: Path) -> str:
    path = folder / "a.ndjson"
    with CassetteWriter(path, Header(VERSION, "sha256:none", "test", {"rpc": "authored"})) as writer:
        for i, (sender, message) in enumerate(FRAMES):
            writer.write(Frame(0, i / 1000, "rpc", sender, raw=json.dumps(message, ensure_ascii=False).encode() + b"\n"))
    return str(path)


def test_each_connection_gets_the_recording(tmp_path: Path) -> None:
    """Byte for byte, from its beginning, though they take turns."""
    with running(tmp_path, FAKE_CODEX_CASSETTE=recording(tmp_path)) as server, ExitStack() as stack:
        websockets = [stack.enter_context(connect(server.url, max_size=None, **PLAIN)) for _ in range(3)]
        for i, (sender, message) in enumerate(FRAMES):
            for websocket in websockets:
                text = json.dumps(message, ensure_ascii=False)
                if sender == "client":
                    websocket.send(text)
                else:
                    assert websocket.recv(timeout=20) == text, f"frame {i}"
        for websocket in websockets:
            websocket.close()
        assert server.stop() == (0, "")


def test_a_client_that_leaves_early_is_reported(tmp_path: Path) -> None:
    with running(tmp_path, FAKE_CODEX_CASSETTE=recording(tmp_path)) as server:
        with connect(server.url, **PLAIN) as websocket:
            websocket.send(json.dumps(FRAMES[0][1]))
            websocket.recv(timeout=20)
        with connect(server.url, **PLAIN) as websocket:
            websocket.send(json.dumps({"id": 9, "method": "thread/archive", "params": {}}))
            assert json.loads(websocket.recv(timeout=20))["error"]["message"] == "Not initialized"
        status, text = server.stop()
    assert status == 1
    assert "frame 3 of" in text
    assert "thread/loaded/list" in text


#: The program with a lower limit of what a client may leave unread.
IMPATIENT = """
import sys
from codex_fakes import fake_codex
from codex_fakes.listening import patient
patient.UNREAD = 8_000_000
sys.exit(fake_codex.main(sys.argv[1:]))
"""


def test_a_client_that_reads_nothing_is_disconnected(tmp_path: Path) -> None:
    """The others go on, without a wait."""
    program = [sys.executable, "-c", IMPATIENT]
    turn = {"items": ["word " * 100_000], "delta": 100_000, "times": "always"}
    with running(tmp_path, program=program, FAKE_CODEX_SCRIPT=script(tmp_path, turn)) as server, ExitStack() as stack:
        one, deaf = (ready(stack.enter_context(connect(server.url, max_size=None, **PLAIN))) for _ in "ab")
        thread = one.result("thread/start")["result"]["thread"]["id"]
        one.ask("turn/start", threadId=thread, input=[{"type": "text", "text": "Hi"}])
        one.until(lambda message: message.get("method") == "turn/completed")
        deaf.result("thread/resume", threadId=thread)
        for _ in range(40):
            one.ask("turn/start", threadId=thread, input=[{"type": "text", "text": "Hi"}])
            one.until(lambda message: message.get("method") == "turn/completed")
        with pytest.raises(ConnectionClosed):
            deaf.until(lambda message: False)
        assert server.stop()[0] == 0


def test_a_client_that_reads_no_pongs_is_disconnected(tmp_path: Path) -> None:
    program = [sys.executable, "-c", IMPATIENT]
    head = f"GET / HTTP/1.1\nHost: x\nConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Key: {'A' * 22}==\n"
    pings = Sent(Opcode.PING, b"x" * 125).serialize(mask=True) * 400_000
    with running(tmp_path, program=program) as server, socket.create_connection(("127.0.0.1", server.port), 20) as client:
        client.sendall(f"{head}Sec-WebSocket-Version: 13\n\n".replace("\n", "\r\n").encode())
        assert client.recv(100).startswith(b"HTTP/1.1 101 ")
        with pytest.raises(ConnectionError):
            client.sendall(pings)
        assert server.stop()[0] == 0
