"""What the programs load that a run of the suites starts by the hundred: a module more in each of them costs every run."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codex_replay.plugin.editor_client.fixture import editor_argv
from codex_replay.plugin.lite_client.fixture import parse_lite_client
from codex_replay.plugin.proxy.subject import parse_proxy
from codex_replay.shell.http.backend_process import BackendProcess, backend_command
from codex_replay.shell.process.programs import program

ROOT = Path(__file__).resolve().parents[2]

#: What none of them may load: each takes some milliseconds, and is easily had by an annotation or by one function of it.
SLOW = {
    *(
        "typing",
        "pathlib",
        "uuid",
        "urllib.parse",
        "base64",
        "dataclasses",
        "inspect",
        "asyncio",
        "logging",
        "argparse",
        "tempfile",
    ),
    *("ssl", "http.client", "ipaddress", "platform", "concurrent.futures", "shlex", "shutil", "glob"),
}
#: What those may not load either that a run starts by the hundred, nor the machinery of `-m`, which takes as long as they do.
SLOW_FOR_OURS = {
    *("runpy", "contextlib", "json", "re", "enum", "collections", "functools", "signal", "subprocess", "threading", "selectors"),
    *("socket", "site", "ctypes"),
}
DONE = b'HTTP/1.1 200 OK\r\n\r\nevent: response.completed\ndata: {"type": "response.completed", "response": {}}\n\n'
IMPORTED = re.compile(r"import time: +\d+ \| +\d+ \| +(\S+)")


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a lite client whose backend answers one request, with nothing."""
    (tmp_path / "auth.json").write_text('{"OPENAI_API_KEY": "sk-made-up"}')
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            try:
                connection, _ = server.accept()
            except OSError:
                return  # nobody came
            with connection:
                while b'"prompt_cache_key"' not in connection.recv(1 << 16):
                    pass
                connection.sendall(DONE)

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        yield {**os.environ, "LITE_BASE_URL": url, "LITE_AUTH_FILE": str(tmp_path / "auth.json")}
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def lite_client(folder: Path) -> tuple[list[str], str]:
    return [*parse_lite_client("reference")[1:], "Hello"], ""


def editor_client(folder: Path) -> tuple[list[str], str]:
    return editor_argv("reference", "/bin/false")[1:], '{"do": "prompt", "text": "Hello"}\n'


def byte_server(folder: Path) -> tuple[list[str], str]:
    steps = [{"expect": "a"}, {"reply": {}}, {"send": {"method": "b"}}]
    (folder / "steps.json").write_text(json.dumps({"runs": [steps]}))
    return [*program("codex_fakes.stdio.byte_server")[1:], str(folder)], '{"id": 1, "method": "a"}\n'


def wire_tap(folder: Path) -> tuple[list[str], str]:
    return [*program("codex_replay.shell.rpc.wire_tap")[1:], str(folder / "wire"), "--", "/bin/cat"], '{"id": 1}\n'


def timed_tap(folder: Path) -> tuple[list[str], str]:
    return [*program("codex_replay.shell.rpc.wire_tap")[1:], "--timed", str(folder / "wire"), "--", "/bin/cat"], '{"id": 1}\n'


Start = Callable[[Path], tuple[list[str], str]]
STARTS: list[tuple[Start, str, set[str]]] = [
    (lite_client, "codex_replay.reference.lite_client.transport", SLOW | SLOW_FOR_OURS),
    (editor_client, "codex_replay.reference.editor_client.connection", SLOW | SLOW_FOR_OURS),
    (byte_server, "codex_fakes.stdio.byte_server", SLOW | SLOW_FOR_OURS | {"os"}),
    (wire_tap, "codex_replay.shell.rpc.recorder", SLOW | SLOW_FOR_OURS),
    (timed_tap, "codex_replay.shell.rpc.recorder", SLOW | SLOW_FOR_OURS),
]


