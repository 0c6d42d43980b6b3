"""What two runs of a conversation with a later version differ in: as normalised, with named allowances (`ALLOWANCES`).

They are what the real 0.169.0 does by chance. This is the one list of them for the scenarios of `later` and `later_corners`:

- calls of one reply begin in no fixed order: their requests are sorted by call (`in_order`; 5 of 20 runs of four calls began them
  in another order than that of the reply);
- the usage of a reply may be lost, if the client interrupts the turn while the reply is read: a call is asked for before the
  rest of its reply has come (`without_lost_usage`; 13 of 20 runs, with three calls behind the one that was asked for; 2 of 27
  runs of an interrupt at the first delta of a message, on a loaded machine);
- the end of the item that was begun last may be lost, if the client interrupts the turn meanwhile (`without_lost_ends`; 1 of 27
  runs of an interrupt at the first delta of a message, on a loaded machine);
- the warning about an amendment comes before or after the thread goes on (`warned_late`; both orders in one recorded run);
- the end of a call that the client does not approve comes before or after the thread goes on (`ended_late`; 2 of 54 runs, on a
  loaded machine);
- in an ephemeral thread, the reply to turn/start may come after turn/started (`answered_late`; 1 of 10 runs);
- the warning about a setting comes before or after thread/started (`warned_first`; both orders in each probe of 50 starts);
- a command may print after the first moment, and then its output is also sent on its own (`without_deltas`);
- what a command of the client prints comes in any number of pieces, and may overtake the reply to its input (`in_one_piece`);
- a command that goes on and is killed has the exit code -1, in some runs 1 (`killed`; 2 of about 70 runs).

`allowances` returns the names of those that two runs need; `count_later` prints how often each was needed, apart from what was
equal at a second try only, which no list names.

And two are named in docs/fake-codex.md: the cursors of the fake count turns and items, and the tokens of a compacted context
are an estimate (`masked`).
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.json_text import dumps
from codex_replay.protocol.recordings.compare import compare

VERSION = "0.169.0"
#: What only the real server can know: the ids of its processes and of its installation, and cursors: those of turns and items
#: count the lines of a thread's file, which the fake does not write.
OPAQUE = (
    "processId", "installationId", "cursor", "nextCursor", "backwardsCursor", "turnsBackwardsCursor", "itemsBackwardsCursor",
    "modifiedAtMs",
)  # fmt: skip
_USAGE = ("thread/tokenUsage/updated", "account/rateLimits/updated")


def differences(real: list[Frame], fake: list[Frame]) -> list[str]:
    """Return a sentence for each difference; the fake does not send the raw items that open a thread."""
    return _differences(real, fake, tuple(ALLOWANCES))


def allowances(real: list[Frame], fake: list[Frame]) -> list[str]:
    """Return the names of the allowances without which the two would differ, or differ more."""
    if not _differences(real, fake, ()):
        return []
    found = len(differences(real, fake))
    names = tuple(ALLOWANCES)
    return [name for name in names if len(_differences(real, fake, tuple(n for n in names if n != name))) > found]


def _differences(real: list[Frame], fake: list[Frame], names: tuple[str, ...]) -> list[str]:
    sides = [masked([f for f in frames if not _opens(f.value)]) for frames in (real, fake)]
    for name in names:
        allow = ALLOWANCES[name]
        counts = [sum(_method(f) in LOST.get(allow, ()) for f in frames) for frames in sides]
        if allow not in LOST or counts[0] != counts[1]:
            sides = [allow(frames) for frames in sides]
    return [difference.sentence() for difference in compare(*sides, VERSION).differences]


def masked(frames: list[Frame]) -> list[Frame]:
    """Return the frames without the values of `OPAQUE`, of which stays whether they are null."""

    def mask(value: Any) -> Any:
        if isinstance(value, dict) and value.get("totalTokens") and not (value["inputTokens"] or value["outputTokens"]):
            return {**value, "totalTokens": "estimated"}
        if isinstance(value, dict):
            return {k: "opaque" if k in OPAQUE and v is not None else mask(v) for k, v in value.items()}
        if isinstance(value, str) and value.startswith("invalid cursor: {"):
            return "invalid cursor: opaque"
        if isinstance(value, str) and value.startswith("https://auth.openai.com/"):
            return re.sub("(code_challenge|state)=[^&]*", r"\1=opaque", value)
        if isinstance(value, str):  # numbers of commands that go on
            return re.sub(r'(session ID |"session_id": ?|process id )[0-9]+', r"\1opaque", value)
        return [mask(one) for one in value] if isinstance(value, list) else value

    return [_with(frame, mask(frame.value)) for frame in frames]


def in_order(frames: list[Frame]) -> list[Frame]:
    """Sort the frames that begin dynamic calls, up to the client's first reply, by call; number their requests in this order."""
    first = next((n for n, frame in enumerate(frames) if frame.sender == "client" and "result" in frame.value), len(frames))
    places = [n for n in range(first) if _call(frames[n]) is not None]
    ids = sorted(frames[n].value["id"] for n in places if "id" in frames[n].value)
    beginnings = sorted((frames[n] for n in places), key=lambda frame: str(_call(frame)))
    renamed = dict(zip((frame.value["id"] for frame in beginnings if "id" in frame.value), ids, strict=True))
    found = list(frames)
    for place, frame in zip(places, beginnings, strict=True):
        found[place] = frame
    return [_renamed(frame, renamed) for frame in found]


