"""What the HTTP targets share: raw requests, whole or damaged, and an exchange over a socket of its own."""

from __future__ import annotations

import gzip
import socket
import zlib
from random import Random
from urllib.parse import urlsplit

import brotli

from tests.fuzz.frame import HANG
from tests.fuzz.mutate import damaged, json_text

BODY = {
    "model": "gpt-5.2-codex",
    "instructions": "be short",
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "call f"}]},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
        {"type": "message", "role": "user", "content": "call f again"},
    ],
    "tools": [
        {
            "type": "function",
            "name": "f",
            "parameters": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        },
        {"type": "web_search"},
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "stream": True,
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "k",
}
REFRESH = {"grant_type": "refresh_token", "refresh_token": "r", "client_id": "app"}
SCRIPT = {
    "turns": [{"match": "go", "items": ["Hello", {"type": "function_call", "name": "f", "arguments": "{}"}], "times": "always"}],
    "auth": {"mode": "auto", "refresh": "valid"},
    "otherwise": "default",
}
METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "CONNECT", "TRACE", "X", "")
TARGETS = (
    *(
        "/v1/responses",
        "/v1/models",
        "/v1/models?client_version=1",
        "/oauth/token",
        "/backend-api/codex/responses",
        "/wham/usage",
    ),
    *(
        "/s/x/v1/responses",
        "/s/",
        "//[",
        "*",
        "http://[/",
        "http://localhost/v1/models",
        "/%",
        "/\xff",
        "/?" + "a&" * 500,
        "",
        " ",
    ),
    *("/_codex_replay/health", "/_codex_replay/sessions/x/ledger?since=1e999", "/_codex_replay//", "/v1/responses#x?y"),
)
HEADERS = (
    *("host: localhost", "host: evil.example", "host:", "Host: [::1", "origin: null", "content-length: 5", "content-length: -1"),
    *(
        "content-length: 99999999999999999999",
        "transfer-encoding: chunked",
        "transfer-encoding: chunked, gzip",
        "connection: close",
    ),
    *(
        "connection: upgrade",
        "upgrade: websocket",
        "expect: 100-continue",
        "content-encoding: gzip",
        "content-encoding: zstd, br",
    ),
    *("content-encoding: " + "gzip, " * 9, "content-type: application/x-www-form-urlencoded", "authorization: Bearer \x80\xff"),
    *("x: " + "y" * 5000, ": x", "no colon", " folded", "session_id: \x01", "if-none-match: *", "content-length: 0x10"),
)
PIECES = (
    b"\r\n",
    b"\r\n\r\n",
    b"\n",
    b"\0",
    b" ",
    b"0\r\n\r\n",
    b"ffffffffffffffff\r\n",
    b"HTTP/1.1",
    b"GET / HTTP/1.1\r\n\r\n",
    b"\xff",
)


def request(random: Random, body: bytes) -> bytes:
    """Return a request that is HTTP, with whatever in it."""
    headers = ["host: localhost", *random.sample(HEADERS, random.randint(0, 3))]
    if random.random() < 0.3:
        packed = random.choice((gzip.compress, zlib.compress, brotli.compress))
        body = packed(body)
        headers.append("content-encoding: " + random.choice(("gzip", "deflate", "zstd", "br", "gzip, gzip", "identity")))
    if random.random() < 0.8:
        headers.append(f"content-length: {len(body)}")
    version = random.choice(("HTTP/1.1",) * 8 + ("HTTP/1.0", "HTTP/2.0", "HTTP/9", ""))
    line = f"{random.choice(METHODS)} {random.choice(TARGETS)} {version}"
    return "\r\n".join([line, *headers, "", ""]).encode("latin-1") + body


def raw(random: Random) -> bytes:
    """Return bytes for a port: one or several requests, most of them damaged."""
    data = b"".join(request(random, json_text(random, BODY)) for _ in range(random.choice((1, 1, 1, 2, 5))))
    return damaged(random, data, PIECES) if random.random() < 0.7 else data


def exchange(url: str, data: bytes, first: bytes = b"") -> bytes | str:
    """Send bytes, end our direction, and return all that comes; a sentence if that takes too long.

    `first` is a head that is sent before; the bytes follow when a head has come back.
    """
    parts = urlsplit(url)
    answer = b""
    try:
        with socket.create_connection((parts.hostname, parts.port), timeout=HANG) as sock:
            try:
                sock.sendall(first)
                while first and b"\r\n\r\n" not in answer and (piece := sock.recv(1 << 18)):
                    answer += piece
                sock.sendall(data)
                sock.shutdown(socket.SHUT_WR)
                while piece := sock.recv(1 << 18):
                    answer += piece
            except (ConnectionError, BrokenPipeError):
                pass  # it was refused before it was whole
            except OSError as error:
                if isinstance(error, TimeoutError):
                    raise
    except TimeoutError:
        return f"it hangs: nothing came for {HANG:g} s after {answer[:200]!r}"
    except ConnectionRefusedError:
        return "nobody listens any more"
    return answer
