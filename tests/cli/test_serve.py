"""`codex-replay serve`: started as a user does, asked, and ended in every way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codex_replay.cli import serve

COMMAND = [sys.executable, "-c", "from codex_replay.cli.main import main; main()", "serve"]


def test_the_address_comes_with_the_options_for_codex() -> None:
    """`OPENAI_BASE_URL` alone would send newer versions to the real service; tests/real/test_exec_real.py tries the options."""
    text = serve.welcome("http://127.0.0.1:7", "t")
    assert "OPENAI_BASE_URL=http://127.0.0.1:7/v1 (newer versions of Codex ignore it)" in text
    provider = """'model_providers.mine={name="mine",base_url="http://127.0.0.1:7/v1",wire_api="responses"}'"""
    assert f"codex -c model_provider=mine -c {provider}" in text


@contextmanager
def serving(*arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, Any]]]:
    with subprocess.Popen([*COMMAND, "--json", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


def ask(url: str) -> tuple[int, bytes]:
    request = urllib.request.Request(url + "/v1/responses", b'{"model":"m","input":"hi","stream":true}')
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def is_gone(pid: int) -> bool:
    """Wait until a process that is not our child has ended."""
    fd = os.pidfd_open(pid)
    try:
        import select

        return bool(select.select([fd], [], [], 10)[0])
    finally:
        os.close(fd)


def test_it_serves_and_tells_each_request() -> None:
    with serving() as (process, ready):
        status, body = ask(ready["url"])
        assert status == 200
        assert b"response.completed" in body
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        assert (told["method"], told["path"], told["answer"]) == ("POST", "/v1/responses", "default")


def test_what_was_asked_just_before_the_end_is_told_too() -> None:
    with serving() as (process, ready):
        for _ in range(20):
            ask(ready["url"])
        process.terminate()
        printed, _ = process.communicate()
        assert [json.loads(line)["n"] for line in printed.splitlines()] == list(range(1, 21))


SECRET = "rt-live-0123456789abcdef"


def post(url: str, body: str, content_type: str = "application/json", token: str = f"Bearer {SECRET}") -> None:
    headers = {"content-type": content_type, "authorization": token, "cookie": f"session={SECRET}"}
    with suppress(urllib.error.HTTPError), urllib.request.urlopen(urllib.request.Request(url, body.encode(), headers)) as answer:
        answer.read()


REQUESTS = [
    ("/oauth/token", f'{{"grant_type":"refresh_token","refresh_token":"{SECRET}"}}', "application/json"),
    ("/oauth/token", f"grant_type=refresh_token&refresh_token={SECRET}", "application/x-www-form-urlencoded"),
    (f"/oauth/token?refresh_token={SECRET}", "", "text/plain"),
    ("/v1/responses", f'{{"model":"m","input":"{{\\"api_key\\":\\"{SECRET}\\"}}","stream":true}}', "application/json"),
    ("/v1/responses", f'{{"model":NaN,"input":"\\udc80","access_token":"{SECRET}"}}', "application/json"),
]


@pytest.mark.parametrize("how", [["--json"], []], ids=["json", "plain"])
@pytest.mark.parametrize(("path", "body", "content_type"), REQUESTS)
def test_no_secret_of_a_client_is_printed(how: list[str], path: str, body: str, content_type: str) -> None:
    with subprocess.Popen([*COMMAND, *how], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            first = process.stdout.readline()
            post((json.loads(first)["url"] if how else first.split()[-1]) + path, body, content_type)
            told = next(line for line in process.stdout if "POST " in line or '"POST"' in line)
            process.send_signal(signal.SIGINT)
            told += process.stdout.read() + process.stderr.read()
        finally:
            process.kill()
    assert SECRET not in told
    if how:
        entry = json.loads(told.splitlines()[0])
        assert dict(entry["headers"])["Authorization"].startswith("Bearer redacted")
        assert entry["raw_length"] == len(body)
        assert "redacted" in json.dumps(entry.get("body", entry.get("body_text", entry["path"])))


@pytest.mark.parametrize("name", ["script.json", "script.yaml"])
def test_a_script_may_be_json_or_yaml(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text('["from the script"]' if name.endswith("json") else "turns:\n- from the script\n")
    with serving("--script", str(path)) as (_, ready):
        assert b"from the script" in ask(ready["url"])[1]
        assert ask(ready["url"])[0] == 501


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_good_order(number: signal.Signals) -> None:
    with serving() as (process, ready):
        process.send_signal(number)
        assert process.wait(10) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""
        with pytest.raises(urllib.error.URLError):
            ask(ready["url"])


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="this system cannot watch a process that is not our child")
def test_the_backend_does_not_outlive_a_killed_serve() -> None:
    with serving() as (process, ready):
        process.kill()
        process.wait(10)
        with suppress(ProcessLookupError):
            assert is_gone(ready["pid"])


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.json", "{", "is not JSON or YAML"),
        ("a.yaml", "a: [", "is not JSON or YAML"),
        ("a.yaml", "- !!timestamp x", "is not JSON or YAML"),
        ("a.yaml", "- !!bool x", "is not JSON or YAML"),
        ("a.json", '[{"itms": []}]', 'did you mean "items"'),
        ("a.json", '[{"fault": "rest"}]', "a.json: turns[0].fault: 'rest' is not a fault (did you mean \"reset\"?)"),
        ("a.json", '{"turns": ["a"], "turns": ["b"]}', 'the key "turns" occurs twice in one object'),
        ("a.yaml", "turns: [a]\nturns: [b]\n", 'the key "turns" occurs twice in one object'),
        (
            "a.json",
            '[{"fault": {"name": "http_429", "retry_aftr": 1}}]',
            'not a parameter of the fault "http_429" (did you mean "retry_after"?)',
        ),
        ("a.json", '{"auth": {"mode": "x"}}', "a.json: auth.mode must be one of"),
        ("missing.json", None, "cannot be read"),
    ],
)
def test_a_script_that_cannot_be_used_is_a_sentence(tmp_path: Path, name: str, text: str | None, sentence: str) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    done = subprocess.run([*COMMAND, "--script", str(tmp_path / name)], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert "Errno" not in done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--pace", "x"], "fast, recorded, or Nx"),
        (["--pace", "0x"], "fast, recorded, or Nx"),
        (["--pace", "nanx"], "fast, recorded, or Nx"),
        (["--pace", "2"], "fast, recorded, or Nx"),
        (["--pace", "2x"], "--pace has an effect only with recordings; add --cassette"),
        (["--over", "nothing.at.all"], "--over has an effect only with recordings; add --cassette"),
        (["--by", "connection"], "--by has an effect only with recordings; add --cassette"),
        (["--allow-unused"], "--allow-unused has an effect only with recordings; add --cassette"),
        (["--by", "chance"], "'content', 'connection'"),
    ],
)
def test_an_option_that_says_nothing_is_no_use(options: list[str], sentence: str) -> None:
    done = subprocess.run([*COMMAND, *options], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert done.stderr.startswith("Usage: ")


@pytest.mark.parametrize("first", [0, 2], ids=["while the address is printed", "while a request is printed"])
def test_a_signal_in_the_middle_of_the_lines_loses_none(monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    """It comes when a request may have been sent and is not yet printed, and again within the last lines: all are printed."""
    printed = []

    def at_once(line: str) -> None:
        if len(printed) in (first, 4):
            os.kill(os.getpid(), signal.SIGTERM)
        printed.append(json.loads(line)["n"])

    entry = {"method": "GET", "path": "/", "answer": "route", "status": 200, "end": "end", "sentence": None, "headers": []}
    entries = [{"n": n, **entry} for n in range(1, 6)]
    session = SimpleNamespace(dropped=0, ended=lambda since, seconds: entries[since : 3 if seconds else 5])
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
    before = [signal.getsignal(number) for number in numbers]
    monkeypatch.setattr(serve, "at_once", at_once)
    backend: Any = SimpleNamespace(stderr=lambda: "")
    stop = serve._Stop()
    stop.install()
    try:
        with pytest.raises(KeyboardInterrupt):
            serve._Followed(backend, session, stop, quiet=False, as_json=True).follow('{"n": 0}')  # type: ignore[arg-type]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
    assert printed == [0, 1, 2, 3, 4, 5]
