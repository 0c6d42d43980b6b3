"""The real Codex still refuses each wrong form in the words that the scripted fake is held to (tests/data/refusals.ndjson)."""

from __future__ import annotations

from pathlib import Path

from harness.shell.client import Client
from harness.shell.codex import HermeticHome, find_installed
from tests.conversing import initialize
from tests.refusals import otherwise


def test_the_real_server_refuses_each_wrong_form_so(tmp_path: Path) -> None:
    codex = find_installed("0.92.0")
    assert codex is not None, "The real Codex is not installed; run `codex-replay codex install 0.92.0` first."
    home = HermeticHome(tmp_path / "home", "http://127.0.0.1:9")
    client = Client([str(codex), "app-server"], env=home.env, cwd=str(home.work), timeout=60)
    try:
        initialize(client)
        assert otherwise(client, client.request("thread/start", {})["thread"]["id"]) == []
    finally:
        client.stop()