def loaded(arguments: list[str], said: str, environ: dict[str, str], status: int = 0) -> set[str]:
    """Run a program to its end, which has this status; return what it imported, late imports and all."""
    argv = [sys.executable, "-X", "importtime", *arguments]
    done = subprocess.run(argv, input=said, env=environ, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == status, done.stderr
    return set(IMPORTED.findall(done.stderr))


@pytest.mark.parametrize(("start", "own", "slow"), STARTS, ids=[start.__name__ for start, _, _ in STARTS])
def test_a_start_loads_nothing_slow(start: Start, own: str, slow: set[str], tmp_path: Path, environ: dict[str, str]) -> None:
    found = loaded(*start(tmp_path), environ)
    assert own in found
    assert sorted(found & slow) == []


@pytest.mark.parametrize(("start", "own", "slow"), STARTS, ids=[start.__name__ for start, _, _ in STARTS])
def test_a_start_that_loads_more_is_noticed(
    start: Start, own: str, slow: set[str], tmp_path: Path, environ: dict[str, str]
) -> None:
    """The broken ones: each program as it is, after one import that it does without."""
    arguments, said = start(tmp_path)
    at = arguments.index("-c") + 1
    arguments[at] = f"import typing; {arguments[at]}"
    assert "typing" in loaded(arguments, said, environ) & slow


@pytest.mark.parametrize("more", ["", "import shutil; "], ids=["as it is", "broken by an import"])
def test_the_first_answer_of_a_later_version_loads_nothing_slow(more: str) -> None:
    """Of the scripted fake; the rest of it is loaded after the first answer."""
    folders = "sys.path += ['harness', 'fake_server']"
    answer = "codex_fakes.scripted.handshake.handshake('a', '/h', '0.169.0')"
    code = f"import sys; {folders}; {more}import codex_fakes.scripted.server, codex_fakes.scripted.handshake; {answer}"
    found = loaded(["-I", "-S", "-c", code], "", {"PATH": "/nowhere"})
    assert "codex_fakes.scripted.handshake" in found
    assert bool(found & (SLOW | SLOW_FOR_OURS)) is bool(more)


#: What the reference proxy does without. It stands on asyncio, which loads most of what takes time.
SLOW_FOR_PROXIES = {"runpy", "secrets", "random", "uuid", "urllib.parse", "ipaddress", "dataclasses", "http.client", "argparse"}


@pytest.mark.parametrize("more", [set(), {"secrets", "random"}, {"runpy"}], ids=["as it is", "broken by an id", "broken by -m"])
def test_the_proxy_loads_nothing_slow_that_asyncio_does_not(more: set[str]) -> None:
    """Up to where it says that its port is none."""
    arguments = list(parse_proxy("reference", {}).argv[1:])
    if "runpy" in more:
        arguments = ["-P", "-m", "codex_replay.reference.proxy"]
    elif more:
        at = arguments.index("-c") + 1
        arguments[at] = f"import secrets; {arguments[at]}"
    found = loaded(arguments, "", {**os.environ, "PROXY_PORT": "none"}, status=2)
    assert "codex_replay.reference.proxy.wire.http" in found
    of_itself = loaded(["-P", "-c", ""], "", dict(os.environ))  # an environment may bring modules at its start
    assert more <= found
    assert (found - of_itself) & SLOW_FOR_PROXIES <= more


#: What the backend does without, from its start to its end. asyncio alone, with all that it imports, takes as long as the rest.
SLOW_FOR_BACKENDS = {
    *("asyncio", "concurrent.futures", "logging", "subprocess", "threading", "traceback", "ssl", "locale", "tempfile"),
    *("inspect", "ast", "dis", "linecache", "tokenize", "json", "argparse", "jiter", "zstandard", "brotli"),
    *("dataclasses", "pathlib", "uuid", "urllib.parse", "base64", "hashlib", "http", "encodings.idna", "stringprep"),
}


@pytest.mark.parametrize("more", ["", "json", "asyncio"], ids=["as it is", "broken by json", "broken by asyncio"])
def test_the_backend_loads_nothing_slow(more: str) -> None:
    arguments = [*backend_command()[1:], "--port", "0", "--exit-with-stdin"]
    at = arguments.index("-c") + 1
    arguments[at] = f"import {more or 'sys'}; {arguments[at]}"
    found = loaded(arguments, "", dict(os.environ))
    assert "codex_fakes.backend.server" in found
    assert bool(found & SLOW_FOR_BACKENDS) is bool(more)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "not streamed"])
