"""The WebSocket of the fake backend: handshake, requests, increments, faults and limits, with an ordinary client library."""

from __future__ import annotations

import json
import re
import resource
import select
import socket
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed, ConnectionClosedError, InvalidMessage, InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.sync.client import ClientConnection, connect

from codex_fakes.model.faults import WEBSOCKET_FAULTS
from codex_replay.shell.http.backend_process import BackendError, BackendProcess, BackendSession
from tests.fakes.backend.test_backend import ask, code_of, text_of

CALL = {"type": "function_call", "name": "look", "arguments": "{}", "call_id": "call_1"}


@pytest.fixture(scope="module")
def backend() -> Iterator[BackendProcess]:
    with BackendProcess() as process:
        yield process


def opened(session: BackendSession, **more: Any) -> ClientConnection:
    return connect(session.url.replace("http", "ws", 1) + "/v1/responses", **{"max_size": None, **more})


def request(**more: Any) -> str:
    return json.dumps({"type": "response.create", "model": "m", "input": [user("hi")], "store": False, **more})


def user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def reply(client: ClientConnection) -> list[dict[str, Any]]:
    found = []
    while not found or found[-1]["type"] not in ("response.completed", "response.failed", "response.incomplete", "error"):
        found.append(json.loads(client.recv(10)))
    return found


def asked(client: ClientConnection, **more: Any) -> dict[str, Any]:
    client.send(request(**more))
    return reply(client)[-1]


def text(event: dict[str, Any]) -> str:
    return str(event["response"]["output"][-1]["content"][0]["text"])


def test_without_the_key_an_upgrade_is_426_as_before(backend: BackendProcess) -> None:
    with pytest.raises(InvalidStatus, match="426"):
        opened(backend.session("off", ["a"]))


@pytest.mark.parametrize("compression", ["deflate", None])
def test_the_events_of_both_transports_are_the_same(backend: BackendProcess, compression: str | None) -> None:
    session = backend.session("same", {"websocket": "on", "defaults": {"times": "always"}, "turns": ["Hello é"]})
    with opened(session, compression=compression) as client:
        assert client.response is not None
        assert ("Sec-WebSocket-Extensions" in client.response.headers) == (compression is not None)
        client.send(request())
        over_ws = reply(client)
    over_http = ask(session.url + "/v1/responses", {**json.loads(request()), "stream": True} | {"type": None})
    assert code_of(over_http) == "unknown_parameter"  # `type` is of a WebSocket message alone
    body = {key: value for key, value in json.loads(request()).items() if key != "type"}
    over_http = ask(session.url + "/v1/responses", {**body, "stream": True})
    events = [json.loads(line[6:]) for line in over_http[2].splitlines() if line.startswith(b"data: ")]
    assert [event["type"] for event in over_ws] == [event["type"] for event in events]
    assert text(over_ws[-1]) == text_of(over_http) == "Hello é"


def test_prewarm_increments_and_the_full_request_in_the_ledger(backend: BackendProcess) -> None:
    session = backend.session("increments", {"websocket": "on", "turns": [{"items": [CALL]}, "done", "again"]})
    with opened(session) as client:
        warm = asked(client, input=[], instructions="be kind", generate=False)["response"]
        assert warm["output"] == []
        first = asked(client, previous_response_id=warm["id"], instructions="be kind")["response"]
        output = {"type": "function_call_output", "call_id": "call_1", "output": "42"}
        second = asked(client, previous_response_id=first["id"], input=[output])
        assert text(second) == "done"
        lost = asked(client, previous_response_id=first["id"], input=[output])
        assert (lost["status"], lost["error"]["code"]) == (400, "previous_response_not_found")
        gone = asked(client, previous_response_id=second["response"]["id"])
        assert gone["error"]["code"] == "previous_response_not_found"  # a failed request forgets what it may have continued
        assert text(asked(client)) == "again"
    entries = session.ledger()
    assert [(e["method"], e["answer"], e["status"]) for e in entries] == [
        ("GET", "route", 101),
        ("WEBSOCKET", "prewarm", 200),
        ("WEBSOCKET", "turn", 200),
        ("WEBSOCKET", "turn", 200),
        ("WEBSOCKET", "rule", 400),
        ("WEBSOCKET", "rule", 400),
        ("WEBSOCKET", "turn", 200),
    ]
    full = entries[3]["body"]
    assert [item["type"] for item in full["input"]] == ["message", "function_call", "function_call_output"]
    assert "previous_response_id" not in full
    assert entries[3]["websocket"] == {"generate": True, "previous_response_id": first["id"], "sent_items": 1}


