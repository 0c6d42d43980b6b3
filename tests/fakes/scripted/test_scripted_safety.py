"""Nothing that a script, a cassette or a client says makes fake-codex run a command, write a file or open a socket.

It runs under an audit hook, which sees what the interpreter does: every event must be of a harmless kind, every file that is
opened for writing must be the capture or the ledger, and every file that is read must be a module, the home's config.toml or
what the environment names. What is on the disk is compared, too. Broken subjects show that the watch sees each kind of harm.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from codex_replay.core.wire.json_text import dumps
from codex_replay.protocol.refusals import load_methods
from codex_replay.shell.codex.home import HermeticHome
from codex_replay.shell.rpc.client import Client
from tests.fakes.scripted.conversing import CLIENT
from tests.fakes.scripted.test_scripted import NEEDED, UNANSWERED

ROOT = Path(__file__).resolve().parents[3]
WATCH = """
import atexit, os, sys
sys.path.insert(0, ROOT)
seen = set()
def inodes_of_mine():
    # A descriptor has no path: the lock on the capture is known by the file that it is on.
    for name in ("FAKE_CODEX_CAPTURE", "FAKE_CODEX_LEDGER"):
        try:
            found = os.stat(os.environ.get(name, ""))
        except OSError:
            continue
        yield found.st_dev, found.st_ino
def hook(event, args):
    if event in ("fcntl.flock", "os.truncate") and isinstance(args[0], int):
        found = os.fstat(args[0])
        if (found.st_dev, found.st_ino) not in inodes_of_mine():
            seen.add((event, ""))
    elif event == "open":
        path, mode, flags = args
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        seen.add(("write" if writes else "read", str(path)))
    else:
        seen.add((event, ""))
def report():
    sys.stderr.write("\\n" + repr(sorted(seen)) + "\\n")
sys.addaudithook(hook)
atexit.register(report)
HARM
from codex_fakes.fake_codex import main
sys.exit(main(ARGV))
"""
#: What an interpreter does that only loads modules and computes.
HARMLESS = {
    "compile", "exec", "import", "marshal.loads", "marshal.load", "object.__getattr__", "object.__setattr__",
    "object.__delattr__", "sys._getframe", "code.__new__", "os.listdir", "os.scandir", "builtins.id", "sys.excepthook",
    "sys.unraisablehook", "cpython.run_command",
}  # fmt: skip
EVIL = "$(touch {evil}); curl http://127.0.0.1:1/"


def watched(argv: list[str], harm: str = "") -> list[str]:
    """Return the command that runs fake-codex under the watch; `harm` is what a broken one does besides."""
    code = WATCH.replace("ROOT", repr(str(ROOT))).replace("ARGV", repr(argv)).replace("HARM", harm)
    return [sys.executable, "-B", "-c", code]


class Stage:
    """A home, a working directory, the files that fake-codex may write, and all that is on the disk before and after."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.evil = root / "home" / "work" / "evil"
        self.home = HermeticHome(root / "home", "http://127.0.0.1:39999", sandbox_mode="danger-full-access")
        self.script = root / "script.json"
        self.mine = {"FAKE_CODEX_LEDGER": str(root / "ledger.ndjson"), "FAKE_CODEX_CAPTURE": str(root / "capture.ndjson")}
        self.script.write_bytes(dumps(self.turns()))

    def turns(self) -> Any:
        """A script that asks for as much harm as it can."""
        command = EVIL.format(evil=self.evil)
        patch = f"*** Begin Patch\n*** Add File: {self.evil}\n+x\n*** Delete File: config.toml\n*** End Patch\n"
        calls = [
            ("shell_command", {"command": command, "sandbox_permissions": "require_escalated", "justification": command}),
            ("shell", {"command": ["sh", "-c", command]}),
            ("exec_command", {"cmd": command}),
            ("view_image", {"path": "/etc/passwd"}),
            ("read_mcp_resource", {"server": "x", "uri": "file:///etc/passwd"}),
        ]
        items: list[Any] = [
            {"type": "function_call", "name": name, "arguments": arguments, "call_id": f"c{n}", "result": {"stdout": command}}
            for n, (name, arguments) in enumerate(calls)
        ]
        items.append({"type": "custom_tool_call", "name": "apply_patch", "input": patch, "call_id": "p"})
        answers = {"command/exec": {"result": {"exitCode": 0, "stdout": command, "stderr": ""}}}
        return {"turns": [{"items": items}, {"items": ["ok"], "times": "always"}], "answers": answers, "account": "chatgpt"}

    def env(self, **more: str) -> dict[str, str]:
        return {**self.home.env, **more}

    def disk(self) -> dict[str, str]:
        """Return path -> hash of all that is there, but for what fake-codex may write."""
        found = {}
        for path in sorted(self.root.rglob("*")):
            if str(path) not in self.mine.values():
                found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        return found

    def harm(self, seen: list[tuple[str, str]], named: list[Path]) -> list[str]:
        """Return what was seen that should not be; `named` are the files that the environment names."""
        found = []
        for event, path in seen:
            if event == "write":
                if path not in self.mine.values():
                    found.append(f"writes {path}")
            elif event == "read":
                if not self.is_ours(path) and Path(path) not in named:
                    found.append(f"reads {path}")
            elif event not in HARMLESS:
                found.append(f"does {event}")
        return found

    def is_ours(self, path: str) -> bool:
        """Tell whether a file is a module or the package's data, or the configuration."""
        places = (
            str(ROOT / "fake_server"),
            str(ROOT / "harness"),
            sys.prefix,
            sys.base_prefix,
            str(self.home.home / "config.toml"),
        )
        return path.startswith(places)


