"""The answer to initialize of Codex versions after 0.92, and the notifications that follow the answer."""

from __future__ import annotations

# `os`, `shutil` and `socket` would take as long as the whole start.
from posix import X_OK, access, environ, uname
from time import time

from codex_fakes.scripted.state.ids import uuid4
from codex_replay.protocol.turn.frames import load_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def handshake(agent: str, home: str, version: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the result of initialize, and the notifications that follow it.

    `agent` is the user agent; `home` is the CODEX_HOME. The first notification warns that the program bubblewrap is missing
    on this computer.
    """
    result = {"userAgent": agent, "codexHome": home, "platformFamily": "unix", "platformOs": "linux"}
    status = {"status": "disabled", "serverName": uname().nodename, "installationId": uuid4(), "environmentId": None}
    notifications: list[dict[str, Any]] = [{"method": "remoteControl/status/changed", "params": status}]
    if not any(access(folder + b"/bwrap", X_OK) for folder in environ.get(b"PATH", b"").split(b":")):
        summary = load_table(version)["sentences"]["no-bubblewrap"]
        notifications.insert(0, {"method": "configWarning", "params": {"summary": summary, "details": None}})
    return result, [{**notification, "emittedAtMs": int(time() * 1000)} for notification in notifications]
