"""Clients that others wrote, on the real app-server and on the scripted fake: what they report must be equal.

One of PyPI (codex-python-sdk) and one of npm (ai-sdk-provider-codex-cli, its app-server half); neither is a dependency of ours.
Each plays text, a command approved and declined, a patch approved, a dynamic tool, and a turn on a thread resumed.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from base64 import b64decode
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codex_replay.core.wire.json_text import dumps
from codex_replay.shell.codex.cache import find_installed
from codex_replay.shell.codex.home import HermeticHome
from codex_replay.shell.http.backend_process import BackendProcess
from tests.real.differential import vocabulary
from tests.real.differential.scenarios import TOOL, dynamic, patch, shell
from tests.real.sdks.client_venv import node_modules, python_with

HERE = Path(__file__).parent
FAKE = str(Path(sys.executable).with_name("fake-codex"))
CLIENTS = {"codex-python-sdk": "0.2.1", "ai-sdk-provider-codex-cli": "1.4.1"}
#: What a client cannot do by itself, and what is done about it, the same way on both servers.
EXCEPTIONS = {
    ("ai-sdk-provider-codex-cli", "start"): "it passes --listen, which 0.92.0 refuses; a launcher leaves it out",
    ("ai-sdk-provider-codex-cli", "dynamic tool"): "it answers calls but has no setting that declares tools; the probe adds them",
    (
        "ai-sdk-provider-codex-cli",
        "approvals",
    ): "it knows a finished turn by its id alone, and 0.92.0 counts turns by thread: in the"
    " second thread of a process it may decline without asking; the probe gives each thread a process of its own",
}
ANSWER = {"success": True, "output": "21 degrees ☂"}
PATCH = next(text for text in vocabulary.PATCHES if "Update File: old.txt\n@@\n a\n-b\n+B" in text)
#: (name, prompt, decision or None to resume the first thread, what the model does first, what it says at the end)
TURNS: list[tuple[str, str, str | None, dict[str, Any] | None, str]] = [
    ("text", "Say hello.", "decline", None, "Hello ✓, this is a text in several deltas."),
    ("command approved", "Run it.", "accept", shell("call_run", "printf 'two words'"), "It ran."),
    ("command declined", "Run it, too.", "decline", shell("call_not", "printf marker"), "It did not run."),
    ("patch approved", "Change it.", "accept", patch("call_patch", PATCH), "It is changed."),
    ("dynamic tool", "What is the weather?", "decline", dynamic("call_tool", "Zürich"), "It is 21 degrees."),
    ("resumed", "And again.", None, None, "Hello again."),
]
#: By the prompt and not in order: a client may start a server for each thread, and each fake reads the script from its beginning.
SCRIPT: list[Any] = [
    {"match": prompt, "items": [item]}
    for _, prompt, _, call, text in TURNS
    for item in ([call] if call else []) + [{"type": "text", "text": text}]
]
ASKED = {"command approved": "command", "command declined": "command", "patch approved": "file change", "dynamic tool": "tool"}
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
#: A rollout's name has the second of its making.
SECOND = re.compile(r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d")


@pytest.fixture(scope="module")
def backend() -> Iterator[BackendProcess]:
    with BackendProcess() as process:
        yield process


def probe(client: str, codex: str, home: HermeticHome, env: dict[str, str]) -> dict[str, Any]:
    """Play all turns with this client; return what it reports."""
    vocabulary.fill(home.work)
    job: dict[str, Any] = {"codex": codex, "cwd": str(home.work), "tool": TOOL, "answer": ANSWER}
    job["prompts"] = [[prompt, decision] for _, prompt, decision, _, _ in TURNS]
    if client == "codex-python-sdk":
        argv = [python_with(client), str(HERE / "app_server_sdk_probe.py")]
    else:
        launcher = home.work.parent / "codex"
        launcher.write_text(f'#!/bin/sh\nFAKE_CODEX_LEDGER="$FAKE_CODEX_LEDGER.$$" exec "{codex}" app-server\n')
        launcher.chmod(0o755)
        node = shutil.which("node")
        assert node is not None, "This test needs node on the PATH"
        job |= {"codex": str(launcher), "modules": str(node_modules("codex-app-server-npm"))}
        argv = [node, str(HERE / "app_server_sdk_probe.mjs")]
    done = subprocess.run(argv, input=json.dumps(job), env=env, cwd=home.work, capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, done.stderr[-3000:]
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def on_real(client: str, root: Path, backend: BackendProcess) -> tuple[dict[str, Any], list[Any]]:
    """Play on the real server; return the report and the bodies of the model's requests."""
    binary = find_installed("0.92.0")
    assert binary is not None, "Codex 0.92.0 is missing: run `codex-replay codex install 0.92.0` first"
    session = backend.session(f"app-server {client}", SCRIPT)
    home = HermeticHome(root, session.url)
    report = probe(client, str(binary), home, home.env)
    assert session.problems() == []
    return report, [entry["body"] for entry in session.ledger() if entry["path"].endswith("/responses")]


def on_fake(client: str, root: Path, backend: BackendProcess, script: list[Any]) -> tuple[dict[str, Any], list[Any]]:
    """Play on the scripted fake; return the report and the bodies of its ledger."""
    home = HermeticHome(root, backend.session(f"nobody {client}", []).url)
    (root / "script.json").write_bytes(dumps(script))
    ledger = root / "ledger.ndjson"
    env = {**home.env, "FAKE_CODEX_SCRIPT": str(root / "script.json"), "FAKE_CODEX_LEDGER": str(ledger)}
    report = probe(client, FAKE, home, env)
    return report, [json.loads(line)["body"] for file in root.glob("ledger*") for line in file.read_text().splitlines()]


