"""fake-codex over WebSocket: who gets what, what opens no connection, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect, unix_connect

from tests.support.two_connections import INITIALIZE, MODEL, One, conversation

FAKE = str(Path(sys.executable).with_name("fake-codex"))
VERSION = "0.169.0"
PLAIN: dict[str, Any] = {"compression": None, "close_timeout": 1}


class Running:
    """A listening fake: `url` of its WebSockets; `stop` ends it and returns its exit status and stderr after the banner."""

    def __init__(self, folder: Path, listen: str, program: list[str], env: dict[str, str]) -> None:
        settings = {"PATH": os.environ["PATH"], "HOME": str(folder), "FAKE_CODEX_VERSION": VERSION, **env}
        argv = [*program, "app-server", "--listen", listen]
        self._process = subprocess.Popen(argv, env=settings, cwd=folder, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert self._process.stderr is not None
        self._stderr = self._process.stderr
        if listen.startswith("ws://"):
            self.banner = [self._stderr.readline().decode() for _ in range(5)]
            self.url = self.banner[1].split()[-1]
            self.port = int(self.url.rpartition(":")[2])
        else:
            path = Path(listen.removeprefix("unix://") or f"{env['CODEX_HOME']}/app-server-control/app-server-control.sock")
            while not path.exists() or stat.S_IMODE(path.stat().st_mode) != 0o600:
                assert self._process.poll() is None
                time.sleep(0.01)

    def send_signal(self, number: int = signal.SIGTERM) -> None:
        self._process.send_signal(number)

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        self.send_signal(number)
        return self.ended()

    def ended(self) -> tuple[int, str]:
        text = self._stderr.read().decode()
        return self._process.wait(10), text

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._stderr.close()

    def raw(self, request: str) -> bytes:
        with socket.create_connection(("127.0.0.1", self.port), 10) as client:
            client.sendall(request.replace("\n", "\r\n").encode())
            found = b""
            while data := client.recv(65536):
                found += data
            return found


@contextmanager
def running(folder: Path, listen: str = "ws://127.0.0.1:0", program: list[str] | None = None, **env: str) -> Iterator[Running]:
    server = Running(folder, listen, program or [FAKE], env)
    try:
        yield server
    finally:
        server.close()


def script(folder: Path, *turns: Any) -> str:
    path = folder / "script.json"
    path.write_text(json.dumps({"turns": list(turns)}))
    return str(path)


def refused(folder: Path, listen: str, **env: str) -> subprocess.CompletedProcess[str]:
    settings = {"PATH": os.environ["PATH"], "HOME": str(folder), "FAKE_CODEX_VERSION": VERSION, **env}
    argv = [FAKE, "app-server", "--listen", listen]
    return subprocess.run(argv, env=settings, cwd=folder, capture_output=True, text=True, timeout=30, check=False)


def ready(websocket: ClientConnection) -> One:
    one = One(websocket)
    one.result("initialize", **INITIALIZE)
    one.send({"method": "initialized"})
    one.news()
    return one


def test_two_connections_share_the_threads(tmp_path: Path) -> None:
    """What each of them gets; tests/real has the same conversation with the real server."""
    with running(tmp_path, FAKE_CODEX_SCRIPT=script(tmp_path, *MODEL)) as server:
        steps = {name: (a, b) for name, a, b in conversation(server.url)}
        assert server.stop() == (0, "")
    assert steps["start"] == (["result", "thread/started"], ["thread/started"])
    followed, other = steps["turn of b, which does not follow the thread"]
    assert "item/agentMessage/delta" in followed
    assert other == ["result", "thread/status/changed", "thread/status/changed"]
    assert steps["name"] == (["thread/name/updated"], ["result", "thread/name/updated"])
    for one in steps["approval"]:
        assert "item/commandExecution/requestApproval" in one


def test_a_thread_outlives_its_connection(tmp_path: Path) -> None:
    with running(tmp_path, FAKE_CODEX_SCRIPT=script(tmp_path, "One.", "Two.")) as server:
        with connect(server.url, **PLAIN) as websocket:
            thread = ready(websocket).result("thread/start")["result"]["thread"]["id"]
        with connect(server.url, **PLAIN) as websocket:
            one = ready(websocket)
            one.result("turn/start", threadId=thread, input=[{"type": "text", "text": "Hi"}])
            assert "error" not in one.result("thread/resume", threadId=thread)


def test_the_ids_of_two_clients_do_not_meet(tmp_path: Path) -> None:
    with running(tmp_path) as server, ExitStack() as stack:
        a, b = (ready(stack.enter_context(connect(server.url, **PLAIN))) for _ in "ab")
        for one in (a, b):
            one.send({"id": "same", "method": "thread/loaded/list", "params": {}})
        for one in (a, b):
            assert one.until(lambda message: message.get("id") == "same")["result"] == {"data": [], "nextCursor": None}


def test_what_is_no_message(tmp_path: Path) -> None:
    """Not JSON is reported, a binary message is ignored, and the connection goes on."""
    with running(tmp_path) as server:
        with connect(server.url, **PLAIN) as websocket:
            websocket.send("nonsense")
            websocket.send(b'{"id":1,"method":"thread/loaded/list"}')
            one = One(websocket)
            assert one.result("thread/loaded/list")["error"]["message"] == "Not initialized"
            assert ready(websocket).got == []
        status, text = server.stop()
    assert status == 0
    assert "Failed to deserialize JSONRPCMessage: b'nonsense'" in text


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = refused(tmp_path, f"ws://127.0.0.1:{taken.getsockname()[1]}")
    assert (done.returncode, done.stderr) == (1, "Error: Address in use (os error 98)\n")


def test_a_file_of_the_user_is_kept(tmp_path: Path) -> None:
    """The path of a socket may name another file, a link to nothing, or the socket of a server that runs."""
    notes, link = tmp_path / "notes.txt", tmp_path / "link"
    notes.write_text("precious")
    link.symlink_to(tmp_path / "nothing")
    done = refused(tmp_path, f"unix://{notes}")
    assert (done.returncode, "path exists and is not a socket" in done.stderr) == (1, True)
    assert notes.read_text() == "precious"
    assert refused(tmp_path, f"unix://{link}").stderr == "Error: File exists (os error 17)\n"
    with running(tmp_path, f"unix://{tmp_path / 's'}"):
        assert "is already in use at" in refused(tmp_path, f"unix://{tmp_path / 's'}").stderr
        with unix_connect(str(tmp_path / "s"), "ws://localhost/", **PLAIN) as websocket:
            ready(websocket)


@pytest.mark.parametrize(("size", "starts"), [(107, True), (108, False), (400, False)])
def test_a_path_that_is_too_long_for_a_socket(tmp_path: Path, size: int, starts: bool) -> None:
    """The system takes 107 bytes; the real server binds longer paths too."""
    path = f"/tmp/fake-codex-{os.getpid()}-".ljust(size, "é" if not starts else "x")
    if starts:
        with running(tmp_path, f"unix://{path}") as server:
            assert server.stop() == (0, "")
        return
    done = refused(tmp_path, f"unix://{path}")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert f"the path of the socket has {len(path.encode())} bytes, but fake-codex can use at most 107" in done.stderr


def test_a_turn_without_followers_goes_on(tmp_path: Path) -> None:
    with running(tmp_path, FAKE_CODEX_SCRIPT=script(tmp_path, "One.", "Two.")) as server, ExitStack() as stack:
        a, b = (ready(stack.enter_context(connect(server.url, **PLAIN))) for _ in "ab")
        thread = a.result("thread/start")["result"]["thread"]["id"]
        for status in ("unsubscribed", "notSubscribed"):
            assert a.result("thread/unsubscribe", threadId=thread)["result"] == {"status": status}
        unknown = thread[:-1] + ("0" if thread[-1] != "0" else "1")
        assert a.result("thread/unsubscribe", threadId=unknown)["result"] == {"status": "notLoaded"}
        b.result("turn/start", threadId=thread, input=[{"type": "text", "text": "Hi"}])
        idle = {"threadId": thread, "status": {"type": "idle"}}
        b.until(lambda message: message.get("method") == "thread/status/changed" and message["params"] == idle)
        assert "turn/completed" not in b.news()


def test_who_resumes_a_thread_gets_its_open_request_again(tmp_path: Path) -> None:
    """The client that was asked has left; the one that resumes the thread answers."""
    with running(tmp_path, FAKE_CODEX_SCRIPT=script(tmp_path, MODEL[2], "Declined.")) as server:
        with connect(server.url, **PLAIN) as websocket:
            one = ready(websocket)
            thread = one.result("thread/start", approvalPolicy="on-request")["result"]["thread"]["id"]
            one.ask("turn/start", threadId=thread, input=[{"type": "text", "text": "Hi"}])
            asked = one.until(lambda message: "id" in message and "method" in message)
        with connect(server.url, **PLAIN) as websocket:
            one = ready(websocket)
            assert "error" not in one.result("thread/resume", threadId=thread)
            again = one.until(lambda message: "id" in message and "method" in message)
            assert again == asked
            one.send({"id": again["id"], "result": {"decision": "decline"}})
            one.until(lambda message: message.get("method") == "turn/completed")
        assert server.stop() == (0, "")


UPGRADE = "Connection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n"


@pytest.mark.parametrize(
    ("request_", "status", "body"),
    [
        ("GET /healthz HTTP/1.1\nHost: a\n\n", b"200 OK", b""),
        ("GET /readyz HTTP/1.1\nHost: a\n\n", b"200 OK", b""),
        ("GET /x HTTP/1.1\nHost: a\n\n", b"400 Bad Request", b"Connection header did not include 'upgrade'"),
        ("GET /healthz HTTP/1.1\nHost: a\nOrigin: http://a\n\n", b"403 Forbidden", b""),
        (f"GET / HTTP/1.1\nHost: a\n{UPGRADE}Origin: http://a\n\n", b"403 Forbidden", b""),
    ],
)
def test_requests_that_open_no_connection(tmp_path: Path, request_: str, status: bytes, body: bytes) -> None:
    with running(tmp_path) as server:
        answer = server.raw(request_)
    assert answer.partition(b"\r\n")[0] == b"HTTP/1.1 " + status
    assert answer.partition(b"\r\n\r\n")[2] == body


@pytest.mark.parametrize("pieces", [1, 7, 100])
@pytest.mark.parametrize("ends", [True, False])
def test_frames_that_come_with_the_handshake_are_answered_after_it(tmp_path: Path, pieces: int, ends: bool) -> None:
    asked = b'{"id":1,"method":"thread/loaded/list","params":{}}'
    frames = b"\x89\x82\0\0\0\0hi" + b"\x81" + bytes([128 | len(asked)]) + b"\0\0\0\0" + asked
    data = f"GET / HTTP/1.1\nHost: a\n{UPGRADE}\n".replace("\n", "\r\n").encode() + frames
    with running(tmp_path) as server:
        with socket.create_connection(("127.0.0.1", server.port), 10) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for at in range(pieces):
                client.sendall(data[at * len(data) // pieces : (at + 1) * len(data) // pieces])
            if ends:
                client.shutdown(socket.SHUT_WR)
            found = b""
            while b"Not initialized" not in found and (more := client.recv(65536)):
                found += more
        assert server.stop() == (0, "")
    head, _, rest = found.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 ")
    assert rest.startswith(b"\x8a\x02hi")
    assert b"Not initialized" in rest or ends  # who ends its direction gets no answers


def test_any_path_is_upgraded_without_compression(tmp_path: Path) -> None:
    with running(tmp_path) as server, connect(server.url + "/a/b?c", close_timeout=1) as websocket:
        assert websocket.response is not None
        assert "Sec-WebSocket-Extensions" not in websocket.response.headers
        ready(websocket)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it(tmp_path: Path, number: int) -> None:
    with running(tmp_path) as server, connect(server.url, **PLAIN) as websocket:
        ready(websocket)
        assert server.stop(number) == (0, "")


SLOW: dict[str, Any] = {"items": ["One.", {"type": "wait", "ms": 1000}, "Two."]}


@pytest.mark.parametrize(("turn", "signals", "last"), [
    (SLOW, 1, "turn/completed"),
    (SLOW, 2, "item/agentMessage/delta"),
    (MODEL[2], 2, "item/commandExecution/requestApproval"),
], ids=["one signal", "two signals", "an open request"])  # fmt: skip
def test_a_signal_waits_for_the_running_turn_and_a_second_one_does_not(
    tmp_path: Path, turn: dict[str, Any], signals: int, last: str
) -> None:
    """Meanwhile the server answers, also new clients. The real 0.169.0 does the same; it says turn/completed by chance."""
    with running(tmp_path, FAKE_CODEX_SCRIPT=script(tmp_path, turn)) as server, connect(server.url, **PLAIN) as websocket:
        one = ready(websocket)
        thread = one.result("thread/start", approvalPolicy="on-request")["result"]["thread"]["id"]
        one.ask("turn/start", threadId=thread, input=[{"type": "text", "text": "Hi"}])
        begun = "item/agentMessage/delta" if turn is SLOW else last
        one.until(lambda message: message.get("method") == begun)
        server.send_signal()
        with connect(server.url, **PLAIN) as other:
            assert ready(other).result("thread/loaded/list")["result"]["data"] == [thread]
        kinds = [begun]
        if signals == 2:
            one.news()
            server.send_signal()
        with pytest.raises(ConnectionClosed):
            kinds.extend(json.loads(message).get("method", "") for message in websocket)
        assert kinds[-1] == last
        assert server.ended() == (0, "")


def test_a_unix_socket(tmp_path: Path) -> None:
    """The file is the user's own, takes the place of one that is left, and is removed at the end."""
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with running(tmp_path, f"unix://{path}") as server:
        with unix_connect(str(path), "ws://localhost/", **PLAIN) as websocket:
            ready(websocket)
        assert server.stop()[0] == 0
    assert not path.exists()


