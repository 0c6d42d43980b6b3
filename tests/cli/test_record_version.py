"""`codex-replay record` of a Codex that lies in no package: the header gets its version from the traffic."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from codex_replay.core.cassette.frames import Header
from codex_replay.shell.cassettes.file import CassetteReader
from codex_replay.shell.codex.origin import bundle_of

PROGRAM = str(Path(sys.executable).with_name("codex-replay"))
INITIALIZE = b'{"id":0,"method":"initialize","params":{"clientInfo":{"name":"me","title":null,"version":"1"}}}\n'
AGENT = "me/{} (Debian 12.0.0; x86_64) unknown (me; 1)"


def server_saying(folder: Path, agent: str) -> str:
    """A program that answers each line with a reply to `initialize`."""
    reply = json.dumps({"id": 0, "result": {"userAgent": agent}}, separators=(",", ":"))
    program = folder / "my-codex"
    program.write_text(f"#!/bin/sh\nwhile read -r line; do printf '%s\\n' '{reply}'; done\n")
    program.chmod(0o755)
    return str(program)


def recorded(folder: Path, agent: str, *options: str) -> Header:
    words = [PROGRAM, "record", "--out", "run.ndjson", *options, "--", server_saying(folder, agent), "app-server"]
    done = subprocess.run(words, input=INITIALIZE, capture_output=True, timeout=60, cwd=folder)
    assert (done.returncode, done.stderr) == (0, b"")
    with CassetteReader(folder / "run.ndjson") as cassette:
        assert len(list(cassette)) == 2
        assert cassette.footer is not None
        return cassette.header


def test_the_version_is_the_one_of_the_reply_to_initialize(tmp_path: Path) -> None:
    header = recorded(tmp_path, AGENT.format("0.92.0"))
    assert (header.codex, header.bundle, header.case) == ("0.92.0", bundle_of("0.92.0"), "run")
    assert header.bundle.startswith("sha256:")
    lint = subprocess.run([PROGRAM, "cassette", "lint", "run.ndjson"], capture_output=True, timeout=60, cwd=tmp_path, text=True)
    assert "not in canonical form" not in lint.stdout


def test_a_line_that_was_edited_by_hand_is_named_by_lint(tmp_path: Path) -> None:
    """Spaces in the message of a client put it into `text`, with its decoded view beside it: an edit of one leaves the other."""
    words = [PROGRAM, "record", "--out", "run.ndjson", "--", server_saying(tmp_path, AGENT.format("0.92.0")), "app-server"]
    spaced = INITIALIZE.replace(b'":', b'": ')
    subprocess.run(words, input=spaced, capture_output=True, timeout=60, cwd=tmp_path, check=True)
    cassette = tmp_path / "run.ndjson"
    cassette.write_bytes(cassette.read_bytes().replace(b"initialize", b"initialise", 1))
    lint = subprocess.run([PROGRAM, "cassette", "lint", "run.ndjson"], capture_output=True, timeout=60, cwd=tmp_path, text=True)
    assert "form: 'view' is not the decoded 'text': the line was edited by hand; record the cassette again" in lint.stdout


def test_a_version_without_a_bundle_is_named_too(tmp_path: Path) -> None:
    header = recorded(tmp_path, AGENT.format("0.91.7-alpha.3"))
    assert (header.codex, header.bundle) == ("0.91.7-alpha.3", "unknown")


@pytest.mark.parametrize("agent", ["me", "me/latest (x)", AGENT.format("1.2." + "3" * 40), AGENT.format("0.92.0\\u001b[2J")])
def test_a_reply_that_names_no_version_leaves_it_unknown(agent: str, tmp_path: Path) -> None:
    assert recorded(tmp_path, agent).codex == "unknown"


def test_the_option_wins(tmp_path: Path) -> None:
    assert recorded(tmp_path, AGENT.format("0.92.0"), "--codex", "0.140.0").codex == "0.140.0"


def test_a_recorder_that_is_killed_has_named_the_version_before_it_passed_the_reply_on(tmp_path: Path) -> None:
    words = [PROGRAM, "record", "--out", "run.ndjson", "--", server_saying(tmp_path, AGENT.format("0.92.0"))]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(INITIALIZE)
        process.stdin.flush()
        assert b"userAgent" in process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
    with CassetteReader(tmp_path / "run.ndjson") as cassette:
        assert [frame.n for frame in cassette] == [1, 2]
        assert (cassette.header.codex, cassette.footer) == ("0.92.0", None)


def test_what_cannot_be_overwritten_keeps_its_first_header(tmp_path: Path) -> None:
    words = [PROGRAM, "record", "--out", "/dev/stderr", "--", server_saying(tmp_path, AGENT.format("0.92.0"))]
    done = subprocess.run(words, input=INITIALIZE, capture_output=True, timeout=60, cwd=tmp_path)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert (lines[0]["codex"], lines[-1]) == ("unknown", {"end": True, "frames": 2})


class Quiet(BaseHTTPRequestHandler):
    """A backend that answers everything."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *args: object) -> None:
        pass


@pytest.mark.parametrize(
    ("headers", "version"),
    [
        ({"user-agent": "codex_cli_rs/0.92.0 (Debian; x86_64)", "originator": "codex_cli_rs"}, "0.92.0"),
        ({"user-agent": "other/0.92.0 (Debian; x86_64)"}, "unknown"),
        ({"user-agent": "other/0.92.0 (Debian; x86_64)", "originator": "codex_cli_rs"}, "unknown"),
    ],
)
def test_on_the_http_seam_a_codex_names_itself_in_its_requests(headers: dict[str, str], version: str, tmp_path: Path) -> None:
    backend = HTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=backend.serve_forever, daemon=True).start()
    words = [PROGRAM, "record", "--out", "run.ndjson", "--upstream", f"http://127.0.0.1:{backend.server_port}"]
    try:
        with subprocess.Popen(words, stdout=subprocess.PIPE, cwd=tmp_path) as process:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            with urlopen(Request(f"{url}/v1/models", headers=headers), timeout=60) as answer:
                assert answer.read() == b"{}"
            process.terminate()
    finally:
        backend.shutdown()
        backend.server_close()
    with CassetteReader(tmp_path / "run.ndjson") as cassette:
        assert len(list(cassette)) == 4
        assert cassette.header.codex == version
