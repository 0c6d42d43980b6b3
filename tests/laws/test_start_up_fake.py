"""What fake-codex loads before its first answer, and for a whole turn: a run of the suites starts it by the hundred, and a start
is imports, nearly all.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codex_replay.shell.codex.home import HermeticHome

LAUNCHER = Path(sys.executable).with_name("fake-codex")
ROOT = Path(__file__).resolve().parents[2]
CASSETTES = ROOT / "cassettes" / "app_server"
#: Each takes milliseconds, of the ten that a start has beyond the interpreter's own.
SLOW = {
    *("typing", "dataclasses", "inspect", "enum", "re", "json", "os", "signal", "random", "functools", "collections"),
    *("collections.abc", "contextlib", "tomllib", "datetime", "uuid", "copy", "hashlib", "pathlib", "subprocess"),
}
PLACE = {"codex_fakes": "fake_server", "codex_replay": "harness"}
IMPORTED = re.compile(r"import time: +\d+ \| +\d+ \| +(\S+)")
INITIALIZE = {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "another", "title": None, "version": "9"}}}
ITEMS: list[Any] = [
    {"type": "reasoning", "summary": ["Let me see."]},
    {"type": "function_call", "name": "shell", "arguments": {"command": ["ls"]}, "result": {"stdout": "a.txt"}},
    {"type": "function_call", "name": "update_plan", "arguments": {"plan": [{"step": "Look", "status": "completed"}]}},
]


class Client:
    """Says one message after another to a server, and waits for what it asks for."""

    def __init__(self, server: subprocess.Popen[bytes]) -> None:
        assert server.stdin is not None
        assert server.stdout is not None
        self.said, self.heard = server.stdin, server.stdout

    def write_out(self, message: dict[str, Any]) -> None:
        self.said.write(json.dumps(message).encode() + b"\n")
        self.said.flush()

    def until(self, key: str, value: Any) -> dict[str, Any]:
        """Read on to the message of this id or method."""
        for line in self.heard:
            message: dict[str, Any] = json.loads(line)
            if message.get(key) == value:
                return message
        raise AssertionError(f"The server ended before a message with {key} {value}.")


def replayed(folder: Path) -> tuple[dict[str, str], Callable[[Client], None]]:
    """The recorded client, under another name and in a folder of its own."""
    cassette = CASSETTES / "test_v2" / "text_turn.ndjson"
    mine = [line for line in cassette.read_text().splitlines() if '"seam":"rpc","from":"client"' in line]
    assert any('"cwd":"/home/user/work"' in line for line in mine)
    frames = [json.loads(line.replace("/home/user/work", str(folder)))["msg"] for line in mine]

    def talk(client: Client) -> None:
        for frame in frames:
            client.write_out(frame)
        client.until("method", "turn/completed")

    return {"FAKE_CODEX_CASSETTE": str(cassette)}, talk


def scripted(folder: Path) -> tuple[dict[str, str], Callable[[Client], None]]:
    """A turn with a thought, a command, a plan and a text; the configuration is as the suites write it."""
    script = {"turns": [{"match": "Hi", "items": ITEMS}, {"items": ["Done."]}]}
    (folder / "script.json").write_text(json.dumps(script))
    environ = {
        **HermeticHome(folder, "http://127.0.0.1:9", sandbox_mode="danger-full-access").env,
        "FAKE_CODEX_SCRIPT": str(folder / "script.json"),
        "FAKE_CODEX_LEDGER": str(folder / "ledger.ndjson"),
    }

    def talk(client: Client) -> None:
        client.write_out(INITIALIZE)
        client.write_out({"id": 2, "method": "thread/start", "params": {"cwd": str(folder)}})
        thread = client.until("id", 2)["result"]["thread"]["id"]
        client.write_out(
            {"id": 3, "method": "turn/start", "params": {"threadId": thread, "input": [{"type": "text", "text": "Hi"}]}}
        )
        client.until("method", "turn/plan/updated")
        client.until("method", "turn/completed")

    return environ, talk


def faulty(folder: Path) -> tuple[dict[str, str], Callable[[Client], None]]:
    """The same turn, with one of its notifications said twice."""
    environ, talk = scripted(folder)
    return {**environ, "FAKE_CODEX_FAULT": "doubled-event:3"}, talk


CASES = [
    (replayed, "codex_replay.core.normalise.masking"),
    (scripted, "codex_replay.protocol.responses.items"),
    (faulty, "codex_fakes.stdio.faults"),
]


def loaded(start: list[str], environ: dict[str, str], talk: Callable[[Client], None], folder: Path) -> set[str]:
    """Lead a conversation with fake-codex to its end in good order; return what it imported."""
    with (folder / "stderr").open("wb") as stderr:
        argv = [sys.executable, "-I", "-S", "-X", "importtime", *start, "app-server"]
        server = subprocess.Popen(argv, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr)
        with server:
            client = Client(server)
            talk(client)
            client.said.close()
            client.heard.read()
    said = (folder / "stderr").read_text()
    assert server.returncode == 0, said
    return set(IMPORTED.findall(said))


@pytest.mark.parametrize(("case", "own"), CASES, ids=[case.__name__ for case, _ in CASES])
def test_a_turn_loads_nothing_slow(case: Any, own: str, tmp_path: Path) -> None:
    found = loaded([str(LAUNCHER)], *case(tmp_path), tmp_path)
    assert own in found
    assert sorted(found & SLOW) == []


@pytest.mark.parametrize(("case", "own"), CASES, ids=[case.__name__ for case, _ in CASES])
@pytest.mark.parametrize("module", ["typing", "dataclasses"])
def test_a_turn_that_loads_more_is_noticed(case: Any, own: str, module: str, tmp_path: Path) -> None:
    """The broken ones: a module that the turn needs has one import that it does without."""
    more = (
        "import builtins, sys; launcher, old = sys.argv.pop(1), __import__; sys.argv[0] = launcher\n"
        "def late(name, *rest):\n"
        f"    if name == {own!r}: old({module!r})\n"
        "    return old(name, *rest)\n"
        "builtins.__import__ = late\n"
        "exec(compile(open(launcher).read(), launcher, 'exec'))"
    )
    assert module in loaded(["-c", more, str(LAUNCHER)], *case(tmp_path), tmp_path) & SLOW


#: All that is loaded before the first answer, beyond what an interpreter loads of itself. A module more costs each start about
#: 0.1 ms, and so does a package: its folder is listed. So one that is added here pays for itself.
FIRST_ANSWER = {
    *("__future__", "_json", "gc", "select"),
    *("codex_fakes", "codex_fakes.fake_codex", "codex_fakes.replaying", "codex_fakes.replaying.app_server"),
    *("codex_fakes.stdio", "codex_fakes.stdio.loop"),
    *("codex_replay", "codex_replay.core", "codex_replay.shell", "codex_replay.shell.cassettes"),
    *("codex_replay.core.cassette", "codex_replay.core.cassette.frames", "codex_replay.shell.cassettes.file"),
    *("codex_replay.core.replay", "codex_replay.core.replay.causality", "codex_replay.core.replay.match"),
    *("codex_replay.core.replay.player", "codex_replay.core.replay.track"),
    *("codex_replay.core.wire", "codex_replay.core.wire.json_text", "codex_replay.core.wire.jsonrpc"),
    *("codex_replay.core.wire.ndjson", "codex_replay.core.wire.serde"),
    # Whether the recorded version has tables decides in which order frames go out, and is reported to every client.
    *("codex_replay.protocol", "codex_replay.protocol.versions"),
}
#: The packages, of docstrings alone, whose modules the scripted fake of 0.169.0 loads before its first answer.
SCRIPTED_PACKAGES = {
    "codex_fakes.scripted",
    "codex_fakes.scripted.state",
    "codex_replay.protocol.turn",
    "codex_replay.shell.files",
}
#: The launcher, which at its first write prints the modules and the folders that it has listed by then.
PROBE = """
import posix, sys
launcher, write, before = sys.argv.pop(1), posix.write, set(sys.modules)
sys.argv[0] = launcher
def probing(*what):
    print(*set(sys.modules) - before, file=sys.stderr)
    print(*sys.path_importer_cache, file=sys.stderr, flush=True)
    return write(*what)
