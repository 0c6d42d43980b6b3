"""List the effects that a replay against a real server can have on this computer: commands, patches, programs.

A cassette may come from somebody else. In a recording, the model requests commands, and the client sends its approval
policy, its sandbox and its "accept". A real server would run the commands of the recording, with the recorded policy and
sandbox. A user should read a cassette before replaying it against a real server. Tools that are known to have no effect are
left out; unknown tools count, because each version of Codex has different tools.

Source: docs/contract/real-0.92.md, sections 2 to 4 (the tools of 0.92.0, `command/exec`, the configuration that a client may
send).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.cassette.http_frames import sse_bytes
from codex_replay.core.cassette.ws_frames import value_of
from codex_replay.core.redact.encoded_body import opened
from codex_replay.core.text.escape import escape
from codex_replay.core.wire.json_text import NotJson, compact, loads
from codex_replay.core.wire.sse import Decoder

#: Items of an answer that the server carries out, and where each has what it is to do.
CALLS = {"function_call": "arguments", "custom_tool_call": "input", "local_shell_call": "action"}
#: Tools with which the server only informs or asks its client.
HARMLESS = {"update_plan", "request_user_input"}
#: Methods by which a client has the server run a command without a model.
COMMANDS = {"command/exec", "execOneOffCommand"}
#: Settings that name programs which the server starts.
PROGRAMS = ("mcp_servers", "notify")
SHOWN = 100


@dataclass(frozen=True)
class Effect:
    """One effect on this computer that a real server would have in a replay.

    `where` is the place in the cassette; `what` is a short, printable description of the request.
    """

    where: str
    what: str


def effects(frames: Iterable[Frame], script: Any = None, config: Any = None) -> list[Effect]:
    """Return the effects on this computer that a real server would have when it replays the given frames, each effect once, in
    order.

    All HTTP frames are taken as answers of the model: pass only HTTP frames that the model will send. `script` is the
    script that answers instead of the recording, and `config` is the configuration of the server. `script` and `config`
    come from the header of the cassette, and may be None.
    """
    found = [*_programs(config, "the header"), *_calls(script, "the script in the header")]
    bodies: dict[int | None, _Body] = {}
    for frame in frames:
        if frame.seam == "rpc":
            if frame.sender == "client":
                found += _asked(frame)
        elif frame.kind == "request":
            found += _body_calls(bodies.pop(frame.conn, None))
        elif frame.sender == "server" and frame.kind == "ws":
            found += _calls(value_of(frame.payload), f"frame {frame.n}")
        elif frame.sender == "server" and frame.kind in ("sse", "chunk"):
            bodies.setdefault(frame.conn, _Body(frame.n)).add(frame)
    for body in bodies.values():
        found += _body_calls(body)
    once = {effect.what: effect for effect in reversed(found)}  # a call is reported when it begins, and again when it is complete
    return [effect for effect in found if once[effect.what] is effect]


def _asked(frame: Frame) -> Iterator[Effect]:
    where, message = f"frame {frame.n}", frame.value
    if not isinstance(message, dict):
        return
    if type(message.get("method")) is str and message["method"] in COMMANDS:
        yield Effect(where, f"{message['method']} {_short(message.get('params'))}")
    yield from _programs(message.get("params"), where)


def _programs(value: Any, where: str) -> Iterator[Effect]:
    """Find settings that name programs: in tables, in dotted names, or in the key path of a `config/value/write`."""
    for one in _objects(value):
        for key, under in one.items():
            named = under if key == "keyPath" and isinstance(under, str) else key
            if named.split(".")[0] in PROGRAMS and under:
                yield Effect(where, f"{named} {_short(one if key == 'keyPath' else under)}")


def _calls(value: Any, where: str) -> Iterator[Effect]:
    for one in _objects(value):
        kind = one.get("type")
        if isinstance(kind, str) and kind in CALLS and one.get("name") not in HARMLESS:
            what = one.get(CALLS[kind])
            if what not in (None, ""):  # an announced call is still empty; it comes again
                yield Effect(where, f"{one.get('name', kind)} {_short(what)}")


class _Body:
    """The body of one HTTP answer, joined from its frames; `n` is the number of the first frame."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.data = bytearray()

    def add(self, frame: Frame) -> None:
        with contextlib.suppress(ValueError):  # left out of the recording, or nothing that could be served
            self.data += sse_bytes(frame.payload) if frame.kind == "sse" else opened(frame.payload)[0]


def _body_calls(body: _Body | None) -> Iterator[Effect]:
    if body is None:
        return
    decoder = Decoder()
    data = bytes(body.data)
    texts = [data, *(block.data or b"" for block in (*decoder.feed(data), *decoder.close()))]
    for text in texts:
        try:
            value = loads(text)
        except NotJson:
            continue
        yield from _calls(value, f"frame {body.n} and after")


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield each object in a JSON value; an outer object comes before the objects inside of it."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
            waiting += reversed(list(one.values()))
        elif isinstance(one, list):
            waiting += reversed(one)


def _short(value: Any) -> str:
    """Return a value on one line, without control characters, because the value comes from another program."""
    text = value if isinstance(value, str) else compact(value)
    text = escape(text)
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."