def test_long_messages_share_their_items_and_change_none(backend: BackendProcess) -> None:
    """Messages in full and increments alternate; each full request is in the ledger as the client sent it or as it stands for."""
    session = backend.session("long", {"websocket": "on", "turns": [{"items": ["done"], "times": "always"}]})
    long, tools = user("a long text " * 400), [{"type": "function", "name": "add"}]
    expected = []
    with opened(session) as client:
        for number in range(6):
            sent = [long, *(user(f"{i}") for i in range(number))]
            first = asked(client, input=sent, tools=tools)["response"]
            answer = asked(client, input=[long, user("more")], tools=tools, previous_response_id=first["id"])
            assert text(answer) == "done"
            expected += [sent, [*sent, first["output"][0], long, user("more")]]
    found = [entry["body"]["input"] for entry in session.ledger()[1:]]
    assert [[item["content"][0]["text"] for item in each] for each in found] == [
        [item["content"][0]["text"] for item in each] for each in expected
    ]


def test_long_messages_of_codex_are_in_the_ledger_without_their_type(backend: BackendProcess) -> None:
    """Codex sends `type` first, no blanks, and `stream`; the ledger keeps such messages in parts that they share."""
    session = backend.session("codex", {"websocket": "on", "turns": [{"items": ["done"], "times": "always"}]})
    body = {"model": "m", "instructions": "long " * 2000, "input": [user("long " * 2000)], "tools": [], "stream": True}
    with opened(session) as client:
        for number in range(3):
            body["input"] = [*body["input"], user(f"{number}")]
            client.send(json.dumps({"type": "response.create", **body}, separators=(",", ":")))
            assert text(reply(client)[-1]) == "done"
            assert session.ledger()[-1]["body"] == body


def test_rules_hold_for_what_an_increment_stands_for(backend: BackendProcess) -> None:
    session = backend.session("rules", {"websocket": "on", "turns": ["one", "two"]})
    with opened(session) as client:
        first = asked(client)["response"]["id"]
        wrong = {"type": "function_call_output", "call_id": "call_9", "output": ""}
        assert asked(client, previous_response_id=first, input=[wrong])["error"]["code"] == "call_not_found"
        for message in ("not JSON", "[]", '{"type":"response.cancel"}'):
            client.send(message)
            assert reply(client)[-1]["status"] == 400
    assert session.unused_turns() == [1]


def test_only_refuses_http(backend: BackendProcess) -> None:
    session = backend.session("only", {"websocket": "only", "turns": ["a"]})
    assert ask(session.url + "/v1/responses", {"model": "m", "input": "x"})[0] == 426
    with opened(session) as client:
        assert text(asked(client)) == "a"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"sec-websocket-key": "short"}, 400),
        ({"sec-websocket-version": "8"}, 400),
        ({"connection": "keep-alive"}, None),
        ({"host": "evil.example"}, 403),
        ({"origin": "https://evil.example"}, 403),
    ],
)
def test_a_handshake_that_is_wrong_or_of_a_web_page_is_refused(
    backend: BackendProcess, headers: dict[str, str], status: int | None
) -> None:
    session = backend.session("handshake", {"websocket": "on", "turns": ["a"]})
    good = {
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
        "sec-websocket-version": "13",
    }
    found = ask(session.url + "/v1/responses", method="GET", headers=good | headers)[0]
    assert found == status or (status is None and found in (400, 405))