def test_the_first_session_and_the_first_replies_load_no_module(stream: bool) -> None:
    """No cost of the start is moved to a client's first request."""
    python, *rest = backend_command()
    with BackendProcess(command=[python, "-X", "importtime", *rest]) as backend:
        started = backend.stderr()
        session = backend.session(
            "first", [{"match": "Hi", "items": ["Hello"]}, {"items": [{"type": "reasoning", "summary": ["a"]}]}]
        )
        for text in ("Hi", "more"):
            body = json.dumps({"model": "m", "input": text, "stream": stream}).encode()
            with urllib.request.urlopen(f"{session.url}/v1/responses", body, timeout=20) as response:
                assert b"completed" in response.read()
        assert "codex_fakes.backend.server" in started
        assert backend.stderr() == started
        session.ledger(redact=True)
        assert "codex_replay.core.redact.redactor" in backend.stderr(), "a module that is loaded later is seen"


#: What `codex-replay serve` does without: each takes a tenth of its start. The redactor is loaded after the address is printed.
SLOW_FOR_SERVE = {
    *("asyncio", "http.client", "email", "ssl", "tempfile", "shutil", "random", "difflib", "encodings.idna", "yaml", "rich"),
    *("codex_replay.core.replay.http_match", "codex_replay.core.redact.redactor"),
}


@pytest.mark.parametrize("more", ["", "tempfile"], ids=["as it is", "broken by tempfile"])
def test_serve_loads_nothing_slow_before_its_address(more: str, tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text('{"turns": []}')
    probe = (
        f"import {more or 'sys'}, sys; from codex_replay.cli import serve; from codex_replay.cli.main import main\n"
        "def ready(line):\n"
        "    print(*sys.modules)\n"
        "    raise KeyboardInterrupt\n"
        "serve.at_once = ready\n"
        f"main(['serve', '--script', {str(tmp_path / 'script.json')!r}])"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False, timeout=60)
    found = set(done.stdout.split())
    assert "codex_replay.shell.http.control_call" in found, done.stderr
    assert bool(found & SLOW_FOR_SERVE) is bool(more), found & SLOW_FOR_SERVE


def test_our_programs_are_those_of_this_installation(tmp_path: Path) -> None:
    """Whatever lies in the folder where a client starts them."""
    (tmp_path / "codex_replay").mkdir()
    (tmp_path / "codex_replay" / "__init__.py").write_text("raise SystemExit('another')")
    unprotected = [sys.executable, "-c", "import codex_replay"]
    other = subprocess.run(unprotected, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (other.stderr, other.returncode) == ("another\n", 1)
    argv = [*program("codex_replay.shell.rpc.wire_tap"), "wire", "--", "/bin/echo", "it is we"]
    done = subprocess.run(argv, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("it is we\n", "", 0)
    assert json.loads((tmp_path / "wire").read_text().splitlines()[0])["run"] == 0


#: Each of these takes longer to load than all of the command line: `run` loads pytest in a process of its own.
SLOW_FOR_COMMANDS = {"pytest", "_pytest", "deepdiff", "jsonschema", "asyncio"}


@pytest.mark.parametrize("more", ["", "asyncio"], ids=["as they are", "broken by asyncio"])
def test_no_command_loads_a_slow_package_before_it_starts(more: str) -> None:
    code = (
        f"import {more or 'sys'}, sys; from codex_replay.cli.main import VERBS, main; [main.get_command(None, v) for v in VERBS]"
    )
    done = subprocess.run([sys.executable, "-c", f"{code}; print(*sys.modules)"], capture_output=True, text=True, check=True)
    found = set(done.stdout.split())
    assert "codex_replay.cli.run.command" in found
    assert sorted(found & SLOW_FOR_COMMANDS) == more.split()
