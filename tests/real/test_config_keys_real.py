"""The real Codex still has the keys of config.toml that we know, and no other."""

from __future__ import annotations

import subprocess
from pathlib import Path

from codex_replay.protocol.data_tables import load
from codex_replay.shell.codex.cache import find_installed
from codex_replay.shell.codex.home import HermeticHome


def test_the_real_server_reads_these_keys_and_no_other(tmp_path: Path) -> None:
    """It refuses what no key takes under each that it has, leaves any other unread, and names their number itself."""
    codex = find_installed("0.92.0")
    assert codex is not None, "The real Codex is not installed; run `codex-replay codex install 0.92.0` first."
    home = HermeticHome(tmp_path / "home", "http://127.0.0.1:9")

    def said(key: str) -> tuple[bool, bool]:
        argv = [str(codex), "app-server", "-c", f"{key}=[[[]]]"]
        done = subprocess.run(argv, env=home.env, cwd=home.work, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        return done.returncode != 0, f"in `{key}".encode() in done.stderr

    keys = load("config-keys")["keys"]
    assert {key: said(key) for key in keys} == dict.fromkeys(keys, (True, True))
    assert said("aproval_policy") == (False, False)
    assert f"struct ConfigToml with {len(keys)} elements".encode() in Path(codex).read_bytes()