posix.write = probing
{more}
exec(compile(open(launcher).read(), launcher, "exec"))
"""


def before_the_first_answer(environ: dict[str, str], more: str = "") -> tuple[set[str], list[str]]:
    """Let fake-codex answer `initialize`; return the modules that it loaded before, and the folders that it looked through."""
    said = json.dumps(INITIALIZE).encode() + b"\n"
    argv = [sys.executable, "-I", "-S", "-c", PROBE.format(more=more), str(LAUNCHER), "app-server"]
    done = subprocess.run(argv, input=said, env=environ, capture_output=True, check=False, timeout=60)
    assert b"userAgent" in done.stdout, done.stderr
    modules, folders, *_ = done.stderr.decode().splitlines()
    return set(modules.split()), folders.split()


def test_the_first_answer_loads_these_modules_and_no_other(tmp_path: Path) -> None:
    """Whatever the client's name is."""
    environ, _ = replayed(tmp_path)
    modules, folders = before_the_first_answer(environ)
    assert modules == FIRST_ANSWER | SCRIPTED_PACKAGES
    assert [folder for folder in folders if folder.endswith("site-packages")] == []


def test_a_first_answer_that_loads_more_is_noticed(tmp_path: Path) -> None:
    """The broken one: a table is read before it."""
    environ, _ = replayed(tmp_path)
    roots = [str(ROOT / "harness"), str(ROOT / "fake_server")]
    early = f"sys.path += {roots!r}\nfrom codex_replay.protocol.data_tables import load; load('turn')"
    modules, _ = before_the_first_answer(environ, early)
    assert {"codex_replay.protocol.data_tables", "codex_replay.shell.files.version_data"} <= modules - FIRST_ANSWER