def seen_by(client: Client) -> list[tuple[str, str]]:
    """Return what the watch reported at the end."""
    told = eval(client.process.stderr_tail(1)[0])
    assert isinstance(told, list)
    return told


def drive(stage: Stage, env: dict[str, str], harm: str = "") -> list[tuple[str, str]]:
    """Make each request that there is, and a turn with every kind of call, all of which are approved."""
    client = Client(watched(["app-server"], harm), env=env, cwd=str(stage.home.work), timeout=60)
    try:
        client.request("initialize", {"clientInfo": CLIENT})
        policy = {"approvalPolicy": "on-request", "sandbox": "danger-full-access", "cwd": str(stage.home.work)}
        thread = client.request("thread/start", policy)["thread"]["id"]
        client.post("turn/start", {"threadId": thread, "input": [{"type": "localImage", "path": "/etc/passwd"}]})
        while True:
            message = client.wait(
                "a request or the end", lambda m: "method" in m and ("id" in m or m["method"] == "turn/completed")
            )
            if "id" not in message:
                break
            client.reply(message, {"decision": "accept"})
        evil = {"filePath": str(stage.evil), "path": str(stage.evil), "command": ["touch", str(stage.evil)], "cwd": "/etc"}
        for method in load_methods():
            params = json.loads(json.dumps(NEEDED.get(method, {})).replace("THREAD", thread))
            for more in ({}, {key: value for key, value in evil.items() if key in params or method.startswith("config")}):
                if method not in UNANSWERED and method != "initialize":
                    client.call(method, None if load_methods()[method] == "unit" else {**params, **more})
        client.close()
        return seen_by(client)
    finally:
        client.stop()


def test_no_request_and_no_call_of_a_script_does_harm(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    before = stage.disk()
    seen = drive(stage, stage.env(FAKE_CODEX_SCRIPT=str(stage.script), **stage.mine))
    assert stage.harm(seen, [stage.script]) == []
    assert stage.disk() == before
    assert {path for event, path in seen if event == "write"} == set(stage.mine.values())
    assert len(Path(stage.mine["FAKE_CODEX_LEDGER"]).read_bytes().splitlines()) >= 2


def test_no_cassette_does_harm(tmp_path: Path) -> None:
    """A recording of commands that were run and files that were changed does neither when it is replayed."""
    stage = Stage(tmp_path)
    for name in ("test_exec_approvals/accept_for_session", "test_methods/command_exec", "test_config/write"):
        cassette = ROOT / "cassettes" / "app_server" / f"{name}.ndjson"
        Path(stage.mine["FAKE_CODEX_CAPTURE"]).unlink(missing_ok=True)
        before = stage.disk()
        env = stage.env(FAKE_CODEX_CASSETTE=str(cassette), FAKE_CODEX_CAPTURE=stage.mine["FAKE_CODEX_CAPTURE"])
        client = Client(watched(["app-server"]), env=env, cwd=str(stage.home.work), timeout=60)
        try:
            for line in cassette.read_bytes().splitlines()[1:]:
                frame = json.loads(line)
                if frame.get("seam") == "rpc" and frame["from"] == "client":
                    client.send(frame["msg"])
            client.close()
            seen = seen_by(client)
        finally:
            client.stop()
        assert stage.harm(seen, [cassette]) == []
        assert stage.disk() == before


def test_no_script_does_harm_to_who_runs_exec(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    before = stage.disk()
    env = stage.env(FAKE_CODEX_SCRIPT=str(stage.script), FAKE_CODEX_LEDGER=stage.mine["FAKE_CODEX_LEDGER"])
    client = Client(watched(["exec", "--json", "--skip-git-repo-check", "Go."]), env=env, cwd=str(stage.home.work), timeout=60)
    try:
        client.close()
        seen = seen_by(client)
    finally:
        client.stop()
    assert stage.harm(seen, [stage.script]) == []
    assert stage.disk() == before


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        ("os.system('true')", "does os.system"),
        ("import subprocess; subprocess.run(['true'])", "does subprocess.Popen"),
        ("os.posix_spawn('/bin/true', ['true'], {})", "does os.posix_spawn"),
        ("import socket; socket.socket().close()", "does socket.__new__"),
        ("open(os.environ['HOME'] + '/x', 'w').close()", "writes "),
        ("os.close(os.open(os.environ['HOME'] + '/x', os.O_WRONLY | os.O_CREAT))", "writes "),
        ("os.mkdir(os.environ['HOME'] + '/x')", "does os.mkdir"),
        ("os.rename(os.environ['HOME'] + '/config.toml', os.environ['HOME'] + '/x')", "does os.rename"),
        ("open('/etc/passwd').close()", "reads /etc/passwd"),
        (
            "import fcntl; fcntl.flock(os.open(os.environ['HOME'] + '/config.toml', os.O_RDONLY), fcntl.LOCK_SH)",
            "does fcntl.flock",
        ),
        ("os.truncate(os.environ['HOME'] + '/config.toml', 0)", "does os.truncate"),
        ("os.truncate(os.open(os.environ['HOME'] + '/config.toml', os.O_RDWR), 0)", "does os.truncate"),
    ],
)
def test_a_fake_that_does_harm_is_found(harm: str, told: str, tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    client = Client(watched(["app-server"], harm), env=stage.env(), cwd=str(stage.home.work), timeout=60)
    try:
        client.request("initialize", {"clientInfo": CLIENT})
        client.close()
        found = stage.harm(seen_by(client), [])
    finally:
        client.stop()
    assert any(sentence.startswith(told) for sentence in found), found