def test_handshakes_fail_as_the_script_says(backend: BackendProcess) -> None:
    script = {"websocket": {"handshakes": ["http_500", "closed", "reset", "ok", "http_401"]}, "turns": ["a"]}
    session = backend.session("faults", script)
    with pytest.raises(InvalidStatus, match="500"):
        opened(session)
    for _ in range(2):
        with pytest.raises((InvalidMessage, ConnectionError, EOFError)):
            opened(session)
    with opened(session):
        pass
    with pytest.raises(InvalidStatus, match="401"):
        opened(session)
    with opened(session):
        pass
    always = backend.session("always", {"websocket": {"handshakes": "http_426"}})
    for _ in range(3):
        with pytest.raises(InvalidStatus, match="426"):
            opened(always)
    with pytest.raises(BackendError, match="handshakes must be"):
        backend.session("x", {"websocket": {"handshakes": "http_999"}})
    with pytest.raises(BackendError, match="not a key of websocket"):
        backend.session("x", {"websocket": {"handshake": "ok"}})


def test_settings_of_the_handshake(backend: BackendProcess) -> None:
    given = {"compression": False, "headers": {"openai-model": "other"}, "prewarm": {"status": 500, "error": {"code": "no"}}}
    with opened(backend.session("settings", {"websocket": given, "turns": ["a"]})) as client:
        assert client.response is not None
        assert client.response.headers["openai-model"] == "other"
        assert "Sec-WebSocket-Extensions" not in client.response.headers
        assert asked(client, generate=False)["status"] == 500
        assert text(asked(client)) == "a"


def test_tokens_are_checked_at_the_handshake(backend: BackendProcess) -> None:
    session = backend.session("auth", {"websocket": "on", "auth": "api_key", "turns": ["a"]})
    with pytest.raises(InvalidStatus, match="401"):
        opened(session)