def is_package(name: str) -> bool:
    return "." in name and (ROOT / PLACE[name.partition(".")[0]] / name.replace(".", "/")).is_dir()


def test_the_scripted_fake_reads_no_package_before_its_first_answer(tmp_path: Path) -> None:
    """All packages below the two roots that it needs are entered unread."""
    modules, _ = before_the_first_answer({"PATH": "/nowhere", "HOME": str(tmp_path), "FAKE_CODEX_VERSION": "0.169.0"})
    ours = {name for name in modules if name.startswith(("codex_fakes.", "codex_replay."))}
    needed = {name for name in ours if is_package(name) and any(each.startswith(f"{name}.") for each in ours)}
    assert needed >= SCRIPTED_PACKAGES
    assert needed <= SCRIPTED_PACKAGES | FIRST_ANSWER


def test_the_packages_that_are_entered_unread_hold_a_docstring_alone() -> None:
    """The launcher enters all packages below the two roots that a first answer needs, and no other."""
    parts = re.findall(r"""^    \((codex_\w+), "([\w. ]+)"\),$""", LAUNCHER.read_text(), re.MULTILINE)
    entered = {f"{root}.{name}" for root, names in parts for name in names.split()}
    folders = {
        name: ROOT / PLACE[name.partition(".")[0]] / name.replace(".", "/")
        for name in FIRST_ANSWER | SCRIPTED_PACKAGES
        if "." in name
    }
    assert entered == {name for name, folder in folders.items() if folder.is_dir()}
    for name in sorted(entered):
        (only,) = ast.parse((folders[name] / "__init__.py").read_text()).body
        assert isinstance(only, ast.Expr), name
        assert isinstance(only.value, ast.Constant), name


def test_a_last_line_that_cannot_be_written_is_not_lost_silently() -> None:
    """The launcher ends without taking the interpreter apart, and that is what writes the last lines in other programs."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run([LAUNCHER, "--version"], stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, b"No space left" in done.stderr) == (120, True)
    piped = subprocess.run([LAUNCHER, "--version"], stdout=subprocess.PIPE, check=True)
    assert piped.stdout.startswith(b"codex-cli ")
