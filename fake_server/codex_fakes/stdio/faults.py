"""The faults of an app-server by name: errors that a client must survive, or at least report.

`FAKE_CODEX_FAULT=NAME` or `NAME:SEED` selects a fault. `FAKE_CODEX_FAULT=list` prints all faults. A fault changes the lines
of a replaying or scripted server, or the way in which they are written. The place of the fault in the conversation depends
only on the seed, so that a run can be repeated.
"""

from __future__ import annotations

import sys
import time
from _random import Random
from posix import getpid, kill, read

from codex_replay.core.text.numbers import whole_number
from codex_replay.core.wire.json_text import NotJson, dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Change = Callable[["Fault", bytes, Any], list[bytes]]

HUGE = 16 * 1024 * 1024
SLOW_START = 2.0  # seconds


class Chance(Random):
    """Return the same random numbers for a seed as the standard module `random`, whose import takes as long as a start of
    fake-codex.
    """

    def randint(self, low: int, high: int) -> int:
        """Return a random whole number from `low` to `high`, both included. Raises `ValueError` for an empty range."""
        width = high - low + 1
        if width < 1:
            raise ValueError(f"empty range from {low} to {high}")
        found = self.getrandbits(width.bit_length())
        while found >= width:
            found = self.getrandbits(width.bit_length())
        return low + found


