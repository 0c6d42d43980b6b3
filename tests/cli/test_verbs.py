"""What holds for every verb alike: JSON for programs, numbers that are numbers, a sentence for everything that cannot be."""

from __future__ import annotations

import json
import os
import select
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from codex_replay.cli import codex
from codex_replay.cli.main import main
from tests.support.processes import ended

ROOT = Path(__file__).parents[2]
HANDSHAKE = ROOT / "cassettes" / "app_server" / "test_handshake" / "initialize.ndjson"

#: Verbs that say nothing on stdout but what they are asked to pass on or to write.
WITHOUT_JSON = {
    "record": "its stdout is the server's",
    "connect": "its stdout is the server's",
    "cassette show": "it is for people; the cassette itself is JSON",
    "cassette redact": "it writes a cassette",
    "cassette import": "it writes a cassette",
}
#: Options that take a number and leave it to the verb to read it.
NUMBERS_BY_HAND = {("run", "-n"), ("serve", "--pace"), ("replay", "--timeout")}  # and --wait of run, which pytest reads


def verbs(command: click.Command = main, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield each verb with its command."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    for each in command.list_commands(context):
        inner = command.get_command(context, each)
        assert inner is not None
        yield from verbs(inner, f"{name} {each}".strip())


def options(command: click.Command) -> set[str]:
    return {name for param in command.params for name in param.opts}


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def test_every_verb_that_says_something_says_it_to_programs_too() -> None:
    without = {name for name, command in verbs() if "--json" not in options(command)}
    assert without == WITHOUT_JSON.keys()


@pytest.mark.parametrize(
    "words",
    [
        ("replay", HANDSHAKE, "--app-server", "fake"),
        ("cassette", "diff", HANDSHAKE, HANDSHAKE),
        ("cassette", "lint", HANDSHAKE),
        ("cassette", "stats", HANDSHAKE),
        ("codex", "path", "0.92.0"),
        ("schema", "doc", "--check", "--out", "nowhere"),
        ("drift", "0.92.0", "0.92.0"),
    ],
    ids=lambda words: " ".join(map(str, words[:2])),
)
def test_with_json_nothing_else_is_on_stdout(words: tuple[str | Path, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codex, "find_installed", lambda version: Path("/there/codex"))
    done = run(*words, "--json")
    assert done.exit_code in (0, 1)
    assert json.loads(done.stdout) is not None


def test_the_path_of_a_binary_is_told_to_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codex, "find_installed", lambda version: Path("/there/codex"))
    assert json.loads(run("codex", "path", "0.92.0", "--json").stdout) == {"version": "0.92.0", "path": "/there/codex"}


def numbers() -> Iterator[tuple[str, str]]:
    kinds = (click.types.IntParamType, click.types.FloatParamType)
    for name, command in verbs():
        for param in command.params:
            if isinstance(param.type, kinds):
                yield name, param.opts[0]
    yield from sorted(NUMBERS_BY_HAND)


NEEDED = {
    "codex add": ("0.93.0",),
    "replay": (str(HANDSHAKE), "--app-server", "fake"),
    "cassette show": (str(HANDSHAKE),),
    "cassette diff": (str(HANDSHAKE), str(HANDSHAKE)),
    "run": ("app_server/test_handshake.py", "-k", "nothing_fits", "--plain"),
}


@pytest.mark.parametrize(("verb", "option"), list(numbers()))
@pytest.mark.parametrize("value", ["nan", "inf", "1e400", "-1", "0", "x", ""])
def test_what_is_no_number_of_that_kind_is_a_sentence(verb: str, option: str, value: str) -> None:
    if (option, value) == ("--port", "0"):
        return  # it asks for a free port
    words = [*verb.split(), *NEEDED.get(verb, ()), *([option, value] if option == "-n" else [f"{option}={value}"])]
    done = run(*words)
    assert done.exit_code == (4 if verb == "run" else 2)
    assert isinstance(done.exception, SystemExit)
    assert done.stdout == ""
    last = done.stderr.splitlines()[-1]
    assert option in last or "frame" in last
    assert last.endswith(".")


def test_a_verb_that_is_nearly_one_is_told() -> None:
    done = run("recrd")
    assert done.exit_code == 2
    assert "'recrd'. Did you mean 'record'" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        ("run app_server/test_handshake.py -k (", 4, "-k '(' is not an expression"),
        ("schema doc --out ''", 2, "'--out': the path is empty"),
        ("schema regen 0.92.0 --out ''", 2, "'--out': the path is empty"),
        ("report merge . --out ''", 2, "'--out': the path is empty"),
        ("drift 0.92.0 0.92.0 --markdown ''", 2, "'--markdown': the path is empty"),
        ("drift 0.92.0 0.92.0 --html ''", 2, "'--html': the path is empty"),
        ("drift 0.92.0 0.92.0 --html /dev/full", 2, "/dev/full: No space left on device"),
        ("schema doc --bundle FILE --out new", 2, "FILE is not a schema bundle: it is not JSON."),
        ("schema doc --bundle nowhere --out new", 2, "'nowhere' does not exist"),
        ("report open FILE", 2, "FILE is a file, not a report folder; give the folder"),
        ("report open deep", 2, "deep/report.json is nested too deeply for a report"),
        ("report merge FILE --out new", 2, "FILE is a file, not a report folder; give the folder"),
        ("replay HANDSHAKE --app-server codex@0.92.0 --script nowhere", 2, "The script nowhere cannot be read"),
        ("replay HANDSHAKE --app-server codex@0.92.0 --script FILE", 2, "The script FILE is not JSON or YAML"),
    ],
)
def test_what_cannot_be_used_is_a_sentence(
    words: str, status: int, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FILE").write_text('{"a":\n')
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "report.json").write_text("[" * 200_000)
    done = run(*(word.replace("HANDSHAKE", str(HANDSHAKE)) for word in shlex.split(words)))
    assert (done.exit_code, done.stdout) == (status, "")
    assert sentence in done.stderr
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["FILE", "deep", "report.json"]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_stdout_that_does_not_know_a_character_gets_its_number(tmp_path: Path, encoding: str) -> None:
    """What is printed is JSON then, too."""
    (tmp_path / "b.json").write_text(json.dumps({"cassette": 1}))
    code = (
        "import json, sys; from codex_replay.cli.io.stdout import patient; sys.stdout = patient(sys.stdout);"
        "print(json.dumps(['\\u2192', '\\xe9', '\\U0001f600', '\\udcff'], ensure_ascii=False))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env={**os.environ, "PYTHONIOENCODING": encoding}, cwd=ROOT
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout.decode(encoding)) == ["\u2192", "\xe9", "\U0001f600", "\udcff"]


