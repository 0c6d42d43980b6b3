"""Plays the recorded client of a cassette to a server, waiting as a client would.

Before each client frame it waits for what stood before it in the recording: the responses, the server's requests and the
notifications. Output whose pieces may come in other portions is not waited for piece by piece. Values that the live server
made up (thread ids, request ids) replace the recorded ones in the sent frames; `/home/user`, which recordings have for
a home directory, becomes the live one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.normalise.normaliser import Rules
from codex_replay.core.replay.match import Matcher, splice_id
from codex_replay.core.text.truncate import truncate
from codex_replay.core.wire.json_text import dumps
from codex_replay.core.wire.jsonrpc import is_reply, kind, label
from codex_replay.protocol import data_tables, versions
from codex_replay.shell.rpc.client import Client, SubjectFailure

#: How long a frame is waited for when one has not come, in seconds, and how many such frames in a row: after them the rest will
#: hardly come either, and a long recording would be played for minutes to show what is known already.
BRIEF, PATIENCE = 0.2, 10


class Player:
    """One recorded client, played to one live server (`client`)."""

    def __init__(self, client: Client, places: Mapping[str, str], version: str = versions.DEFAULT) -> None:
        """`places` maps the name of a directory in the recording to the live directory."""
        table, _ = data_tables.choose("normalise", version)
        self._client = client
        self._matcher = Matcher(lambda: Rules(table))
        for recorded, live in places.items():
            self._matcher.bindings.pair_path(recorded, live)
        self._pieces = [rule["label"].removeprefix("rpc< ") for rule in table["deltas"]]
        self._server_ids: dict[Any, Any] = {}  # recorded id of a server request -> live one
        self._never_asked: set[str] = set()  # recorded ids of server requests that the live server did not make
        self._asked: dict[str, str] = {}  # id of a request of the client's -> what it is
        self._refused: list[str] = []  # requests that the live server refused, and the recorded one did not, in sentences
        self._gave_up = False
        self._missed = 0  # frames in a row that did not come

    def play(self, frames: Iterable[Frame]) -> str | None:
        """Send every client frame in its turn; return a sentence if the server did not send an awaited message.

        After the first such failure the time limits become shorter, and finally zero. The remaining frames are still sent, so
        that the comparison shows every difference.
        """
        failure: str | None = None
        for frame in frames:
            if frame.seam != "rpc":
                continue
            try:
                if frame.sender == "client":
                    self._send(frame)
                else:
                    self._await(frame)
            except SubjectFailure as error:
                failure = failure or " ".join([*self._refused, str(error)])
                if self._client.process.status is not None:
                    break
        return failure

    def _send(self, frame: Frame) -> None:
        sort = kind(frame.value)
        if sort in ("response", "error") and repr(frame.value["id"]) in self._never_asked:
            return  # a client answers no request that has not come
        if sort == "request":
            self._asked[repr(frame.value["id"])] = f"{label(frame.value)} (frame {frame.n} of the recording)"
        raw = self._matcher.bindings.apply(frame.raw)
        if is_reply(frame.value):
            recorded = frame.value["id"]
            raw = splice_id(raw, recorded, self._server_ids.get(_key(recorded), recorded))
        self._client.send(raw)

    def _await(self, frame: Frame) -> None:
        value = frame.value
        sort = kind(value)
        if sort == "other" or any(fnmatchcase(label(value), piece) for piece in self._pieces):
            return
        timeout = self._client.timeout if not self._gave_up else BRIEF if self._missed < PATIENCE else 0.0
        try:
            live = self._client.wait(
                f"{label(value)} (frame {frame.n} of the recording)", lambda it: self._fits(value, it), timeout
            )
        except SubjectFailure:
            self._gave_up = True
            self._missed += 1
            if sort == "request":
                self._never_asked.add(repr(value["id"]))
            raise
        if sort == "response" and kind(live) == "error":
            self._refusal(value, live["error"])
        else:
            self._missed = 0
        self._matcher.bind(value, live)
        if sort == "request":
            self._server_ids[_key(value["id"])] = live["id"]

    def _refusal(self, recorded: Any, error: Any) -> None:
        """Keep what the live server refuses and the recorded one did not: that is why other frames do not come."""
        what = self._asked.get(repr(recorded["id"]), f"The request {recorded['id']!r}")
        result = recorded["result"]
        if type(result) is dict and ("thread" in result or "conversationId" in result):
            self._gave_up = True  # without its thread nothing that is worth a wait will come
        message = error.get("message") if type(error) is dict else None
        self._refused.append(f"{what} was refused: {truncate(message if type(message) is str else dumps(error).decode(), 200)}.")

    def _fits(self, recorded: Any, live: Any) -> bool:
        """Return True if a live frame is the one that is at this place: same reply, or same method, thread and turn."""
        if is_reply(recorded):
            return is_reply(live) and _key(live["id"]) == _key(recorded["id"])
        if kind(live) != kind(recorded) or live["method"] != recorded["method"]:
            return False
        return all(self._agrees(_at(recorded, path), _at(live, path)) for path in _PLACES)

    def _agrees(self, recorded: Any, live: Any) -> bool:
        if type(recorded) is str and type(live) is str:
            return recorded == live or self._matcher.bindings.agrees(recorded, live) is not False
        return type(recorded) is type(live)


_PLACES = (("threadId",), ("conversationId",), ("turnId",), ("turn", "id"), ("id",), ("item", "type"), ("msg", "item", "type"))


def _at(message: dict[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = message.get("params")
    for key in path:
        value = value.get(key) if type(value) is dict else None
    return value if type(value) is str else None


def _key(request_id: Any) -> Any:
    return (type(request_id), request_id)