FAULTS: dict[str, Any] = {
    "ws_close_1000": 1000,
    "ws_close_1008": 1008,
    "ws_close_1011": 1011,
    "cut": 1006,
    "reset": 1006,
    "refused": 1006,
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_that_end_the_connection(backend: BackendProcess, name: str) -> None:
    fault = {"name": name} if name == "refused" else {"name": name, "seed": 3}
    session = backend.session("end", {"websocket": "on", "turns": [{"items": ["a"], "fault": fault}, "b"]})
    with opened(session) as client, pytest.raises(ConnectionClosed) as found:
        asked(client)
    assert (found.value.rcvd.code if found.value.rcvd else 1006) == FAULTS[name]
    with opened(session) as client:
        assert text(asked(client)) == "b"
    assert session.ledger()[1]["end"] in ("cut", "reset")


def test_faults_of_single_messages(backend: BackendProcess) -> None:
    names = ["ws_binary", "ws_bad_json", "unknown_event", "ws_connection_limit", "ws_previous_response_not_found", "http_429"]
    turns = [{"items": ["a"], "fault": name} for name in names]
    session = backend.session("messages", {"websocket": "on", "turns": turns})
    kinds: dict[str, Any] = {}
    for name in names:
        with opened(session) as client:
            client.send(request())
            found: list[Any] = []
            while not any(b'"response.completed"' in one or b'"type":"error"' in one for one in found):
                message = client.recv(10)
                found.append(message.encode() if isinstance(message, str) else b"\0")
            kinds[name] = found
    assert b"\0" in kinds["ws_binary"]
    assert b"this is not JSON" in kinds["ws_bad_json"]
    assert any(b"codex_replay.unknown" in one for one in kinds["unknown_event"])
    assert b"websocket_connection_limit_reached" in kinds["ws_connection_limit"][-1]
    assert b"previous_response_not_found" in kinds["ws_previous_response_not_found"][-1]
    assert json.loads(kinds["http_429"][-1])["status"] == 429


def test_broken_compression_makes_the_client_fail(backend: BackendProcess) -> None:
    session = backend.session("deflate", {"websocket": "on", "turns": [{"items": ["a"], "fault": "ws_bad_deflate"}]})
    with opened(session) as client, pytest.raises(ConnectionClosedError) as found:
        asked(client)
    assert found.value.sent is not None
    assert found.value.sent.code in (1002, 1007)


def test_over_http_a_fault_of_a_websocket_is_refused(backend: BackendProcess) -> None:
    for name in WEBSOCKET_FAULTS:
        session = backend.session("http", [{"items": ["a"], "fault": name}])
        found = ask(session.url + "/v1/responses", {"model": "m", "input": "x", "stream": True, "store": False})
        assert found[0] == 501
        assert name in session.problems()[0]


def test_pings_are_answered_in_the_middle_of_a_response(backend: BackendProcess) -> None:
    items = ["a", {"type": "gate", "name": "g"}, "b"]
    session = backend.session("ping", {"websocket": "on", "turns": [{"items": items}]})
    with opened(session) as client:
        client.send(request())
        assert session.wait_at_gate("g")
        assert client.ping(b"x").wait(10)
        session.release("g")
        assert text(reply(client)[-1]) == "b"
        client.close(1000, "bye")
    assert session.ledger()[1]["end"] == "end"


def test_a_client_that_drops_the_connection_is_gone_in_the_ledger(backend: BackendProcess) -> None:
    session = backend.session("gone", {"websocket": "on", "turns": [{"items": [{"type": "gate", "name": "g"}, "a"]}]})
    with opened(session) as client:
        client.send(request())
        assert session.wait_at_gate("g")
        client.socket.shutdown(socket.SHUT_RDWR)
        assert session.ledger(2)[1]["end"] == "gone"


@pytest.mark.parametrize("given", ["left", None, [5]])
def test_steering_is_refused_with_its_input(backend: BackendProcess, given: object) -> None:
    session = backend.session("steer", {"websocket": "on", "turns": ["a"]})
    with opened(session) as client:
        client.send(json.dumps({"type": "response.steer", "input": given, "previous_response_id": "resp_1"}))
        failed = json.loads(client.recv(10))
        assert asked(client)["type"] == "response.completed"
    assert (failed["type"], failed["error"]["code"]) == ("response.steer.failed", "steering_not_supported")
    assert failed["steer"] == {"previous_response_id": "resp_1", "input": given}
    assert session.ledger()[1]["sentence"].startswith("steering: ")


def test_the_pings_of_a_client_that_does_not_read_wait(backend: BackendProcess) -> None:
    """Otherwise their pongs fill the memory of the backend."""
    most, ping, size = 150_000_000, Frame(Opcode.PING, b"x" * 125).serialize(mask=True), 0
    with closing(raw(backend.session("flood", {"websocket": "on", "turns": ["a"]}))) as sock:
        sock.settimeout(2)
        with suppress(TimeoutError):
            while size < most:
                size += sock.send(memoryview(ping * 1000)[size % len(ping) :])
        assert size < most
        sock.settimeout(20)
        wanted = size // len(ping) * 127
        while wanted > 0:
            wanted -= len(sock.recv(1 << 16))
    assert wanted == 0


def raw(session: BackendSession, more: str = "") -> socket.socket:
    parts = urlsplit(session.url)
    sock = socket.create_connection((parts.hostname, parts.port), timeout=20)
    sock.sendall(
        f"GET {parts.path}/v1/responses HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        f"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n{more}\r\n".encode()
    )
    while b"\r\n\r\n" not in sock.recv(4096):
        pass
    return sock


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x83\x80\0\0\0\0", 1002),
        (b"\x81\x00", 1002),
        (b"\x81\x81\0\0\0\0\xff", 1007),
        (b"\x82\x81\0\0\0\0\xff", 1003),
        (b"\x88\x83\0\0\0\0\x03\xe8\xff", 1007),
        (b"\x88\x82\0\0\0\0\x03\xe8", 1000),
        (b"\x88\x82\0\0\0\0\x03\xe8" + b"\x89\x80\0\0\0\0", 1000),  # a ping after the close frame
        (b"\x88\x82\0\0\0\0\x03\xe8" + b"\x83\x80\0\0\0\0", 1000),  # a broken frame after the close frame
    ],
)
def test_broken_frames_end_the_connection_with_their_code(backend: BackendProcess, data: bytes, code: int) -> None:
    session = backend.session("broken", {"websocket": "on", "turns": ["a"]})
    with closing(raw(session)) as sock:
        sock.sendall(data)
        found = b""
        while piece := sock.recv(4096):
            found += piece
    assert found[0] == 0x88
    assert int.from_bytes(found[2:4], "big") == code


