"""Secrets in streams that came packed: in one body, compressed, and as the recorder meets them."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path

import brotli
import pytest
import zstandard

from codex_replay.core.cassette.frames import Header
from codex_replay.core.cassette.http_frames import body_fields, sse_blocks
from codex_replay.core.redact import chunks, encoded_body
from codex_replay.core.redact.redactor import Redactor
from codex_replay.core.wire.content_encoding import decode_partial
from codex_replay.shell.cassettes.file import CassetteWriter
from codex_replay.shell.cassettes.record_log import Log
from codex_replay.shell.cassettes.rewrite import WholeWriter
from codex_replay.shell.http import watch as http_watch
from codex_replay.shell.http.watch import Watch
from tests.core.redact.test_streamed_http import GITHUB, PEM, cassette, cleaned, payloads, run, secrets_of


def response_text(*texts: str) -> bytes:
    """Return an event stream with these deltas, in several forms."""
    lines = []
    for number, text in enumerate(texts):
        data = {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "delta": text, "sequence_number": number}
        lines.append("data: " + json.dumps(data, separators=None if number % 2 else (",", ":")))
    return b": hello\r\n\r\n" + "\n\n".join([*lines, "data: [DONE]"]).encode()  # which no blank line ends


def raw_deflate(plain: bytes) -> bytes:
    pack = zlib.compressobj(wbits=-15)
    return pack.compress(plain) + pack.flush()


def small_deflate(plain: bytes) -> bytes:
    pack = zlib.compressobj(wbits=10)
    return pack.compress(plain) + pack.flush()


def in_members(plain: bytes) -> bytes:
    half = len(plain) // 2
    return gzip.compress(plain[:half], mtime=0) + gzip.compress(plain[half:], mtime=0)


PACK: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", lambda plain: gzip.compress(plain, mtime=0)),
    "gzip in two members": ("gzip", in_members),
    "deflate": ("deflate", zlib.compress),
    "deflate in a small window": ("deflate", small_deflate),
    "zstd": ("zstd", zstandard.ZstdCompressor().compress),
    "zstd in two frames": (
        "zstd",
        lambda plain: zstandard.ZstdCompressor().compress(plain[:50]) + zstandard.ZstdCompressor().compress(plain[50:]),
    ),
    "br": ("br", brotli.compress),
    "gzip in gzip": ("gzip, gzip", lambda plain: gzip.compress(gzip.compress(plain, mtime=0), mtime=0)),
    "not packed, of another type": ("", lambda plain: plain),
    "not packed, no text": ("", lambda plain: plain + b"\n\n: \xff\n\n"),
}


def check_packed(name: str, tmp_path: Path) -> None:
    encoding, pack = PACK[name]
    tail = b"\n\n: \xff\n\n" if name == "not packed, no text" else b""
    plain = response_text("It is " + GITHUB[0], "short", "é" + GITHUB[2], GITHUB[0], "".join(GITHUB[1:]) + ". End")
    assert Redactor().findings(plain) == []
    dirty = cassette(tmp_path / "c.ndjson", ("chunk", body_fields(pack(plain), encoding)))
    (line,) = secrets_of(dirty)  # the first three pieces make no key
    assert "frame 3" in line
    expected = response_text("It is " + GITHUB[0], "short", "é" + GITHUB[2], "ghp_redacted-1", ". End")
    assert cleaned(dirty) == [body_fields(expected + tail) | ({"packed": encoding} if encoding else {})]


@pytest.mark.parametrize("name", PACK)
def test_the_events_of_a_stream_that_is_kept_as_one_body_are_joined(name: str, tmp_path: Path) -> None:
    check_packed(name, tmp_path)


@pytest.mark.parametrize("name", ["gzip", "not packed, of another type"])
def test_who_does_not_look_for_events_in_a_body_is_caught(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "_blocks_of", lambda body: [])
    with pytest.raises(ValueError, match="not enough values"):
        check_packed(name, tmp_path)


def test_what_stands_behind_the_first_member_is_looked_into() -> None:
    plain = response_text("Keys: ", "".join(GITHUB))
    payload = body_fields(in_members(plain), "gzip", Redactor().redact)
    assert "packed" in payload
    assert GITHUB[1] not in str(payload)
    assert decode_partial(gzip.compress(b"x") + b"no member", "gzip") is None  # what is not looked into is left out


def test_events_of_a_body_in_several_parts_and_a_secret_torn_between_them(tmp_path: Path) -> None:
    plain = response_text(GITHUB[0], "".join(GITHUB[1:]), "Now whole: " + "".join(GITHUB), " and the rest", GITHUB[0])
    at = plain.index(b"Now whole: ghp_ab") + 17
    dirty = cassette(tmp_path / "c.ndjson", ("chunk", body_fields(plain[:at])), ("chunk", body_fields(plain[at:])))
    (line,) = secrets_of(dirty)
    assert ": secret: 2 secrets" in line
    expected = response_text("ghp_redacted-1", "", "Now whole: ghp_redacted-1", " and the rest", GITHUB[0])
    found = cleaned(dirty)
    assert "".join(part["text"] for part in found).encode() == expected
    assert found[0]["text"].endswith("ghp_redacted-1")


def test_an_event_whose_lines_are_read_otherwise_becomes_a_usual_one(tmp_path: Path) -> None:
    plain = b"\xef\xbb\xbf" + response_text(GITHUB[0], "".join(GITHUB[1:])).removeprefix(b": hello\r\n\r\n")
    (payload,) = cleaned(cassette(tmp_path / "c.ndjson", ("chunk", body_fields(plain))))
    assert [json.loads(block.data)["delta"] for block in sse_blocks(payload["text"].encode())[:2]] == ["ghp_redacted-1", ""]  # type: ignore[arg-type]


def recorded(tmp_path: Path, head: str, body: bytes, *, later: bool = True) -> tuple[Path, list[str]]:
    """Record one answer as `codex-replay record --upstream` does; return the cassette and what was said."""
    said: list[str] = []
    redactor = Redactor()
    path = tmp_path / "run.ndjson"
    writer = WholeWriter(CassetteWriter(path, Header("unknown", "unknown", "x", {"http": "recorded"})), redactor)
    log = Log(writer, pytest.fail)
    watch = Watch(1, log, redactor, lambda target, headers: (target, headers), said.append, later=later)
    watch.client(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n")
    watch.server(f"HTTP/1.1 200 OK\r\n{head}content-length: {len(body)}\r\n\r\n".encode() + body)
    log.close()
    writer.rewrite()
    return path, said


STREAM = "content-type: text/event-stream\r\ncontent-encoding: {}\r\n"


def check_recorder(name: str, tmp_path: Path, *, later: bool = True) -> None:
    encoding, pack = PACK[name]
    plain = response_text("Keys: " + GITHUB[0], "".join(GITHUB[1:]) + " and " + PEM[0], PEM[1] + ". End")
    path, said = recorded(tmp_path, STREAM.format(encoding or "identity"), pack(plain), later=later)
    assert said == []
    text = path.read_text()
    for payload in payloads(path):
        text += str(encoded_body.opened(payload)[0]) if "data" not in payload else ""
    assert not any(piece in text for piece in [*GITHUB[1:], "MIIEvQIBADANBgkq", "hkiG9w0BAQEF"]), text
    assert "End" in text
    assert run("lint", path).exit_code == 0


@pytest.mark.parametrize("name", PACK)
def test_a_compressed_stream_is_recorded_without_what_came_in_pieces(name: str, tmp_path: Path) -> None:
    check_recorder(name, tmp_path)


def test_a_compressed_stream_without_secrets_stays_as_it_came(tmp_path: Path) -> None:
    body = gzip.compress(response_text("No ", "secrets"), mtime=0)
    path, _ = recorded(tmp_path, STREAM.format("gzip"), body)
    assert payloads(path) == [{"base64": base64.b64encode(body).decode()}]


def test_who_redacts_a_compressed_stream_before_its_pieces_are_joined_is_caught(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="hkiG9w0BAQEF"):
        check_recorder("gzip", tmp_path, later=False)


@pytest.mark.parametrize(
    ("encoding", "pack"), [("deflate", raw_deflate), ("compress", lambda plain: b"\x1f\x9d\x90" + plain[::-1])]
)
def test_a_stream_that_cannot_be_decompressed_is_left_out_and_the_recorder_says_so(
    encoding: str, pack: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = pack(response_text(GITHUB[0], "".join(GITHUB[1:])))

    def check() -> None:
        path, said = recorded(tmp_path, STREAM.format(encoding), body)
        assert payloads(path) == [{"omitted": len(body)}]
        (sentence,) = said
        assert f"the content-encoding '{encoding}' cannot be searched" in sentence
        assert "was left out" in run("lint", "--notes", path).output

    check()
    monkeypatch.setattr(http_watch.Watch, "looked_into", lambda self, payload, encoding: payload)
    with pytest.raises(ValueError, match="not enough values"):
        check()


def check_unseen(tmp_path: Path) -> None:
    raw = b"\x0b\x02\x80\xff"
    headers = [["Content-Encoding", "BR"]]
    dirty = cassette(tmp_path / "c.ndjson", ("chunk", body_fields(raw)), headers=headers)
    result = run("lint", dirty)
    assert result.exit_code == 1
    assert "line 4 (frame 3): unseen: a body in the content-encoding 'br' cannot be searched" in result.output
    assert cleaned(dirty) == [{"omitted": 4}]


def test_lint_tells_a_body_that_it_could_not_look_into_and_redact_leaves_it_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_unseen(tmp_path)
    monkeypatch.setattr(encoded_body.Unseen, "encoding", lambda self, frame: "")
    with pytest.raises(AssertionError):
        check_unseen(tmp_path)


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_bytes_that_are_not_compressed_whatever_their_header_says_are_no_fault(encoding: str, tmp_path: Path) -> None:
    headers = [["content-encoding", encoding]]
    path = cassette(tmp_path / "c.ndjson", ("chunk", body_fields(b"\x89PNG\xff")), headers=headers)
    assert run("lint", path).exit_code == 0
    assert cleaned(path) == [body_fields(b"\x89PNG\xff")]
