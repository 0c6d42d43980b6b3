"""What the recorder makes of one HTTP connection's bytes, in whatever pieces they come."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_replay.core.cassette import http_frames
from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.core.redact.redactor import Redactor
from codex_replay.core.redact.streamed import clean
from codex_replay.core.wire.websocket import Encoder, compression
from codex_replay.shell.cassettes.file import CassetteReader, CassetteWriter
from codex_replay.shell.cassettes.record_log import Log
from codex_replay.shell.http.upstream import Upstream
from codex_replay.shell.http.watch import Watch


class Notes:
    """Stands in for the log: keeps the frames; its clock is set by hand."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.time = 0.0
        self.whole = True

    def partial(self) -> None:
        self.whole = False

    def now(self) -> float:
        return self.time

    def built(self, build) -> None:
        frame = build()
        frame.t = self.time
        self.frames.append(frame)


def watching(base: str = "http://up:9/base") -> tuple[Watch, Notes, list[str]]:
    notes, said = Notes(), []
    return Watch(1, notes, Redactor(), Upstream(base).rewrite, said.append), notes, said  # type: ignore[arg-type]


def shape(notes: Notes) -> list[tuple[str, str, object]]:
    return [(frame.sender, frame.kind, frame.payload) for frame in notes.frames]


def in_pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]
    return [data[a:b] for a, b in pairwise(edges) if b > a]


GET = b"GET /v1/models?client_version=0.92.0 HTTP/1.1\r\nHost: here\r\nX-Odd: a\r\n\r\n"
POST = b'POST /v1/responses HTTP/1.1\r\nsession_id: x\r\nhost: here\r\ncontent-length: 9\r\n\r\n{"a": 10}'
CHUNKED_POST = b"POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n1\r\ne\r\n0\r\n\r\n"
JSON = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nETag: "x"\r\nContent-Length: 13\r\n\r\n{"models":[]}'
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
ONE = b'event: a\ndata: {"type":"a"}\n\n'
TWO = b'event: b\r\ndata: {"type": "b"}\r\n\r\n'


def chunks(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)


STREAM = STREAM_HEAD + chunks(ONE, TWO + ONE, b": hi\n\n" + ONE[:9], ONE[9:]) + b"0\r\n\r\n"


@given(st.lists(st.integers(0, 2000)), st.lists(st.integers(0, 2000)))
def test_pieces_make_no_difference(client_cuts: list[int], server_cuts: list[int]) -> None:
    """Two pipelined requests and their answers, cut anywhere: the same frames, the same bytes passed on."""
    said, told = GET + POST + CHUNKED_POST, JSON + STREAM + JSON
    watch, notes, _ = watching()
    passed = b"".join(watch.client(piece) for piece in in_pieces(said, client_cuts))
    for piece in in_pieces(told, server_cuts):
        watch.server(piece)
    watch.disconnected("client", "end")
    whole, expected, _ = watching()
    assert whole.client(GET) + whole.client(POST) + whole.client(CHUNKED_POST[:-5]) + whole.client(CHUNKED_POST[-5:])
    whole.server(told)
    assert shape(notes) == shape(expected)
    assert [frame.extra for frame in notes.frames] == [frame.extra for frame in expected.frames]
    plain = GET.replace(b"here", b"up:9").replace(b"/v1", b"/base/v1") + POST.replace(b"here", b"up:9").replace(
        b"/v1", b"/base/v1"
    )
    assert passed.startswith(plain)
    assert passed.endswith(b"0\r\n\r\n")
    bodies = [frame for frame in notes.frames if frame.kind == "sse"]
    assert [piece for _, piece in http_frames.body_chunks(bodies)] == [ONE, TWO + ONE, b": hi\n\n" + ONE[:9], ONE[9:]]


