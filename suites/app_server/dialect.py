"""The expected results in cases that depend on the Codex version.

A case states the exact results for 0.92.0, the version of the specification. For a later version, `these` requires only the
members that the case names, with their values. At the end of each case, the schema bundle of the version checks the members
that the version has added. If a value differs between versions, the case has a table of versions (`Server.by_version`); a
row applies to its version and to later ones.
"""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin import Server

#: The mark of a case of v1.
V1 = pytest.mark.until("0.107.0", "v1 ended with 0.107")

#: v1 ended after 0.107, and with it its notifications: `codex/event/*`.
_EVENTS = {"0.0.0": True, "0.108.0": False}
#: The turns of a thread are counted from "0", or their ids are uuids.
_COUNTED = {"0.0.0": True, "0.108.0": False}
#: The member of a reply to a dynamic tool that has its output.
_OUTPUT = {"0.0.0": "output", "0.116.0": "contentItems"}
#: Members with these values have others in later versions, which cases of their own judge: the items of a turn are a summary,
#: every command has a process, and thread/start tells of a member by leaving it out.
_FREE: dict[str, tuple[tuple[str, Any], ...]] = {"0.0.0": (), "0.108.0": (("items", []), ("processId", None))}
#: Notifications that the server sends on its own once a client has introduced itself.
_OPENING: dict[str, tuple[str, ...]] = {"0.0.0": (), "0.108.0": ("configWarning", "remoteControl/status/changed")}
#: The usage of an answer is sent before the calls of the answer run, or after them.
COUNTED_FIRST = {"0.0.0": True, "0.108.0": False}
#: The output of a command begins with the random id of its chunk.
CHUNKS = {"0.0.0": False, "0.116.0": True}
#: The output for the model if the user declines a command.
REJECTED = {
    "0.0.0": "exec command rejected by user",
    "0.169.0": 'exec_command failed: CreateProcess { message: "Rejected(\\"rejected by user\\")" }',
}
#: The output for the model if the client's reply to the approval has no valid decision.
UNDECIDED = {
    "0.0.0": REJECTED["0.0.0"],
    "0.169.0": 'exec_command failed: CreateProcess { message: "Rejected(\\"approval request failed\\")" }',
}
#: How the command completes: as declined, or as failed, with its exit code.
UNDECIDED_ENDS: dict[str, list[tuple[str, int | None]]] = {
    "0.0.0": [("declined", None), ("failed", -1)],
    "0.108.0": [("declined", None)],
    "0.169.0": [("failed", None)],
}
#: A client's error as the reply to a request leaves the turn waiting; otherwise it fails the call, and the turn goes on.
HANGS = {"0.0.0": True, "0.169.0": False}
#: The server begins all calls of an answer at once, or each after the end of the one before.
AT_ONCE = {"0.0.0": False, "0.169.0": True}
#: Whether the server answers a last line without a newline before it ends; a version that does not may still do so.
LAST_LINE = {"0.0.0": True, "0.169.0": False}
#: A declined call completes once as declined, or a second time as failed.
DECLINED = {"0.0.0": ["declined", "failed"], "0.108.0": ["declined"]}
#: Settings of a thread whose model has the tool apply_patch.
PATCHES: dict[str, dict[str, Any]] = {"0.0.0": {}, "0.169.0": {"model": "gpt-5.5"}}
#: Keys of config.toml and of thread/start, and capabilities that a version wants before it takes them.
EXPERIMENTAL = {"dynamicTools", "experimentalRawEvents", "history", "collaborationMode"}


def has_events(server: Server) -> bool:
    """Return True if the server's version sends `codex/event/*`."""
    return server.by_version(_EVENTS)


def in_events(server: Server, expected: Any) -> Any:
    """Return the expected `codex/event/*` notifications; an empty list for a version that does not send them."""
    return expected if has_events(server) else type(expected)()


def tool_output(server: Server, words: str, *, success: bool = True) -> dict[str, Any]:
    """Return the reply of a client to the call of a tool that the client declared."""
    form: str = server.by_version(_OUTPUT)
    return (
        {"output": words, "success": success}
        if form == "output"
        else {
            "contentItems": [{"type": "inputText", "text": words}],
            "success": success,
        }
    )


def tool_spec(server: Server, tool: dict[str, Any]) -> dict[str, Any]:
    """Return the declaration of a client's tool; some versions also require the type of the tool."""
    return {"type": "function", **tool} if server.by_version(_OUTPUT) == "contentItems" else tool


def turn_id(server: Server, number: int = 0, thread: str | None = None) -> str:
    """Return the id of the turn with a number: the number itself, or the id that the server gave the turn at its start."""
    if server.by_version(_COUNTED):
        return str(number)
    started = [m["params"] for m in server.messages() if isinstance(m, dict) and m.get("method") == "turn/started"]
    found: list[str] = [params["turn"]["id"] for params in started if thread in (None, params["threadId"])]
    return found[number]


def after_opening(server: Server) -> list[Any]:
    """Return the messages of the server so far, without the notifications that it sends when a client connects."""
    opening = server.by_version(_OPENING)
    return [m for m in server.messages() if not (isinstance(m, dict) and "id" not in m and m.get("method") in opening)]


class Members(dict[str, Any]):
    """An expected object, which equals every object that has at least the same members.

    If an expected member is null, the compared object may lack the member.
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dict) and all(other.get(name) == value for name, value in self.items())

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None


def these(server: Server, expected: Any) -> Any:
    """Return `expected` for the version of the specification; for later versions, return the part that still applies.

    The part for later versions has no notifications of v1, and its objects may have more members.
    """
    if has_events(server):
        return expected
    return _later(expected, server.by_version(_FREE))


def _later(value: Any, free: tuple[tuple[str, Any], ...]) -> Any:
    if isinstance(value, dict):
        return Members({name: _later(inner, free) for name, inner in value.items() if (name, inner) not in free})
    if isinstance(value, list):
        return [_later(one, free) for one in value if not _is_event(one)]
    return tuple(_later(one, free) for one in value) if isinstance(value, tuple) else value


def _is_event(value: Any) -> bool:
    """Return True for a notification of v1; the argument is a message, or a pair of method and params."""
    if isinstance(value, tuple):
        return len(value) == 2 and isinstance(value[0], str) and value[0].startswith("codex/event/")
    return isinstance(value, dict) and str(value.get("method", "")).startswith("codex/event/")