def comparable(value: Any, root: Path) -> Any:
    """The value without what differs from run to run: ids, places, times."""
    text = UUID.sub("<id>", json.dumps(value, ensure_ascii=False).replace(str(root), "<root>"))
    text = re.sub(r"sessions/[\d/]+", "sessions/", SECOND.sub("rollout", text))
    return _timeless(json.loads(text))


def _timeless(value: Any) -> Any:
    if isinstance(value, list):
        return [_timeless(item) for item in value]
    if isinstance(value, dict):
        if value.get("type") == "response-metadata":
            value = {**value, "id": "<made by the client>"}
        return {key: _timeless(item) for key, item in value.items() if key not in TIMES}
    return value


TIMES = ("durationMs", "totalDurationMs", "duration", "started_at_ms", "timestamp", "createdAt", "updatedAt")


def by_type(turn: dict[str, Any]) -> dict[str, list[Any]]:
    """The events of a turn, by type and in order; between types the real server has races.

    How the output of a process is cut into pieces is chance, too: pieces that follow each other are joined.
    """
    found: dict[str, list[Any]] = defaultdict(list)
    for event in turn["events"]:
        events, piece = found[event["type"]], output_piece(event)
        if piece is None:
            events.append(event)
        elif events and isinstance(events[-1], tuple) and events[-1][0] == piece[0]:
            events[-1] = (piece[0], events[-1][1] + piece[1])
        else:
            events.append(piece)
    return found


def output_piece(event: dict[str, Any]) -> tuple[str, bytes] | None:
    """The call and the bytes of an event that is a piece of output; None for any other."""
    params = (event.get("raw") or {}).get("params", {})
    if event["type"] == "codex/event/exec_command_output_delta":
        return f"{params['msg']['call_id']} {params['msg']['stream']}", b64decode(params["msg"]["chunk"])
    if event["type"].endswith("/outputDelta"):
        return params["itemId"], event["delta"].encode()
    if event["type"] == "tool-result" and event["result"].get("type") == "output-delta":
        return event["toolCallId"], event["result"]["delta"].encode()
    return None


def differences(real: dict[str, Any], fake: dict[str, Any]) -> list[str]:
    """A line for each thing that the client reports otherwise of the fake than of the real server."""
    found: list[str] = []
    for (name, *_), one, other in zip(TURNS, real["turns"], fake["turns"], strict=True):
        left = {**{key: one[key] for key in ("text", "same", "asked")}, **by_type(one)}
        right = {**{key: other[key] for key in ("text", "same", "asked")}, **by_type(other)}
        found += [
            f"{name}: {key}: {left.get(key)!r} on the real server, {right.get(key)!r} on the fake"
            for key in sorted({*left, *right})
            if left.get(key) != right.get(key)
        ]
    return found


def outputs(bodies: list[Any]) -> dict[str, Any]:
    """What the model was told of each call."""
    items = [item for body in bodies for item in body["input"] if item["type"].endswith("_call_output")]
    return {item["call_id"]: re.sub(r"Wall time: [\d.]+", "Wall time: 0", json.dumps(item["output"])) for item in items}


@pytest.mark.parametrize("client", CLIENTS)
def test_the_client_reports_the_same_of_both(backend: BackendProcess, tmp_path: Path, client: str) -> None:
    reports, told = {}, {}
    for name in ("real", "fake"):
        root = tmp_path / name
        root.mkdir()
        found, bodies = on_real(client, root, backend) if name == "real" else on_fake(client, root, backend, SCRIPT)
        assert found["version"] == CLIENTS[client]
        reports[name], told[name] = comparable(found, root), (len(bodies), outputs(bodies))
    for (name, _, _, _, text), turn in zip(TURNS, reports["real"]["turns"], strict=True):
        assert turn["text"] == text, name
        assert [kind for kind, _ in turn["asked"]] == ([ASKED[name]] if name in ASKED else []), name
    assert differences(reports["real"], reports["fake"]) == []
    assert told["real"] == told["fake"]
    assert told["fake"][0] == len(SCRIPT)
    assert "21 degrees" in told["fake"][1]["call_tool"]


BROKEN = {"It is changed.": "It is not.", "two words": "three words here", "Zürich": "Basel"}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_fake_that_says_something_else_is_found(backend: BackendProcess, tmp_path: Path, client: str) -> None:
    """The comparison can fail: each change of what the fake says is seen by the turn that it belongs to."""
    reports = []
    text = json.dumps(SCRIPT, ensure_ascii=False)
    for old, new in BROKEN.items():
        text = text.replace(old, new)
    for name, script in (("right", SCRIPT), ("wrong", json.loads(text))):
        root = tmp_path / name
        root.mkdir()
        reports.append(comparable(on_fake(client, root, backend, script)[0], root))
    found = {line.partition(":")[0] for line in differences(*reports)}
    assert found == {"command approved", "patch approved", "dynamic tool"}


def test_what_a_client_cannot_do_is_printed_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is left out in silence; every turn is played by every client, some with help."""
    assert {client for client, _ in EXCEPTIONS} <= set(CLIENTS)
    with capsys.disabled():
        for (client, what), why in EXCEPTIONS.items():
            print(f"\n{client}, {what}: {why}.", end="")
