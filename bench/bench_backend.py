"""The fake backend beside npm `@copilotkit/aimock`: CPU per streamed reply, start, memory; the same replies, alternating."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.common import NotReady, Row
from codex_replay.shell.http.backend_process import backend_command

AIMOCK = "1.43.0"
ROUNDS, REPLIES, STARTS = 6, 120, 9
#: 50 deltas of 40 characters.
TEXT = "".join(f"word {i:03d} of a text that has fifty deltas. " for i in range(60))[: 50 * 40]
DELTA = 40


def aimock() -> Path:
    """Return aimock's program, installed by npm into the cache once; raises `NotReady` where that cannot be done."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "codex-replay" / f"aimock-{AIMOCK}"
    program = root / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
    if not program.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise NotReady("npm is not there to install @copilotkit/aimock, which this is measured beside.")
        root.mkdir(parents=True, exist_ok=True)
        argv = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(root), f"@copilotkit/aimock@{AIMOCK}"]
        done = subprocess.run(argv, capture_output=True, text=True)
        if done.returncode or not program.exists():
            raise NotReady(f"npm could not install @copilotkit/aimock@{AIMOCK}: {(done.stderr or done.stdout)[-300:]}")
    return program


@contextlib.contextmanager
def running(command: list[str], ready: bytes) -> Iterator[tuple[int, bytes, float]]:
    """Run a server; yield its pid, the line that said it is ready, and the seconds until then."""
    # As a user starts it: with compiled modules, and without the extra certificates that node would read at its start.
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONDONTWRITEBYTECODE", "NODE_EXTRA_CA_CERTS")}
    begin = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env) as process:
        try:
            assert process.stdout is not None
            line = b""
            while ready not in line:
                line = process.stdout.readline()
                if not line:
                    raise NotReady(f"{command[0]} ended before it was ready.")
            yield process.pid, line, time.perf_counter() - begin
        finally:
            process.kill()


def ours(script: Path) -> tuple[list[str], bytes]:
    """Return the command of our backend and what it says when it is ready."""
    return [*backend_command(), "--port", "0", "--script", str(script)], b'"url"'


def served(script: Path) -> tuple[list[str], bytes]:
    """Return the command `codex-replay serve`, which starts our backend and prints its requests, and what it says when ready."""
    return [str(Path(sys.executable).with_name("codex-replay")), "serve", "--json", "--script", str(script)], b'"url"'


def theirs(fixtures: Path) -> tuple[list[str], bytes]:
    """Return the command of aimock and what it says when it is ready."""
    node = shutil.which("node")
    if node is None:
        raise NotReady("node is not there to run aimock with.")
    return [node, str(aimock()), "-p", "0", "-f", str(fixtures), "-c", str(DELTA)], b"listening on"