class Fault:
    """One fault that is switched on. For each line, `chunks` returns the byte strings that are written in place of the line."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.random = Chance(seed)
        self.over = False  # nothing follows the lines that were already written
        self.status: int | None = None
        self.lines = 0
        self.turn_lines = 0  # lines since a turn began; 0 before
        #: The fault strikes once, after so many lines of the first turn.
        self.at = self.random.randint(2, 9)
        self.struck = False
        self._sentence, self._change, self._options = FAULTS[name]
        self.slow = "slow" in self._options

    def begin(self) -> None:
        """Apply a fault that occurs before the first line is read."""
        if "slow-start" in self._options:
            time.sleep(SLOW_START)

    def chunks(self, raw: bytes) -> list[bytes]:
        """Return the bytes to write in place of one line."""
        try:
            value = loads(raw)
        except NotJson:
            value = None
        self.lines += 1
        method = value.get("method") if isinstance(value, dict) else None
        if self.turn_lines or method in ("turn/started", "codex/event/task_started"):
            self.turn_lines += 1
        pieces = self._change(self, raw, value)
        return [cut for piece in pieces for cut in self._cut(piece)] if self.slow else pieces

    def here(self) -> bool:
        """Return True once, for the line at which the fault occurs."""
        if self.struck or self.turn_lines < self.at:
            return False
        self.struck = True
        return True

    def _cut(self, piece: bytes) -> list[bytes]:
        size = self.random.randint(1, 60)
        return [piece[i : i + size] for i in range(0, len(piece), size)]

    def end(self, status: int | None) -> None:
        """Exit with the given status when the waiting output is written."""
        self.over, self.status = True, status

    def strike(self) -> None:
        """Apply a fault that occurs after the last bytes are written: exit, or hang until the client closes stdin."""
        if "kill" in self._options:
            from signal import SIGKILL

            kill(getpid(), SIGKILL)
        if "hang" in self._options:
            while read(0, 1 << 16):
                pass

    @staticmethod
    def rest() -> None:
        """Wait between two chunks, so that the client reads the first chunk separately."""
        time.sleep(0)


def fault_of(text: str) -> Fault:
    """Return the fault that `FAKE_CODEX_FAULT` names.

    For the name `list`, print the table of all faults. Raises `ValueError` for an unknown fault.
    """
    name, _, seed = text.partition(":")
    if name == "list":
        sys.stdout.write("".join(f"{name:24}{sentence}\n" for name, (sentence, _, _) in FAULTS.items()))
        sys.stdout.flush()
        raise SystemExit(0)
    if name not in FAULTS:
        raise ValueError(f"FAKE_CODEX_FAULT is {text!r}; it must be NAME or NAME:SEED, and the names are {', '.join(FAULTS)}.")
    number = whole_number(seed or "0")
    if number is None:
        raise ValueError(f"FAKE_CODEX_FAULT is {text!r}; the seed after the colon must be a whole number.")
    return Fault(name, number)


def _plain(fault: Fault, raw: bytes, value: Any) -> list[bytes]:
    return [raw]


def _ends(status: int | None) -> Change:
    def change(fault: Fault, raw: bytes, value: Any) -> list[bytes]:
        if fault.here():
            fault.end(status)
        return [raw]

    return change


def _inserts(make: Callable[[Fault], bytes]) -> Change:
    def change(fault: Fault, raw: bytes, value: Any) -> list[bytes]:
        return [make(fault), raw] if fault.here() else [raw]

    return change


def _here_within(fault: Fault, raw: bytes) -> bool:
    """Return True once: for the line inside which the fault occurs.

    If that line is too short to be cut, the next line is used.
    """
    return len(raw) > 2 and fault.here()


def _half_line(fault: Fault, raw: bytes, value: Any) -> list[bytes]:
    if _here_within(fault, raw):
        return [raw[: fault.random.randint(1, len(raw) - 2)] + b"\n", raw]
    return [raw]


def _dies_in_line(fault: Fault, raw: bytes, value: Any) -> list[bytes]:
    if not _here_within(fault, raw):
        return [raw]
    fault.end(1)
    return [raw[: fault.random.randint(1, len(raw) - 2)]]


def _handshake(answer: Callable[[Any], bytes], status: int | None) -> Change:
    def change(fault: Fault, raw: bytes, value: Any) -> list[bytes]:
        if fault.lines > 1:
            return [raw]
        if status is not None:
            fault.end(status)
        return [answer(value)]

    return change


def _is_response(value: Any) -> bool:
    return isinstance(value, dict) and "method" not in value and "id" in value


def _response(alter: Callable[[Any], list[bytes]]) -> Change:
    """Change all responses except the response to initialize."""

    def change(fault: Fault, raw: bytes, value: Any) -> list[bytes]:
        return alter(value) if fault.lines > 1 and _is_response(value) else [raw]

    return change


def _other_id(value: Any) -> list[bytes]:
    other = value["id"] + 1000 if isinstance(value["id"], int) else value["id"] + "x"
    return [dumps({**value, "id": other}) + b"\n"]


def _id_of_other_type(value: Any) -> list[bytes]:
    other: Any = str(value["id"]) if isinstance(value["id"], int) else 0
    return [dumps({**value, "id": other}) + b"\n"]


def _doubled(fault: Fault, raw: bytes, value: Any) -> list[bytes]:
    if isinstance(value, dict) and "method" in value and "id" not in value and fault.here():
        return [raw, raw]
    return [raw]


def _without(*methods: str) -> Change:
    def change(fault: Fault, raw: bytes, value: Any) -> list[bytes]:
        return [] if isinstance(value, dict) and value.get("method") in methods else [raw]

    return change


def _early_completed(fault: Fault, raw: bytes, value: Any) -> list[bytes]:
    """Send turn/completed twice: after the start of the turn, and at the end of the turn."""
    if fault.here() and isinstance(value, dict):
        params = value.get("params") or {}
        thread = params.get("threadId") or params.get("conversationId")
        turn: dict[str, Any] = {
            "id": params.get("turnId") or params.get("id") or "0",
            "items": [],
            "status": "completed",
            "error": None,
        }
        early = {"method": "turn/completed", "params": {"threadId": thread, "turn": turn}}
        return [dumps(early) + b"\n", raw]
    return [raw]


def _snake_case(fault: Fault, raw: bytes, value: Any) -> list[bytes]:
    if isinstance(value, dict) and "method" in value and not value["method"].startswith("codex/event/"):
        return [dumps({**value, "params": snake(value.get("params"))}) + b"\n"]
    return [raw]


def snake(value: Any) -> Any:
    """Return a value with the keys of all its objects in snake_case."""
    if isinstance(value, dict):
        return {"".join("_" + c.lower() if c.isupper() else c for c in key): snake(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [snake(inner) for inner in value]
    return value


def _with_jsonrpc(fault: Fault, raw: bytes, value: Any) -> list[bytes]:
    return [dumps({"jsonrpc": "2.0", **value}) + b"\n"] if isinstance(value, dict) else [raw]


def _unknown_request(fault: Fault) -> bytes:
    return dumps({"method": "fake/unknownRequest", "id": 9999, "params": {}}) + b"\n"


def _huge(fault: Fault) -> bytes:
    return b'{"method":"fake/huge","params":{"padding":"' + b"x" * HUGE + b'"}}\n'


def _garbage(fault: Fault) -> bytes:
    return bytes(fault.random.randint(0x80, 0xFF) for _ in range(40)) + b" not json\n"


def _refuse(value: Any) -> bytes:
    error = {"code": -32603, "message": "fake-codex: this server does not start"}
    return dumps({"error": error, "id": value.get("id") if isinstance(value, dict) else None}) + b"\n"


#: name -> (what it does, how it changes a line, options: slow, slow-start, hang, kill)
FAULTS: dict[str, tuple[str, Change, tuple[str, ...]]] = {
    "exit-at-handshake": ("Exits with status 1 in place of answering initialize.", _handshake(lambda _: b"", 1), ()),
    "error-at-handshake": ("Answers initialize with an error.", _handshake(_refuse, None), ()),
    "slow-start": (f"Reads nothing for {SLOW_START:g} seconds after its start.", _plain, ("slow-start",)),
    "dies-in-turn": ("Exits with status 1 in the middle of a turn.", _ends(1), ()),
    "killed-in-turn": ("Is killed (SIGKILL) in the middle of a turn.", _ends(None), ("kill",)),
    "dies-in-line": ("Exits in the middle of a line, in the middle of a turn.", _dies_in_line, ()),
    "hangs-in-turn": ("Hangs in the middle of a turn; exits when its stdin ends.", _ends(0), ("hang",)),
    "split-bytes": ("Writes every line in chunks, split at any byte, even within a character.", _plain, ("slow",)),
    "garbage-line": ("The server writes a line that is not UTF-8 and not JSON.", _inserts(_garbage), ()),
    "half-line": ("Writes the first half of a message as a separate line, then the whole message.", _half_line, ()),
    "blank-lines": ("Writes a blank line before every message.", lambda fault, raw, value: [b"\n", raw], ()),
    "crlf": ("The server ends its lines with CR LF.", lambda fault, raw, value: [raw.rstrip(b"\n") + b"\r\n"], ()),
    "huge-line": ("Writes one line of 16 MB, an unknown notification.", _inserts(_huge), ()),
    "stray-ready": (
        'Writes {"event":"ready"} before the first message and within a turn.',
        lambda fault, raw, value: [b'{"event":"ready"}\n', raw] if fault.lines == 1 or fault.here() else [raw],
        (),
    ),
    "unknown-notification": (
        "Sends an unknown notification.",
        _inserts(lambda fault: b'{"method":"fake/unknown","params":{"x":1}}\n'),
        (),
    ),
    "unknown-request": ("Sends an unknown request, which the client must refuse.", _inserts(_unknown_request), ()),
    "wrong-id": ("Answers every request except initialize with another id.", _response(_other_id), ()),
    "id-of-other-type": ('Answers every request except initialize with its id as a string.', _response(_id_of_other_type), ()),
    "no-response": ("Answers only initialize.", _response(lambda value: []), ()),
    "doubled-response": ("Answers each request twice, except `initialize`.", _response(lambda v: [dumps(v) + b"\n"] * 2), ()),
    "doubled-event": ("Sends one notification of a turn twice.", _doubled, ()),
    "missing-turn-started": ("Omits turn/started.", _without("turn/started", "codex/event/task_started"), ()),
    "missing-turn-completed": ("Omits turn/completed.", _without("turn/completed", "codex/event/task_complete"), ()),
    "early-turn-completed": ("Sends turn/completed in the middle of the turn, and again at its end.", _early_completed, ()),
    "missing-item-completed": ("Omits every item/completed.", _without("item/completed", "codex/event/item_completed"), ()),
    "missing-deltas": (
        "Omits every delta of a message: the whole text comes with item/completed.",
        _without("item/agentMessage/delta", "codex/event/agent_message_delta", "codex/event/agent_message_content_delta"),
        (),
    ),
    "snake-case": ("Writes the keys of params in snake_case, also in item/* and turn/*.", _snake_case, ()),
    "jsonrpc-member": ('Adds "jsonrpc":"2.0" to every message.', _with_jsonrpc, ()),
}  # fmt: skip
