"""`codex-replay run` on small suites: what it prints, how it ends, and no process left behind."""

from __future__ import annotations

import json
import os
import pty
import select
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.plugin.app_server.miniature import GOOD, subject
from tests.support.processes import left_over
from tests.support.suite_run import ONE_PROCESS

pytest_plugins = ["pytester"]

#: A case that waits for a message which never comes.
WAITS = """
import sys
def test_hello(app_server, capfd):
    server = app_server()
    server.initialize()
    with capfd.disabled():
        print("server is up", file=sys.stderr, flush=True)
    server.notification("what never comes")
"""

# ----------------------------------------------------------------------------------------------- when the run is ended


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_ended_run_leaves_no_process(suite: pytest.Pytester, number: int) -> None:
    suite.makepyfile(test_it=WAITS)
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "--wait", "60"]
    command += ["--app-server", subject(suite, "ignore-sigterm")]
    with subprocess.Popen(command, cwd=suite.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as child:
        assert child.stdout is not None
        assert any(b"server is up" in line for line in child.stdout)
        assert left_over(suite.path) != [] or not Path("/proc/self/cmdline").exists()
        child.send_signal(number)
        rest = child.stdout.read()
        status = child.wait(60)
    assert left_over(suite.path / "server.py") == []
    assert status == (2 if number == signal.SIGINT else 143), rest.decode()


# ---------------------------------------------------------------------------------------------------- codex-replay run


def codex_replay(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from codex_replay.cli.main import main; main()", "run", *arguments]


def test_the_command(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=GOOD)
    command = codex_replay("test_it.py", "--app-server", subject(suite), "-n", "1", "-k", "hello", "--report", "out")
    done = subprocess.run(command, cwd=suite.path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "VERIFIED: 1 case" in done.stdout
    assert suite.path.joinpath("out", "report.json").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "sentences"),
    [
        (["no-such-suite"], 4, ["There is no suite 'no-such-suite'. The suites are app_server"]),
        ([""], 4, ["A SUITE argument is empty"]),
        (["app_server", "--record", "all"], 4, ["only a real app-server can be recorded"]),
        (["app_server", "-k", "no-such-case"], 5, ["deselected", "NOTHING VERIFIED: no case was selected."]),
    ],
)
def test_usage_of_the_command(tmp_path: Path, arguments: list[str], status: int, sentences: list[str]) -> None:
    done = subprocess.run(
        codex_replay(*arguments, "-n", "1"), cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert [words for words in sentences if words not in done.stdout + done.stderr] == []
    assert done.returncode == status


def test_a_failed_case_of_an_installed_suite_can_be_named_again(tmp_path: Path) -> None:
    """The suites lie outside the folder in which the run is started, and one module of them is the whole run."""
    env = {**os.environ, **ONE_PROCESS}

    def fails(name: str) -> tuple[str, dict]:
        command = codex_replay(name, "--proxy", "false", "-k", "terminator", "--report", "out")
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 1, done.stdout + done.stderr
        (line,) = [line for line in done.stdout.splitlines() if line.startswith("FAILED suites/")][:1]
        return line.split()[1], json.loads((tmp_path / "out" / "report.json").read_text())["cases"][0]

    name, case = fails("proxy/test_chat_shape.py")
    assert name == case["nodeid"]
    again, _ = fails(name)
    assert again == name
    whole = json.loads((tmp_path / "out" / "report.json").read_text())["command"]
    assert whole.startswith(f"codex-replay run {name.removeprefix('suites/')} --proxy=false --report=out -n 2 -k")
    # The report may be read on another machine: nothing in the command is a folder of this one.
    words = shlex.split(case["again"])
    assert words[:3] == ["codex-replay", "run", name.removeprefix("suites/")]
    assert not [word for word in words if word.startswith(("/", ".."))], case["again"]
    done = subprocess.run(codex_replay(*words[2:]), cwd=tmp_path, env=env, capture_output=True, timeout=120, check=False)
    assert done.returncode == 1, case["again"]
    found = json.loads((tmp_path / "out" / "again" / "report.json").read_text())["cases"]
    assert [each["nodeid"] for each in found] == [name]
    assert [path.name for path in tmp_path.iterdir()] == ["out"], "nothing else is left in somebody's project"


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (signal.SIGINT, {"verdict": "failed", "exit": 2, "report": "report.json"}),
        (signal.SIGTERM, {"verdict": "failed", "exit": 143, "report": "report.json"}),
    ],
)
def test_an_ended_command_ends_its_run_and_says_what_came_of_it(suite: pytest.Pytester, number: int, expected: object) -> None:
    """An interrupt goes to the whole group, as from a terminal; a TERM to the command alone, as from a CI."""
    suite.makepyfile(test_it=WAITS)
    options = ["--app-server", subject(suite, "ignore-sigterm"), "-n", "1", "--wait", "60", "--report", "out", "--json"]
    with subprocess.Popen(
        codex_replay("test_it.py", *options),
        cwd=suite.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert any(b"server is up" in line for line in child.stderr)
        if number == signal.SIGINT:
            os.killpg(child.pid, number)
        else:
            child.send_signal(number)
        said, _ = child.communicate(timeout=60)
    assert left_over(suite.path / "server.py") == []
    found = json.loads(said)
    assert {**found, "report": found["report"] and Path(found["report"]).name} == expected
    assert child.returncode == found["exit"]


def test_the_live_display(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=GOOD + GOOD.replace("test_hello", "test_other").replace("== {}", "== 5"))
    master, slave = pty.openpty()
    command = codex_replay("test_it.py", "--app-server", subject(suite), "-n", "1")
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    with subprocess.Popen(command, cwd=suite.path, stdout=slave, stderr=slave, env=environment) as child:
        os.close(slave)
        seen = b""
        while select.select([master], [], [], 120)[0]:
            try:
                data = os.read(master, 1 << 16)
            except OSError:  # Linux: the other side is closed
                break
            if not data:
                break
            seen += data
        status = child.wait(60)
    os.close(master)
    text = seen.decode()
    assert status == 1, text
    assert "2/2" in text
    assert "FAILED test_it.py::test_other" in text
    assert "FAILED: 1 of 2 cases" in text


@pytest.mark.parametrize(("how", "jobs"), [("--plain", "2"), ("--json", "1")])
def test_the_verdict_and_the_report_are_the_last_words(suite: pytest.Pytester, how: str, jobs: str) -> None:
    suite.makepyfile(test_it=GOOD + GOOD.replace("test_hello", "test_other").replace("== {}", "== 5"))
    command = codex_replay("test_it.py", "--app-server", subject(suite), "-n", jobs, how)
    done = subprocess.run(command, cwd=suite.path, capture_output=True, text=True, timeout=120, check=False)
    lines = (done.stdout if how == "--plain" else done.stderr).splitlines()
    assert lines[-6].startswith("FAILED: 1 of 2 cases; "), done.stdout
    assert lines[-5].startswith("No frame was validated: ")
    assert lines[-4] == "Do this next:"
    assert lines[-1].startswith("Report: ")
    assert lines[-1].endswith("report.json")
