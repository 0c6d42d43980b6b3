"""The recorder in front of the real Codex: a whole turn, each byte compared with what a second, independent tee saw."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codex_replay.cli.record import redactor_for
from codex_replay.shell.cassettes.file import CassetteReader
from codex_replay.shell.codex.cache import find_installed
from codex_replay.shell.codex.home import HermeticHome
from codex_replay.shell.http.backend_process import BackendProcess

VERSION = "0.92.0"
RECORD = [str(Path(sys.executable).with_name("codex-replay")), "record"]
# Stands between the recorder and Codex and knows nothing of lines: argv is the folder for its two files, then the command.
TEE = """
import os, subprocess, sys, threading
child = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
def pump(source, sink, name):
    with open(os.path.join(sys.argv[1], name), "wb", 0) as copy:
        while data := os.read(source, 65536):
            copy.write(data)
            while data:
                data = data[os.write(sink, data):]
def up():
    pump(0, child.stdin.fileno(), "up")
    child.stdin.close()
threading.Thread(target=up, daemon=True).start()
pump(child.stdout.fileno(), 1, "down")
os._exit(child.wait())
"""


class Client:
    """A plain client that keeps every byte of both directions."""

    def __init__(self, command: list[str], home: HermeticHome) -> None:
        self.sent = self.received = b""
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=home.env, cwd=home.work
        )

    def send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode() + b"\n"
        self.sent += data
        assert self.process.stdin
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def until(self, method: str = "", reply: int | None = None) -> dict[str, Any]:
        assert self.process.stdout
        for line in self.process.stdout:
            self.received += line
            message: dict[str, Any] = json.loads(line)
            if message.get("method") == method or (reply is not None and message.get("id") == reply and "method" not in message):
                return message
        raise AssertionError(f"the server ended before {method or reply}")

    def ask(self, number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.send({"id": number, "method": method, "params": params})
        result: dict[str, Any] = self.until(reply=number)["result"]
        return result

    def finish(self) -> int:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.received += self.process.stdout.read()
        return self.process.wait(20)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe
            pipe.close()


@pytest.fixture(scope="module")
def codex() -> str:
    binary = find_installed(VERSION)
    assert binary is not None, f"Codex {VERSION} is missing: run `codex-replay codex install {VERSION}` first"
    return str(binary)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[HermeticHome]:
    with BackendProcess() as backend:
        yield HermeticHome(tmp_path / "codex", backend.session("recorded").url)


def turns(client: Client) -> None:
    """A v2 turn and a v1 turn, both to their end."""
    client.ask(1, "initialize", {"clientInfo": {"name": "test", "title": "Test", "version": "1"}})
    client.send({"method": "initialized"})
    thread = client.ask(2, "thread/start", {})["thread"]["id"]
    client.ask(3, "turn/start", {"threadId": thread, "input": [{"type": "text", "text": "Grüße"}]})
    client.until("turn/completed")
    conversation = client.ask(4, "newConversation", {})["conversationId"]
    client.ask(5, "addConversationListener", {"conversationId": conversation})
    client.ask(6, "sendUserMessage", {"conversationId": conversation, "items": [{"type": "text", "data": {"text": "hi"}}]})
    client.until("codex/event/task_complete")


def test_whole_turns_pass_and_are_recorded_byte_for_byte(
    codex: str, home: HermeticHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cassette, seen = tmp_path / "run.ndjson", tmp_path / "seen"
    seen.mkdir()
    second_tee = [sys.executable, "-c", TEE, str(seen)]
    with Client([*RECORD, "--out", str(cassette), "--codex", VERSION, "--", *second_tee, codex, "app-server"], home) as client:
        turns(client)
        assert client.finish() == 0
        up, down = (seen / "up").read_bytes(), (seen / "down").read_bytes()
        assert client.sent == up
        assert client.received == down
    # In the cassette the same lines stand, their secrets and this machine's paths spliced out, and nothing else changed.
    monkeypatch.setenv("HOME", home.env["HOME"])
    clean = redactor_for(str(home.work)).redact
    with CassetteReader(cassette) as reader:
        frames = list(reader)
        assert reader.truncated is None
        assert (reader.header.codex, reader.header.bundle[:7]) == (VERSION, "sha256:")
    for sender, bytes_seen in (("client", up), ("server", down)):
        lines = bytes_seen.splitlines(keepends=True)
        recorded = [frame.raw for frame in frames if frame.sender == sender]
        assert recorded == [clean(line) for line in lines]
        assert sum(a == b for a, b in zip(recorded, lines, strict=True)) > len(lines) / 2
    for folder in (home.home, home.work):
        assert str(folder).encode() not in cassette.read_bytes()
    assert down.count(b'"method":"turn/completed"') == 2


def test_the_version_is_found_beside_the_binary(codex: str, home: HermeticHome, tmp_path: Path) -> None:
    with Client([*RECORD, "--out", str(tmp_path / "run.ndjson"), "--", codex, "app-server"], home) as client:
        client.ask(1, "initialize", {"clientInfo": {"name": "test", "title": "Test", "version": "1"}})
        assert client.finish() == 0
    with CassetteReader(tmp_path / "run.ndjson") as reader:
        assert reader.header.codex == VERSION


def test_codex_dies_by_a_signal_behind_the_recorder_as_it_does_alone(codex: str, home: HermeticHome, tmp_path: Path) -> None:
    direct = [codex, "app-server"]
    statuses = []
    for command in (direct, [*RECORD, "--out", str(tmp_path / "run.ndjson"), "--", *direct]):
        with Client(command, home) as client:
            client.ask(1, "initialize", {"clientInfo": {"name": "test", "title": "Test", "version": "1"}})
            client.process.send_signal(signal.SIGTERM)
            statuses.append(client.process.wait(20))
    assert statuses == [-signal.SIGTERM] * 2


def test_codex_does_not_outlive_a_killed_recorder(codex: str, home: HermeticHome, tmp_path: Path) -> None:
    """The pipe's writing end is held by the recorder and by Codex alone."""
    read, write = os.pipe()
    os.set_inheritable(write, True)
    command = [*RECORD, "--out", str(tmp_path / "run.ndjson"), "--", codex, "app-server"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=home.env, cwd=home.work, pass_fds=[write], bufsize=0
    )
    os.close(write)
    with process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(b'{"id":1,"method":"initialize","params":{"clientInfo":{"name":"t","title":"T","version":"1"}}}\n')
        assert b"userAgent" in process.stdout.readline()
        process.kill()
        assert os.read(read, 1) == b""
    os.close(read)


