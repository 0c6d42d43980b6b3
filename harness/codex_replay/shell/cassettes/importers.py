"""Convert recordings of other tools to cassettes: the log of a tee (a program that records a pipe), and the proto-events of a
proxy.

Files of both tools are read line by line. Programs write these formats in different variants: docs/cassette-format.md lists
the accepted variants. An import never invents missing data. A payload that the other tool had shortened is marked
`"truncated": true`, and the header names the source of the frames (`"imported"`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.json_text import NotJson, dumps, loads

#: What is at the end of a string that a logger has cut.
_CUT = re.compile(r"(?:<truncated[^<>]*>|\[truncated[^\[\]]*\]|\(truncated[^()]*\))\s*\Z", re.IGNORECASE)
_MILLISECONDS = 1e11  # as seconds that would be in the year 5138


class ImportFailed(Exception):
    """A line of the imported file is invalid. The message of an `ImportFailed` is a sentence with the line number."""


class Source:
    """Count the lines that an import omits. `skipped` maps each reason to the number of omitted lines."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.skipped: dict[str, int] = {}

    def skip(self, why: str) -> None:
        """Count one line that contains no traffic."""
        self.skipped[why] = self.skipped.get(why, 0) + 1

    def fail(self, number: int, why: str) -> ImportFailed:
        """Return the `ImportFailed` error for line `number`; `why` is the reason."""
        return ImportFailed(f"{self.path}, line {number}: {why}; correct the line or choose another --format.")


Reader = Callable[[Iterable[bytes], Source], Iterator[Frame]]


def tee(lines: Iterable[bytes], source: Source) -> Iterator[Frame]:
    """Yield the frames of a tee's log, whose lines are `{"t":seconds,"dir":"c2s"|"s2c","msg":...}`.

    `msg` is the message; if `msg` is a string, it is the exact line of the traffic. Raises `ImportFailed` for an invalid line.
    """
    clock = _Clock()
    for number, entry in _objects(lines, source):
        sender = {"c2s": "client", "s2c": "server"}.get(str(entry.get("dir")))
        if sender is None:
            raise source.fail(number, f'\'dir\' is {entry.get("dir")!r} and must be "c2s" or "s2c"')
        if "msg" not in entry:
            raise source.fail(number, "there is no 'msg'")
        message = entry["msg"]
        if type(message) is str:
            raw = message.encode("utf-8", "replace")
            raw = raw if raw.endswith(b"\n") else raw + b"\n"
        else:
            raw = _line(message, source, number)
        yield Frame(0, clock.time_of(entry.get("t")), "rpc", sender, "msg", raw, extra=_mark(message))


#: A proxy's name for the kind of an event -> (sender, key of its payload in the message).
_SORTS = {
    "rpc_request": ("client", "params"),
    "rpc_notification": ("server", "params"),
    "rpc_response": ("server", "result"),
    "rpc_error": ("server", "error"),
}
_DIRECTIONS = {
    "outbound": "client", "out": "client", "c2s": "client", "client": "client", "send": "client",
    "inbound": "server", "in": "server", "s2c": "server", "server": "server", "recv": "server",
}  # fmt: skip


def proto_events(lines: Iterable[bytes], source: Source) -> Iterator[Frame]:
    """Yield the frames of a proxy's proto-events.

    Only the events `backend_submission` and `backend_io` become frames. The messages are rebuilt from method, id and payload, so
    their bytes differ from the bytes of the original traffic. Raises `ImportFailed` for a line that is not a JSON object.
    """
    clock = _Clock()
    for number, event in _objects(lines, source):
        phase = _first(event, "phase", "event", "type")
        if phase not in ("backend_submission", "backend_io"):
            source.skip(f"no backend traffic ({phase or 'unnamed'})")
            continue
        t = clock.time_of(_first(event, "ts", "t", "time", "timestamp"))
        whole = _first(event, "msg", "message", "frame")
        sender, key = _kind_of(event, phase)
        if type(whole) is dict and ("method" in whole or "id" in whole):
            message: dict[str, Any] = whole
        elif sender is None or key is None:
            source.skip(f"an event of an unknown kind ({event.get('kind') or event.get('direction') or 'unnamed'})")
            continue
        else:
            found = _message(event, key)
            if found is None:
                raise source.fail(number, f"a {phase} event has no method and no id")
            message = found
        if sender is None:
            sender = "client" if phase == "backend_submission" else "server"
        yield Frame(0, t, "rpc", sender, "msg", _line(message, source, number), extra=_mark(message, key))


