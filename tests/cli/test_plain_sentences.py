"""What our programs print for people: no secret, and nothing that a terminal acts on, whoever said it.

Each test plants a key, an escape sequence and a bell where somebody else chooses the text.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.core.wire.json_text import dumps
from codex_replay.plugin.base.places import SUITES_PLUGIN
from codex_replay.shell.cassettes.file import CassetteWriter

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
KEY = "sk-proj-" + "aB3d" * 12
#: Clears the screen, changes the title with a bell, C1's own CSI, and turns the text around.
NASTY = f"\x1b[2J\x1b]0;owned\x07\x9b31m\u202e {KEY} "
ACTIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
INITIALIZE = b'{"id":0,"method":"initialize","params":{"clientInfo":{"name":"c","version":"1"}}}\n'


def run(*words: str | Path, said: bytes = b"", cwd: Path, **env: str) -> tuple[int, str]:
    """Run a program; return its status and its stderr. What it prints must be plain; fake-codex speaks JSON to its client."""
    environment = {**os.environ, "COLUMNS": "300", **env}
    done = subprocess.run([str(word) for word in words], input=said, capture_output=True, timeout=120, cwd=cwd, env=environment)
    text = (b"" if "FAKE_CODEX_CASSETTE" in env else done.stdout).decode() + done.stderr.decode()
    assert ACTIVE.search(text) is None, repr(text)
    assert KEY not in text
    assert "Traceback" not in text
    return done.returncode, done.stderr.decode()


def cassette(path: Path, *messages: tuple[str, object], case: str = "c") -> Path:
    with CassetteWriter(path, Header("0.92.0", "unknown", case, {"rpc": "authored"})) as writer:
        for sender, message in messages:
            writer.write(Frame(0, 0.0, "rpc", sender, raw=dumps(message) + b"\n"))
    return path


@pytest.mark.parametrize("mode", ["replaying", "scripted"])
@pytest.mark.parametrize("line", ['{{"apiKey": "{0}', "{0}", "['{0}\"", "x" * 190 + "{0}"])
def test_a_line_that_is_no_message(mode: str, line: str, tmp_path: Path) -> None:
    env = {"FAKE_CODEX_CASSETTE": str(cassette(tmp_path / "c.ndjson"))} if mode == "replaying" else {}
    _, said = run(BIN / "fake-codex", "app-server", said=line.format(NASTY).encode() + b"\n", cwd=tmp_path, **env)
    assert "Failed to deserialize" in said
    assert "sk-proj-aB3d" not in said


def test_a_client_and_a_recording_that_differ(tmp_path: Path) -> None:
    hello = ("client", {"id": 0, "method": "initialize", "params": {"clientInfo": {"name": "c", "version": "1"}}})
    asked = ("client", {"id": 1, "method": NASTY, "params": {"apiKey": "one", NASTY: NASTY}})
    path = cassette(tmp_path / "c.ndjson", hello, ("server", {"id": 0, "result": {"userAgent": "c"}}), asked)
    live = dumps({"id": 1, "method": "model/list", "params": {"apiKey": KEY, "cwd": NASTY}}) + b"\n"
    status, said = run(
        BIN / "fake-codex",
        "app-server",
        said=INITIALIZE + live,
        cwd=tmp_path,
        FAKE_CODEX_CASSETTE=str(path),
        FAKE_CODEX_MATCH="exact",
    )
    assert status == 1
    assert "never came from the client" in said


@pytest.mark.parametrize("variable", ["CASSETTE", "SCRIPT", "MATCH", "PACE", "FAULT"])
def test_a_setting_of_fake_codex(variable: str, tmp_path: Path) -> None:
    env = {f"FAKE_CODEX_{variable}": NASTY}
    if variable in ("MATCH", "PACE"):
        env["FAKE_CODEX_CASSETTE"] = str(cassette(tmp_path / "c.ndjson"))
    status, said = run(BIN / "fake-codex", "app-server", said=INITIALIZE, cwd=tmp_path, **env)
    assert (status, "\\u001b[2J" in said or "\\x1b[2J" in said) == (2, True)


@pytest.mark.parametrize("verb", ["lint", "show", "stats", "diff", "redact"])
def test_a_cassette_its_name_and_its_case(verb: str, tmp_path: Path) -> None:
    name = tmp_path / f"{NASTY.replace(KEY, '')}.ndjson"
    message = {"id": 1, "method": NASTY, "params": {"cwd": NASTY}}
    for path in (name, tmp_path / "b.ndjson"):
        cassette(path, ("client", message), ("client", {"method": f"{NASTY}{path.name}"}), case=NASTY)
    path.write_bytes(
        path.read_bytes().replace(b'{"end"', b'{"n":9,"t":0.0,"seam":"rpc","from":"client","msg":{"\xc2\x9b":1}}\n{"end"')
    )
    # `show` and `stats` print what is in a cassette.
    clean = tmp_path / "\x1b[2J\x07.ndjson"
    cassette(clean, ("client", {"method": NASTY.replace(KEY, "")}), case=NASTY.replace(KEY, ""))
    words = {
        "diff": [clean, tmp_path / "missing\x1b\x07"],
        "redact": [name, "--out", tmp_path / "out\x07.ndjson"],
        "show": [clean],
        "stats": [clean],
    }
    run(BIN / "codex-replay", "cassette", verb, *words.get(verb, [name, path, clean]), cwd=tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        ["cassette", "lint", NASTY],
        ["cassette", "show", NASTY],
        [NASTY],
        ["cassette", "show", f"--{NASTY}"],
        ["replay", NASTY, "--app-server", NASTY],
        ["serve", "--script", NASTY],
        ["run", NASTY],
        ["codex", "path", NASTY],
        ["drift", NASTY, NASTY],
        ["report", "open", NASTY],
        ["record", "--out", f"no/{NASTY}", "--", "cat"],
        ["record", "--out", "x.ndjson", "--", NASTY],
        ["record", "--out", "x.ndjson", "--upstream", NASTY],
    ],
)
def test_what_the_command_line_names(words: list[str], tmp_path: Path) -> None:
    status, said = run(BIN / "codex-replay", *words, cwd=tmp_path)
    assert status not in (0, 1)
    assert said


SUITE = f"""
import pytest

