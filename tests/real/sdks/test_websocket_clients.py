"""Clients of the Responses API over a WebSocket: npm's ws and Python's websockets in plain code, and the openai SDK."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from codex_replay.shell.http.backend_process import BackendProcess
from tests.real.sdks.client_venv import HERE, node_modules, python_with


def command(client: str) -> tuple[list[str], list[str]]:
    """Return the words of a client before and behind its arguments."""
    if client == "ws":
        return ["node", str(HERE / "drivers" / "plain_ws.mjs")], [str(node_modules("ws"))]
    if client == "openai":
        return [python_with("openai-3"), str(HERE / "drivers" / "openai_ws.py")], []
    return [sys.executable, str(HERE / "drivers" / "plain_ws.py")], []


def create(text: str, **more: Any) -> dict[str, Any]:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    return {"type": "response.create", "model": "m", "input": [item], **more}


@pytest.mark.parametrize("client", ["ws", "websockets", "openai"])
def test_a_turn_an_increment_a_prewarm_and_an_error(client: str) -> None:
    messages = [
        create("one", generate=False),
        create("two", previous_response_id="$last"),
        create("three", previous_response_id="$last"),
        create("four", previous_response_id="resp_nowhere"),
        create("five"),
    ]
    before, behind = command(client)
    with BackendProcess() as backend:
        session = backend.session("plain", {"websocket": "on", "turns": ["Hello.", "Again.", "Anew."]})
        url = session.url.replace("http", "ws", 1) + "/v1/responses"
        done = subprocess.run([*before, url, json.dumps(messages), *behind], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        sent = [entry["body"]["input"] for entry in session.ledger() if entry["method"] == "WEBSOCKET"]
    prewarm, first, second, error, third = found["answers"]
    assert (prewarm["text"], first["text"], second["text"], third["text"]) == ("", "Hello.", "Again.", "Anew.")
    assert first["types"][0] == "response.created"
    assert "response.output_text.delta" in first["types"]
    assert error == {"types": ["error"], "status": 400, "code": "previous_response_not_found"}
    assert client == "openai" or (found["code"], found["extensions"]) == (1000, "permessage-deflate")
    said = [[item["content"][0]["text"] for item in each if item["type"] == "message"] for each in sent]
    assert said == [["one"], ["one", "two"], ["one", "two", "Hello.", "three"], ["four"], ["five"]]


def test_the_openai_sdk_sees_that_steering_is_not_supported() -> None:
    """The event is the SDK's own; the connection stays."""
    steer = {"type": "response.steer", "input": "left", "previous_response_id": "$last"}
    before, _ = command("openai")
    with BackendProcess() as backend:
        session = backend.session("steer", {"websocket": "on", "turns": ["Hello.", "Again."]})
        url = session.url.replace("http", "ws", 1) + "/v1/responses"
        messages = json.dumps([create("one"), steer, create("two")])
        done = subprocess.run([*before, url, messages], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    first, failed, second = json.loads(done.stdout)["answers"]
    assert (first["text"], second["text"]) == ("Hello.", "Again.")
    assert failed == {"types": ["response.steer.failed"], "code": "steering_not_supported", "input": "left"}
