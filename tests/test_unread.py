"""A case that cannot read what a subject said tells so, with the line that reads, in the place of a bare `KeyError: 'output'`."""

from __future__ import annotations

import http.server
import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.plugin.unread import LONGEST, sentence
from tests.suite_run import PYTEST

ROOT = Path(__file__).resolve().parent.parent
SUITE = Path("suites/backend/test_stream.py")
LINE = 'assert answer.events[0]["response"]["output"] == []'
EVENTS = [
    {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}},
    {"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "output": []}},
]


def test_the_line_that_reads_is_told() -> None:
    said = f"What the subject said has not what the case reads in `{LINE}`: KeyError: 'output'"
    assert sentence(KeyError("output"), SUITE, f"    {LINE}\n") == said


def test_a_long_line_is_cut() -> None:
    told = sentence(IndexError("list index out of range"), SUITE, "x = " + "y" * 999)
    assert told is not None
    assert len(told) < LONGEST + 120


@pytest.mark.parametrize(("error", "path"), [(KeyError("x"), Path("harness/plugin/backend.py")), (AssertionError("x"), SUITE)])
def test_what_is_no_reading_of_a_case_keeps_its_own_word(error: Exception, path: Path) -> None:
    """A bug of the harness must not be laid to the subject, and an assertion says what it compares."""
    assert sentence(error, path, LINE) is None


class Sparse(http.server.BaseHTTPRequestHandler):
    """A backend whose events have less than they should."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in EVENTS:
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def sparse() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sparse)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_a_report_tells_it(sparse: str, tmp_path: Path) -> None:
    argv = [*PYTEST, f"{SUITE}::test_created_comes_first"]
    subprocess.run([*argv, "--backend", sparse, "--report", str(tmp_path)], cwd=ROOT, capture_output=True, check=False)
    (case,) = json.loads((tmp_path / "report.json").read_text())["cases"]
    assert case["message"] == f"What the subject said has not what the case reads in `{LINE}`: KeyError: 'output'"
