"""What two runs of a conversation with a later version differ in: as normalised, with six allowances.

Five are what the real 0.169.0 does by chance. This is the one list of them for the scenarios of `later` and `later_corners`:

- calls of one reply begin in no fixed order: their requests are sorted by call (`in_order`; 5 of 20 runs of four calls began them
  in another order than that of the reply);
- the usage of a reply may be lost, if the client interrupts the turn while the reply is read: a call is asked for before the
  rest of its reply has come (`without_lost_usage`; 13 of 20 runs, with three calls behind the one that was asked for);
- the warning about an amendment comes before or after the thread goes on (`warned_late`; both orders in one recorded run);
- in an ephemeral thread, the reply to turn/start may come after turn/started (`answered_late`; 1 of 10 runs);
- a command may print after the first moment, and then its output is also sent on its own (`without_deltas`).

And one is named in docs/fake-codex.md: the fake has no cursors into the file of a thread (`masked`).
"""

from __future__ import annotations

from typing import Any

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.json_text import dumps
from codex_replay.protocol.recordings.compare import compare

VERSION = "0.169.0"
#: What only the real server can know: the ids of its processes and of its installation, and the cursors of a list.
OPAQUE = ("backwardsCursor", "processId", "installationId")
#: Its cursors into the file of a thread, which the fake does not have.
CURSORS = ("turnsBackwardsCursor", "itemsBackwardsCursor")
_USAGE = ("thread/tokenUsage/updated", "account/rateLimits/updated")


def differences(real: list[Frame], fake: list[Frame]) -> list[str]:
    """Return a sentence for each difference; the fake does not send the raw items that open a thread."""
    sides = [[f for f in frames if not _opens(f.value)] for frames in (real, fake)]
    sides = [warned_late(answered_late(in_order(masked(without_deltas(frames))))) for frames in sides]
    counts = [sum(_method(f) in _USAGE for f in frames) for frames in sides]
    if counts[0] != counts[1]:
        sides = [without_lost_usage(frames) for frames in sides]
    return [difference.sentence() for difference in compare(*sides, VERSION).differences]


def masked(frames: list[Frame]) -> list[Frame]:
    """Return the frames without the values of `OPAQUE`, of which stays whether they are null, and without `CURSORS`."""

    def mask(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: "opaque" if k in CURSORS or (k in OPAQUE and v is not None) else mask(v) for k, v in value.items()}
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
    """Leave out the usage of a turn that is interrupted while a dynamic call is open; and all later totals, which contain it."""
    found, open_, lost = [], set[Any](), False
    interrupted = False
    for frame in frames:
        method = _method(frame)
        if method == "item/tool/call":
            open_.add(frame.value["id"])
        elif frame.sender == "client" and "method" not in frame.value:
            open_.discard(frame.value["id"])
        elif frame.sender == "client" and frame.value["method"] == "turn/interrupt" and open_:
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


def warned_late(frames: list[Frame]) -> list[Frame]:
    """Put each warning about an amendment behind the status of the thread that follows it."""
    found = list(frames)
    for n, frame in enumerate(frames[:-1]):
        if b"execpolicy amendment" in frame.raw and _method(frames[n + 1]) == "thread/status/changed":
            found[n : n + 2] = [frames[n + 1], frame]
    return found


def answered_late(frames: list[Frame]) -> list[Frame]:
    """Put each turn/started of an ephemeral thread, and the status before it, behind the reply to turn/start."""
    found, early = list[Frame](), list[Frame]()
    ephemeral = {str(_thread(f)["id"]) for f in frames if _thread(f).get("ephemeral")}
    asked: Any = None
    for frame in frames:
        value = frame.value
        if frame.sender == "client" and value.get("method") == "turn/start" and value["params"]["threadId"] in ephemeral:
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


def _method(frame: Frame) -> Any:
    """Return the method of a message of the server's."""
    return frame.value.get("method") if frame.sender == "server" else None


def _with(frame: Frame, value: Any) -> Frame:
    return Frame(frame.n, frame.t, frame.seam, frame.sender, frame.kind, dumps(value) + b"\n")


def _opens(message: Any) -> bool:
    """Return True for a raw item of what Codex tells the model before the first message of the user."""
    if message.get("method") != "rawResponseItem/completed":
        return False
    item = message["params"]["item"]
    kinds = item.get("internal_chat_message_metadata_passthrough", {}).get("content_item_kinds", [])
    return item.get("role") == "developer" or "environments.environment_context" in kinds
