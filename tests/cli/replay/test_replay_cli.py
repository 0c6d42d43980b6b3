"""`codex-replay replay F --app-server S` as a user meets it: what it prints, how it exits, and what a wrong server leaves."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [str(Path(sys.executable).with_name("codex-replay")), "replay"]
SERVER = Path(__file__).parents[2] / "miniatures" / "server.py"
CASSETTE = Path(__file__).parents[3] / "cassettes" / "app_server" / "test_v2" / "text_turn.ndjson"
OTHER = CASSETTE.with_name("thread_start.ndjson")


def replay(*arguments: str | Path, **env: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": "/nowhere"} | {name: str(value) for name, value in env.items()}
    done = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, env=environment, timeout=60)
    assert "Traceback" not in done.stderr
    return done


def wrong(way: str) -> str:
    return shlex.join([sys.executable, "-I", str(SERVER), way])


@pytest.mark.parametrize("said", [{}, {"FAKE_CODEX_CASSETTE": "", "FAKE_CODEX_MATCH": ""}])
def test_the_fake_serves_the_cassette_itself(said: dict[str, str]) -> None:
    done = replay(CASSETTE, "--app-server", "fake", **said)
    assert (done.returncode, done.stderr) == (0, "")
    verdict, note = done.stdout.splitlines()
    assert verdict.startswith("identical: ")
    assert note.startswith("The fake replayed this cassette: ")


def test_the_fake_serves_another_one_if_it_is_told_to() -> None:
    done = replay(CASSETTE, "--app-server", "fake", "--json", FAKE_CODEX_CASSETTE=OTHER)
    told = json.loads(done.stdout)
    assert (done.returncode, told["identical"]) == (1, False)
    assert told["differences"]
    assert "note" not in told


def test_the_fake_runs_a_script_if_it_is_told_to(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text('["Hello."]')
    done = replay(CASSETTE, "--app-server", "fake", "--timeout", "2", "--json", FAKE_CODEX_SCRIPT=tmp_path / "script.json")
    assert (done.returncode, "note" in json.loads(done.stdout)) == (1, False)
    assert "both set" not in done.stdout + done.stderr


def test_what_another_fake_serves_is_not_said_to_be_the_recording_itself(tmp_path: Path) -> None:
    """A copy of it, say, or one that is told to serve it by the environment: nobody knows what it is."""
    (tmp_path / "copy.ndjson").write_bytes(CASSETTE.read_bytes())
    done = replay(CASSETTE, "--app-server", "fake", FAKE_CODEX_CASSETTE=tmp_path / "copy.ndjson")
    assert done.stdout.splitlines()[1:] == []
    done = replay(CASSETTE, "--app-server", "fake", "--json")
    assert "this cassette" in json.loads(done.stdout)["note"]
    done = replay(CASSETTE, "--backend", "fake", "--json")
    assert "this cassette" in json.loads(done.stdout)["note"]


@pytest.mark.parametrize(
    ("way", "sentence"),
    [
        ("die-at-start", "exited with status 3"),
        ("hang", "did not come within 1 s"),
        ("flood-stdout", "its lines are not JSON objects"),
        ("", "differ at"),
    ],
)
def test_a_wrong_server_is_told_with_what_differs(way: str, sentence: str) -> None:
    done = replay(CASSETTE, "--app-server", wrong(way), "--timeout", "1")
    assert done.returncode == 1
    assert sentence in done.stdout
    assert done.stdout.splitlines()[-1].startswith("different: ")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nope.ndjson", "--app-server", "fake"], "cannot be opened"),
        ([SERVER, "--app-server", "fake"], "not a cassette header"),
        ([CASSETTE, "--app-server", "no-such-program"], "there is no such program"),
        ([CASSETTE, "--app-server", "codex@1"], "is not a Codex version"),
        ([CASSETTE, "--app-server", "fake", "--timeout", "0"], "--timeout"),
        ([CASSETTE], "--app-server or --backend"),
    ],
)
def test_what_cannot_run_is_a_sentence_and_status_two(arguments: list[str | Path], sentence: str) -> None:
    done = replay(*arguments)
    assert done.returncode == 2
    assert sentence in done.stderr


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--timeout", "nan", "--app-server", "fake"], "--timeout nan: give a number of seconds above 0"),
        (["--timeout", "-1", "--app-server", "fake"], "--timeout -1: give a number of seconds above 0"),
        (["--auth", "auth.json", "--app-server", "fake"], "--auth has an effect only with --backend"),
        (["--backend-cost-ok", "--app-server", "fake"], "--backend-cost-ok has an effect only with --backend"),
        (["--script", "script.json", "--app-server", "fake"], "--script is only for --app-server codex@VERSION"),
        (["--script", "script.json", "--backend", "fake"], "--script is only for --app-server codex@VERSION"),
    ],
)
def test_an_option_that_would_say_nothing_is_refused(options: list[str], sentence: str) -> None:
    done = replay(CASSETTE, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr


def test_a_command_without_listen_is_said_to_have_a_model_of_its_own() -> None:
    done = replay(CASSETTE, "--app-server", wrong("die-at-start"), "--timeout", "1")
    assert done.stdout.splitlines()[0].startswith("The command uses its own model.")


def test_a_command_is_given_the_url_of_the_recorded_answers() -> None:
    asks = "import sys, urllib.request as u; sys.exit(u.urlopen(sys.argv[1] + '/models?client_version=0.92.0').status)"
    done = replay(CASSETTE, "--app-server", shlex.join([sys.executable, "-c", asks, "{listen}/v1"]), "--timeout", "5", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["model"]) == (1, "The model is replaced by its recorded answers.")
    assert "status 200" in told["failure"]


def test_answers_that_were_cut_for_size_cannot_stand_for_the_model(tmp_path: Path) -> None:
    lines = CASSETTE.read_text().splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if '"sse":' in line)
    frame = json.loads(lines[at])
    frame["truncated"] = True
    lines[at] = json.dumps(frame, separators=(",", ":")) + "\n"
    (tmp_path / "cut.ndjson").write_text("".join(lines))
    done = replay(tmp_path / "cut.ndjson", "--app-server", wrong("hang").replace("hang", "{listen}"))
    assert done.returncode == 2
    assert "cannot be replayed; add --script" in done.stderr


@pytest.mark.parametrize("text", ["", "{", '{"turns": 1}'])
def test_a_script_that_is_none_is_a_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text(text)
    done = replay(CASSETTE, "--app-server", wrong("{listen}"), "--script", tmp_path / "script.json")
    assert done.returncode == 2
    assert done.stderr.startswith("codex-replay: ")


@pytest.mark.parametrize("option", ["--app-server", "--backend"])
def test_the_tables_of_another_version_are_reported(option: str, tmp_path: Path) -> None:
    """The cassette's header chooses the tables (law 6)."""
    path = tmp_path / "other.ndjson"
    path.write_bytes(CASSETTE.read_bytes().replace(b'"codex":"0.92.0"', b'"codex":"0.93.0"', 1))
    done = replay(path, option, "fake", "--json")
    assert (done.returncode, json.loads(done.stdout)["identical"]) == (0, True)
    told = "codex-replay: There is no normalise table for Codex 0.93.0 (`codex-replay codex add 0.93.0` makes it): times, "
    assert (done.stderr[: len(told)], done.stderr.count("\n")) == (told, 1)
    assert json.loads(done.stdout)["missing"] == [done.stderr.removeprefix("codex-replay: ").partition(" `--codex V`")[0]]
    given = replay(path, option, "fake", "--json", "--codex", "0.92.0")
    assert (given.returncode, given.stderr, json.loads(given.stdout)["missing"]) == (0, "", [])
    assert replay(path, option, "fake", "--codex", "0.93.0").returncode == 2
    assert replay(CASSETTE, option, "fake").stderr == ""