def test_an_exchange_frame_by_frame() -> None:
    watch, notes, _ = watching()
    assert watch.client(POST) == POST.replace(b"here", b"up:9").replace(b"/v1", b"/base/v1")
    watch.server(STREAM_HEAD)
    for number, piece in enumerate((ONE, TWO + ONE, ONE[:9], ONE[9:])):
        notes.time = number + 1.0
        watch.server(chunks(piece))
    watch.server(b"0\r\n\r\n")
    headers = [["session_id", "x"], ["host", "here"], ["content-length", "9"]]
    assert shape(notes)[0] == (
        "client",
        "request",
        {"method": "POST", "path": "/v1/responses", "headers": headers, "text": '{"a": 10}', "view": {"a": 10}},
    )
    assert shape(notes)[1][1] == "response"
    a = {"event": "a", "data": {"type": "a"}}
    b = {"event": "b", "text": TWO.decode(), "view": {"type": "b"}}
    assert shape(notes)[2:] == [("server", "sse", x) for x in (a, b, a, a)] + [("server", "close", "end")]
    assert [(frame.t, frame.extra) for frame in notes.frames[2:6]] == [
        (1.0, {}),
        (2.0, {"joined": True}),
        (2.0, {}),
        (4.0, {"cuts": [[9, 3.0]]}),
    ]


@pytest.mark.parametrize(
    ("answer", "who", "how", "close"),
    [
        (STREAM_HEAD + chunks(ONE), "server", "end", ("server", "cut")),
        (STREAM_HEAD + chunks(ONE)[:-9], "server", "end", ("server", "cut")),
        (STREAM_HEAD + chunks(ONE), "server", "reset", ("server", "reset")),
        (STREAM_HEAD, "client", "reset", ("client", "reset")),
        (STREAM_HEAD, "client", "end", ("client", "cut")),
        (b"", "server", "end", ("server", "cut")),
        (b"", "server", "reset", ("server", "reset")),
        (JSON[:-3], "server", "end", ("server", "cut")),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", "server", "end", ("server", "end")),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", "server", "reset", ("server", "reset")),
        (b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + ONE, "server", "end", ("server", "end")),
        (JSON, "server", "reset", ("server", "end")),
    ],
)
def test_how_an_exchange_ends(answer: bytes, who: str, how: str, close: tuple[str, str]) -> None:
    watch, notes, _ = watching()
    watch.client(POST)
    watch.server(answer)
    watch.disconnected(who, how)
    watch.disconnected("client", "end")
    assert [(frame.sender, frame.payload) for frame in notes.frames if frame.kind == "close"] == [close]
    assert notes.frames[-1].kind == "close"


def test_half_an_event_is_kept_as_it_is() -> None:
    watch, notes, _ = watching()
    watch.client(POST)
    watch.server(STREAM_HEAD + chunks(ONE) + b"ff\r\nevent: b\ndata: {")
    watch.disconnected("server", "reset")
    assert notes.frames[-2].payload["text"] == "event: b\ndata: {"
    assert notes.frames[-1].payload == "reset"


def test_a_request_that_is_broken_off_is_marked() -> None:
    watch, notes, _ = watching()
    watch.client(POST[:-4])
    watch.disconnected("client", "reset")
    assert (notes.frames[0].payload["text"], notes.frames[0].extra) == ('{"a":', {"truncated": True})
    assert (notes.frames[1].sender, notes.frames[1].payload) == ("client", "reset")


def test_an_answer_before_the_end_of_its_request_stands_after_it() -> None:
    watch, notes, _ = watching()
    watch.client(POST[:-4])
    watch.server(JSON.replace(b"200 OK", b"413 Too Large"))
    assert [frame.kind for frame in notes.frames] == ["request", "response", "chunk", "close"]
    assert notes.frames[0].extra == {"truncated": True}
    assert notes.frames[1].payload["reason"] == "Too Large"