READERS: dict[str, Reader] = {"tee": tee, "proto-events": proto_events}


def _kind_of(event: dict[str, Any], phase: str) -> tuple[str | None, str | None]:
    """Return the sender of the message in a proto-event, and the key of the message's payload.

    Return None for an unknown event.
    """
    if "kind" in event:
        return _SORTS.get(str(event["kind"]), (None, None))
    sender = _DIRECTIONS.get(str(_first(event, "direction", "dir")).lower())
    if phase == "backend_submission":
        return sender or "client", "params"
    for key in ("error", "result"):
        if key in event:
            return sender or "server", key
    if sender is None and _first(event, "direction", "dir") is not None:
        return None, None
    # A reply is logged with the method that it answers, so only an id without its own direction marks it.
    is_reply = sender == "server" and _first(event, "rpc_id", "id") is not None
    return sender or "server", "result" if is_reply else "params"


def _message(event: dict[str, Any], key: str) -> dict[str, Any] | None:
    method = _first(event, "method", "notification_method", "rpc_method")
    request_id = _first(event, "rpc_id", "id")
    payload = _first(event, "payload", key, "params", "body", "data")
    message: dict[str, Any] = {}
    if key in ("result", "error"):
        if request_id is None:
            return None
        return {"id": request_id, key: payload}
    if method is None:
        return None
    if request_id is not None and event.get("kind") != "rpc_notification":
        message["id"] = request_id
    message["method"] = method
    if payload is not None:
        message["params"] = payload
    return message


def _mark(message: Any, key: str | None = None) -> dict[str, Any]:
    """Return the extra keys of an imported frame: the mark "truncated" if the logging program had shortened the payload.

    A payload that is a string instead of an object was also shortened, because loggers write shortened values as strings.
    """
    payload = message.get(key or "params") if type(message) is dict else message
    cut = _is_cut(message) or (key is not None and type(payload) is str)
    return {"truncated": True} if cut else {}


def _is_cut(value: Any) -> bool:
    if type(value) is dict:
        # {"truncated": true, "preview": "..."} is how loggers replace what is too long.
        replaced = value.get("truncated") is True and any(k in value for k in ("preview", "original_length", "length", "size"))
        return replaced or any(_is_cut(inner) for inner in value.values())
    if type(value) is list:
        return any(_is_cut(inner) for inner in value)
    return type(value) is str and _CUT.search(value) is not None


def _line(message: Any, source: Source, number: int) -> bytes:
    try:
        return dumps(message) + b"\n"
    except ValueError as error:
        raise source.fail(number, f"the message cannot be written as JSON ({error})") from None


def _first(event: dict[str, Any], *keys: str) -> Any:
    return next((event[key] for key in keys if event.get(key) is not None), None)


def _objects(lines: Iterable[bytes], source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = loads(line)
        except NotJson as error:
            if not line.endswith(b"\n"):
                source.skip("an unfinished last line")
                return
            raise source.fail(number, f"it is not JSON ({error})") from None
        if type(entry) is not dict:
            raise source.fail(number, "it is not a JSON object")
        yield number, entry


class _Clock:
    """Convert the times in a log (seconds, milliseconds since 1970, ISO text) to seconds since the first line.

    The resulting times never decrease.
    """

    def __init__(self) -> None:
        self._start: float | None = None
        self._last = 0.0

    def time_of(self, given: Any) -> float:
        """Return the time of an entry; an entry without a time gets the time of the previous entry."""
        stamp = _stamp(given)
        if stamp is None:
            return self._last
        if self._start is None:
            # Small numbers already count from the beginning of the recording.
            self._start = stamp if stamp > 1e8 else 0.0
        self._last = max(self._last, round(stamp - self._start, 6))
        return self._last


def _stamp(given: Any) -> float | None:
    if type(given) is str:
        try:
            return datetime.fromisoformat(given).timestamp()
        except ValueError:
            return None
    if type(given) not in (int, float) or given < 0:
        return None
    return given / 1000 if given > _MILLISECONDS else float(given)