def test_both_seams_of_a_real_turn_stand_in_one_cassette(codex: str, home: HermeticHome, tmp_path: Path) -> None:
    """Codex asks the recorder, the recorder the backend: the request stands after what caused it, the item after its event."""
    cassette = tmp_path / "run.ndjson"
    record = [*RECORD, "--out", str(cassette), "--upstream", home.upstream, "--origin", "http.server=authored", "--", codex]
    over = ["-c", 'model_providers.mock.base_url="{listen}/v1"', "-c", 'chatgpt_base_url="{listen}/backend-api/"']
    home.env["OPENAI_BASE_URL"] = "{listen}/v1"
    with Client([*record, "app-server", *over], home) as client:
        turns(client)
        assert client.finish() == 0
        assert client.process.stderr
        assert b"codex-replay" not in client.process.stderr.read()
    with CassetteReader(cassette) as reader:
        frames = list(reader)
        assert reader.footer is not None
        assert reader.header.origin == {"rpc": "recorded", "http.client": "recorded", "http.server": "authored"}
    rpc = b"".join(frame.raw for frame in frames if frame.sender == "server" and frame.seam == "rpc")
    assert len(rpc.splitlines()) == len(client.received.splitlines())
    asked = [frame.n for frame in frames if frame.kind == "request" and frame.payload["path"].startswith("/v1/responses")]
    started = [
        frame.n for frame in frames if frame.seam == "rpc" and frame.value.get("method") in ("turn/start", "sendUserMessage")
    ]
    done = [frame.n for frame in frames if frame.kind == "sse" and frame.payload.get("event") == "response.completed"]
    told = [frame.n for frame in frames if frame.seam == "rpc" and frame.value.get("method") == "turn/completed"]
    assert len(asked) == len(started) == len(done) == len(told) == 2
    for steps in zip(started, asked, done, told, strict=True):
        assert list(steps) == sorted(steps)
    body = next(frame.payload for frame in frames if frame.n == asked[0])["body"]
    assert list(body)[:3] == ["model", "instructions", "input"]
    assert all(frame.payload == "end" for frame in frames if frame.kind == "close")


