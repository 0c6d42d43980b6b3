"""Ask a real Codex for facts that no schema contains: the order of its methods, the type that each method expects, and the keys
of config.toml.

The error for an unknown method lists all methods, and the error for `"params":5` names the type that the method expects.
The server refuses the value `[[[]]]` for a known key of config.toml, and ignores an unknown key. Each Codex process has a
hermetic home, and its upstream does not answer.
"""

from __future__ import annotations

import mmap
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from codex_replay.shell.codex.home import HermeticHome
from codex_replay.shell.rpc.client import Client, SubjectFailure

#: No one listens on this port: nothing is asked of a model here.
NOWHERE = "http://127.0.0.1:9"
_EXPECTED = re.compile(r"invalid type: integer `5`, expected (.+?)(?: at line \d+ column \d+)?$")
_SECONDS = 60.0
#: How long a method without params is waited for: one that is refused answers at once.
_ABSENT_SECONDS = 5.0


def methods(binary: Path, version: str) -> dict[str, str]:
    """Return the client methods in the server's order, each with the expected type of its params.

    The type is "" if the server accepts the params 5.

    Raises `SubjectFailure` if the server does not answer.
    """
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="codex-replay-probe-", ignore_cleanup_errors=True) as root:
        home = HermeticHome(Path(root), NOWHERE, version=version)
        client = Client([str(binary), "app-server"], env=home.env, cwd=str(home.work), timeout=_SECONDS)
        try:
            opening = {"clientInfo": {"name": "codex-replay", "version": "1"}, "capabilities": {"experimentalApi": True}}
            client.request("initialize", opening)
            client.notify("initialized")
            for method in _names(client.call("codex-replay/no-such-method", {})):
                found[method] = _expected(client.call(method, 5))
                if found[method].startswith("struct ") and _optional(client, method):
                    found[method] = f"option {found[method]}"
        finally:
            client.stop()
    return found


def _optional(client: Client, method: str) -> bool:
    """Return True if the server accepts a request of the method without params.

    Return False if the server does not answer the request.
    """
    try:
        reply = client.reply_to(client.post(method), _ABSENT_SECONDS)
    except SubjectFailure:
        return False
    return "missing field `params`" not in str(reply.get("error", {}).get("message", ""))


def _names(reply: Any) -> list[str]:
    text = str(reply.get("error", {}).get("message", "")) if isinstance(reply, dict) else ""
    names = re.findall(r"`([^`]+)`", text.partition("expected one of")[2])
    if not names:
        raise SubjectFailure(f"The server does not list its methods when it refuses an unknown method: {text or reply}")
    return names


def _expected(reply: Any) -> str:
    text = str(reply.get("error", {}).get("message", "")) if isinstance(reply, dict) else ""
    found = _EXPECTED.search(text)
    return found[1] if found else ""


def config_keys(binary: Path, version: str, known: list[str]) -> tuple[list[str], int | None]:
    """Return the keys of config.toml that a Codex version reads, and the number of keys that the binary reports (None if it
    reports no keys).

    A key counts as read if the binary refuses the value `[[[]]]` for the key. The candidates are the `known` keys and the
    keys in the server's answer to config/read.
    """
    found = []
    with tempfile.TemporaryDirectory(prefix="codex-replay-probe-", ignore_cleanup_errors=True) as root:
        home = HermeticHome(Path(root), NOWHERE, version=version)
        for key in sorted({*known, *_read(home, binary)}):
            argv = [str(binary), "app-server", "-c", f"{key}=[[[]]]"]
            done = subprocess.run(
                argv, env=home.env, cwd=home.work, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS
            )
            if done.returncode != 0 and f"in `{key}".encode() in done.stderr:
                found.append(key)
    return found, _key_count(binary)


def _read(home: HermeticHome, binary: Path) -> list[str]:
    client = Client([str(binary), "app-server"], env=home.env, cwd=str(home.work), timeout=_SECONDS)
    try:
        client.request("initialize", {"clientInfo": {"name": "codex-replay", "version": "1"}})
        client.notify("initialized")
        result = client.call("config/read", {"includeLayers": False}).get("result")
        config = result.get("config") if isinstance(result, dict) else None
        return [str(key) for key in config] if isinstance(config, dict) else []
    finally:
        client.stop()


def _key_count(binary: Path) -> int | None:
    with binary.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        found = re.search(rb"struct ConfigToml with (\d+) elements", data)
        return int(found[1]) if found else None
