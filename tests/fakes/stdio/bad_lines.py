"""Lines that no well-behaved client sends, and what the real Codex 0.92.0 answered to each: tests/data/bad_lines.ndjson.

A row has the line, and `answer`: null where the server stays silent, the error that it answers, or "result". The rows were
written by `python -m tests.fakes.stdio.bad_lines`, which asks the real server; `make real` asks it again.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from codex_replay.shell.codex.cache import find_installed
from codex_replay.shell.codex.home import HermeticHome

FILE = Path(__file__).parents[2] / "data" / "bad_lines.ndjson"
SHOWN = 100  # characters of an error's text: the list of all methods follows, and is compared elsewhere
_DEEP = (64, 125, 126, 127, 128, 300, 900, 5000)
_NUMBERS = (
    "1e999", "-1e999", "1E400", "1e308", "1e309", "1e-999", "-0", "-0.0", "0.1e400", "9" * 308, "9" * 309, "1" + "0" * 308,
    "-" + "9" * 400, "9" * 400, "9" * 4000, "9" * 5000, "9" * 400 + ".5", "18446744073709551616", "1" * 30 + "e290", "01", "+1",
    ".5", "1.", "1e", "0x10", "NaN", "Infinity", "-Infinity",
)  # fmt: skip
_IDS = (
    "null", "true", "1.0", "1e0", "1e2", "-0", "0", "-1", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "-9223372036854775809", "18446744073709551615", "[]", "{}", "[1]", '{"a":1}', '""', '"x"', '"\\ud800"', '"\\udc00x"',
    '"\\ud83d\\ude00"', '"\\u0000"', '"\\ud83d"', '"\\ude00\\ud83d"', "1e999", "9" * 400, "NaN",
)  # fmt: skip
_WRONG = ("5", "[]", '"x"', "true", "1.5", "{}", '{"type":5}', '{"type":"nope"}', "[5]", '{"type":null}')
_JUDGED = ("account/login/start", "getConversationSummary")
_SETTINGS = (
    "model", "model_provider", "review_model", "developer_instructions", "instructions", "compact_prompt", "profile",
    "model_context_window", "model_auto_compact_token_limit", "approval_policy", "sandbox_mode", "model_reasoning_effort",
    "model_reasoning_summary", "model_verbosity", "profiles", "model_providers", "sandbox_workspace_write", "tools",
    "hide_agent_reasoning", "forced_login_method", "web_search",
)  # fmt: skip
_VALUES = ("5", '["x"]', "true", "1.5", '{"a":1}', '"nope"')


class Server:
    """A started app-server that has answered initialize."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], cwd: str) -> None:
        self._pending = b""
        self.process = subprocess.Popen(
            argv, env={**env}, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.write(b'{"id":0,"method":"initialize","params":{"clientInfo":{"name":"x","version":"1"}}}\n')
        assert "result" in self.read()

    def write(self, data: bytes) -> None:
        """Write to its stdin."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        """Return its next message; fails if it ends or is silent for a minute."""
        assert self.process.stdout is not None
        while b"\n" not in self._pending:
            assert select.select([self.process.stdout], [], [], 60)[0], "the server is silent"
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            assert data, f"the server ended with status {self.process.wait()}"
            self._pending += data
        line, self._pending = self._pending.split(b"\n", 1)
        message: dict[str, Any] = json.loads(line)
        return message

    def answer(self, line: str) -> Any:
        """Return what it answers to a line: None, "result", or the error (its text cut short)."""
        self.write(line.encode() + b'\n{"id":"after it","method":"getUserAgent"}\n')
        answer = None
        while (message := self.read()).get("id") != "after it":
            if "error" in message:
                answer = {**message["error"], "message": message["error"]["message"][:SHOWN]}
            elif "id" in message:
                answer = "result"
        return answer

    def close(self) -> int:
        """End its input and return its exit status."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        status = self.process.wait(60)
        self.process.stdout.close()
        return status


@contextmanager
def real(folder: Path) -> Iterator[Server]:
    """Start the real 0.92.0 in a hermetic home."""
    codex = find_installed("0.92.0")
    assert codex is not None, "The real Codex is not installed; run `codex-replay codex install 0.92.0` first."
    home = HermeticHome(folder / "home", "http://127.0.0.1:9")
    server = Server([str(codex), "app-server"], home.env, str(home.work))
    try:
        yield server
    finally:
        server.close()


def rows() -> list[dict[str, Any]]:
    """Return the rows: `line`, and what was answered as `Server.answer` returns it."""
    return [json.loads(row) for row in FILE.read_bytes().splitlines()]


def lines() -> list[str]:
    """Return the lines, each of them once."""
    return list(dict.fromkeys([*_envelopes(), *_params(), *_settings()]))


def _envelopes() -> Iterator[str]:
    for request_id in _IDS:
        yield f'{{"id":{request_id},"method":"nope"}}'
    for number in _NUMBERS:
        yield f'{{"id":1,"method":"nope","params":{number}}}'
    for number in ("1e999", "9" * 400, '"\\ud800"', '{"\\ud800":1}', "-0"):
        yield f'{{"id":1,"method":"nope","other":{number}}}'
        yield f'{{"id":1,"method":"nope","params":{{"a":[{number}]}}}}'
    for depth in _DEEP:
        yield f'{{"id":1,"method":"nope","params":{"[" * depth}{"]" * depth}}}'
        yield f'{{"id":1,"method":"nope","params":{"{" + chr(34) + "a" + chr(34) + ":"}{"[" * (depth - 1)}{"]" * (depth - 1)}}}}}'
        yield f'{{"id":1,"method":"nope","other":{"[" * depth}{"]" * depth}}}'
    yield f'{{"id":1,"method":"nope","params":{{"text":"{"[" * 300}"}}}}'
    for name, value in (
        ("id", "1"),
        ("method", '"nope"'),
        ("params", "{}"),
        ("result", "{}"),
        ("error", "5"),
        ("jsonrpc", '"2.0"'),
    ):
        yield f'{{"id":1,"method":"nope","{name}":{value},"{name}":{value}}}'
        yield f'{{"id":1,"method":"nope","params":{{"{name}":{value},"{name}":{value}}}}}'
        yield f'{{"id":1,"method":"nope","\\u00{ord(name[0]):02x}{name[1:]}":{value}}}'
    yield '{"id":1,"\\u006dethod":"nope"}'
    yield '{"method":"nope","id":1,"id":null}'
    yield '{"id":1,"method":"nope","params":{},"params":null}'
    for method in ("5", "null", "[]", '"\\ud800"', '""', '"nope\\u0000"', '{"a":1}'):
        yield f'{{"id":1,"method":{method}}}'
    yield from (
        "", " ", "null", "5", '"x"', "[]", "{}", "[1]", '[1,"nope"]', '[1,"nope",{}]', '[1,"nope",{},5]', '["nope"]',
        '[{"id":1,"method":"nope"}]', '{"id":1}', '{"id":1,"result":5}', '{"id":1,"error":5}', '{"result":5}',
        '{"id":1,"error":{"code":1,"message":"x"}}', '{"id":1,"error":{"code":"x","message":"x"}}', '{"id":1,"method":"nope"',
        '{"id":1,"method":"nope"}}', '{"id":1,"method":"nope"} x', '{"id":1,"method":"nope"}{"id":2,"method":"nope"}',
        "{'id':1}", '{"id":1,"method":"nope",}', '\ufeff{"id":1,"method":"nope"}', '{"id":1,"method":"no\tpe"}',
        '{"id":1,"method":"nope"}\r', '  {"id":1,"method":"nope"}  ', '{"id":1,"method":"nope","params":{"a":"\x7f\x80"}}',
        '{"id":1,"method":"no\\pe"}', '{"id":1,"method":"nope"/**/}', "\x00", '{"id":1,"method":"nope","params":{"\u2028":1}}',
    )  # fmt: skip


def _params() -> Iterator[str]:
    for method in _JUDGED:
        for params in _WRONG:
            yield f'{{"id":1,"method":"{method}","params":{params}}}'


def _settings() -> Iterator[str]:
    for name in _SETTINGS:
        for value in _VALUES if name not in ("tools", "sandbox_workspace_write") else ("5", '"x"', "{}"):
            yield f'{{"id":1,"method":"thread/start","params":{{"config":{{"{name}":{value}}}}}}}'
    for name in ("model", "approval_policy", "model_context_window"):
        for value in _VALUES:
            edit = f'{{"keyPath":"{name}","value":{value},"mergeStrategy":"replace"}}'
            yield f'{{"id":1,"method":"config/value/write","params":{edit}}}'
            yield f'{{"id":1,"method":"config/batchWrite","params":{{"edits":[{edit}]}}}}'


def main() -> None:
    """Ask the real server and write the rows anew."""
    with tempfile.TemporaryDirectory() as folder, real(Path(folder)) as server:
        asked = [{"line": line, "answer": server.answer(line)} for line in lines()]
    FILE.write_text("".join(json.dumps(row) + "\n" for row in asked))


if __name__ == "__main__":
    main()
