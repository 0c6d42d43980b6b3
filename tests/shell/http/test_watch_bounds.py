"""What the HTTP recorder keeps of one connection is bounded, whatever a client or a server sends; the bytes still pass."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_replay.cli.record import MAX_BODY
from codex_replay.core.cassette import http_frames
from codex_replay.core.wire.web_guard import WebGuard
from codex_replay.shell.http import bodies, watch
from codex_replay.shell.http.watch import Watch
from tests.shell.http.test_http_watch import Notes, watching

OK = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
ASK = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


def guarded() -> tuple[Watch, Notes, list[str]]:
    made, notes, said = watching("http://up:9")
    made.guard = WebGuard("127.0.0.1")
    return made, notes, said


LONG = b"x" * 1_200_000


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /?" + LONG + b" HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: " + LONG + b"\r\nOrigin: http://evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /?" + LONG + b" HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nX A: 1\r\nHost: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\nHost: evil.example\n\n",
        b"GET / HTTP/1.1\r\n\x0bX: 1\r\nhost : 127.0.0.1\r\nORIGIN\t: null\r\n\r\n",
    ],
)
@pytest.mark.parametrize("size", [65536, 3_000_000])
def test_a_head_that_cannot_be_read_brings_no_web_page_to_the_server(sent: bytes, size: int) -> None:
    """Browsers send addresses of up to 2 MB."""
    made, notes, _ = guarded()
    for at in range(0, len(sent), size):
        if made.client(sent[at : at + size]) and made.refused is None:
            assert len(notes.frames) == 1  # the first request, with the recorder's own host
    assert made.refused is not None


def test_a_line_that_is_no_http_still_passes_the_guard() -> None:
    made, _, said = guarded()
    assert made.client(b"\x16\x03\x01 no http\r\n") == b"\x16\x03\x01 no http\r\n"
    assert made.refused is None
    assert "does not speak HTTP" in said[0]


def test_a_request_whose_head_never_ends_is_refused_and_not_kept() -> None:
    made, notes, said = watching("http://up:9")
    sent = b"GET / HTTP/1.1\r\n" + b"".join(b"x-%d: %b\r\n" % (n, b"y" * 1000) for n in range(2000))
    out = b"".join(made.client(sent[at : at + 65536]) for at in range(0, len(sent), 65536))
    assert out == b""
    assert made.refused == "The head of the request is longer than 1024 KB."
    assert len(made._requests._kept) < 1_200_000
    assert said == []
    assert notes.frames == []


def test_an_answer_whose_head_never_ends_is_not_kept() -> None:
    made, _, said = watching("http://up:9")
    made.client(ASK)
    for n in range(2000):
        made.server((b"HTTP/1.1 200 OK\r\n" if n == 0 else b"") + b"x-%d: %b\r\n" % (n, b"y" * 1000))
    assert made.blind
    assert len(said) == 1
    assert "the head of an answer is longer than 1024 KB" in said[0]


def test_a_long_body_of_a_client_is_not_kept_beside_what_is_logged() -> None:
    made, notes, _ = watching("http://up:9")
    body = b"z" * 300_000
    sent = b"POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body) + body + ASK
    out = b""
    for at in range(0, len(sent), 7000):
        out += made.client(sent[at : at + 7000])
        assert len(made._requests._kept) <= 100
    assert out.count(body) == 1
    assert out.endswith(b"\r\n\r\n")
    assert [frame.payload["path"] for frame in notes.frames] == ["/a", "/"]


CHUNKED = b"POST /a HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("chunk", [100, 70_000, 3_000_000])
def test_a_long_body_in_chunks_is_not_kept_beside_what_is_logged(chunk: int) -> None:
    made, notes, _ = watching("http://up:9")
    body = b"z" * 3_000_000
    chunks = b"".join(b"%x\r\n%b\r\n" % (chunk, body[at : at + chunk]) for at in range(0, len(body) // chunk * chunk, chunk))
    sent = CHUNKED + chunks + b"0\r\n\r\n" + ASK
    out = b""
    for at in range(0, len(sent), 7000):
        out += made.client(sent[at : at + 7000])
        assert len(made._requests._kept) <= 100
    assert out == sent.replace(b"host: x", b"host: up:9")
    assert [frame.payload["path"] for frame in notes.frames] == ["/a", "/"]


def test_trailers_that_never_end_are_passed_on_and_not_kept() -> None:
    made, notes, said = watching("http://up:9")
    sent = CHUNKED + b"1\r\nq\r\n0\r\n" + b"".join(b"x-%d: %b\r\n" % (n, b"y" * 1000) for n in range(2000))
    out = b"".join(made.client(sent[at : at + 65536]) for at in range(0, len(sent), 65536))
    assert out.endswith(sent[len(CHUNKED) + len(b"1\r\nq\r\n") :])
    assert made.blind
    assert "connection 1: a chunk size or the trailers of a request are longer than 1024 KB" in said[0]
    assert notes.frames == []


@given(data=st.data())
def test_a_body_in_chunks_passes_unchanged_in_any_pieces(data: st.DataObject) -> None:
    """With its chunk extensions and trailers; also if it ends in bytes that are not HTTP."""
    sizes = data.draw(st.lists(st.integers(1, 60), max_size=6), "sizes")
    extensions = (b"", b";e=1", b';name="a;b"', b";x;y=z")
    chunks = b"".join(b"%x%b\r\n%b\r\n" % (size, extensions[size % 4], b"z" * size) for size in sizes)
    ends = [b"0\r\n\r\n", b"0;last\r\nx: y\r\nX-Sum:  a b\r\n\r\n" + ASK, b"zz\r\nnoise", b"5\r\nabcdeX", b"", b"0\r\nx: y\r\n"]
    end = data.draw(st.sampled_from(ends), "end")
    sent = CHUNKED + chunks + end
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=8), "cuts"))
    made, notes, said = watching("http://up:9")
    out = b"".join(made.client(sent[start:stop]) for start, stop in zip([0, *cuts], [*cuts, len(sent)], strict=True))
    assert out == sent.replace(b"host: x", b"host: up:9")
    assert [text.partition(" (")[0] for text in said] == ["connection 1: the client does not speak HTTP"] * (end in ends[2:4])
    made.disconnected("client", "end")
    body = b"z" * sum(sizes) + (b"abcde" if end == ends[3] else b"")
    if not said and end:
        assert http_frames.body_bytes(notes.frames[0].payload) == body
    if end == ends[1]:
        assert notes.frames[0].payload["trailers"] == [["x", "y"], ["X-Sum", "a b"]]


def test_trailers_are_recorded_without_secrets_and_sent_again() -> None:
    made, notes, _ = watching("http://up:9")
    made.client(CHUNKED + b"1\r\nq\r\n0\r\nX-Sum: 1\r\nx-api-key: abcdef0123456789\r\n\r\n")
    payload = notes.frames[0].payload
    assert list(payload) == ["method", "path", "headers", "trailers", "text"]
    assert payload["headers"] == [["host", "x"], ["transfer-encoding", "chunked"]]
    assert payload["trailers"] == [["X-Sum", "1"], ["x-api-key", "redacted-key-1"]]
    assert http_frames.request_bytes(payload).endswith(b"1\r\nq\r\n0\r\nX-Sum: 1\r\nx-api-key: redacted-key-1\r\n\r\n")


@pytest.mark.parametrize("piece", [1, 7, 100, 5000])
@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
def test_an_event_that_is_too_long_is_left_out_and_the_others_stay(piece: int, end: bytes) -> None:
    made, notes, said = watching("http://up:9")
    made.limit = 1000
    made.client(ASK)
    long = b"data: " + b"q" * 4000 + end
    sent = OK + b"data: 1" + end + long + b"data: 2" + end + b"data: 3" + end
    for at in range(0, len(sent), piece):
        made.server(sent[at : at + piece])
        assert len(made._responses._body._decoder._buffer) <= 1000 + piece if made._responses._body else True  # type: ignore[union-attr]
    made.disconnected("server", "end")
    told = [frame for frame in notes.frames if frame.kind in ("sse", "chunk")]
    kinds = [(one.kind, one.payload.get("data", one.payload.get("view", one.payload.get("omitted")))) for one in told]
    if piece < 5000:
        assert kinds == [("sse", 1), ("chunk", len(long)), ("sse", 2), ("sse", 3)]
        assert any("longer than" in text for text in said)
    else:
        assert len(kinds) == 4  # it came whole, and was held at no time


def test_an_event_that_never_ends_is_left_out() -> None:
    made, notes, _ = watching("http://up:9")
    made.limit = 1000
    made.client(ASK)
    made.server(OK)
    for _ in range(100):
        made.server(b"data: " + b"q" * 100)
    made.disconnected("server", "end")
    assert [(frame.kind, frame.payload) for frame in notes.frames][2:] == [("chunk", {"omitted": 10600}), ("close", "end")]
    assert watch.MAX_HEAD == bodies.MAX_HEAD
    assert MAX_BODY == bodies.MAX_DECODED
