"""Check each frame of a case when it is sent or received.

A checker gets every frame of one connection, in order. In a finding, `blame` names the side that wrote the invalid frame.
An invalid server frame is a fault of the server under test, and fails the case. An invalid client frame is a fault of the
harness, unless the case sends invalid frames on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, Protocol

from codex_replay.core.wire.jsonrpc import label
from codex_replay.protocol.versions import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codex_replay.core.cassette.frames import Frame
    from codex_replay.protocol.schema.validate import Validator, Violation

Blame = Literal["subject", "harness"]


@dataclass(frozen=True, slots=True)
class FrameFinding:
    """One fault of a frame; the text is a sentence."""

    blame: Blame
    frame: int
    text: str


class FrameChecker(Protocol):
    """Gets the frames of one connection, in order, and returns the faults of each frame."""

    def check(self, frame: Frame) -> Iterable[str]:
        """Return a sentence for each fault of `frame`; an empty list if the frame is valid."""


class BundleChecker:
    """Checks frames against the JSON schemas of a Codex version.

    Each frame must be valid, and must have only keys that the schemas name.

    The server's frames are checked against the experimental schemas, because the server sends experimental members to every
    client. The client's frames are checked against the experimental schemas after the client has declared the capability
    experimentalApi.
    """

    def __init__(self, version: str) -> None:
        from codex_replay.protocol.schema.validate import RpcChecker

        validator = _validator(version)
        self._experimental = _experimental(version)
        self._checker = RpcChecker(validator.bundle, validator, self._experimental)

    def check(self, frame: Frame) -> list[str]:
        """Return a sentence for each fault of `frame`."""
        sender: Literal["client", "server"] = "client" if frame.sender == "client" else "server"
        return [violation.message for violation in self.violations(sender, frame.value)]

    def violations(self, sender: Literal["client", "server"], value: Any) -> list[Violation]:
        """Return the faults of the next message of the connection."""
        if self._experimental is not None and sender == "client" and _asks(value):
            self._checker.judge_by("client", self._experimental)
        return self._checker.check(sender, value)


@cache
def _validator(version: str) -> Validator:
    from codex_replay.protocol.schema.bundle import load
    from codex_replay.protocol.schema.validate import Validator

    return Validator(load(version))


@cache
def _experimental(version: str) -> Validator | None:
    from codex_replay.protocol.schema.bundle import load_experimental
    from codex_replay.protocol.schema.validate import Validator

    found = load_experimental(version)
    return None if found is None else Validator(found)


def _asks(message: Any) -> bool:
    from codex_replay.protocol.drift.experimental import asks

    return asks(message)


def all_of(version: str) -> Validator:
    """Return a validator with all schemas of a Codex version.

    If codex-replay has no schemas of the version, return a validator with the schemas of the default version.
    """
    known = version if has_bundle(version) else DEFAULT
    return _experimental(known) or _validator(known)


def has_bundle(version: str) -> bool:
    """Return True if codex-replay can check the frames of a Codex version."""
    from codex_replay.protocol.data_tables import versions

    return version in versions()


@cache
def keeps_experimental(version: str) -> bool:
    """Return True if a Codex version refuses experimental calls of clients without the capability experimentalApi."""
    from codex_replay.protocol.drift.experimental import declares

    return has_bundle(version) and declares(_validator(version).bundle)


@cache
def has_conversations(version: str) -> bool:
    """Return True if a Codex version has the v1 calls for conversations, such as newConversation.

    Return True, too, if there are no schemas of the version, because the version may have the v1 calls.
    """
    return not has_bundle(version) or "newConversation" in _validator(version).bundle.methods("client-request")


def make_checkers(version: str) -> list[FrameChecker]:
    """Return the checkers for a server of a Codex version; return an empty list if no schemas of the version are available."""
    return [BundleChecker(version)] if has_bundle(version) else []


def judge(frames: Iterable[Frame], checkers: list[FrameChecker], *, bad_input: bool = False) -> list[FrameFinding]:
    """Pass every frame to every checker; with `bad_input`, faults of the client do not count."""
    findings = []
    for frame in frames:
        for checker in checkers:
            for text in checker.check(frame):
                if frame.sender == "server":
                    findings.append(FrameFinding("subject", frame.n, f"frame {frame.n} ({label(frame.value)}): {text}"))
                elif not bad_input:
                    findings.append(FrameFinding("harness", frame.n, f"frame {frame.n} ({label(frame.value)}): {text}"))
    return findings
