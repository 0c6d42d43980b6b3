"""`codex-replay serve` and clients that mean it no good: it goes on serving, and prints nothing that a terminal acts on."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from codex_replay.cli import serve
from codex_replay.shell.http.backend_process import BackendError
from tests.cli.test_serve import COMMAND, ask, serving

SECRET = "sk-live-" + "0123456789abcdef" * 2


def send(url: str, target: str, body: bytes = b"{}", method: str = "POST") -> bytes:
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as sock:
        head = f"{method} {target} HTTP/1.1\r\nhost: {parts.netloc}\r\ncontent-length: {len(body)}\r\n\r\n".encode("latin-1")
        sock.sendall(head + body)
        sock.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := sock.recv(1 << 16):
            answer += piece
    return answer


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 1000 + b"]" * 1000,
        b'{"model":"m","input":' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"a":' * 300 + b"1" + b"}" * 300,
        b'{"model":"\\ud800","input":"x"}',
    ],
    ids=range(4),
)
def test_no_body_ends_it(body: bytes) -> None:
    with serving() as (process, ready):
        assert send(ready["url"], "/v1/responses", body).startswith(b"HTTP/1.1 400 ")
        assert ask(ready["url"])[0] == 200
        assert process.stdout is not None
        lines = [json.loads(process.stdout.readline()) for _ in range(2)]
        assert [line["status"] for line in lines] == [400, 200]
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0


class Failing:
    """A session and its process, whose ledger cannot be read the first times."""

    def __init__(self, alive: bool) -> None:
        self.alive = alive
        self.asked = self.dropped = 0

    def ended(self, *_: Any, **__: Any) -> list[dict[str, Any]]:
        self.asked += 1
        if self.asked < 3:
            raise BackendError("The ledger\x1b[2J failed.")
        raise KeyboardInterrupt

    def running(self) -> bool:
        return self.alive

    def stderr(self) -> str:
        return ""


def test_a_failed_poll_is_a_sentence_and_does_not_end_it(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "PAUSE", 0)
    failing: Any = Failing(alive=True)
    with pytest.raises(KeyboardInterrupt):
        serve._Followed(failing, failing, serve._Stop(), quiet=False, as_json=False).follow("http://127.0.0.1:7")
    assert failing.asked == 4
    assert capfd.readouterr().err.count("codex-replay: The ledger\\x1b[2J failed. The server continues.") == 2


def test_a_poll_that_fails_because_the_backend_has_ended_ends_it() -> None:
    failing: Any = Failing(alive=False)
    with pytest.raises(BackendError):
        serve._Followed(failing, failing, serve._Stop(), quiet=False, as_json=False).follow("http://127.0.0.1:7")


def test_it_prints_the_token_of_the_control_api() -> None:
    with serving() as (_, ready):
        answer = send(ready["url"], "/_codex_replay/health", b"", "GET")
        assert answer.startswith(b"HTTP/1.1 403 ")
        parts = urlsplit(ready["url"])
        with socket.create_connection((parts.hostname, parts.port), timeout=30) as sock:
            head = f"GET /_codex_replay/health HTTP/1.0\r\nhost: {parts.netloc}\r\nX-Codex-Replay-Token: {ready['token']}\r\n\r\n"
            sock.sendall(head.encode())
            assert sock.recv(1 << 16).startswith(b"HTTP/1.1 200 ")


HOSTILE = "/v1/\x1b]0;title\x07/\x9b2J/\xc2\x9b?api_key=" + SECRET


@pytest.mark.parametrize("how", [["--json"], []], ids=["json", "plain"])
def test_a_terminal_is_sent_no_control_character_and_no_secret(how: list[str]) -> None:
    with subprocess.Popen([*COMMAND, *how], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            first = process.stdout.readline().decode()
            url = json.loads(first)["url"] if how else first.split()[-1]
            send(url, HOSTILE)
            send(url, "/v1/responses", b'{"model":"\\u001b[2J\\u009b","input":"x","odd\\u0007":1}')
            evil = b"GET /x HTTP/1.1\r\nhost: evil\xc2\x9b.example\r\n\r\n"
            parts = urlsplit(url)
            with socket.create_connection((parts.hostname, parts.port), timeout=30) as sock:
                sock.sendall(evil)
                assert b" 4" in sock.recv(1 << 16)
            send(url, "/v1/models", b"", "GET")
            printed = b""
            while b"/v1/models" not in printed:
                printed += process.stdout.readline()
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    text = (printed + out + err).decode()
    assert SECRET not in text
    assert not [c for c in text if not c.isprintable() and c != "\n"]
    assert "\\x07" in text or "\\u0007" in text


def test_a_script_in_yaml_that_grows_without_end_is_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    path = tmp_path / "bomb.yaml"
    path.write_text("\n".join(lines))
    done = subprocess.run([*COMMAND, "--script", str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "500,000 values" in done.stderr
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 200 + "]" * 200)
    done = subprocess.run([*COMMAND, "--script", str(deep)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "nested deeper" in done.stderr


def test_a_signal_ends_it_although_nobody_reads_its_output() -> None:
    with serving() as (process, ready):
        for _ in range(8):
            send(ready["url"], "/v1/responses", json.dumps({"input": "x" * 40_000}).encode())
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert process.stderr is not None
        assert b"nobody reads stdout" in process.stderr.read()