def test_limits_of_messages_and_of_idle_connections() -> None:
    with BackendProcess(options=["--max-body=1000", "--idle-seconds=1"]) as backend:
        session = backend.session("limits", {"websocket": "on", "turns": ["a"]})
        with opened(session) as client:
            client.send("a" * 2000)
            with pytest.raises(ConnectionClosedError) as found:
                client.recv(10)
            assert found.value.rcvd is not None
            assert found.value.rcvd.code == 1009
        with opened(session) as client:
            first = asked(client, input=[user("a" * 300)])["response"]["id"]
            assert asked(client, previous_response_id=first, input=[user("b" * 500)])["status"] == 413
        begun = time.monotonic()
        with closing(raw(session)) as sock:
            sock.sendall(b"\x81\xfe\x00")
            assert sock.recv(4096)[:1] == b"\x88"  # a close frame
        assert time.monotonic() - begun < 15


def test_the_ledger_keeps_the_text_of_messages_and_not_their_decoded_form() -> None:
    """Decoded, they take about six times as much, and no limit counts it."""
    with BackendProcess(options=["--ledger-bytes=20000000"]) as backend:
        session = backend.session("kept", {"websocket": "on", "defaults": {"times": "always"}, "turns": ["a"]})
        items = [user("a") for _ in range(3000)]
        with opened(session, compression=None) as client:
            asked(client, input=items)
            before = resident(backend.pid)
            for _ in range(100):
                asked(client, input=items, store=False)
        assert resident(backend.pid) - before < 40e6


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