def test_fails():
    pytest.fail({NASTY!r})

def test_compares():
    assert {{"a": {NASTY!r}}} == {{"a": 1}}, {NASTY!r}

@pytest.mark.skip(reason={NASTY!r})
def test_skips():
    pass

@pytest.mark.parametrize("x", [1], ids=["id"])
def test_prints(x):
    print({NASTY!r})
    raise ValueError({NASTY!r})
"""


@pytest.mark.parametrize("workers", [[], ["-n1"]])
def test_pytests_own_text_and_the_summary_of_a_run(workers: list[str], tmp_path: Path) -> None:
    (tmp_path / "suites" / "mine").mkdir(parents=True)
    (tmp_path / "suites" / "mine" / "test_it.py").write_text(SUITE)
    words = ["-m", "pytest", "suites", "-rA", "-p", "no:cacheprovider", "-p", SUITES_PLUGIN, "--report", "report", *workers]
    status, _ = run(sys.executable, *words, cwd=tmp_path, PYTHONPATH=str(ROOT))
    assert status == 1
    files = [path for path in (tmp_path / "report").iterdir() if path.suffix != ".lock"]
    assert {"summary.md", "report.json", "junit.xml", "report.html"} <= {path.name for path in files}
    for path in files:
        text = path.read_text()
        assert KEY not in text, path.name
        assert ACTIVE.search(text) is None or path.suffix != ".md", path.name


OTHER = "ghp_" + "aB3d" * 9


def printed(*words: str | Path, cwd: Path) -> str:
    """Return the stdout of a command; its stderr is that of people."""
    done = subprocess.run([BIN / "codex-replay", *map(str, words)], capture_output=True, timeout=120, cwd=cwd)
    assert OTHER.encode() not in done.stderr
    assert ACTIVE.search(done.stdout.decode()) is None
    return done.stdout.decode()


@pytest.mark.parametrize("verb", [("lint",), ("show",), ("stats",), ("lint", "--notes"), ("show", "--full"), ("diff",)])
def test_what_is_printed_for_people_has_no_secret_of_a_file_name_or_a_cassette(verb: tuple[str, ...], tmp_path: Path) -> None:
    """A cassette that nobody has redacted, under a name with a key and a bell; `--json` names the file as it is."""
    frames = [("client", {"id": 0, "method": f"m{OTHER}", "params": {"apiKey": OTHER, "text": OTHER}})]
    first = cassette(tmp_path / f"{OTHER}\x07.ndjson", *frames, case=OTHER)
    paths = [first, cassette(tmp_path / f"{OTHER}2.ndjson")] if verb == ("diff",) else [first]
    text = printed("cassette", *verb, *paths, cwd=tmp_path)
    assert text
    assert OTHER not in text
    if verb[0] in ("lint", "stats"):
        assert OTHER in printed("cassette", *verb, "--json", *paths, cwd=tmp_path)


@pytest.mark.parametrize(
    "verb", ["run", "record", "serve", "drift", "doctor", "report", "schema", "cassette", "init", "replay", "codex"]
)
def test_help_is_printed_as_it_is_written(verb: str) -> None:
    from click.testing import CliRunner

    from codex_replay.cli.main import main
    from codex_replay.core.redact.redactor import Redactor

    text = CliRunner().invoke(main, [verb, "--help"]).output
    assert len(text) > 200
    assert Redactor(homes=False).text(text) == text
