"""fake-codex needs as much memory for a long recording as for a short one: it reads it as it goes."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from codex_replay.core.wire.json_text import dumps
from tests.fakes.test_fake_codex import FAKE, HELLO, INITIALIZE, THREAD

MEGABYTE = 1000 * 1000
START = {"id": 2, "method": "turn/start", "params": {"threadId": THREAD, "input": []}}
ASK = {"id": 0, "method": "item/x/requestApproval", "params": {"threadId": THREAD, "turnId": "0"}}
REPLY = {"id": 0, "result": {"decision": "accept"}}


def recording(path: Path, size: int, frame: int) -> list[bytes]:
    """Write a recording of about `size` bytes: a turn that asks for an approval, and streams; return the client's lines."""
    delta = {
        "method": "item/agentMessage/delta",
        "params": {"threadId": THREAD, "turnId": "0", "itemId": "m", "delta": "x" * frame},
    }
    end = {"method": "turn/completed", "params": {"threadId": THREAD, "turn": {"id": "0"}}}
    head = [("client", INITIALIZE), ("server", HELLO), ("client", START), ("server", {"id": 2, "result": {"turn": {"id": "0"}}})]
    head += [("server", ASK), ("client", REPLY)]
    line = b'{"n":%d,"t":0.0,"seam":"rpc","from":"%b","msg":%b}\n'
    count = size // len(dumps(delta))
    with open(path, "wb") as file:
        file.write(b'{"cassette":1,"codex":"0.92.0","bundle":"unknown","case":"x","origin":{"rpc":"authored"}}\n')
        for n, (sender, message) in enumerate(head, 1):
            file.write(line % (n, sender.encode(), dumps(message)))
        body = dumps(delta)
        for n in range(len(head) + 1, len(head) + 1 + count):
            file.write(line % (n, b"server", body))
        file.write(line % (len(head) + 1 + count, b"server", dumps(end)))
        file.write(b'{"end":true,"frames":%d}\n' % (len(head) + 1 + count))
    return [dumps(message) + b"\n" for sender, message in head if sender == "client"]


def most_memory(folder: Path, size: int, frame: int) -> int:
    """Return the kilobytes that fake-codex had at most, playing such a recording to a client that lets it read ahead.

    As /proc has it of a process that runs: the figure that wait4 returns begins with the memory of who started the process.
    """
    sent = recording(folder / f"{size}.ndjson", size, frame)
    env = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "FAKE_CODEX_CASSETTE": str(folder / f"{size}.ndjson")}
    process = subprocess.Popen([FAKE, "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"".join(sent[:2]))
    process.stdin.flush()
    heard = [process.stdout.readline() for _ in range(3)]
    assert b"requestApproval" in heard[-1]
    # A request that the recording has not: fake-codex looks through all of it for the nearest one.
    process.stdin.write(b'{"id":9,"method":"model/list","params":{}}\n' + sent[2])
    process.stdin.flush()
    while b"turn/completed" not in process.stdout.readline():
        pass
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
    assert found is not None
    process.communicate()
    assert process.returncode == 1  # the request that the recording has not
    return int(found[1])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this system has no /proc to read the memory from")
@pytest.mark.parametrize("frame", [100, 20_000, 500_000], ids=["small frames", "large frames", "huge frames"])
def test_memory_does_not_grow_with_the_recording(frame: int, tmp_path: Path) -> None:
    small = most_memory(tmp_path, 4 * MEGABYTE, frame)
    large = most_memory(tmp_path, 24 * MEGABYTE, frame)
    assert large - small < 6 * 1024, f"{small} KB for 4 MB, {large} KB for 24 MB"