def _renamed(frame: Frame, ids: dict[Any, Any]) -> Frame:
    value = frame.value
    if frame.sender == "server" and value.get("method") == "serverRequest/resolved":
        return _with(frame, {**value, "params": {**value["params"], "requestId": ids.get(value["params"]["requestId"])}})
    reply = frame.sender == "client" and "method" not in value
    if ids.get(value.get("id")) is None or not (reply or _method(frame) == "item/tool/call"):
        return frame
    return _with(frame, {**value, "id": ids[value["id"]]})


def _call(frame: Frame) -> str | None:
    """Return the call that a frame begins or asks the client for."""
    params = frame.value.get("params") or {}
    if _method(frame) == "item/tool/call":
        return str(params["callId"])
    begins = _method(frame) == "item/started" and params["item"]["type"] == "dynamicToolCall"
    return str(params["item"]["id"]) if begins else None


def without_lost_usage(frames: list[Frame]) -> list[Frame]:
    """Leave out the usage of a turn that is interrupted while its reply may be read; and all later totals, which contain it.

    The reply may be read while a dynamic call is open, and while a message is the last item.
    """
    cut, found, open_, interrupted, lost = _cut(frames), [], set[Any](), False, False
    last = ""
    for frame in frames:
        method = _method(frame)
        if method == "item/tool/call":
            open_.add(frame.value["id"])
        elif method == "item/started":
            last = frame.value["params"]["item"]["type"]
        elif frame.sender == "client" and "method" not in frame.value:
            open_.discard(frame.value["id"])
        elif _interrupts(frame) in cut and (open_ or last == "agentMessage"):
            interrupted = lost = True
        elif method == "turn/completed":
            interrupted, open_ = False, set()
        if interrupted and method in _USAGE:
            continue
        if lost and method == "thread/tokenUsage/updated":
            params = frame.value["params"]
            frame = _with(frame, {**frame.value, "params": {**params, "tokenUsage": {**params["tokenUsage"], "total": None}}})
        found.append(frame)
    return found


def without_lost_ends(frames: list[Frame]) -> list[Frame]:
    """Leave out the end of the item that was begun last in each interrupted turn."""
    last = {f.value["params"]["turnId"]: f.value["params"]["item"]["id"] for f in frames if _method(f) == "item/started"}
    cut = {last.get(turn) for turn in _cut(frames)}
    return [f for f in frames if _method(f) != "item/completed" or f.value["params"]["item"]["id"] not in cut]


def _cut(frames: list[Frame]) -> set[str]:
    """Return the turns that ended because the client interrupted them."""
    ended = [frame.value["params"]["turn"] for frame in frames if _method(frame) == "turn/completed"]
    return {turn["id"] for turn in ended if turn["status"] == "interrupted"} & {str(_interrupts(frame)) for frame in frames}


def _interrupts(frame: Frame) -> Any:
    """Return the turn that the client interrupts by this frame."""
    asks = frame.sender == "client" and frame.value.get("method") == "turn/interrupt"
    return frame.value["params"]["turnId"] if asks else None


def warned_late(frames: list[Frame]) -> list[Frame]:
    """Put each warning about an amendment behind the status of the thread that follows it."""
    return _behind_status(frames, lambda frame: b"execpolicy amendment" in frame.raw)


def ended_late(frames: list[Frame]) -> list[Frame]:
    """Put the end of each call that the client did not approve behind the status of the thread that follows it."""

    def unapproved(frame: Frame) -> bool:
        item = frame.value["params"]["item"] if _method(frame) == "item/completed" else {}
        return item.get("type") in ("commandExecution", "fileChange") and item["status"] in ("declined", "failed")

    return _behind_status(frames, unapproved)


def _behind_status(frames: list[Frame], moves: Callable[[Frame], bool]) -> list[Frame]:
    found = list(frames)
    for n, frame in enumerate(frames[:-1]):
        if moves(frame) and _method(frames[n + 1]) == "thread/status/changed":
            found[n : n + 2] = [frames[n + 1], frame]
    return found


