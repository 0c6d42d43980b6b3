"""What the real binary keeps for clients that say the capability: it refuses it to others, in these words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codex_replay.protocol.drift.experimental import asks, declares, refused
from codex_replay.shell.cassettes.bundle_check import bundle_of
from codex_replay.shell.codex.cache import find_installed
from codex_replay.shell.codex.home import HermeticHome
from codex_replay.shell.rpc.client import Client, ErrorReply

#: 0.92.0 has no capability. 0.116.0 has, and is fetched if need be; an earlier one is looked at where it is installed.
VERSIONS = ["0.92.0", *(["0.104.0"] if find_installed("0.104.0") else []), "0.116.0"]
PROGRAM = str(Path(sys.executable).with_name("codex-replay"))
TOOL = {"name": "clock", "description": "Tells the time.", "inputSchema": {"type": "object", "properties": {}}}
ASKED: list[Any] = [None, {}, {"experimentalApi": False}, {"experimentalApi": True}]


@pytest.fixture(scope="module", params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    """A version whose binary is there."""
    if find_installed(request.param) is None:
        subprocess.run([PROGRAM, "codex", "install", request.param], check=True, timeout=600)
    return str(request.param)


@pytest.mark.parametrize("capabilities", ASKED, ids=str)
def test_who_does_not_say_the_capability_is_refused(version: str, capabilities: Any, tmp_path: Path) -> None:
    home = HermeticHome(tmp_path, "http://127.0.0.1:9", version=version)  # nothing is asked of the model
    opening = {"clientInfo": {"name": "codex-replay", "version": "1"}, "capabilities": capabilities}
    gated = declares(bundle_of(version)) and not asks({"method": "initialize", "params": opening})
    # The first start of a binary reads all of it from the disk.
    client = Client([str(find_installed(version)), "app-server"], env=home.env, cwd=str(home.work), timeout=60)
    try:
        client.request("initialize", opening)
        client.notify("initialized")
        for tools in ([TOOL], [], None):
            if gated and refused(tools):
                with pytest.raises(ErrorReply, match=r"thread/start\.dynamicTools requires experimentalApi capability"):
                    client.request("thread/start", {"dynamicTools": tools})
            else:
                assert client.request("thread/start", {"dynamicTools": tools})["thread"]["id"]
    finally:
        client.stop()


def test_the_capability_came_after_this_version() -> None:
    assert not declares(bundle_of("0.92.0"))
