"""`codex-replay record --upstream` between a WebSocket client and a server of an ordinary library."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner
from websockets.exceptions import ConnectionClosedError, InvalidStatus
from websockets.sync.client import connect
from websockets.sync.server import ServerConnection, serve

from codex_replay.cli.cassette.group import group
from codex_replay.core.cassette.frames import Frame
from codex_replay.shell.cassettes.file import CassetteReader

PROGRAM = [str(Path(sys.executable).with_name("codex-replay")), "record"]
LONG = 10 << 20
TOKEN = "sk-" + "proj-" + "a1B2" * 12


def answer(connection: ServerConnection) -> None:
    for message in connection:
        if message == "ping me":
            connection.ping(b"here").wait(10)
            connection.send("pinged")
        elif message == "close":
            connection.close(1011, "over")
        elif message == "drop":
            connection.socket.close()
            return
        else:
            connection.send(message)


HEAD = (
    b"GET /v1/responses HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    b"sec-websocket-extensions: permessage-deflate\r\n\r\n"
)


@contextmanager
def recording(out: Path, *options: str, upstream: int | None = None) -> Iterator[str]:
    with serve(answer, "127.0.0.1", 0, max_size=None) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = upstream or server.socket.getsockname()[1]
        command = [*PROGRAM, "--out", str(out), "--upstream", f"http://127.0.0.1:{port}", "--codex", "0.169.0", *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            try:
                yield json.loads(process.stdout.readline())["url"].replace("http", "ws")
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(20)
        server.shutdown()


def messages(out: Path) -> list[Frame]:
    with CassetteReader(str(out)) as reader:
        frames = list(reader)
        assert reader.footer is not None
    return [frame for frame in frames if frame.kind in ("ws", "close")]


def said(out: Path) -> list[tuple[str, object]]:
    return [(frame.sender, frame.payload) for frame in messages(out)]


def test_both_sides_see_each_other_and_the_cassette_has_all(tmp_path: Path) -> None:
    out = tmp_path / "run.ndjson"
    with recording(out) as url, connect(f"{url}/v1/responses", max_size=None) as client:
        client.send('{"type":"response.create"}')
        assert client.recv(10) == '{"type":"response.create"}'
        client.send(["a", "bc", "d"])
        assert client.recv(10) == "abcd"
        client.send("ping me")
        assert client.recv(10) == "pinged"
        assert client.ping(b"x").wait(10)
        client.send(b"\x00\xff")
        assert client.recv(10) == b"\x00\xff"
        client.close(1000, "bye")
    kinds = said(out)
    assert kinds[:3] == [("client", {"json": {"type": "response.create"}}), ("server", {"json": {"type": "response.create"}}),
                         ("client", {"text": "abcd"})]  # fmt: skip
    assert ("server", {"ping": "here"}) in kinds
    assert ("client", {"pong": "here"}) in kinds
    assert ("client", {"ping": "x"}) in kinds
    assert ("server", {"base64": "AP8="}) in kinds
    assert kinds[-3:-1] == [
        ("client", {"close": {"code": 1000, "reason": "bye"}}),
        ("server", {"close": {"code": 1000, "reason": "bye"}}),
    ]
    assert kinds[-1][1] == "end"
    frames = messages(out)
    assert frames[2].extra["fragments"] == [1, 2, 1, 0]
    assert all(frame.extra.get("compressed") for frame in frames[:4])
    for verb in ("lint", "show", "stats"):
        assert CliRunner().invoke(group, [verb, str(out)]).exit_code == 0
    shown = CliRunner().invoke(group, ["show", str(out), "--width", "100"]).output
    assert "ws response.create" in shown
    assert "ws close 1000" in shown
    assert "message response.create" in CliRunner().invoke(group, ["stats", str(out)]).output
    assert CliRunner().invoke(group, ["diff", str(out), str(out)]).exit_code == 0


def test_a_message_of_10_mb_passes_in_both_directions(tmp_path: Path) -> None:
    out = tmp_path / "run.ndjson"
    text = json.dumps({"type": "x", "data": "ab" * (LONG // 2)}, separators=(",", ":"))
    with recording(out) as url, connect(f"{url}/v1/responses", max_size=None) as client:
        client.send(text)
        assert client.recv(60) == text
        client.send("after")
        assert client.recv(10) == "after"
    assert [len(str(payload)) > LONG for _, payload in said(out)[:4]] == [True, True, False, False]


def test_close_codes_and_dropped_connections_reach_the_client(tmp_path: Path) -> None:
    out = tmp_path / "run.ndjson"
    with recording(out) as url:
        for word, code in (("close", 1011), ("drop", 1006)):
            with connect(f"{url}/v1/responses") as client:
                client.send(word)
                with pytest.raises(ConnectionClosedError) as found:
                    client.recv(10)
                assert (found.value.rcvd.code if found.value.rcvd else 1006) == code
    ends = [payload for sender, payload in said(out) if isinstance(payload, str)]
    assert ends == ["end", "cut"]


def test_secrets_of_the_handshake_and_of_messages_are_redacted(tmp_path: Path) -> None:
    out = tmp_path / "run.ndjson"
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with recording(out) as url, connect(f"{url}/v1/responses", additional_headers=headers) as client:
        client.send(json.dumps({"type": "response.create", "input": TOKEN}, separators=(",", ":")))
        client.recv(10)
        for part in (TOKEN[:20], TOKEN[20:40], TOKEN[40:]):
            client.send(json.dumps({"type": "response.output_text.delta", "delta": part}, separators=(",", ":")))
            client.recv(10)
        client.send(TOKEN.encode())
        assert client.recv(10) == TOKEN.encode()
    data = out.read_bytes()
    for part in (TOKEN, TOKEN[5:25], TOKEN[20:40]):
        assert part.encode() not in data
    assert CliRunner().invoke(group, ["lint", str(out)]).exit_code == 0


def test_a_long_message_is_left_out_and_reported(tmp_path: Path) -> None:
    out = tmp_path / "run.ndjson"
    with recording(out, "--max-body", "1000") as url, connect(f"{url}/v1/responses") as client:
        client.send("a" * 2000)
        assert len(client.recv(10)) == 2000
        client.send("short")
        assert client.recv(10) == "short"
    kinds = said(out)
    assert "omitted" in kinds[0][1]
    assert kinds[2] == ("client", {"text": "short"})


def test_a_web_page_is_refused_before_the_upgrade(tmp_path: Path) -> None:
    out = tmp_path / "run.ndjson"
    with recording(out) as url, pytest.raises(InvalidStatus, match="403"):
        connect(f"{url}/v1/responses", additional_headers={"Origin": "https://example.com"}).close()
    assert said(out) == []


def test_another_client_is_served_before_long_messages_are_decompressed(tmp_path: Path) -> None:
    """Six connections send 60 MB of zeros each: the request that comes after them reaches the server before the last of them."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = (b"".join(packer.compress(bytes(1 << 20)) for _ in range(60)) + packer.flush(zlib.Z_SYNC_FLUSH))[:-4]
    bomb = b"\xc1\xfe" + len(data).to_bytes(2, "big") + bytes(4) + data
    came: list[str] = []

    def take(sock: socket.socket) -> None:
        with sock, sock.makefile("rb") as file:
            head = [line for line in iter(file.readline, b"\r\n") if line]
            if not head:
                return
            if b" /plain " in head[0]:
                came.append("plain")
                sock.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                return
            sock.sendall(
                b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
                b"sec-websocket-extensions: permessage-deflate\r\n\r\n"
            )
            if file.read(len(bomb)) == bomb:
                came.append("bomb")
                sock.sendall(b"\x88\x00")

    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=take, args=(server.accept()[0],), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        port = server.getsockname()[1]
        with recording(tmp_path / "run.ndjson", upstream=port) as url, ExitStack() as stack:
            parts = urlsplit(url)
            address = (str(parts.hostname), int(parts.port or 0))
            socks = [stack.enter_context(socket.create_connection(address, timeout=60)) for _ in range(6)]
            for sock in socks:
                sock.sendall(HEAD)
                assert b" 101 " in sock.recv(4096)
            for sock in socks:
                sock.sendall(bomb)
            plain = stack.enter_context(socket.create_connection(address, timeout=60))
            plain.sendall(b"GET /plain HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert plain.recv(4096).startswith(b"HTTP/1.1 200")
            assert all(sock.recv(4096) == b"\x88\x00" for sock in socks)
        assert "bomb" in came[came.index("plain") :]
    with CassetteReader(str(tmp_path / "run.ndjson")) as reader:
        frames = [frame.payload for frame in reader if frame.kind == "ws"]
    assert [next(iter(payload)) for payload in frames].count("omitted") == 6
