"""What our programs print on a terminal: their own colours and progress work, and no text of somebody else gives an order.

A file name or a message may hold a colour, or a carriage return that hides the beginning of its line."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from codex_replay.cli.io.console import Progress, console
from codex_replay.cli.io.stdout import for_people
from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.core.text.visible import visible
from codex_replay.core.wire.json_text import dumps
from codex_replay.shell.cassettes.file import CassetteWriter
from tests.cli.test_plain_sentences import BIN, KEY, NASTY, cassette

#: A colour and an overwritten line: what our own programs send, too.
FORGED = "\x1b[32m\rall sound"
SHOWN = "\\u001b[32m\\u000dall sound"


def on_a_terminal(*words: str | Path, cwd: Path) -> str:
    """Return what a program writes to a terminal, as it writes it."""
    ours, theirs = pty.openpty()
    settings = termios.tcgetattr(theirs)
    settings[1] &= ~termios.OPOST
    termios.tcsetattr(theirs, termios.TCSANOW, settings)
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "300"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(
        [str(word) for word in words], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, cwd=cwd, env=environment
    ) as child:
        os.close(theirs)
        read = b""
        while child.poll() is None or select.select([ours], [], [], 0)[0]:
            try:
                if select.select([ours], [], [], 0.1)[0]:
                    read += os.read(ours, 65536)
            except OSError:  # all is read
                break
        os.close(ours)
    return read.decode()


@pytest.mark.parametrize(
    "words", [("cassette", "lint"), ("cassette", "show"), ("cassette", "stats"), ("report", "merge", "--out", "merged")]
)
def test_a_file_name_cannot_colour_or_overwrite_a_line(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / f"{FORGED}.ndjson").write_text("no cassette\n")
    printed = on_a_terminal(BIN / "codex-replay", *words, f"{FORGED}.ndjson", cwd=tmp_path)
    assert SHOWN in printed
    assert FORGED not in printed
    assert "\x1b[32m" not in printed


def test_a_recording_cannot_colour_or_overwrite_a_line(tmp_path: Path) -> None:
    hello = ("client", {"id": 0, "method": "initialize" + FORGED, "params": {"name": FORGED}})
    path = cassette(tmp_path / "c.ndjson", hello)
    shown = on_a_terminal(BIN / "codex-replay", "cassette", "show", path.name, cwd=tmp_path)
    assert "\x1b[32m" not in shown
    assert "\r" not in shown
    assert "\x1b[36minitialize" in shown  # our own colour of a client's message
    found = on_a_terminal(BIN / "codex-replay", "cassette", "lint", path.name, cwd=tmp_path)
    assert "\x1b[32m" not in found


#: Controls of every kind, each between two marks: colours, titles, C0 and C1, directions of text, separators of lines.
CONTROLS = (
    "\x1b[35m",
    "\x1b]0;t\x07",
    "\r",
    "\x07",
    "\x08",
    "\x0b",
    "\x7f",
    "\x85",
    "\x9b31m",
    "\u061c",
    "\u200f",
    "\u2028",
    "\u202e",
    "\u2066",
)
HOSTILE = "".join(f"<<{each}>>" for each in CONTROLS)
#: Each verb, with a hostile file name, a hostile option, or a file of hostile texts; {} is the name of a recording.
VERBS = [
    *(
        "cassette lint {}",
        "cassette lint --notes .",
        "cassette lint {} --literal @",
        "cassette show --full {}",
        "cassette show --grep (@ {}",
    ),
    *("cassette show --html @.html {}", "cassette stats {}", "cassette diff {} none@", "cassette diff {} other.ndjson"),
    *("cassette redact {} --out r@.ndjson", "cassette redact {} --in-place", "cassette import --format tee {} --out i@.ndjson"),
    *(
        "cassette import --format @ {} --out x",
        "replay {} --app-server fake",
        "replay {} --app-server none@",
        "replay {} --app-server codex@@",
    ),
    *(
        "replay {} --backend http://@",
        "replay {} --backend fake",
        "record --out no@/x -- true",
        "record --out x --upstream http://@",
    ),
    *("record --out x --origin @=recorded -- true", "codex path @", "codex add @", "schema check @", "schema regenerate @"),
    *("drift @ 0.169.0", "drift 0.92.0 0.169.0 --cassettes .", "connect ws://@", "connect -- none@", "serve --script none@.json"),
    *(
        "serve --script {}",
        "serve --cassette {} --over @",
        "serve --cassette @",
        "init @",
        "run @",
        "run --shard @",
        "report open none@",
    ),
    *("report merge none@ --out m@", "@", "cassette lint --@"),
]


@pytest.mark.parametrize("words", VERBS)
def test_no_verb_lets_a_control_of_somebody_else_through(words: str, tmp_path: Path) -> None:
    name, other = HOSTILE + ".ndjson", {"id": 1, "method": HOSTILE, "params": {HOSTILE: 1}}
    message = {"id": 0, "method": "initialize" + HOSTILE, "params": {HOSTILE: HOSTILE, "clientInfo": {"name": HOSTILE}}}
    asked = {"method": "GET" + HOSTILE, "path": "/" + HOSTILE, "headers": [["x" + HOSTILE, HOSTILE]], "body": {HOSTILE: HOSTILE}}
    with CassetteWriter(tmp_path / name, Header("0.92.0", "unknown", HOSTILE, {"rpc": "authored", "http": "authored"})) as writer:
        writer.write(Frame(0, 0.0, "rpc", "client", raw=dumps(message) + b"\n"))
        writer.write(Frame(0, 0.0, "rpc", "server", raw=dumps({"id": 0, "error": {"code": -1, "message": HOSTILE}}) + b"\n"))
        writer.write(Frame(0, 0.0, "http", "client", "request", b"", asked, 1))
        writer.write(Frame(0, 0.0, "http", "server", "response", b"", {"status": 200, "headers": [], "reason": HOSTILE}, 1))
    cassette(tmp_path / "other.ndjson", ("client", other))
    argv = [word.replace("{}", name).replace("codex@@", f"codex@{HOSTILE}").replace("@", HOSTILE) for word in words.split()]
    printed = on_a_terminal(BIN / "codex-replay", *argv, cwd=tmp_path)
    raw = re.findall(r"<<([^<>]*)>>", printed)
    assert [each for each in raw if visible(each) != each] == []
    assert "Traceback" not in printed


def test_a_progress_bar_of_rich_moves_the_cursor(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from codex_replay.cli.io.stdout import for_people\n"
        "sys.stderr = for_people(sys.stderr)\n"
        "from codex_replay.cli.io.console import console\n"
        "from rich.progress import Progress\n"
        "with Progress(console=console(sys.stderr)) as bar:\n"
        "    bar.add_task('work', total=2)\n"
        f"    bar.console.print({FORGED!r})\n"
    )
    printed = on_a_terminal(sys.executable, "-c", program, cwd=tmp_path)
    assert "\x1b[?25l" in printed  # the cursor is hidden while the bar is drawn
    assert "\\u001b[?25l" not in printed
    assert SHOWN in printed


def test_a_console_writes_no_controls_of_a_text_and_no_secret() -> None:
    out = io.StringIO()
    console(out).print(NASTY, style="red")
    assert visible(NASTY).split(KEY)[0] in out.getvalue()
    assert "\x1b" not in out.getvalue()


def test_the_progress_line_of_a_verb_rewrites_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(tmp_path / "err", "w+", newline="") as file:
        err = for_people(file)
        monkeypatch.setattr(err, "isatty", lambda: True)
        monkeypatch.setattr(sys, "stderr", err)
        shown = Progress(FORGED)
        shown._next = 0
        shown.step()
        shown.clear()
        file.seek(0)
        assert file.read() == f"\r\x1b[K{SHOWN}: 1\r\x1b[K"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("run", "proxy", "--proxy", "true", "--baseline", NASTY), "--baseline"),
        (("record", "--model", NASTY, "--out", "x", "--", "codex@0.92.0"), "The script"),
        (("serve", "--host", NASTY), "cannot listen on"),
    ],
    ids=["baseline", "script", "host"],
)
def test_an_option_is_shown_without_controls(words: tuple[str, ...], says: str, tmp_path: Path) -> None:
    done = subprocess.run([BIN / "codex-replay", *words], capture_output=True, timeout=120, cwd=tmp_path, text=True)
    assert done.returncode in (2, 4)
    assert says in done.stderr
    assert visible(done.stderr) == done.stderr
    assert KEY not in done.stderr
    assert "Traceback" not in done.stderr
