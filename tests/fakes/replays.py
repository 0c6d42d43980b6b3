"""What the tests of fake-codex with a cassette share: its run, a conversation as a cassette, and broken ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.core.wire.json_text import dumps
from codex_replay.shell.cassettes.file import CassetteWriter

SOURCE_ROOTS = [str(Path(__file__).resolve().parents[2] / name) for name in ("harness", "fake_server")]


THREAD = "01a1fa03-daf3-7c40-a0be-c9e3464a450e"


SETTINGS = "FAKE_CODEX_"


#: What a broken fake-codex does before it begins.
BROKEN = {
    "tells no difference": "from codex_fakes.replaying.app_server import AppServer as A; A._content_notes = lambda self: []",
    "keeps no difference": "from codex_fakes.replaying.app_server import Noting as N; N.consume = N.__mro__[1].consume",
    "writes no ending": "import codex_fakes.replaying.ending as e; e.append = lambda *_: None",
    "tells what is masked": "import codex_replay.core.replay.match as m; m.Matcher._same_leaf = lambda *_: False",
    "tells the client's name": (
        "import codex_fakes.replaying.app_server as a, codex_fakes.replaying.content_notes as o; "
        "a._compared = lambda value: value.get('params')\n"
        "o._differences = lambda matcher, ours, theirs: matcher.differences(ours.value, theirs.value)"
    ),
    "tells all": "import codex_fakes.replaying.content_notes as o; o.TOLD = 1000",
    "tells it raw": (
        "import codex_fakes.replaying.content_notes as o; o.escape = str\n"
        "import codex_replay.core.redact.sentence as s; s.visible = str"
    ),
    "tells it whole": "import codex_fakes.replaying.content_notes as o; o.SHOWN = 10**9",
    "takes any home": ("import codex_fakes.stdio.capture as c; c.redactor = lambda home: c.Redactor(paths={home: '/home/user'})"),
    "tells secrets": (
        "from codex_fakes.replaying.app_server import AppServer as A; A._clean = lambda self, live: live\n"
        "import codex_replay.core.redact.sentence as s; s.sentence = s.visible"
    ),
    "heeds no word": "import codex_fakes.replaying.app_server as a; a.quiet = lambda environ: False",
    "heeds no signal": "from codex_fakes.stdio.loop import Stdio; Stdio.install_signal_handlers = lambda self: None",
    "hears nobody out": "from codex_fakes.stdio.loop import Stdio; Stdio._hear_out = lambda self: None",
    "ends with a status": "import os, codex_fakes.stdio.loop as s; s.die = lambda number: os._exit(1)",
    "takes a signal back": "import _signal; s = _signal; get = s.getsignal; s.getsignal = lambda n: s.SIG_DFL",
    "waits for its reader": "import codex_fakes.stdio.loop as s; s._can_be_told = lambda: True",
    "waits after a second signal": (
        "from codex_fakes.stdio.loop import Stdio; old = Stdio._on_signal\n"
        "Stdio._on_signal = lambda self, *what: None if self._signal else old(self, *what)"
    ),
    "dies of its reader": (
        "from codex_fakes.stdio.loop import Stdio; import posix\n"
        "Stdio._flush = lambda self: [posix.write(1, raw) for raw in self._out]"
    ),
    "waits at no place": "from codex_fakes.stdio.loop import Stdio; Stdio._wait = lambda self: None",
    "says nothing of an empty setting": "import codex_fakes.fake_codex as f; f._say_empty = lambda settings: None",
    "takes both": "import codex_fakes.fake_codex as f; f._refuse_both = lambda settings: None",
    "names no bundle": "import codex_replay.protocol.data_tables as s; s.identity = lambda version: ''",
}


def fake(broken: str = "") -> list[str]:
    """The command of fake-codex, or of a broken one."""
    code = f"import sys; sys.path[:0] = {SOURCE_ROOTS!r}\n{BROKEN[broken] if broken else ''}\n"
    return [sys.executable, "-I", "-S", "-c", code + "from codex_fakes.fake_codex import main; sys.exit(main(sys.argv[1:]))"]


def environ(**settings: Any) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": "/nowhere",
        **{f"{SETTINGS}{name.upper()}": str(value) for name, value in settings.items()},
    }


def run(sent: list[Any], broken: str = "", home: str = "/nowhere", **settings: Any) -> tuple[int, list[str], list[Any]]:
    """Say these messages; return the exit status, the lines on stderr and the messages that came."""
    data = b"".join(dumps(message) + b"\n" for message in sent)
    env = {**environ(**settings), "HOME": home}
    done = subprocess.run([*fake(broken), "app-server"], input=data, capture_output=True, env=env, timeout=60)
    return done.returncode, done.stderr.decode().splitlines(), [json.loads(line) for line in done.stdout.splitlines()]


def conversation(prompt: Any = "Hi", turns: int = 1, cwd: str = "/home/user/work") -> list[tuple[str, Any]]:
    """A client's frames and a server's: a handshake, a thread, and turns."""
    said: list[tuple[str, Any]] = [
        ("client", {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "c", "version": "1"}}}),
        ("server", {"id": 1, "result": {"userAgent": "c/0.92.0"}}),
        ("client", {"id": 2, "method": "thread/start", "params": {"cwd": cwd}}),
        ("server", {"id": 2, "result": {"thread": {"id": THREAD, "cwd": cwd}}}),
    ]
    for n in range(3, 3 + turns):
        said += [
            ("client", {"id": n, "method": "turn/start", "params": {"threadId": THREAD, "input": prompt}}),
            ("server", {"id": n, "result": {"turn": {"id": str(n)}}}),
            ("server", {"method": "turn/completed", "params": {"threadId": THREAD, "turn": {"id": str(n)}}}),
        ]
    return said


def write(path: Path, entries: list[tuple[str, Any]], codex: str = "0.92.0") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with CassetteWriter(path, Header(codex, "sha256:none", "test", {"rpc": "authored"})) as writer:
        for i, (sender, message) in enumerate(entries):
            writer.write(Frame(0, i / 1000, "rpc", sender, raw=dumps(message) + b"\n"))
    return path


def of_client(entries: list[tuple[str, Any]]) -> list[Any]:
    return [message for sender, message in entries if sender == "client"]


def red(check: Any, broken: str, *arguments: Any) -> None:
    """Hold that a check notices the broken one, and for no other reason than what it says."""
    with pytest.raises(AssertionError):
        check(*arguments, broken=broken)
