"""`fake-codex exec` prints what the real `codex exec` printed, for each recorded case."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from codex_fakes.exec.command import parse
from codex_replay.shell.codex.home import HermeticHome
from tests.real.differential.record_exec import CASES, FILE, run

FAKE = str(Path(sys.executable).with_name("fake-codex"))
RECORDED = json.loads(FILE.read_text(encoding="utf-8"))


def test_every_case_is_recorded_as_it_stands() -> None:
    assert {name: (case["script"], case["args"], case["stdin"]) for name, case in RECORDED.items()} == CASES


@pytest.mark.parametrize("case", CASES)
def test_it_prints_what_the_real_one_printed(case: str, tmp_path: Path) -> None:
    home = HermeticHome(tmp_path / "home", "http://127.0.0.1:39999")
    script = tmp_path / "script.json"
    script.write_text(json.dumps(CASES[case][0]), encoding="utf-8")
    gave = run([FAKE], case, home, FAKE_CODEX_SCRIPT=str(script))
    assert gave == {key: RECORDED[case][key] for key in gave}


def test_a_wrong_case_is_found(tmp_path: Path) -> None:
    """The comparison itself can fail: another script, another output."""
    home = HermeticHome(tmp_path / "home", "http://127.0.0.1:39999")
    script = tmp_path / "script.json"
    script.write_text('["Hello, there."]')
    gave = run([FAKE], "text", home, FAKE_CODEX_SCRIPT=str(script))
    assert gave["stdout"] != RECORDED["text"]["stdout"]


def test_without_a_script_it_greets(tmp_path: Path) -> None:
    home = HermeticHome(tmp_path, "http://127.0.0.1:39999")
    command = [FAKE, "exec", "--skip-git-repo-check", "-"]
    done = subprocess.run(command, input=b"x", capture_output=True, env=home.env, cwd=home.work, timeout=120)
    assert (done.returncode, done.stdout) == (0, b"Hello from fake-codex.\n")


def test_it_resumes_under_the_given_id_and_keeps_a_ledger(tmp_path: Path) -> None:
    home = HermeticHome(tmp_path, "http://127.0.0.1:39999")
    thread = "01a1fa58-07e8-7321-906d-9f5aebed747d"
    command = [FAKE, "exec", "--experimental-json", "--skip-git-repo-check", "resume", thread]
    env = {**home.env, "FAKE_CODEX_LEDGER": str(tmp_path / "ledger")}
    done = subprocess.run(command, input=b"again", capture_output=True, env=env, cwd=home.work, timeout=120)
    assert json.loads(done.stdout.splitlines()[0]) == {"type": "thread.started", "thread_id": thread}
    assert json.loads((tmp_path / "ledger").read_text())["body"]["input"][-1]["content"][0]["text"] == "again"


@pytest.mark.parametrize(("option", "live"), [("--enable", True), ("--disable", False)])
def test_a_feature_is_switched(option: str, live: bool, tmp_path: Path) -> None:
    home = HermeticHome(tmp_path, "http://127.0.0.1:39999")
    env = {**home.env, "FAKE_CODEX_LEDGER": str(tmp_path / "ledger")}
    command = [FAKE, "exec", "--skip-git-repo-check", option, "web_search_request", "x"]
    assert subprocess.run(command, capture_output=True, env=env, cwd=home.work, timeout=120).returncode == 0
    tools = json.loads((tmp_path / "ledger").read_text())["body"]["tools"]
    assert [tool["external_web_access"] for tool in tools if tool.get("type") == "web_search"] == [live]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("{", "is not JSON"),
        ('[{"items": ["x", {"type": "gate", "name": "g"}]}]', "waits for a gate"),
        (
            '[{"items": [{"type": "function_call", "name": "shell_command", "call_id": "c", '
            '"arguments": "{\\"command\\": \\"ls\\"}", "result": {"approval": true}}]}]',
            "requests an answer of the client",
        ),
    ],
)
def test_what_cannot_be_run_is_a_sentence(script: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "script.json"
    file.write_text(script)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "FAKE_CODEX_SCRIPT": str(file)}
    command = [FAKE, "exec", "--skip-git-repo-check", "x"]
    done = subprocess.run(command, input=b"", capture_output=True, env=env, cwd=tmp_path, timeout=120)
    assert (done.returncode, said in done.stderr.decode(), b"Traceback" in done.stderr) == (2, True, False)


@pytest.mark.parametrize("name", ["CASSETTE", "MATCH", "CAPTURE", "PACE", "FAULT"])
def test_a_setting_that_it_does_not_heed_is_told(name: str, tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), f"FAKE_CODEX_{name}": str(tmp_path / "x")}
    command = [FAKE, "exec", "--skip-git-repo-check", "x"]
    done = subprocess.run(command, input=b"", capture_output=True, env=env, cwd=tmp_path, timeout=120)
    assert (done.returncode, done.stdout) == (0, b"Hello from fake-codex.\n")
    assert f"fake-codex: exec ignores FAKE_CODEX_{name}: " in done.stderr.decode()
    assert not (tmp_path / "x").exists()


def test_the_options_of_sdks() -> None:
    given = ["--experimental-json", "--model", "m", "--sandbox", "read-only", "--cd", "/w", "--add-dir", "/x"]
    given += ["--skip-git-repo-check", "--output-schema", "f"]
    options = parse([*given, "--config", "a.b=1", "--image=i.png", "resume", "01a1fa58-07e8-7321-906d-9f5aebed747d"])
    assert (options["model"], options["sandbox"], options["cd"], options["json"]) == ("m", "read-only", "/w", True)
    assert options["config"] == [("a.b", "1")]
    assert (options["resume"], options["prompt"]) == ("01a1fa58-07e8-7321-906d-9f5aebed747d", None)


def test_images_come_before_the_prompt_in_what_the_model_is_asked(tmp_path: Path) -> None:
    home = HermeticHome(tmp_path / "home", "http://127.0.0.1:39999")
    ledger = tmp_path / "ledger.ndjson"
    gave = run([FAKE], "images", home, FAKE_CODEX_LEDGER=str(ledger))
    assert gave["status"] == 0
    [entry] = [json.loads(line) for line in ledger.read_text().splitlines()]
    *images, prompt = [part["text"] for part in entry["body"]["input"][-1]["content"]]
    assert prompt == "Say hi"
    assert [text.partition("`")[2].partition("`")[0] for text in images] == ["a.png", "b.png", "c.png"]


def test_images_take_all_words_up_to_the_next_option_but_not_behind_resume() -> None:
    assert parse(["-i", "a", "b,c", "-m", "m", "Hi"])["image"] == ["a", "b", "c"]
    assert parse(["--image=a", "Hi"])["prompt"] == "Hi"
    options = parse(["resume", "--last", "-i", "a", "-"])
    assert (options["image"], options["prompt"]) == (["a"], "-")
