"""`codex-replay init` as its users run it: what it finds out of real subjects, what it writes, and how it fails."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.suite_run import ONE_PROCESS

ROOT = Path(__file__).resolve().parents[3]
COMMAND = str(Path(sys.executable).with_name("codex-replay"))
PYTHON = shlex.quote(sys.executable)
REFERENCE = {
    "proxy": f"{PYTHON} -m codex_replay.reference.proxy",
    "editor": f"{PYTHON} -m codex_replay.reference.editor_client {{codex}}",
    "lite": f"{PYTHON} -m codex_replay.reference.lite_client",
}
BAD = f"{PYTHON} {shlex.quote(str(ROOT / 'tests' / 'miniatures' / 'proxies' / 'bad_proxy.py'))}"
SMALL = ROOT / "tests" / "miniatures" / "proxies" / "small_proxy.mjs"
NODE = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node here")
LUA = pytest.mark.skipif(shutil.which("lua5.4") is None, reason="there is no lua5.4 here")
NVIM = pytest.mark.skipif(shutil.which("nvim") is None, reason="there is no nvim here")


def run(folder: Path, *words: str, chosen: str = "") -> subprocess.CompletedProcess[str]:
    """Run codex-replay; `chosen` is a pytest expression that keeps a suite short."""
    env = {**os.environ, **ONE_PROCESS, "PYTEST_ADDOPTS": f'{ONE_PROCESS["PYTEST_ADDOPTS"]} -k "{chosen}"'} if chosen else None
    return subprocess.run(
        [COMMAND, *words], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False
    )


def found(folder: Path, *words: str, chosen: str = "", status: int = 0) -> dict[str, Any]:
    done = run(folder, "init", *words, "--json", chosen=chosen)
    assert done.returncode == status, done.stderr
    data: dict[str, Any] = json.loads(done.stdout)
    return data


def tree(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


# -- what is found out -----------------------------------------------------------------------------------------------------


def test_the_reference_proxy_has_both_profiles(tmp_path: Path) -> None:
    data = found(tmp_path, "proxy", REFERENCE["proxy"], "--dry-run")
    about = data["found"]
    assert (about["profile"], about["clients"], about["needs_key"], about["lacks"]) == ("default", 8, True, {})
    assert [file["action"] for file in data["files"]] == ["create", "create"]
    assert tree(tmp_path) == []


@NODE
def test_a_node_proxy_that_ignores_the_profile_is_as_specified(tmp_path: Path) -> None:
    about = found(tmp_path, "proxy", f"node {SMALL}", "--dry-run")["found"]
    assert about["profile"] == "as-specified"
    assert about["calls"] == ["newConversation", "addConversationListener", "sendUserTurn", "sendUserMessage"]
    assert about["ready_paths"] == {"/readyz": 404, "/healthz": 404, "/v1/models": 200}


def later_proxy(folder: Path) -> str:
    """Return the command of a proxy that starts `codex app-server --stdio`, an option that Codex 0.92.0 does not have."""
    (folder / "codex").write_text('#!/bin/sh\nshift\nexec "$GIVEN" app-server --stdio "$@"\n')
    (folder / "codex").chmod(0o755)
    (folder / "start.sh").write_text(f'GIVEN="$CODEX_BIN" CODEX_BIN="$PWD/codex" exec {REFERENCE["proxy"]}\n')
    return "sh start.sh"


def test_a_proxy_that_needs_a_later_codex_is_tried_with_the_newest(tmp_path: Path) -> None:
    data = found(tmp_path, "proxy", later_proxy(tmp_path), "--dry-run")
    written = tomllib.loads(data["files"][0]["text"])["tool"]["codex-replay"]
    assert written["app-server"] == "fake@0.169.0"
    assert data["found"]["calls"][:2] == ["thread/start", "turn/start"]


@pytest.mark.parametrize("configured", [True, False])
@pytest.mark.parametrize(("verb", "chosen"), [("proxy", "test_models"), ("editor", "test_client_info")])
def test_the_version_of_the_fake_can_be_named(tmp_path: Path, verb: str, chosen: str, configured: bool) -> None:
    words = [] if configured else ["--app-server", "fake@0.169.0"]
    if configured:
        (tmp_path / "codex-replay.toml").write_text('[tool.codex-replay]\napp-server = "fake@0.169.0"\n')
    data = found(tmp_path, verb, REFERENCE[verb], *words, chosen=chosen)
    configuration = tomllib.loads((tmp_path / "codex-replay.toml").read_text())["tool"]["codex-replay"]
    assert (data["files"][0]["action"], configuration["app-server"]) == ("append" if configured else "create", "fake@0.169.0")
    report = json.loads(Path(data["run"]["report"], "report.json").read_bytes())
    assert (report["codex"], data["run"]["failed"]) == ("0.169.0", 0)


def test_the_first_run_has_the_options_of_later_runs(tmp_path: Path) -> None:
    """Options of the project that do not belong to the subject; the report and the list of failures are those of `init`."""
    (tmp_path / "codex-replay.toml").write_text(
        '[tool.codex-replay]\nvalidate = "no"\nreport = "elsewhere"\nbaseline = "no.yaml"\n'
    )
    data = found(tmp_path, "editor", REFERENCE["editor"], chosen="test_client_info")
    report = json.loads(Path(data["run"]["report"], "report.json").read_bytes())
    assert report["validated"] is False


def test_only_a_fake_of_a_version_can_be_named(tmp_path: Path) -> None:
    done = run(tmp_path, "init", "proxy", REFERENCE["proxy"], "--app-server", "codex@0.169.0")
    assert done.returncode == 2
    assert "--app-server codex@0.169.0: give fake@VERSION" in done.stderr


def test_the_reference_editor_takes_a_turn(tmp_path: Path) -> None:
    data = found(tmp_path, "editor", REFERENCE["editor"], "--dry-run")
    assert data["found"]["methods"] == ["initialize", "initialized", "thread/start", "turn/start"]
    assert data["found"]["reports"] == ["text"]
    assert "command = " in data["files"][0]["text"]


def test_the_start_script_of_a_node_project_is_the_proxy(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"scripts": {"start": "node no-such-server.js"}}')
    done = run(tmp_path, "init", "proxy", "--dry-run")
    assert "no-such-server.js" in done.stderr
    assert done.returncode == 2


class _Server(BaseHTTPRequestHandler):
    """A proxy that somebody has started: every prompt costs money."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        asked: list[Any] = self.server.asked  # type: ignore[attr-defined]
        asked.append(json.loads(body))
        self._answer(404 if self.path == "/v1/responses" else 400)

    def do_GET(self) -> None:
        self._answer(404 if self.path == "/readyz" else 200)

    def do_OPTIONS(self) -> None:
        self.do_GET()

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def running() -> Iterator[tuple[str, list[Any]]]:
    """A proxy that runs, and the prompts that it was asked."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Server) as server:
        asked: list[Any] = []
        server.asked = asked  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()
        thread.join()


def test_a_proxy_that_runs_is_asked_nothing_that_costs(running: tuple[str, list[Any]], tmp_path: Path) -> None:
    url, asked = running
    data = found(tmp_path, "proxy", url)
    assert asked == [{}, {}, {}]
    assert data["run"] is None
    assert sorted(data["found"]["lacks"]) == ["cors", "obsidian-xml", "responses", "title-intercept"]
    assert data["found"]["ready"] == "/healthz"
    assert tree(tmp_path) == [".github/workflows/codex-replay.yml", "codex-replay.toml"]
    assert "baseline" not in (tmp_path / "codex-replay.toml").read_text()
    assert any("may cost money" in step for step in data["next"])


# -- what is written -------------------------------------------------------------------------------------------------------


@NODE
def test_a_proxy_with_a_defect_gets_a_gate_that_wants_a_reason_and_then_is_green(tmp_path: Path) -> None:
    """Of the suite, the cases that find the defect and some that do not."""
    chosen = "test_choices or list_of_models or left_alone"
    data = found(tmp_path, "proxy", f"node {SMALL} one-spelling", chosen=chosen)
    known = tmp_path / "known-proxy.yaml"
    assert tree(tmp_path)[:2] == [".github/workflows/codex-replay.yml", "codex-replay.toml"]
    assert data["run"]["failed"] > 0
    steps = data["next"]
    assert steps[0].startswith("Look at the report: codex-replay report open reports/proxy-")
    assert steps[1].startswith("Fix the most common cause ")
    assert [step for step in steps if step.startswith("Write a reason into 1 entry of known-proxy.yaml: ")]
    assert data["run"]["passed"] + data["run"]["failed"] + data["run"]["skipped"] == data["run"]["cases"]
    listed = yaml.safe_load(known.read_text())
    assert {line["check"].partition("[")[0] for line in listed} == {"turn-choices"}
    # Without arguments, in that folder:
    refused = run(tmp_path, "run")
    assert refused.returncode == 4, refused.stdout
    assert run(tmp_path, "run", "-n", "1", chosen=chosen).returncode == 0, "a part may be looked at before that"
    known.write_text(yaml.safe_dump([{**line, "reason": "ticket 12"} for line in listed]))
    gate = run(tmp_path, "run", chosen=chosen)
    assert gate.returncode == 0, gate.stdout
    assert "profile as-specified" in gate.stdout
    assert f"{data['run']['failed']} known failures" in gate.stdout
    # And once more: nothing is overwritten.
    before = {name: (tmp_path / name).read_bytes() for name in ("codex-replay.toml", "known-proxy.yaml")}
    again = found(tmp_path, "proxy", f"node {SMALL}", chosen=chosen)
    assert [(file["action"], file["why"]) for file in again["files"]] == [
        ("keep", "it has [tool.codex-replay] proxy already"),
        ("keep", "it has this content already"),
    ]
    assert again["run"] is None
    assert before == {name: (tmp_path / name).read_bytes() for name in before}


@pytest.mark.parametrize(
    ("verb", "chosen"),
    [("lite", "test_session_id or test_api_key_bearer"), ("editor", "test_client_info or test_initialized_has")],
)
def test_a_client_that_passes_is_gated_at_once(verb: str, chosen: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"  # kept\n')
    done = run(tmp_path, "init", verb, REFERENCE[verb], chosen=chosen)
    assert done.returncode == 0, done.stderr
    assert "pyproject.toml appended" in done.stdout
    assert "  1. Run the gate: codex-replay run\n" in done.stdout
    assert (tmp_path / "pyproject.toml").read_text().startswith('[project]\nname = "x"  # kept\n')
    assert (tmp_path / f"known-{verb}.yaml").read_text() == "[]\n"
    gate = run(tmp_path, "run", chosen=chosen)
    assert gate.returncode == 0, gate.stdout
    assert "VERIFIED" in gate.stdout
    suite = {"lite": "lite_client", "editor": "editor_client"}[verb]
    (name,) = tomllib.loads((tmp_path / "pyproject.toml").read_text())["tool"]["codex-replay"][suite.replace("_", "-")]
    assert [path.name for path in (tmp_path / "reports").iterdir()] == [f"{suite}-{name}"], "the name of its table"


def test_a_missing_file_is_named_before_its_interpreter_complains(tmp_path: Path) -> None:
    for verb, command in (("proxy", "node server.js"), ("editor", "python3 driver.py {codex}"), ("lite", "bash client.sh")):
        done = run(tmp_path, "init", verb, command)
        assert done.returncode == 2
        file = command.split()[1]
        assert f"The command starts {file}, but there is no such file in {tmp_path}. Nothing was written." in done.stderr


def test_a_server_of_http_1_0_is_told_how_to_change_that(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(
        "import http.server, os\n"
        "http.server.HTTPServer(('127.0.0.1', int(os.environ['PORT'])), http.server.SimpleHTTPRequestHandler).serve_forever()\n"
    )
    done = run(tmp_path, "init", "proxy", f"{PYTHON} server.py", "--wait", "5")
    assert 'Set `protocol_version = "HTTP/1.1"` in the handler class' in done.stderr, done.stderr


def test_a_subject_whose_first_cases_all_fail_gets_no_list(tmp_path: Path) -> None:
    """It answers any prompt, and only the first one in its life."""
    client = tmp_path / "client.py"
    client.write_text(
        "import os, pathlib, runpy, sys\n"
        "done = pathlib.Path(__file__).with_name('done')\n"
        "if done.exists():\n"
        "    sys.exit('no licence')\n"
        "done.touch()\n"
        "runpy.run_module('codex_replay.reference.lite_client', run_name='__main__')\n"
    )
    done = run(tmp_path, "init", "lite", f"{PYTHON} {client}", chosen="test")
    assert done.returncode == 0, done.stderr
    assert (
        "  1. No list of known failures was written: the first cases all fail. Fix their most common cause first." in done.stdout
    )
    assert "no licence" in done.stdout
    assert not (tmp_path / "known-lite.yaml").exists()
    assert "baseline" not in (tmp_path / "codex-replay.toml").read_text()


def test_ci_alone(tmp_path: Path) -> None:
    nothing = run(tmp_path, "init", "ci")
    assert nothing.returncode == 2
    assert "No proxy or client is configured here. Run `codex-replay init proxy COMMAND`" in nothing.stderr
    (tmp_path / "codex-replay.toml").write_text("[tool.codex-replay]\nlite-client = 'node client.js'\n")
    assert run(tmp_path, "init", "ci", "--dry-run").returncode == 0
    assert tree(tmp_path) == ["codex-replay.toml"]
    assert found(tmp_path, "ci")["files"][0]["action"] == "create"
    assert tree(tmp_path) == [".github/workflows/codex-replay.yml", "codex-replay.toml"]


# -- what cannot be --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (["proxy", "no-such-program"], 2, "no-such-program: there is no such program; give "),
        (
            ["proxy", f"{BAD} exits"],
            2,
            "The proxy ended (status 3) before it answered GET /v1/models: no database.",
        ),
        (["proxy", f"{BAD} deaf", "--wait", "1"], 2, "A proxy must listen on 127.0.0.1, at the port in PORT"),
        (["proxy", f"{BAD} exits"], 2, "set the variables that it needs in the command, such as `env PYTHONPATH=src "),
        (
            ["proxy", "http://127.0.0.1:9", "--wait", "1"],
            2,
            "no server listens at http://127.0.0.1:9. Start the proxy before the run, or",
        ),
        (["proxy", f"{BAD} http10"], 2, "The proxy answers with HTTP/1.0; it must speak HTTP/1.1."),
        (["proxy"], 2, 'Name the command that starts the subject: codex-replay init proxy "node server.js"'),
        (
            ["proxy", "node", "server.js", "--port", "1"],
            2,
            "If this option belongs to your command, put the command into quotes.",
        ),
        (
            ["proxy", "node server.js --api-key sk-proj-abcdefghijklmnop1234567890"],
            2,
            "The command contains a secret, which would",
        ),
        (["proxy", "no-such-program --api-key {key}"], 2, "there is no such program"),
        (["proxy", "true", "--wait", "soon"], 2, "--wait soon: "),
        (["editor", "vim"], 2, "it must contain {codex}, which becomes the path of the codex to start"),
        (["editor", "cat {codex}"], 1, "The editor does not complete one turn. The editor "),
        (["lite", "echo"], 1, "The client sends no request to LITE_BASE_URL."),
        (["lite", "false"], 1, "The client does not answer one prompt. The client exited with status 1"),
        (["proxy", f"{BAD} post500"], 1, "The proxy serves no request: POST /v1/chat/completions is answered 500"),
    ],
)
def test_a_subject_that_cannot_be_judged_is_said_so_and_nothing_is_written(
    words: list[str], status: int, sentence: str, tmp_path: Path
) -> None:
    done = run(tmp_path, "init", *words)
    assert done.returncode == status, done.stdout + done.stderr
    assert sentence in (done.stdout if status == 1 else done.stderr)
    assert "Traceback" not in done.stderr
    assert tree(tmp_path) == []


def test_a_secret_that_the_subject_prints_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "client.sh").write_text("echo bad key sk-proj-abcdefghijklmnop1234567890 >&2; exit 1\n")
    done = run(tmp_path, "init", "lite", "sh client.sh")
    assert done.returncode == 1
    assert "bad key sk-redacted-1" in done.stdout
    assert "abcdefghijklmnop" not in done.stdout + done.stderr


@pytest.mark.parametrize("method", ["POST", "OPTIONS"])
def test_a_proxy_that_crashes_is_reported_with_the_end_of_its_stderr(method: str, tmp_path: Path) -> None:
    (tmp_path / "crash.py").write_text(
        "import os\nfrom http.server import BaseHTTPRequestHandler, ThreadingHTTPServer\n"
        "class Crash(BaseHTTPRequestHandler):\n"
        "    protocol_version = 'HTTP/1.1'\n"
        "    def do_GET(self):\n"
        f"        if self.command == '{method}':\n"
        "            os.write(2, b'Traceback:\\nKeyError: model\\n')\n            os._exit(3)\n"
        "        self.send_response(200)\n        self.send_header('Content-Length', '0')\n        self.end_headers()\n"
        "    do_POST = do_OPTIONS = do_GET\n"
        "ThreadingHTTPServer(('127.0.0.1', int(os.environ['PORT'])), Crash).serve_forever()\n"
    )
    data = found(tmp_path, "proxy", f"{PYTHON} crash.py", status=1)
    assert data["wrong"].startswith(f"The proxy ended (status 3) when it got {method} /v1/")
    assert data["wrong"].endswith("KeyError: model")
    assert tree(tmp_path) == ["crash.py"]


def test_a_proxy_without_routes_is_told_in_seconds(tmp_path: Path) -> None:
    """The naive proxy that answers 404 to everything."""
    (tmp_path / "naive.py").write_text(
        "import os\nfrom http.server import BaseHTTPRequestHandler, ThreadingHTTPServer\n"
        "class Naive(BaseHTTPRequestHandler):\n"
        "    protocol_version = 'HTTP/1.1'\n"
        "    def do_GET(self):\n"
        "        self.rfile.read(int(self.headers.get('Content-Length', 0)))\n"
        "        self.send_response(404)\n        self.send_header('Content-Length', '0')\n        self.end_headers()\n"
        "    do_POST = do_OPTIONS = do_GET\n"
        "ThreadingHTTPServer(('127.0.0.1', int(os.environ['PORT'])), Naive).serve_forever()\n"
    )
    data = found(tmp_path, "proxy", f"{PYTHON} naive.py", status=1)
    assert data["wrong"].startswith(
        "The proxy has none of the routes that a client uses: POST /v1/chat/completions is answered 404"
    )
    assert data["next"] == [data["wrong"]]
    assert tree(tmp_path) == ["naive.py"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[tool.codex-replay", "pyproject.toml is not TOML: "),
        ("[tool.codex-replay]\nprofil = 'x'\n", "[tool.codex-replay] has no key 'profil'; did you mean 'profile'?"),
    ],
)
def test_a_broken_pyproject_is_told_before_anything_is_started(text: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    done = run(tmp_path, "init", "proxy", f"touch {tmp_path / 'started'}")
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Nothing was written." in done.stderr
    assert tree(tmp_path) == ["pyproject.toml"]


def test_a_folder_that_cannot_be_written_to_is_a_sentence(tmp_path: Path) -> None:
    """Root may write to any folder but for those that are none of the disk's."""
    folder = Path("/proc/self/fdinfo") if os.geteuid() == 0 and Path("/proc/self").exists() else tmp_path / "read-only"
    if not folder.exists():
        folder.mkdir(mode=0o500)
    done = run(folder, "init", "lite", REFERENCE["lite"], chosen="test_headers")
    assert done.returncode == 2, done.stdout
    assert "Traceback" not in done.stderr
    assert done.stderr.strip().splitlines()[-1].startswith("codex-replay: ")


def test_no_other_verb_loads_it() -> None:
    code = "import sys; from codex_replay.cli.main import main; main.get_command(None, 'run'); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "codex_replay.cli.run.command" in loaded
    assert [name for name in loaded if "cli.init" in name or name.endswith((".probe", ".detect"))] == []