@pytest.mark.parametrize("version", [VERSION, "0.169.0"])
def test_a_scripted_model_is_recorded_in_one_command(version: str, tmp_path: Path) -> None:
    script, cassette = tmp_path / "model.json", tmp_path / "run.ndjson"
    script.write_text('["Hello from the script.", "never asked"]')
    mine: Any = SimpleNamespace(env={**os.environ, "CODEX_HOME": str(tmp_path / "mine")}, work=tmp_path)
    with Client([*RECORD, "--model", str(script), "--out", str(cassette), "--", f"codex@{version}"], mine) as client:
        client.ask(1, "initialize", {"clientInfo": {"name": "test", "title": "Test", "version": "1"}})
        client.send({"method": "initialized"})
        thread = client.ask(2, "thread/start", {})["thread"]["id"]
        client.ask(3, "turn/start", {"threadId": thread, "input": [{"type": "text", "text": "Grüße"}]})
        client.until("turn/completed")
        assert client.finish() == 0
        assert client.process.stderr
        assert b"No request used turns[1] of the script." in client.process.stderr.read()
    assert "Hello from the script." in client.received.decode()
    assert not (tmp_path / "mine").exists(), "the home of the user is left alone"
    with CassetteReader(cassette) as reader:
        frames = list(reader)
        assert reader.truncated is None
        header = reader.header
    assert (header.codex, header.origin["http.server"]) == (version, "authored")
    assert header.extra["upstream"]["script"] == ["Hello from the script.", "never asked"]
    posts = [f for f in frames if f.seam == "http" and f.kind == "request" and f.payload["method"] == "POST"]
    assert [frame.payload["path"] for frame in posts] == ["/v1/responses"]
    assert b"codex-replay-" not in cassette.read_bytes(), "no folder of this run stays in the recording"
    if version != VERSION:
        return  # there is no table of what differs between two runs of it
    again = subprocess.run(
        [RECORD[0], "replay", str(cassette), "--app-server", f"codex@{version}", "--commands-ok"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
    )
    assert again.returncode == 0, again.stdout + again.stderr


@pytest.mark.parametrize(
    ("version", "wrong", "tool"), [(VERSION, "exec_command", "shell_command"), ("0.169.0", "shell_command", "exec_command")]
)
def test_a_call_of_a_tool_that_the_version_does_not_have_is_reported(version: str, wrong: str, tool: str, tmp_path: Path) -> None:
    script = tmp_path / "model.json"
    script.write_text(json.dumps([{"items": [{"type": "function_call", "name": wrong, "arguments": "{}"}]}, "Done."]))
    mine: Any = SimpleNamespace(env=dict(os.environ), work=tmp_path)
    with Client([*RECORD, "--model", str(script), "--out", "run.ndjson", "--", f"codex@{version}"], mine) as client:
        client.ask(1, "initialize", {"clientInfo": {"name": "test", "title": "Test", "version": "1"}})
        client.send({"method": "initialized"})
        thread = client.ask(2, "thread/start", {})["thread"]["id"]
        client.ask(3, "turn/start", {"threadId": thread, "input": [{"type": "text", "text": "Go."}]})
        client.until("turn/completed")
        assert client.finish() == 0
        assert client.process.stderr
        errors = client.process.stderr.read().decode()
    [line] = [line for line in errors.splitlines() if line.startswith("codex-replay record:")]
    assert f"The script calls the tool {wrong}, which Codex {version} does not have. Its tools are: " in line
    assert tool in line
