"""Hostile lines to a replaying fake-codex: none ends it, and a whole request after each still gets an answer."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.core.wire.json_text import dumps
from codex_replay.shell.cassettes.file import CassetteReader, CassetteWriter
from tests.fuzz.frame import HANG
from tests.fuzz.mutate import damaged, json_text

FAKE = str(Path(sys.executable).with_name("fake-codex"))
RECORDED = Path(__file__).parents[3] / "cassettes" / "app_server"
INITIALIZE = {"id": "first", "method": "initialize", "params": {"clientInfo": {"name": "c", "version": "1"}}}
THREAD = "01a1fa03-daf3-7c40-a0be-c9e3464a450e"
ASKED = (
    ("config/value/write", {"keyPath": "model", "value": "x", "mergeStrategy": "replace"}),
    ("thread/start", {"config": {"model": "x"}, "cwd": "/tmp", "approvalPolicy": "never"}),
    ("thread/resume", {"threadId": THREAD, "path": None, "history": None}),
    ("turn/start", {"threadId": THREAD, "input": [{"type": "text", "text": "hi", "textElements": []}]}),
    ("turn/interrupt", {"threadId": THREAD, "turnId": "0"}),
    ("account/login/start", {"type": "apiKey", "apiKey": "x"}),
    ("getConversationSummary", {"conversationId": THREAD}),
    ("newConversation", {"model": "x", "config": {"a": 1}}),
    ("sendUserMessage", {"conversationId": THREAD, "items": [{"type": "text", "data": {"text": "x"}}]}),
    ("model/list", {"cursor": None, "limit": 5}),
    ("command/exec", {"command": ["true"], "cwd": "/tmp", "timeoutMs": 5}),
)


class Target:
    """A fake-codex that stays, and what it said of the case before."""

    total, share = 100_000, 1500

    def __enter__(self) -> Target:
        self._folder = tempfile.TemporaryDirectory(prefix="codex-replay-fuzz-")
        self._said = Path(self._folder.name, "stderr").open("w+b")
        self._pending = b""
        self._number = 0
        env = {"PATH": os.environ["PATH"], "HOME": self._folder.name, **self._settings()}
        argv = [FAKE, "app-server"]
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, env=env, cwd=self._folder.name
        )
        self._out, self._in = self._process.stdout, self._process.stdin
        assert self._ask(b"", INITIALIZE) is None
        return self

    def _settings(self) -> dict[str, str]:
        """Return what makes it a replaying one: a recording whose frames never come, so that each line is looked at."""
        path = Path(self._folder.name, "fuzz.ndjson")
        with CassetteWriter(path, Header("0.92.0", "unknown", "fuzz", {"rpc": "authored"})) as writer:
            for sender, message in (("client", INITIALIZE), ("server", {"id": "first", "result": {"userAgent": "c"}})):
                writer.write(Frame(0, 0.0, "rpc", sender, raw=dumps(message) + b"\n"))
            for sample in sorted(RECORDED.rglob("text_turn.ndjson"))[:1]:
                with CassetteReader(sample) as reader:
                    for frame in list(reader)[3:]:
                        if frame.seam == "rpc":
                            writer.write(Frame(0, 0.0, "rpc", frame.sender, raw=frame.raw))
        return {"FAKE_CODEX_CASSETTE": str(path), "FAKE_CODEX_MATCH": "exact"}

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()
        self._said.close()
        self._folder.cleanup()

    def case(self, random: Random) -> bytes:
        """Return one line, or some, of a client."""
        method, params = random.choice(ASKED)
        message = {"id": random.choice((7, "x", -1)), "method": method, "params": params}
        how = random.random()
        if how < 0.7:
            data = json_text(random, message)
        elif how < 0.85:
            # A reply must not answer what was asked: the server that plays a recording ends there, and says so.
            data = json_text(random, {"id": 99, "result": {"decision": "accept"}})
        else:
            data = damaged(random, dumps(message))
        # Bytes that are no UTF-8 end its input, as they end the real server's.
        return data.decode("utf-8", "replace").encode()

    def run(self, data: bytes) -> str | None:
        """Send it, and ask something that has an answer."""
        self._number += 1
        return self._ask(data, {"id": f"after {self._number}", "method": "no/such", "params": {}})

    def _ask(self, data: bytes, question: dict[str, object]) -> str | None:
        assert self._in is not None
        assert self._out is not None
        try:
            self._in.write((data + b"\n" if data else b"") + dumps(question) + b"\n")
            self._in.flush()
        except BrokenPipeError:
            return "it has closed its input"
        wanted, until = question["id"], time.monotonic() + HANG
        while True:
            while b"\n" not in self._pending:
                if not select.select([self._out], [], [], max(0.0, until - time.monotonic()))[0]:
                    return "it hangs"
                more = os.read(self._out.fileno(), 1 << 16)
                if not more:
                    return "it has ended"
                self._pending += more
            line, self._pending = self._pending.split(b"\n", 1)
            try:
                message = json.loads(line)
            except ValueError:
                return f"it said what is no JSON: {line[:200]!r}"
            if type(message) is dict and message.get("id") == wanted:
                return None

    def pids(self) -> list[int]:
        """Return the server."""
        return [self._process.pid]

    def wrong(self) -> str | None:
        """Return a traceback, or that it cannot go on with a turn."""
        size = os.fstat(self._said.fileno()).st_size
        said = os.pread(self._said.fileno(), size, 0).decode("utf-8", "replace")
        for sign in ("Traceback", "Error(", "Error:"):
            if sign in said:
                return said[max(0, said.index(sign) - 200) :][:600]
        os.ftruncate(self._said.fileno(), 0)
        os.lseek(self._said.fileno(), 0, os.SEEK_SET)
        return None
