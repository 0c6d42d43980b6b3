"""Find the Codex version of a recording in the frames of the recording."""

from __future__ import annotations

import re

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.cassette.http_frames import header
from codex_replay.protocol.versions import is_version

LONGEST = 32  # characters of a version
_AGENT = re.compile(r"(?P<name>[^/]{1,200})/(?P<version>\d+\.\d+\.\d+[-.\w]*) \(")


def codex_version(frame: Frame) -> str | None:
    """Return the Codex version that a recorded frame contains, or None.

    In JSON-RPC frames, the version is in the `userAgent` of the reply to `initialize`. In HTTP frames, the version is in the
    header `user-agent` of a request. The header `originator` must name the same program, because clients other than Codex send no
    `originator`.
    """
    if frame.seam == "rpc" and frame.sender == "server":
        result = frame.value.get("result") if type(frame.value) is dict else None
        return _version(result.get("userAgent")) if type(result) is dict else None
    if frame.kind == "request" and type(frame.payload) is dict and type(headers := frame.payload.get("headers")) is list:
        originator = header(headers, "originator")
        return _version(header(headers, "user-agent"), originator) if originator else None
    return None


def _version(agent: object, name: str | None = None) -> str | None:
    found = _AGENT.match(agent) if type(agent) is str else None
    if found is None or name not in (None, found["name"]):
        return None
    version = found["version"]
    return version if is_version(version) and len(version) <= LONGEST else None
