"""What holds for every verb alike: JSON for programs, numbers that are numbers, a sentence for everything that cannot be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from harness.cli import codex
from harness.cli.main import main

ROOT = Path(__file__).parent.parent
HANDSHAKE = ROOT / "cassettes" / "app_server" / "test_handshake" / "initialize.ndjson"

#: Verbs that say nothing on stdout but what they are asked to pass on or to write.
WITHOUT_JSON = {
    "record": "its stdout is the server's",
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