def test_a_head_answer_has_no_body_and_an_interim_one_ends_nothing() -> None:
    watch, notes, _ = watching()
    watch.client(GET.replace(b"GET", b"HEAD") + POST)
    for byte in JSON[: -len(b'{"models":[]}')] + b"HTTP/1.1 100 Continue\r\n\r\n" + STREAM:
        watch.server(bytes([byte]))
    kinds = [frame.kind for frame in notes.frames]
    assert kinds == ["request", "request", "response", "close", "response", "response", *["sse"] * 5, "close"]


@pytest.mark.parametrize("status", [204, 304])
def test_an_answer_without_a_body_ends_at_once(status: int) -> None:
    watch, notes, _ = watching()
    watch.client(GET)
    watch.server(b"HTTP/1.1 %d X\r\netag: a\r\n\r\n" % status)
    assert [frame.kind for frame in notes.frames] == ["request", "response", "close"]


def test_a_refused_upgrade_is_an_exchange_like_any_other() -> None:
    watch, notes, said = watching()
    asked = b"GET /v1/responses HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    assert watch.client(asked + POST).count(b" HTTP/1.1\r\n") == 2
    watch.server(b"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n" + STREAM)
    assert [frame.kind for frame in notes.frames[:5]] == ["request", "request", "response", "close", "response"]
    assert notes.frames[-1].payload == "end"
    assert said == []


ASK_WS = b"GET /v1/responses HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
GRANTED = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
DEFLATE = "permessage-deflate"


def upgraded(extension: str = "") -> tuple[Watch, Notes, list[str], Encoder, Encoder]:
    watch, notes, said = watching()
    watch.client(ASK_WS)
    line = f"Sec-WebSocket-Extensions: {extension}\r\n" if extension else ""
    watch.server(GRANTED + line.encode() + b"\r\n")
    theirs, ours = compression([("sec-websocket-extensions", extension)] if extension else [])
    return watch, notes, said, Encoder(True, ours), Encoder(False, theirs)


@pytest.mark.parametrize("extension", ["", DEFLATE, f"{DEFLATE}; client_no_context_takeover; server_max_window_bits=10"])
@given(cuts=st.lists(st.integers(0, 400), max_size=4))
def test_messages_of_a_websocket_are_recorded_and_pass_unchanged(extension: str, cuts: list[int]) -> None:
    watch, notes, said, client, server = upgraded(extension)
    asked = client.message("text", b'{"type":"response.create"}') + client.message("pong", b"\xff")
    told = server.message("text", b'{"type": "odd"}') + server.message("ping", b"\xff") + server.message("binary", b"\x00")
    told += server.message("text", b"not JSON", fragments=(3, 5)) + server.close(1011, b"over")
    assert b"".join(watch.client(piece) for piece in in_pieces(asked, cuts)) == asked
    for piece in in_pieces(told, cuts):
        watch.server(piece)
    watch.disconnected("server", "end")
    assert shape(notes)[2:] == [
        ("client", "ws", {"json": {"type": "response.create"}}),
        ("client", "ws", {"pong": "\xff"}),
        ("server", "ws", {"text": '{"type": "odd"}', "view": {"type": "odd"}}),
        ("server", "ws", {"ping": "\xff"}),
        ("server", "ws", {"base64": "AA=="}),
        ("server", "ws", {"text": "not JSON"}),
        ("server", "ws", {"close": {"code": 1011, "reason": "over"}}),
        ("server", "close", "end"),
    ]
    marks = [frame.extra for frame in notes.frames[2:]]
    packed = {"compressed": True} if extension else {}
    assert marks == [packed, {}, packed, {}, packed, {**packed, "fragments": [3, 5]}, {}, {}]
    assert said == []
    assert notes.whole


def test_the_time_of_the_first_byte_of_a_slow_message_is_kept() -> None:
    watch, notes, _, _, server = upgraded()
    data = server.message("text", b"slowly")
    notes.time = 1.0
    watch.server(data[:1])
    notes.time = 2.0
    watch.server(data[1:])
    assert (notes.frames[-1].t, notes.frames[-1].extra) == (2.0, {"began": 1.0})


