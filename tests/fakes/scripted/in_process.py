"""The scripted fake without its process: what a client sends is answered at once, so that its table can be changed under it."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

from codex_fakes.scripted.methods.table import handler_of
from codex_fakes.scripted.session import Session
from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.json_text import dumps
from codex_replay.core.wire.jsonrpc import is_reply, kind


class InProcess:
    """Stands where `codex_replay.shell.rpc.client.Client` stands; `table` (turn.json) may be another one."""

    experimental = False
    unwanted = frozenset[str]()
    gaps = 0.0
    at_end = False
    user_agent = "codex-replay/0.92.0 (Linux 6; x86_64) unknown (codex-replay; 1.0.0)"

    def __init__(self, script: Path | None, home: Path, work: str, table: Any = None) -> None:
        self.timeline: list[Frame] = []
        self._taken: set[int] = set()
        self._ids = 0
        self.session = Session(self, handler_of, str(script) if script else None, None, str(home), [], work)
        if table is not None:
            self.session.table = table

    # -- what a session needs of a server

    def write_out(self, frame: dict[str, Any]) -> None:
        self._add("server", frame)

    def delay_output(self, seconds: float) -> None:
        pass

    def answer_error(self, request_id: Any, error: dict[str, Any]) -> None:
        self._add("server", {"error": error, "id": request_id})

    def _add(self, sender: str, message: Any) -> None:
        self.timeline.append(Frame(len(self.timeline) + 1, 0.0, "rpc", sender, "msg", dumps(message) + b"\n"))

    # -- what a conversation needs of a client

    def send(self, message: Any) -> None:
        self._add("client", message)
        if message.get("method") == "initialize":
            self.write_out({"id": message["id"], "result": {"userAgent": self.user_agent}})
        elif kind(message) != "notification":
            self.session.receive(message)

    def notify(self, method: str) -> None:
        self.send({"method": method})

    def post(self, method: str, params: Any) -> Any:
        self._ids += 1
        self.send({"id": self._ids - 1, "method": method, "params": params})
        return self._ids - 1

    def call(self, method: str, params: Any) -> Any:
        number = self.post(method, params)
        return self.wait(f"the reply to {method}", lambda m: is_reply(m) and m["id"] == number)

    def request(self, method: str, params: Any) -> Any:
        return self.call(method, params)["result"]

    def reply(self, request: Any, result: Any) -> None:
        self.send({"id": request["id"], "result": result})

    def wait(self, what: str, matches: Callable[[Any], bool]) -> Any:
        while True:
            for frame in self.timeline:
                if frame.sender == "server" and frame.n not in self._taken and matches(frame.value):
                    self._taken.add(frame.n)
                    return deepcopy(frame.value)
            before = len(self.timeline)
            self.session.advance()
            if len(self.timeline) == before and not self.session.may_advance:
                due = self.session.next_due()
                if due is None:
                    raise AssertionError(f"{what} never comes")
                time.sleep(max(0.0, due - time.monotonic()))