def warned_first(frames: list[Frame]) -> list[Frame]:
    """Put each thread/started before the warnings about settings that it follows."""
    found = list[Frame]()
    for frame in frames:
        place = len(found)
        while _method(frame) == "thread/started" and place and _method(found[place - 1]) == "warning":
            place -= 1
        found.insert(place, frame)
    return found


def answered_late(frames: list[Frame]) -> list[Frame]:
    """Put each turn/started of an ephemeral thread, and the status before it, behind the reply to turn/start."""
    found, early = list[Frame](), list[Frame]()
    ephemeral = {str(_thread(f)["id"]) for f in frames if _thread(f).get("ephemeral")}
    asked: Any = None
    for frame in frames:
        value = frame.value
        if (
            frame.sender == "client"
            and value.get("method") == "turn/start"
            and (value.get("params") or {}).get("threadId") in ephemeral
        ):
            asked = value["id"]
        elif frame.sender == "server" and asked is not None and "method" not in value and value.get("id") == asked:
            found, early, asked = [*found, frame, *early], [], None
            continue
        elif asked is not None and _method(frame) in ("thread/status/changed", "turn/started"):
            early.append(frame)
            continue
        found.append(frame)
    return [*found, *early]


def _thread(frame: Frame) -> dict[str, Any]:
    """Return the thread in a reply of the server's."""
    result = frame.value.get("result") if frame.sender == "server" else None
    return (result.get("thread") if isinstance(result, dict) else None) or {}


def without_deltas(frames: list[Frame]) -> list[Frame]:
    """Leave out the output that is sent on its own: the end of its command has it, too."""
    return [frame for frame in frames if _method(frame) != "item/commandExecution/outputDelta"]


def in_one_piece(frames: list[Frame]) -> list[Frame]:
    """Join what a command of the client prints in pieces, and put the reply to its input before what it prints for it."""
    found, pending = list[Frame](), dict[str, dict[str, Any]]()
    for frame in frames:
        if _method(frame) == "command/exec/outputDelta":
            params = frame.value["params"]
            before = b64decode(pending.get(params["stream"], params | {"deltaBase64": ""})["deltaBase64"])
            joined = b64encode(before + b64decode(params["deltaBase64"])).decode()
            pending[params["stream"]] = {**params, "deltaBase64": joined}
            continue
        if not (frame.sender == "server" and frame.value.get("result") == {}):
            values = [{"method": "command/exec/outputDelta", "params": pending.pop(name)} for name in sorted(pending)]
            found += [_with(frame, {**value, "emittedAtMs": 0}, "server") for value in values]
        found.append(frame)
    return found


def killed(frames: list[Frame]) -> list[Frame]:
    """Give each failed command with the exit code 1 the code -1: a killed one has -1 or 1."""

    def named(value: Any) -> Any:
        if isinstance(value, list):
            return [named(one) for one in value]
        if not isinstance(value, dict):
            return value
        if (value.get("type"), value.get("status"), value.get("exitCode")) == ("commandExecution", "failed", 1):
            return {**value, "exitCode": -1}
        return {key: named(one) for key, one in value.items()}

    return [_with(frame, named(frame.value)) for frame in frames]


def _method(frame: Frame) -> Any:
    """Return the method of a message of the server's."""
    return frame.value.get("method") if frame.sender == "server" else None


def _with(frame: Frame, value: Any, sender: str | None = None) -> Frame:
    return Frame(frame.n, frame.t, frame.seam, sender or frame.sender, frame.kind, dumps(value) + b"\n")


def _opens(message: Any) -> bool:
    """Return True for a raw item of what Codex tells the model before the first message of the user."""
    if message.get("method") != "rawResponseItem/completed":
        return False
    item = message["params"]["item"]
    kinds = item.get("internal_chat_message_metadata_passthrough", {}).get("content_item_kinds", [])
    return item.get("role") == "developer" or "environments.environment_context" in kinds


#: What the real server does by chance, in the order in which it is allowed.
ALLOWANCES: dict[str, Callable[[list[Frame]], list[Frame]]] = {
    "a command's output is sent on its own": without_deltas,
    "a command of the client prints in other pieces": in_one_piece,
    "a command that is killed has the exit code 1 and not -1": killed,
    "calls of one reply begin in another order": in_order,
    "the warning about a setting comes before or after thread/started": warned_first,
    "the reply to turn/start comes after turn/started": answered_late,
    "the warning about an amendment comes before or after the thread goes on": warned_late,
    "the end of a call that is not approved comes before or after the thread goes on": ended_late,
    "the end of an interrupted item is lost": without_lost_ends,
    "the usage of an interrupted turn is lost": without_lost_usage,
}
#: Allowances that count only if one side has fewer messages of these methods.
LOST = {without_lost_ends: ("item/completed",), without_lost_usage: _USAGE}