@pytest.mark.parametrize(
    ("who", "how", "end"), [("server", "end", "cut"), ("client", "end", "cut"), ("server", "reset", "reset")]
)
def test_a_websocket_that_ends_without_a_close_frame_is_cut(who: str, how: str, end: str) -> None:
    watch, notes, _, client, _ = upgraded()
    watch.client(client.message("text", b"{}"))
    watch.disconnected(who, how)
    assert shape(notes)[-1] == (who, "close", end)


def test_a_websocket_without_messages_is_marked_so_that_it_counts_as_whole() -> None:
    watch, notes, _, _, _ = upgraded()
    watch.disconnected("client", "end")
    assert (notes.frames[-1].kind, notes.frames[-1].extra) == ("close", {"messages": 0})


def test_broken_compression_and_what_is_too_long_leave_their_size() -> None:
    notes, said = Notes(), []
    watch = Watch(1, notes, Redactor(), Upstream("http://up").rewrite, said.append, limit=1000)  # type: ignore[arg-type]
    watch.client(ASK_WS)
    watch.server(GRANTED + b"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n")
    server = Encoder(False, compression([("sec-websocket-extensions", DEFLATE)])[0])
    watch.server(server.message("text", b"a" * 1001) + server.message("text", b"b") + server.broken_deflate())
    kinds = [next(iter(payload)) for _, kind, payload in shape(notes) if kind == "ws"]  # type: ignore[call-overload]
    assert kinds == ["omitted", "text", "omitted"]
    assert len(said) == 2
    assert notes.whole


@pytest.mark.parametrize("wrong", [b"\xff\x00", b"\x81\x81\0\0\0\0a"])
def test_a_broken_websocket_passes_unrecorded_and_that_is_said(wrong: bytes) -> None:
    watch, notes, said, _, server = upgraded()
    watch.server(wrong)
    watch.server(server.message("text", b"{}"))
    assert "breaks the WebSocket protocol" in said[0]
    assert not notes.whole
    unknown, notes, said = watching()
    unknown.client(ASK_WS)
    unknown.server(GRANTED + b"Sec-WebSocket-Extensions: x-odd\r\n\r\n\x81\x00")
    assert "cannot be read" in said[0]
    assert not notes.whole


def test_a_secret_that_is_split_over_messages_is_found() -> None:
    token = "sk-" + "proj-" + "a1B2" * 12
    frames = [
        Frame(0, 0.0, "http", "server", "ws", b"", {"json": {"type": "response.output_text.delta", "delta": part}}, 1)
        for part in ("key: " + token[:20], token[20:40], token[40:] + " end")
    ]
    whole = clean(frames, Redactor())
    text = "".join(frame.payload["json"]["delta"] for frame in whole)
    assert token[:20] not in text
    assert token[20:40] not in text
    assert text.startswith("key: ")
    assert text.endswith(" end")


