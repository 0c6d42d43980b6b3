"""The answer of later versions to initialize, and what they say of themselves behind it."""

from __future__ import annotations

import os
import shutil
import socket
from time import time
from typing import Any

from codex_fakes.scripted.state.ids import uuid4
from codex_replay.protocol.turn.frames import load_table


def handshake(agent: str, home: str, version: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the result of initialize, and the notifications that follow it.

    `agent` is the user agent, `home` the CODEX_HOME. The first notification warns of a machine without bubblewrap.
    """
    result = {"userAgent": agent, "codexHome": home, "platformFamily": os.name.replace("posix", "unix"), "platformOs": "linux"}
    status = {"status": "disabled", "serverName": socket.gethostname(), "installationId": uuid4(), "environmentId": None}
    notifications: list[dict[str, Any]] = [{"method": "remoteControl/status/changed", "params": status}]
    if shutil.which("bwrap") is None:
        summary = load_table(version)["sentences"]["no-bubblewrap"]
        notifications.insert(0, {"method": "configWarning", "params": {"summary": summary, "details": None}})
    return result, [{**notification, "emittedAtMs": int(time() * 1000)} for notification in notifications]
