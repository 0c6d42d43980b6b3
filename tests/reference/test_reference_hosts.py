"""Where the reference lite client sends when nobody tells it: to hosts that are played on loopback (tests/support/tls_hosts)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.tls_hosts import CA, Asked, Hosts

#: Runs the client with each connection to the two hosts, and to no other, redirected to a port of this machine.
LAUNCHER = """
import socket, sys
honest, port = socket.create_connection, int(sys.argv[1])
def redirected(address, *more):
    if address not in (("chatgpt.com", 443), ("auth.openai.com", 443)):
        raise OSError(f"{address} is neither host")
    return honest(("127.0.0.1", port), *more)
socket.create_connection = redirected
from codex_replay.reference.lite_client import __main__ as client, settings
exec(sys.argv[2])
sys.exit(client.main(["Hello"]))
"""
NEW = {"access_token": "access-2", "refresh_token": "refresh-2", "id_token": "a.b.c"}
MESSAGE = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]}
EVENTS = [{"type": "response.output_item.done", "output_index": 0, "item": MESSAGE}, {"type": "response.completed"}]


def answer(asked: Asked) -> tuple[str, str, bytes]:
    """Refuse the old token, refresh it, and answer the new one."""
    if asked.host == "auth.openai.com":
        return "200 OK", "application/json", json.dumps(NEW).encode()
    if asked.headers.get("authorization") != "Bearer access-2":
        return "401 Unauthorized", "application/json", b"{}"
    return "200 OK", "text/event-stream", "".join(f"data: {json.dumps(event)}\n\n" for event in EVENTS).encode()


def requests(home: Path, changed: str = "") -> list[tuple[str, str]]:
    """Run the client with an empty environment; return the host and the request line of all that it sent."""
    (home / ".codex").mkdir()
    tokens = {"access_token": "access-1", "refresh_token": "refresh-1", "account_id": "account-1"}
    (home / ".codex" / "auth.json").write_text(json.dumps({"auth_mode": "chatgpt", "tokens": tokens}))
    env = {"HOME": str(home), "PATH": os.environ["PATH"], "SSL_CERT_FILE": str(CA)}
    with Hosts(answer) as hosts:
        argv = [sys.executable, "-c", LAUNCHER, str(hosts.port), changed]
        done = subprocess.run(argv, env=env, cwd=home, capture_output=True, text=True, timeout=60, check=False)
    assert changed or (done.returncode, done.stdout, done.stderr) == (0, "Hi.\n", "")
    return [(asked.host, asked.line) for asked in hosts.asked]


SENT = [
    ("chatgpt.com", "POST /backend-api/codex/responses"),
    ("auth.openai.com", "POST /oauth/token"),
    ("chatgpt.com", "POST /backend-api/codex/responses"),
]


def test_the_default_urls(tmp_path: Path) -> None:
    """The requests go to chatgpt.com, and the refresh to auth.openai.com. (LITE-01, LITE-02, LITE-10)"""
    assert requests(tmp_path) == SENT


@pytest.mark.parametrize(
    "changed",
    [
        "settings.BASE_URL = 'https://chatgpt.com/backend-api'",
        "settings.BASE_URL = 'https://auth.openai.com/backend-api/codex'",
        "settings.TOKEN_URL = 'https://auth.openai.com/token'",
        "settings.TOKEN_URL = 'https://chatgpt.com/oauth/token'",
        "settings.BASE_URL = 'https://api.openai.com/v1'",
    ],
)
def test_another_default_is_seen(tmp_path: Path, changed: str) -> None:
    assert requests(tmp_path, changed) != SENT
