"""Play the recorded client of a cassette to a live server, and wait for the server's answers as a real client does.

Before each client frame, the player waits for all server frames before it in the recording: responses, requests and
notifications. Because output may come in other chunks than in the recording, the player waits only for the first output
chunk of each item. In the sent frames, values of the live server (thread ids, request ids) replace the recorded values.
`/home/user`, the home directory in recordings, becomes the live home directory. If the recorded server repeated a message
by chance, the player waits only once for the message.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container, Iterable, Mapping
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
    """A player of one recorded client against one live server. `client` is the connection to the live server."""

    def __init__(
        self, client: Client, places: Mapping[str, str], version: str = versions.DEFAULT, absent: Container[str] = ()
    ) -> None:
        """`places` maps the name of a directory in the recording to the live directory.

        The player does not wait for frames whose method is in `absent`, because the live server does not have these
        methods.
        """
        self._absent = absent
        table, _ = data_tables.choose("normalise", version)
        self._client = client
        self._matcher = Matcher(lambda: Rules(table))
        for recorded, live in places.items():
            self._matcher.bindings.pair_path(recorded, live)
        self._pieces = [rule["label"].removeprefix("rpc< ") for rule in table["deltas"]]
        self._repeats = {rule["label"].removeprefix("rpc< "): rule["has"].encode() for rule in table["repeats"]}
        self._last: Any = None  # the recorded frame of the server before this one: its label and its params
        self._begun: set[tuple[str, str | None]] = set()  # kinds of pieces, and the items of which one has been waited for
        self._server_ids: dict[Any, Any] = {}  # recorded id of a server request -> live one
        self._never_asked: set[str] = set()  # recorded ids of server requests that the live server did not make
        self._asked: dict[str, str] = {}  # id of a request of the client's -> what it is
        self._refused: list[str] = []  # requests that the live server refused, and the recorded one did not, in sentences
        self._gave_up = False
        self._missed = 0  # frames in a row that did not come

    def play(self, frames: Iterable[Frame], reached: Mapping[int, Callable[[], None]] | None = None) -> str | None:
        """Send every recorded client frame in order.

        Return a sentence if the server did not send an awaited message. After the first missing message, the time limits
        become shorter, and finally zero. After a missing message, the remaining frames are still sent, so that the
        comparison shows every difference. `reached` maps the number of a frame to a function: it is called when all frames
        before that frame have been sent or received.
        """
        failure: str | None = None
        for frame in frames:
            if reached and frame.n in reached:
                reached[frame.n]()
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
        if not raw.endswith(b"\n"):
            self._client.end_input()  # only the end of its input can have ended this line

    def _await(self, frame: Frame) -> None:
        value = frame.value
        sort = kind(value)
        if sort == "other" or self._is_repeated(frame):
            return
        if value.get("method") in self._absent:
            if sort == "request":
                self._never_asked.add(repr(value["id"]))
            return
        if any(fnmatchcase(label(value), piece) for piece in self._pieces):
            item = (label(value), _call(value))
            if item in self._begun:
                return
            self._begun.add(item)
        timeout = self._client.timeout if not self._gave_up else BRIEF if self._missed < PATIENCE else 0.0
        try:
            live = self._wait(f"{label(value)} (frame {frame.n} of the recording)", value, timeout)
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
        self._bind_results(value.get("result"), live.get("result"))
        if sort == "request":
            self._server_ids[_key(value["id"])] = live["id"]

    def _is_repeated(self, frame: Frame) -> bool:
        """Return True for a frame that the recorded server has repeated by chance.

        The table of the Codex version lists the frames that a server may repeat by chance.
        """
        last, self._last = self._last, (label(frame.value), frame.value.get("params"))
        has = self._repeats.get(self._last[0])
        return has is not None and has in frame.raw and last == self._last

    def _wait(self, what: str, recorded: Any, timeout: float) -> Any:
        """Wait for the live frame that corresponds to a recorded frame.

        Two server requests of one kind may come in either order, so they are matched by the ids of their calls.
        """
        if kind(recorded) == "request" and (call := _call(recorded)) is not None:
            with contextlib.suppress(SubjectFailure):
                return self._client.wait(what, lambda it: self._fits(recorded, it) and _call(it) == call, min(BRIEF, timeout))
        return self._client.wait(what, lambda it: self._fits(recorded, it), timeout)

    def _bind_results(self, recorded: Any, live: Any) -> None:
        """Bind the values in a result that the client sends back: the cursors of further pages, and the ids of threads and turns.

        Cursors contain a time, so they differ between runs. Equal ids are bound, too, because an earlier frame of another
        thread could otherwise count as a frame of the same thread.
        """
        if type(recorded) is not dict or type(live) is not dict:
            return
        for key, ours in recorded.items():
            theirs = live.get(key)
            if key in ("thread", "turn") and type(ours) is dict and type(theirs) is dict:
                ours, theirs = ours.get("id"), theirs.get("id")
            elif not key.lower().endswith("cursor"):
                continue
            if type(ours) is str and type(theirs) is str:
                self._matcher.bindings.pair(ours, theirs)

    def _refusal(self, recorded: Any, error: Any) -> None:
        """Record that the live server refused a request that the recorded server accepted, because the refusal explains missing
        frames.
        """
        what = self._asked.get(repr(recorded["id"]), f"The request {recorded['id']!r}")
        result = recorded["result"]
        if type(result) is dict and ("thread" in result or "conversationId" in result):
            self._gave_up = True  # without its thread nothing that is worth a wait will come
        message = error.get("message") if type(error) is dict else None
        self._refused.append(f"{what} was refused: {truncate(message if type(message) is str else dumps(error).decode(), 200)}.")

    def _fits(self, recorded: Any, live: Any) -> bool:
        """Return True if a live frame is the expected one: a reply with the same id, or a message with the same method, thread
        and turn.
        """
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


def _at(message: dict[str, Any], path: tuple[str, ...]) -> str | None:
    value: Any = message.get("params")
    for key in path:
        value = value.get(key) if type(value) is dict else None
    return value if type(value) is str else None


def _call(message: dict[str, Any]) -> str | None:
    """Return the id of the call or item that a message names."""
    return _at(message, ("callId",)) or _at(message, ("itemId",)) or _at(message, ("msg", "call_id"))


def _key(request_id: Any) -> Any:
    return (type(request_id), request_id)