def test_a_unix_socket_without_a_path_is_in_the_home_of_codex() -> None:
    """The real 0.169.0 has a link there, to a socket file in a folder for temporary files."""
    with TemporaryDirectory() as home, running(Path(home), "unix://", CODEX_HOME=home) as server:
        path = Path(home, "app-server-control", "app-server-control.sock")
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        with unix_connect(str(path), "ws://localhost/", **PLAIN) as websocket:
            ready(websocket)
        assert server.stop()[0] == 0
        assert not path.exists()


@pytest.mark.parametrize("head", [b"", b"GET / HTTP/1.1\r\nHo"])
def test_a_signal_does_not_wait_for_a_client_that_has_not_asked(tmp_path: Path, head: bytes) -> None:
    """Such as a check whether the port is open. The real 0.169.0 ends at once."""
    with running(tmp_path) as server, socket.create_connection(("127.0.0.1", server.port), 10) as client:
        client.sendall(head)
        server.raw("GET /healthz HTTP/1.1\nHost: x\n\n")  # the server knows the other client by now
        server.send_signal()
        client.settimeout(5)
        with suppress(ConnectionResetError):
            assert client.recv(1) == b""
        assert server.ended() == (0, "")


@pytest.mark.parametrize(
    ("listen", "env", "status", "sentence"),
    [
        ("ws://localhost:1", {}, 2, "invalid websocket --listen URL `ws://localhost:1`; expected `ws://IP:PORT`"),
        ("ws://127.0.0.1:99999", {}, 2, "invalid websocket --listen URL"),
        (
            "tcp://1",
            {},
            2,
            "unsupported --listen URL `tcp://1`; expected `stdio://`, `unix://`,",
        ),
        ("off", {}, 1, "Error: no transport configured; use --listen or enable remote control"),
        ("ws://::1:0", {}, 2, "invalid websocket --listen URL"),
        ("ws://[127.0.0.1]:0", {}, 2, "invalid websocket --listen URL"),
        ("unix://nowhere/s", {}, 1, "Error: No such file or directory (os error 2)"),
        ("ws://0.0.0.0:0", {}, 1, "Error: refusing to start non-loopback websocket listener 0.0.0.0:0 without auth"),
        ("ws://127.0.0.1:0", {"FAKE_CODEX_VERSION": ""}, 2, "error: unexpected argument '--listen' found"),
        ("ws://127.0.0.1:0", {"FAKE_CODEX_VERSION": "0.116.0"}, 2, "There is no turn table for Codex 0.116.0"),
        ("ws://127.0.0.1:0", {"FAKE_CODEX_CASSETTE": "nowhere"}, 2, "nowhere"),
        ("ws://127.0.0.1:0", {"FAKE_CODEX_SCRIPT": "nowhere"}, 2, "nowhere"),
        ("ws://127.0.0.1:0", {"FAKE_CODEX_FAULT": "garbage"}, 2, "FAKE_CODEX_FAULT has no effect with --listen"),
    ],
)
def test_it_does_not_start(tmp_path: Path, listen: str, env: dict[str, str], status: int, sentence: str) -> None:
    done = refused(tmp_path, listen, **env)
    assert (done.returncode, sentence in done.stderr) == (status, True), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("option", [["--listen", "stdio://"], ["--stdio"], ["--enable", "fast_mode"], ["--enable", "undo"]])
def test_later_versions_take_the_options_that_the_default_refuses(tmp_path: Path, option: list[str]) -> None:
    settings = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "FAKE_CODEX_VERSION": VERSION}
    said = json.dumps({"id": 1, "method": "initialize", "params": INITIALIZE}).encode() + b"\n"
    done = subprocess.run([FAKE, "app-server", *option], env=settings, input=said, capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stderr, b"userAgent" in done.stdout) == (0, b"", True)
