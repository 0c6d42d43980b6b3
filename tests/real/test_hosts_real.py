"""Where the real Codex sends when no URL is set: to hosts that are played on loopback (tests/support/tls_hosts).

The environment names their proxy, and their CA. Nothing leaves the machine.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from codex_replay.shell.codex.cache import find_installed
from codex_replay.shell.codex.home import ChatGpt, HermeticHome, make_id_token, toml
from codex_replay.shell.rpc.client import Client
from tests.support.tls_hosts import Asked, Hosts

CLIENT = {"name": "codex-replay", "title": None, "version": "1"}
#: Nothing listens here; a URL that the home names by mistake is refused.
NOWHERE = "http://127.0.0.1:9"
LOGIN = ChatGpt(last_refresh="2020-01-01T00:00:00Z")
NEW = {"access_token": "access-2", "refresh_token": "refresh-2", "id_token": make_id_token()}
COMPLETED = b'data: {"type":"response.completed","response":{"id":"resp_1"}}\n\n'


@contextmanager
def codex(root: Path, environment: dict[str, str], auth: ChatGpt | None = None) -> Iterator[Client]:
    """Run the real 0.92.0 with its own provider, no URL of ours, and these variables."""
    binary = find_installed("0.92.0")
    assert binary is not None, "Codex 0.92.0 is missing: run `codex-replay codex install 0.92.0` first"
    home = HermeticHome(root, NOWHERE, auth=auth)
    config = {key: value for key, value in home.config.items() if key not in ("chatgpt_base_url", "model_providers")}
    (home.home / "config.toml").write_text(toml({**config, "model_provider": "openai"}), encoding="utf-8")
    env = {key: value for key, value in home.env.items() if not key.endswith(("_URL", "_OVERRIDE"))} | environment
    client = Client([str(binary), "app-server"], env=env, cwd=str(home.work), timeout=60)
    try:
        client.request("initialize", {"clientInfo": CLIENT})
        yield client
    finally:
        client.stop()


def answer(asked: Asked) -> tuple[str, str, bytes]:
    if asked.host == "auth.openai.com":
        return "200 OK", "application/json", json.dumps(NEW).encode()
    if "/models" in asked.line:
        return "200 OK", "application/json", b'{"models":[]}'
    return "200 OK", "text/event-stream", COMPLETED


def test_the_default_urls(tmp_path: Path) -> None:
    """The refresh goes to auth.openai.com, and all else to chatgpt.com/backend-api/codex. (LITE-01, LITE-02, LITE-10)"""
    with Hosts(answer) as hosts, codex(tmp_path, hosts.environment(), LOGIN) as client:
        thread = client.request("thread/start", {})["thread"]["id"]
        client.post("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "go"}]})
        assert client.notification("turn/completed")["turn"]["status"] == "completed"
    assert [(asked.host, asked.line, asked.headers.get("authorization")) for asked in hosts.asked] == [
        ("auth.openai.com", "POST /oauth/token", None),
        ("chatgpt.com", "GET /backend-api/codex/models?client_version=0.92.0", "Bearer access-2"),
        ("chatgpt.com", "POST /backend-api/codex/responses", "Bearer access-2"),
    ]


@pytest.fixture
def silent() -> Iterator[tuple[str, list[bytes]]]:
    """A proxy that accepts connections and never answers: its address, and the first lines that it got."""
    lines: list[bytes] = []
    kept: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            kept.append(connection)
            lines.append(connection.recv(4096).partition(b"\r\n")[0])

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", lines
    for connection in kept:
        connection.close()


@pytest.mark.parametrize("method", ["thread/start", "newConversation"])
def test_a_conversation_waits_for_the_list_of_models(tmp_path: Path, silent: tuple[str, list[bytes]], method: str) -> None:
    """Each start of a conversation asks chatgpt.com anew, and waits for at least 3 s before it goes on without. (REAL-02)"""
    proxy, lines = silent
    with codex(tmp_path, {"HTTPS_PROXY": proxy, "NO_PROXY": ""}) as client:
        for count in (1, 2):
            began = time.monotonic()
            client.request(method, {})
            assert time.monotonic() - began >= 3
            assert lines == [b"CONNECT chatgpt.com:443 HTTP/1.1"] * count
    lines.clear()
    address = {"HTTPS_PROXY": proxy, "NO_PROXY": "", "OPENAI_BASE_URL": f"{NOWHERE}/v1"}
    with codex(tmp_path / "with", address) as client:
        client.request(method, {})
    assert lines == []
