"""Check the messages that a proxy writes to its app-servers against the JSON-schema bundle of a Codex version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from codex_replay.core.wire.jsonrpc import label
from codex_replay.plugin.base.checking import BundleChecker

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codex_replay.plugin.proxy.wire import WireFrame

#: `valid`: the schema accepts it. `known`: it has no member that the bundle does not name.
Kind = Literal["valid", "known"]


def violations(frames: Iterable[WireFrame], kind: Kind, version: str, since: int = 0) -> list[str]:
    """Return one sentence for each distinct fault of one kind in the proxy's messages to its app-servers (requests, notifications
    and replies).

    `frames` are all frames between the proxy and its app-servers since their start. Before the frame with the index `since`,
    only faults of `initialize` count, because other cases may have caused any other fault. Raises `BundleError` if codex-replay
    has no schema bundle of `version`.
    """
    checkers: dict[str, BundleChecker] = {}
    found: dict[str, None] = {}
    for index, frame in enumerate(frames):
        if frame.child not in checkers:
            checkers[frame.child] = BundleChecker(version)
        sender: Literal["client", "server"] = "client" if frame.sender == "client" else "server"
        for violation in checkers[frame.child].violations(sender, frame.value):
            counts = index >= since or label(frame.value).startswith("initialize")
            if sender == "client" and violation.verdict == kind and counts:
                found[f"{label(frame.value)}: {violation.message}"] = None
    return list(found)
