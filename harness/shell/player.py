"""Plays the recorded client of a cassette to a server, waiting as a client would.

Before each client frame it waits for what stood before it in the recording: the responses, the server's requests and the
notifications. Output whose pieces may come in other portions is not waited for piece by piece. Values that the live server
made up (thread ids, request ids) take the place of the recorded ones in what is sent; `/home/user`, which recordings hold for
a home directory, becomes the live one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from harness.core.frames import Frame
from harness.core.jsonrpc import is_reply, kind, label
from harness.core.match import Matcher, splice_id
from harness.core.normalise import Rules
from harness.protocol import tables
from harness.shell.client import Client, SubjectFailure


class Player:
    """One recorded client, played to one live server (`client`)."""

    def __init__(self, client: Client, places: Mapping[str, str], version: str = tables.DEFAULT_VERSION) -> None:
        """`places` maps what stands in the recording for a directory to the live directory."""
        table = tables.load("normalise", version)
        self._client = client
        self._places = sorted(places.items(), key=lambda place: -len(place[0]))
        self._matcher = Matcher(lambda: Rules(table))
        self._pieces = [rule["label"].removeprefix("rpc< ") for rule in table["deltas"]]
        self._server_ids: dict[Any, Any] = {}  # recorded id of a server request -> live one
        self._client_ids: list[Any] = []
        self._gave_up = False

    def play(self, frames: Iterable[Frame]) -> str | None:
        """Send every client frame in its turn; return a sentence if the server did not come up with what was to be waited for.

        After the first such failure nothing more is waited for long, and what can be sent still is, so that the comparison
        shows all that differs.
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
                failure = failure or str(error)
                if self._client.process.status is not None:
                    break
        return failure

    def _send(self, frame: Frame) -> None:
        raw = self._matcher.bindings.apply(frame.raw)
        for recorded, live in self._places:
            raw = raw.replace(recorded.encode(), live.encode())
        if is_reply(frame.value):
            recorded = frame.value["id"]
            raw = splice_id(raw, recorded, self._server_ids.get(_key(recorded), recorded))
        self._client.send(raw)

    def _await(self, frame: Frame) -> None:
        value = frame.value
        sort = kind(value)
        if sort == "other" or any(fnmatchcase(label(value), piece) for piece in self._pieces):
            return
        timeout = 0.2 if self._gave_up else self._client.timeout
        try:
            live = self._client.wait(
                f"{label(value)} (frame {frame.n} of the recording)", lambda it: self._fits(value, it), timeout
            )
        except SubjectFailure:
            self._gave_up = True
            raise
        self._matcher.bind(value, live)
        if sort == "request":
            self._server_ids[_key(value["id"])] = live["id"]

    def _fits(self, recorded: Any, live: Any) -> bool:
        """Tell whether a live frame is the one that stands at this place: same reply, or same method, thread and turn."""
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