def test_a_log_that_misses_traffic_gets_no_footer(tmp_path: Path) -> None:
    said: list[str] = []
    path = tmp_path / "run.ndjson"
    log = Log(CassetteWriter(str(path), Header("0.169.0", "unknown", "c", {"http": "recorded"})), said.append)
    watch = Watch(1, log, Redactor(), Upstream("http://up").rewrite, said.append)
    watch.client(b"GET /ws HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
    watch.server(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nhello")
    log.close()
    with CassetteReader(str(path)) as reader:
        assert [frame.kind for frame in reader] == ["request", "response"]
        assert reader.truncated
    assert "no footer" in said[0]


@pytest.mark.parametrize(("who", "noise"), [("client", b"\x16\x03\x01 hello"), ("server", b"SSH-2.0\r\n")])
def test_what_is_no_http_passes_unrecorded_and_that_is_said(who: str, noise: bytes) -> None:
    watch, notes, said = watching()
    if who == "client":
        assert watch.client(noise) == noise
    else:
        watch.client(GET)
        watch.server(noise)
    assert "does not speak HTTP" in said[0]
    assert not notes.whole


@pytest.mark.parametrize("before", [GET, POST, CHUNKED_POST, GET + POST])
@pytest.mark.parametrize("noise", [b"\x16\x03\x01 hello", b"\r\nPOST\x00 / HTTP/1.1\r\n\r\n"])
def test_a_request_before_bytes_that_are_no_http_goes_upstream_once(before: bytes, noise: bytes) -> None:
    """In one piece, and byte by byte: the request as it is rewritten, and then the bytes as they are."""
    whole, notes, said = watching()
    rewritten = watching()[0].client(before)
    passed = whole.client(before + noise)
    assert passed == rewritten + noise
    assert [frame.kind for frame in notes.frames] == ["request"] * (2 if before == GET + POST else 1)
    assert "does not speak HTTP" in said[0]
    slow = watching()[0]
    in_bytes = b"".join(slow.client(bytes([byte])) for byte in before + noise)
    assert in_bytes.count(b"HTTP/1.1\r\nHost: up:9") + in_bytes.count(b"session_id") == len(notes.frames)
    assert in_bytes.endswith(noise.lstrip())


def test_a_body_that_breaks_off_into_other_bytes_is_passed_on_once() -> None:
    """Of a chunked body with a broken chunk, what was whole goes on anew and the rest as it is."""
    watch, _, said = watching()
    head, _, _ = CHUNKED_POST.partition(b"4\r\n")
    passed = watch.client(head + b"4\r\nabcd\r\nzz\r\nnoise")
    assert passed.count(b"POST /") == 1
    assert passed.count(b"abcd") == 1
    assert passed.endswith(b"zz\r\nnoise")
    assert "does not speak HTTP" in said[0]


def test_a_pause_in_an_event_without_chunks_is_kept() -> None:
    watch, notes, _ = watching()
    watch.client(POST)
    watch.server(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + ONE[:5])
    notes.time = 1.0
    watch.server(ONE[5:9])
    notes.time = 1.001
    watch.server(ONE[9:])
    assert notes.frames[-1].extra == {"cuts": [[5, 0.0]]}


def test_secrets_of_every_place_stay_out_of_the_cassette(tmp_path: Path) -> None:
    secret, cookie = "sk-proj-" + "Zx9" * 14, "c00k1eValueThatIsSecret"
    redactor = Redactor()
    writer = CassetteWriter(tmp_path / "run.ndjson", Header("unknown", "unknown", "x", {"http": "recorded"}), redactor)
    log = Log(writer, pytest.fail)
    watch = Watch(1, log, redactor, Upstream("http://up").rewrite, pytest.fail)
    body = json.dumps({"input": f"my key is {secret}"}).encode()
    watch.client(
        f"POST /v1/x?api_key={secret} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {secret}\r\nCookie: session={cookie}\r\n"
        f"chatgpt-account-id: 11111111-2222-4333-8444-555555555555\r\ncontent-length: {len(body)}\r\n\r\n".encode()
        + body
    )
    event = b'event: a\ndata: {"type":"a","access_token":"%s"}\n\n' % secret.encode()
    watch.server(STREAM_HEAD.replace(b"\r\n\r\n", f"\r\nSet-Cookie: session={cookie}; Path=/\r\n\r\n".encode()))
    watch.server(chunks(event[:30], event[30:], b"\xff " + event) + b"0\r\n\r\n")
    log.close()
    text = (tmp_path / "run.ndjson").read_text()
    for planted in (secret, cookie, "11111111-2222-4333-8444-555555555555"):
        assert planted not in text
    with CassetteReader(tmp_path / "run.ndjson") as cassette:
        frames = list(cassette)
    assert [frame.kind for frame in frames] == ["request", "response", "sse", "sse", "close"]
    assert secret.encode() not in b"".join(piece for _, piece in http_frames.body_chunks(frames[2:4]))