@cache
def bomb() -> bytes:
    """Return a message of 60 MB of zeros in 58 KB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = (b"".join(packer.compress(bytes(1 << 20)) for _ in range(60)) + packer.flush(zlib.Z_SYNC_FLUSH))[:-4]
    return b"\xc1\xfe" + len(data).to_bytes(2, "big") + bytes(4) + data


def inflated(data: bytes) -> bytes:
    """Return the content of the first message, which is compressed and shorter than 64 KB."""
    size, at = (data[1], 2) if data[1] < 126 else (int.from_bytes(data[2:4], "big"), 4)
    return zlib.decompressobj(-15).decompress(data[at : at + size])


def test_many_bombs_in_one_read_do_not_fill_the_memory() -> None:
    with BackendProcess() as backend:
        session = backend.session("bombs", {"websocket": "on", "defaults": {"times": "always"}, "turns": ["a"]})
        with closing(raw(session, "Sec-WebSocket-Extensions: permessage-deflate\r\n")) as sock:
            sock.sendall(bomb() * 16 + b"\x89\x87\0\0\0\0the end")
            sock.settimeout(60)
            sent = b""
            while b"\x8a\x07the end" not in sent:
                piece = sock.recv(1 << 16)
                assert piece, sent[-200:]
                sent += piece
        peak = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{backend.pid}/status").read_text())
        assert peak is not None
        assert int(peak[1]) < 300_000


def test_a_ping_after_a_long_message_is_answered_before_the_message_is() -> None:
    with BackendProcess() as backend:
        session = backend.session("ping", {"websocket": "on", "turns": [{"items": [{"type": "gate", "name": "g"}, "a"]}]})
        with opened(session, compression=None) as client:
            client.send(request(input=[user("x" * 3_000_000)]))
            assert session.wait_at_gate("g")
            assert client.ping().wait(20)
            session.release("g")
            assert reply(client)[-1]["type"] == "response.completed"


def test_another_client_is_answered_before_long_messages_are_decompressed() -> None:
    with BackendProcess() as backend, ExitStack() as stack:
        session = backend.session("bombs", {"websocket": "on", "defaults": {"times": "always"}, "turns": ["a"]})
        deflate = "Sec-WebSocket-Extensions: permessage-deflate\r\n"
        socks = [stack.enter_context(closing(raw(session, deflate))) for _ in range(6)]
        for sock in socks:
            sock.sendall(bomb())
        assert ask(session.url + "/v1/models", method="GET")[0] == 200
        assert select.select(socks[-1:], [], [], 0)[0] == []
        socks[-1].settimeout(60)
        assert b"invalid_json" in inflated(socks[-1].recv(4096))


def test_incomplete_messages_of_all_clients_together_are_bounded() -> None:
    """Each connection sends 60 MB of a message that never ends; no connection alone is over a limit."""
    with BackendProcess() as backend, ExitStack() as stack:
        session = backend.session("open", {"websocket": "on", "turns": ["a"]})
        deflate = "Sec-WebSocket-Extensions: permessage-deflate\r\n"
        socks = [stack.enter_context(closing(raw(session, deflate))) for _ in range(5)]
        for sock in socks:
            sock.sendall(b"\x41" + bomb()[1:])
        ended = select.select(socks, [], [], 60)[0]
        assert [sock.recv(4096)[2:4] for sock in ended] == [(1013).to_bytes(2, "big")]


def test_a_message_is_refused_before_its_end_if_it_is_too_long(backend: BackendProcess) -> None:
    session = backend.session("endless", {"websocket": "on", "turns": ["a"]})
    with closing(raw(session)) as sock:
        sock.sendall(b"\x81\xff" + (1 << 62).to_bytes(8, "big") + bytes(4))
        sock.settimeout(20)
        assert sock.recv(4096)[2:4] == (1009).to_bytes(2, "big")


def test_a_close_frame_in_the_middle_of_an_answer_is_answered_at_once(backend: BackendProcess) -> None:
    """A client library waits for the close frame of the server (10 s in `websockets`), and reads no answer meanwhile."""
    items = ["a", {"type": "gate", "name": "g"}, "b"]
    session = backend.session("polite", {"websocket": "on", "turns": [{"items": items}]})
    with closing(raw(session)) as sock:
        sock.settimeout(20)
        sock.sendall(Frame(Opcode.TEXT, request().encode()).serialize(mask=True))
        assert session.wait_at_gate("g")
        sock.sendall(b"\x88\x82\0\0\0\0\x03\xe8")
        found = b""
        while piece := sock.recv(4096):
            found += piece
        assert found[-4:] == b"\x88\x02\x03\xe8"
        assert b"response.completed" not in found
    assert session.ledger(2)[1]["end"] == "gone"


def test_a_client_that_still_sends_gets_the_close_frame(backend: BackendProcess) -> None:
    """A connection that is closed with unread bytes is reset, and the client loses the close frame."""
    session = backend.session("late", {"websocket": "on", "turns": ["a"]})
    with closing(raw(session)) as sock:
        sock.settimeout(20)
        sock.sendall(b"\x83\x80\0\0\0\0" + bytes(8 << 20))
        found = b""
        while piece := sock.recv(4096):
            found += piece
        assert found[2:4] == (1002).to_bytes(2, "big")
