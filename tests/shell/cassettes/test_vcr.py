"""vcrpy with our cassettes: recorded once over a socket, played again with nobody at the other end."""

from __future__ import annotations

import gzip
import http.server
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import vcr
from vcr.errors import CannotOverwriteExistingCassetteException

import codex_replay.shell.cassettes.vcr as ndjson
from codex_replay.core.cassette.http_frames import body_fields
from codex_replay.core.redact import encoded_body
from codex_replay.core.redact.redactor import Redactor
from codex_replay.shell.cassettes.file import CassetteError, CassetteReader
from codex_replay.shell.cassettes.lint import lint

SECRET = "sk-proj-" + "Zx9" * 14
STREAM = b'event: a\ndata: {"type":"a"}\n\ndata: {"odd": 1}\n\n: bye\n\n'
BODIES = {
    "/v1/stream": (200, "text/event-stream", None, STREAM),
    "/v1/models?x=1": (200, "application/json", None, b'{"models":[]}'),
    "/v1/gzip": (200, "application/json", "gzip", gzip.compress(b'{"packed":true}', mtime=0)),
    "/v1/bytes": (200, "application/octet-stream", None, b"\xff\x00\xfe"),
    "/v1/no": (429, "application/json", None, b'{"error": {"code": "no"}}'),
}


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        status, kind, encoding, body = BODIES[self.path]
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if encoding:
            self.send_header("Content-Encoding", encoding)
        self.send_header("Set-Cookie", f"session={SECRET}; Path=/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def server() -> Iterator[http.server.HTTPServer]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def ask(base: str, path: str) -> tuple[int, bytes]:
    body = json.dumps({"input": path}, separators=(",", ":")).encode()
    request = urllib.request.Request(base + path, data=body, headers={"Authorization": f"Bearer {SECRET}"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def recorder(how: str) -> vcr.VCR:
    made = vcr.VCR(match_on=["method", "uri", "body"])
    if how == "persister":
        made.register_persister(ndjson.NdjsonPersister)
    else:
        made.register_serializer("ndjson", ndjson)
        made.serializer = "ndjson"
    return made


@pytest.mark.parametrize("how", ["persister", "serializer"])
def test_what_was_recorded_is_played_again_and_holds_no_secret(how: str, server: http.server.HTTPServer, tmp_path: Path) -> None:
    path = tmp_path / "sub" / "case.ndjson"
    base = f"http://127.0.0.1:{server.server_port}"
    with recorder(how).use_cassette(str(path)):
        first = [ask(base, name) for name in BODIES]
    server.server_close()
    with recorder(how).use_cassette(str(path), record_mode="none") as played:
        assert [ask(base, name) for name in BODIES] == first == [(found[0], found[3]) for found in BODIES.values()]
        assert played.all_played
    assert SECRET not in path.read_text()
    assert [entry.name for entry in path.parent.iterdir()] == ["case.ndjson"]
    with CassetteReader(path) as cassette:
        kinds = [frame.kind for frame in cassette]
        assert cassette.footer is not None
    assert kinds == ["request", "response", "sse", "sse", "sse", "close"] + ["request", "response", "chunk", "close"] * 4
    assert [finding for finding in lint(str(path)).findings if finding.level == "error"] == []


def test_a_secret_that_was_streamed_in_pieces_is_not_written() -> None:
    form = 'data: {"type":"response.output_text.delta","item_id":"m","delta":"%s"}\n\n'
    body = "".join(form % piece for piece in ("It is ghp_", "abcdefghijklmnopqrstuvwxyzABCDEF6789", "."))
    answer = {
        "status": {"code": 200, "message": "OK"},
        "headers": {"content-type": ["text/event-stream"]},
        "body": {"string": body},
    }
    request = {"method": "POST", "uri": "http://a/", "headers": {}, "body": None}
    text = ndjson.serialize({"interactions": [{"request": request, "response": answer}]})
    assert "It is ghp_redacted-1" in text
    assert "abcdef" not in text


def test_what_was_not_recorded_is_refused(server: http.server.HTTPServer, tmp_path: Path) -> None:
    base = f"http://127.0.0.1:{server.server_port}"
    with recorder("persister").use_cassette(str(tmp_path / "case.ndjson")):
        ask(base, "/v1/no")
    with (
        recorder("persister").use_cassette(str(tmp_path / "case.ndjson"), record_mode="none"),
        pytest.raises(CannotOverwriteExistingCassetteException),
    ):
        ask(base, "/v1/bytes")


def test_a_file_that_is_no_cassette_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "case.ndjson"
    path.write_text("interactions: []\n")
    with pytest.raises(CassetteError, match="line 1: it is not JSON"):
        recorder("persister").use_cassette(str(path)).__enter__()


def stored(body: bytes, encoding: str) -> str:
    """Return the cassette of one answer that came in an encoding."""
    headers = {"content-type": ["text/event-stream"], "content-encoding": [encoding]}
    answer: dict[str, Any] = {"status": {"code": 200, "message": "OK"}, "headers": headers, "body": {"string": body}}
    request: dict[str, Any] = {"method": "POST", "uri": "http://a/", "headers": {}, "body": None}
    return ndjson.serialize({"interactions": [{"request": request, "response": answer}]})


@pytest.mark.parametrize("broken", [False, True])
def test_what_came_in_pieces_and_compressed_is_not_written(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the body redacted before its pieces are joined, the rest of a key whose beginning looks like one would stay."""
    if broken:
        monkeypatch.setattr(encoded_body, "fields", lambda raw, encoding: body_fields(raw, encoding, Redactor().redact))
    form = 'data: {"type":"response.output_text.delta","item_id":"m","delta":"%s"}\n\n'
    pieces = ("-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBgkq", "hkiG9w0BAQEF\\n-----END")
    text = stored(gzip.compress("".join(form % piece for piece in pieces).encode()), "gzip")
    assert "MIIEvQIBADANBgkq" not in text
    assert ("hkiG9w0BAQEF" in text) == broken


def test_what_cannot_be_looked_into_is_left_out() -> None:
    assert '"chunk":{"omitted":4}' in stored(b"\x0b\x02\x80\xff", "compress")
    for encoding in ("br", "gzip", "identity"):  # and what the client's library had decompressed is not
        assert '"sse":{"data":{"a":1}}' in stored(b'data: {"a":1}\n\n', encoding)