def request(size: int, number: int = 0) -> bytes:
    """Make a request body of about `size` bytes, shaped as Codex's are: instructions, tools, a conversation with outputs.

    With another number, the conversation has another last output.
    """
    user = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go: marker-1"}]}
    body: dict[str, Any] = {"model": "gpt-5.2-codex", "instructions": "", "input": [user], "tools": []}
    if size > 1000:
        body["instructions"] = "You are a coding agent.\n" * (size // 4 // 24)
        schema = {"type": "object", "properties": {name: {"type": "string", "description": "words " * 20} for name in "abcdef"}}
        for i in range(8):
            body["tools"].append({"type": "function", "name": f"tool_{i}", "description": "words " * 40, "parameters": schema})
        while len(json.dumps(body)) < size - 2000:
            i = len(body["input"])
            call = {"type": "function_call", "call_id": f"call_{i}", "name": "tool_0", "arguments": '{"a":"b"}'}
            output = {"type": "function_call_output", "call_id": f"call_{i}", "output": "a line of output\n" * 60}
            body["input"] += [call, output]
        body["input"][-1] = {**body["input"][-1], "output": f"line {number} of output\n" * 60}
        body["input"].append(user)
    return json.dumps({**body, "store": False, "stream": True}).encode()


def conversation(size: int, count: int) -> list[bytes]:
    """Make the requests of a conversation: each repeats the one before it, and has one more call and its output."""
    body = json.loads(request(size))
    made = []
    for i in range(count):
        call = {"type": "function_call", "call_id": f"next_{i}", "name": "tool_0", "arguments": '{"a":"b"}'}
        body["input"] += [call, {"type": "function_call_output", "call_id": f"next_{i}", "output": f"output {i}"}]
        made.append(json.dumps(body).encode())
    return made


def ask(url: str, body: bytes, count: int) -> int:
    """Send a request so many times over one connection; return the length of a reply."""
    return send(url, [body] * count)


def send(url: str, bodies: list[bytes]) -> int:
    """Send requests over one connection; return the length of the last reply."""
    parts = urlsplit(url)
    lines = ["POST /v1/responses HTTP/1.1", "host: localhost", "content-type: application/json", "content-length: %d", "", ""]
    head = "\r\n".join(lines).encode()
    length = 0
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for body in bodies:
            sock.sendall(head % len(body) + body)
            received = b""
            while not received.endswith(b"\r\n0\r\n\r\n"):
                data = sock.recv(1 << 18)
                if not data:
                    raise NotReady(f"A server closed in mid-reply: {received[-200:]!r}")
                received += data
            assert b"response.completed" in received, received[-300:]
            length = len(received)
    return length


def cpu(pid: int) -> float:
    """Return the CPU seconds a process has used, its own and the system's.

    The clock of the process counts nanoseconds; /proc counts hundredths of a second, which is the time of a hundred replies. The
    number of that clock is what clock_getcpuclockid(3) returns on Linux.
    """
    return time.clock_gettime((~pid << 3) | 2)


def cpu_of_all(pid: int) -> float:
    """Return the CPU seconds of a process and of the processes that it has started."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return cpu(pid) + sum(cpu_of_all(int(child)) for each in tasks for child in each.read_text().split())


def resident(pid: int) -> float:
    """Return the resident memory of a process, in MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def rows() -> list[Row]:
    """Measure; Linux only, because CPU and memory are read from /proc."""
    if not Path("/proc/self/stat").exists():
        raise NotReady("This system has no /proc to read CPU time and memory from.")
    with tempfile.TemporaryDirectory(prefix="codex-replay-bench-") as root:
        one, other = both(Path(root))
        return [*starts(one, other, served(Path(root) / "script.json")), *replies(one, other)]


def both(root: Path, **settings: str) -> tuple[tuple[list[str], bytes], tuple[list[str], bytes]]:
    """Write the same reply for both servers, ours with further settings of the script; return the command of each."""
    script, fixtures = root / "script.json", root / "fixtures"
    fixtures.mkdir()
    turn = {"match": "marker-1", "items": [TEXT], "delta": DELTA, "times": "always"}
    script.write_text(json.dumps({**settings, "turns": [turn]}))
    fixture = {"match": {"userMessage": "marker-1"}, "response": {"content": TEXT}}
    (fixtures / "a.json").write_text(json.dumps({"fixtures": [fixture]}))
    return ours(script), theirs(fixtures)


def starts(one: tuple[list[str], bytes], other: tuple[list[str], bytes], whole: tuple[list[str], bytes]) -> list[Row]:
    """Compare the time from spawn to ready, the CPU time until then, and the memory then.

    A fixture starts the backend (`one`); a user of the command line starts two processes (`whole`).
    """
    times: tuple[list[float], ...] = ([], [], [])
    used = [0.0, 0.0, 0.0]
    memory: tuple[list[float], ...] = ([], [], [])
    for i in range(STARTS + 1):
        for k, command in enumerate((one, other, whole)):
            with running(*command) as (pid, _, took):
                if i:  # the first start fills caches
                    used[k] += cpu_of_all(pid) / STARTS
                    times[k].append(took)
                    memory[k].append(resident(pid))
    start, rest = [statistics.median(t) for t in times], [statistics.median(m) for m in memory]
    spawned = f"{start[0] * 1000:.0f} ms against {start[1] * 1000:.0f} ms, medians of {STARTS} alternating starts"
    spent = f"{used[0] * 1000:.0f} ms against {used[1] * 1000:.0f} ms, means of {STARTS} alternating starts"
    both_spent = f"{used[2] * 1000:.0f} ms against {used[1] * 1000:.0f} ms, means of {STARTS} alternating starts"
    both_spawned = f"{start[2] * 1000:.0f} ms against {start[1] * 1000:.0f} ms, medians of {STARTS} alternating starts"
    return [
        Row("backend: CPU of a cold start", used[0] / used[1], "of aimock's", 0.4, True, spent),
        Row("backend: cold start", start[0] / start[1], "of aimock's", 0.4, True, spawned),
        Row("codex-replay serve: CPU of a cold start", used[2] / used[1], "of aimock's", 1.0, True, both_spent),
        Row("codex-replay serve: cold start", start[2] / start[1], "of aimock's", 1.0, True, both_spawned),
        Row("backend: memory at rest", rest[0] / rest[1], "of aimock's", 0.4, True, f"{rest[0]:.0f} MB against {rest[1]:.0f} MB"),
    ]


def replies(one: tuple[list[str], bytes], other: tuple[list[str], bytes]) -> list[Row]:
    """Compare the CPU time of a streamed reply: to a small request, and to requests of 58 KB, of which no two are equal."""
    conversations = [conversation(58_000, 12) * (REPLIES // 12)] * (ROUNDS + 1)
    others = [[request(58_000, 1000 * i + k) for k in range(REPLIES)] for i in range(ROUNDS + 1)]
    kinds = (
        ("small request", 0.2, [[request(100)] * REPLIES] * (ROUNDS + 1)),
        ("58 KB request of a conversation", 0.35, conversations),
        ("58 KB request with another output", 0.4, others),
    )
    found = []
    with running(*one) as (mine, ready, _), running(*other) as (peer, listening, _):
        url = json.loads(ready)["url"], listening.split()[-1].decode()
        for name, limit, rounds in kinds:
            used = [0.0, 0.0]
            lengths = [send(each, rounds[0]) for each in url]  # both are warm before anything counts
            for bodies in rounds[1:]:
                for k, pid in enumerate((mine, peer)):
                    before = cpu(pid)
                    send(url[k], bodies)
                    used[k] += cpu(pid) - before
            each = [seconds / ROUNDS / REPLIES * 1000 for seconds in used]
            size = len(rounds[0][REPLIES // 2])
            detail = f"{each[0]:.2f} ms ({lengths[0]} bytes) against {each[1]:.2f} ms ({lengths[1]} bytes), request {size} bytes"
            found.append(Row(f"backend: CPU per streamed reply, {name}", used[0] / used[1], "of aimock's", limit, True, detail))
        sizes = resident(mine), resident(peer)
    detail = f"{sizes[0]:.0f} MB against {sizes[1]:.0f} MB, each with its ledger"
    return [*found, Row("backend: memory after the replies", sizes[0] / sizes[1], "of aimock's", 0.4, True, detail)]