def test_a_file_name_goes_out_as_it_came_where_the_locale_knows_no_better() -> None:
    code = (
        "import os, sys; from codex_replay.cli.io.stdout import patient; sys.stdout = patient(sys.stdout);"
        "print(os.fsdecode(b'\\xff'), '\\u2192')"
    )
    environment = {**os.environ, "PYTHONIOENCODING": "ascii:surrogateescape"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, b"\xff \\u2192\n")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_verb_that_is_told_to_end_leaves_nothing_and_judges_nothing(number: int, status: int, tmp_path: Path) -> None:
    """1 would be a verdict: that something differs."""
    os.mkfifo(tmp_path / "pid")
    waits = f"import os; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\nwhile os.read(0, 9999): pass"
    server = shlex.join([sys.executable, "-c", waits])
    verb = [sys.executable, "-c", "from codex_replay.cli.main import main; main()", "replay", str(HANDSHAKE)]
    started = [*verb, "--app-server", server, "--timeout", "60"]
    pipe = os.open(tmp_path / "pid", os.O_RDWR)
    with subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        assert select.select([pipe], [], [], 30)[0]
        pid = int(os.read(pipe, 99))
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    os.close(pipe)
    assert (process.returncode, out) == (status, b"")
    assert err.decode().strip() == ("codex-replay: interrupted." if number == signal.SIGINT else "")
    assert ended(pid)


def test_the_version_has_a_short_option() -> None:
    assert run("-V").stdout == run("--version").stdout
    assert run("-V").stdout.startswith("codex-replay, version ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_complete_the_verbs(shell: str) -> None:
    """As docs/index.md has it."""
    command = [str(Path(sys.executable).with_name("codex-replay"))]
    env = {**os.environ, "_CODEX_REPLAY_COMPLETE": f"{shell}_source"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, "_CODEX_REPLAY_COMPLETE" in done.stdout) == (0, True), done.stderr
    if shell == "bash":
        env |= {"_CODEX_REPLAY_COMPLETE": "bash_complete", "COMP_WORDS": "codex-replay dr", "COMP_CWORD": "1"}
        assert subprocess.run(command, env=env, capture_output=True, text=True, check=False).stdout == "plain,drift\n"
