"""A recording that another tool made where it is replayed: it has the directory as it is, so the live frames keep it, too."""

from __future__ import annotations

import sys
from pathlib import Path

from codex_replay.core.wire.json_text import dumps
from tests.cli.replay.test_replay_cli import replay

#: Answers each request with its own params.
ECHO = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    print(json.dumps({"id": message["id"], "result": message["params"]}, separators=(",", ":")), flush=True)
"""


def recording(path: Path, folder: str) -> Path:
    header = {"cassette": 1, "codex": "0.169.0", "bundle": "unknown", "case": "c", "origin": {"rpc": "recorded"}}
    asked = {"id": 1, "method": "fs/readDirectory", "params": {"path": f"{folder}/part"}}
    frames = [("client", asked), ("server", {"id": 1, "result": asked["params"]})]
    lines = [header] + [
        {"n": n, "t": 0.0, "seam": "rpc", "from": side, "msg": value} for n, (side, value) in enumerate(frames, 1)
    ]
    path.write_bytes(b"".join(dumps(line) + b"\n" for line in [*lines, {"end": True, "frames": len(frames)}]))
    return path


def test_a_directory_that_was_not_replaced_in_the_recording_is_not_replaced_in_the_live_frames(tmp_path: Path) -> None:
    server = tmp_path / "echo.py"
    server.write_text(ECHO)
    for folder in (str(Path.cwd()), "/home/user/work"):
        done = replay(recording(tmp_path / "r.ndjson", folder), "--app-server", f"{sys.executable} {server}", "--commands-ok")
        assert "identical: 2 events" in done.stdout, done.stdout + done.stderr
