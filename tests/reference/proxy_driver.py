"""Runs the reference proxy in a process of its own for its tests, and speaks HTTP to it."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from codex_replay.reference.proxy import __main__ as program
from tests.support.forked import fork

ADD = {
    "name": "add",
    "description": "Adds.",
    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
}
FLAT = {"type": "function", **ADD}
NESTED = {"type": "function", "function": ADD}

STAND_IN = Path(__file__).with_name("proxy_app_server.py")


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The data of each event; the word [DONE] stays a word."""
        blocks = self.body.decode().split("\n\n")[:-1]
        found = [block.split("data: ", 1)[1] for block in blocks]
        return [data if data == "[DONE]" else json.loads(data) for data in found]


class Proxy:
    """A running proxy; `capture` is where the stand-in writes what it gets."""

    def __init__(self, env: Mapping[str, str], capture: Path | None = None) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PROXY_", "CODEX_", "PORT"))}
        self.process = fork(partial(program.main, []), {**kept, "PROXY_PORT": "0", **env}, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.capture = capture
        try:
            self.port = int(json.loads(self.process.stdout.readline())["url"].rsplit(":", 1)[1])
        except ValueError:
            self.close()
            raise

    def ask(self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
            connection.request(method, path, data, {"authorization": "Bearer key", **(headers or {})})
            response = connection.getresponse()
            return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def chat(self, body: dict[str, Any], **headers: str) -> Reply:
        return self.ask("POST", "/v1/chat/completions", {"model": "gpt-5.2", **body}, _dashed(headers))

    def responses(self, body: dict[str, Any], **headers: str) -> Reply:
        return self.ask("POST", "/v1/responses", {"model": "gpt-5.2", **body}, _dashed(headers))

    def frames(self) -> list[tuple[int, dict[str, Any]]]:
        """What the app-servers were sent: process id and message."""
        assert self.capture is not None
        lines = self.capture.read_bytes().splitlines() if self.capture.exists() else []
        return [(int(pid), json.loads(line)) for pid, _, line in (line.partition(b" ") for line in lines)]

    def calls(self, method: str) -> list[dict[str, Any]]:
        return [frame["params"] for _, frame in self.frames() if frame.get("method") == method]

    def close(self) -> int:
        self.process.terminate()
        status = self.process.wait(15)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status


def _dashed(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


@contextmanager
def running(tmp: Path, **env: str) -> Iterator[Proxy]:
    """A proxy in front of the stand-in; its time limits are short."""
    codex = tmp / "codex"
    codex.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STAND_IN}" "$@"\n')
    codex.chmod(0o755)
    capture = tmp / "capture.txt"
    limits = {"PROXY_IDLE_TIMEOUT_MS": "1500", "PROXY_RPC_TIMEOUT_MS": "5000", "PROXY_CODEX_WORKDIR": str(tmp / "work")}
    proxy = Proxy({"CODEX_BIN": str(codex), "CAPTURE": str(capture), **limits, **env}, capture)
    try:
        yield proxy
    finally:
        proxy.close()


def plan(text: str = "hi", **what: Any) -> str:
    """A prompt that tells the stand-in what to do."""
    return f"{text} PLAN:{json.dumps(what)}"


def call(name: str = "t", arguments: str = '{"a":1}') -> str:
    """Return the markup of a call."""
    return "<tool_call>" + json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False) + "</tool_call>"
