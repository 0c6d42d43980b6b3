"""What the binaries after 0.92.0 do otherwise, each on the first or the last version that does it.

`ensure` installs a version that is missing: `make real` fetches 0.93.0 (152 MB), 0.107.0, 0.110.0 (43 MB each) and 0.169.0 once.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from codex_replay.protocol.data_tables import load
from codex_replay.shell.codex.home import ChatGpt, HermeticHome
from codex_replay.shell.codex.install import ensure
from codex_replay.shell.http.backend_process import BackendProcess, BackendSession
from codex_replay.shell.rpc.client import Client

CLIENT = {"name": "codex-replay", "title": None, "version": "1"}
LOGIN = ChatGpt(access_token="access-token", refresh_token="refresh-token", account_id="account-1")
TOKENS = {"mode": "chatgpt", "access_token": "access-token", "refresh_token": "refresh-token", "account_id": "account-1"}
#: Requests of v1, with params that the versions that know them accept.
V1: dict[str, dict[str, Any]] = {
    "newConversation": {},
    "addConversationListener": {"conversationId": "{id}"},
    "sendUserMessage": {"conversationId": "{id}", "items": [{"type": "text", "data": {"text": "go"}}]},
    "sendUserTurn": {
        "conversationId": "{id}",
        "items": [{"type": "text", "data": {"text": "go"}}],
        "cwd": "/tmp",
        "approvalPolicy": "never",
        "sandboxPolicy": {"type": "read-only"},
        "model": "gpt-5.2-codex",
        "summary": "auto",
    },
}


@pytest.fixture(scope="module")
def backend() -> Iterator[BackendProcess]:
    with BackendProcess() as process:
        yield process


@contextmanager
def codex(version: str, session: BackendSession, root: Path, **home: Any) -> Iterator[Client]:
    """Run the app-server of a version on a session, initialized."""
    place = HermeticHome(root, session.url, version=version, **home)
    client = Client([str(ensure(version)), "app-server"], env=place.env, cwd=str(place.work), timeout=60)
    try:
        client.request("initialize", {"clientInfo": CLIENT})
        yield client
    finally:
        client.stop()


def asked(session: BackendSession, client: Client) -> dict[str, Any]:
    """Run one v2 turn and return the one request to the model."""
    thread = client.request("thread/start", {})["thread"]["id"]
    client.post("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "go"}]})
    assert client.notification("turn/completed")["turn"]["status"] == "completed"
    (found,) = [entry for entry in session.ledger() if entry["path"].endswith("/responses") and entry["method"] == "POST"]
    return found


@pytest.mark.parametrize(("version", "encoding"), [("0.92.0", None), ("0.93.0", "zstd")])
def test_bodies_are_compressed_from_0_93(backend: BackendProcess, tmp_path: Path, version: str, encoding: str | None) -> None:
    """Under ChatGPT auth 0.93.0 compresses without being told to; 0.92.0 does not. (REAL-117)"""
    session = backend.session(f"zstd-{version}", {"turns": ["one"], "auth": TOKENS})
    with codex(version, session, tmp_path, auth=LOGIN, extra_config={"model_provider": "openai"}) as client:
        entry = asked(session, client)
    assert dict(entry["headers"]).get("content-encoding") == encoding
    assert entry["body"]["model"] == "gpt-5.2-codex"


def refusals(client: Client) -> dict[str, str | None]:
    """Send each request of v1 and return what each is refused with (None: it is accepted)."""
    found: dict[str, str | None] = {}
    conversation = "00000000-0000-7000-8000-000000000000"
    for method, params in V1.items():
        filled = {key: conversation if value == "{id}" else value for key, value in params.items()}
        answer = client.call(method, filled)
        found[method] = answer["error"]["message"] if "error" in answer else None
        if method == "newConversation" and "result" in answer:
            conversation = answer["result"]["conversationId"]
    return found


def test_0_107_accepts_v1(backend: BackendProcess, tmp_path: Path) -> None:
    """All four requests of v1 are accepted. No 0.108.0 and no 0.109.0 was published. (REAL-120)"""
    session = backend.session("v1-107", ["one", "two"])
    with codex("0.107.0", session, tmp_path) as client:
        assert refusals(client) == dict.fromkeys(V1)


@pytest.mark.parametrize("version", ["0.110.0", "0.169.0"])
def test_v1_is_unknown_from_0_110(backend: BackendProcess, tmp_path: Path, version: str) -> None:
    """Each request of v1 is refused as an unknown variant. (REAL-120, REAL-121)"""
    session = backend.session(f"v1-{version}", ["one"])
    with codex(version, session, tmp_path) as client:
        found = refusals(client)
    assert {method: (said or "").partition(", expected")[0] for method, said in found.items()} == {
        method: f"Invalid request: unknown variant `{method}`" for method in V1
    }


@pytest.mark.parametrize(("version", "there"), [("0.92.0", True), ("0.169.0", False)])
def test_the_body_of_0_169_has_no_instructions_and_no_text(
    backend: BackendProcess, tmp_path: Path, version: str, *, there: bool
) -> None:
    """0.92.0 sends both at the top level, here with gpt-5.2, which has a verbosity; 0.169.0 sends neither. (REAL-124)"""
    session = backend.session(f"body-{version}", ["one"])
    with codex(version, session, tmp_path, model="gpt-5.2") as client:
        body = asked(session, client)["body"]
    assert ("instructions" in body, "text" in body) == (there, there)
    assert body["input"]


def test_the_features_of_0_169_are_those_of_its_table(tmp_path: Path) -> None:
    """`codex features list` names each feature with its stage; the fake accepts these and no others."""
    home = HermeticHome(tmp_path, "http://127.0.0.1:9", version="0.169.0")
    argv = [str(ensure("0.169.0")), "features", "list"]
    done = subprocess.run(argv, env=home.env, cwd=home.work, capture_output=True, text=True, timeout=60, check=True)
    rows = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    unstable = {name for name, rest in rows if rest.startswith("under development")}
    settings = load("turn", "0.169.0")["settings"]
    assert sorted(unstable) == sorted(settings["unstable"])
    others = {name for name, _ in rows} - unstable
    assert sorted(others) == sorted([*settings["features"]["stable"], *settings["features"]["on"]])
