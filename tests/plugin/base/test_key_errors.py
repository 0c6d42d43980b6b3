"""A case that cannot read an answer says what the subject sent, in place of a bare `KeyError: 'output'`."""

from __future__ import annotations

import http.server
import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from codex_replay.plugin.base.key_errors import LONGEST, reading, sentence
from tests.support.suite_run import PYTEST

ROOT = Path(__file__).resolve().parents[3]
SUITE = Path("suites/backend/test_stream.py")
LINE = 'assert answer.events[0]["response"]["output"] == []'
EVENTS = [
    {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}},
    {"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "output": []}},
]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (KeyError("output"), f"The subject sent no 'output', which the case reads in `{LINE}`"),
        (IndexError("list index out of range"), f"The subject sent fewer items than the case reads in `{LINE}`"),
        (TypeError("no subscript"), f"The subject sent a value of another type than the case reads in `{LINE}`: no subscript"),
        (ValueError("no JSON"), f"The subject sent a value that cannot be read in `{LINE}`: no JSON"),
        (AssertionError("x"), None),
    ],
)
def test_an_error_becomes_a_sentence_about_what_the_subject_sent(error: Exception, text: str | None) -> None:
    """An assertion keeps its own text: it has what it compares."""
    assert sentence(error, f"    {LINE}\n") == text


def test_a_long_line_is_cut() -> None:
    told = sentence(IndexError("list index out of range"), "x = " + "y" * 999)
    assert told is not None
    assert len(told) < LONGEST + 120


CASE, HELPER = (SUITE, LINE), (Path("suites/proxy/answers.py"), "json.loads(text)")
LIBRARY = (Path("/usr/lib/python3/json/decoder.py"), "raise JSONDecodeError")
HARNESS = (Path("harness/codex_replay/plugin/backend/conversation.py"), "self.bug()")


@pytest.mark.parametrize(
    ("places", "statement"),
    [
        ([HARNESS, CASE], LINE),
        ([CASE, HELPER, LIBRARY], "json.loads(text)"),
        ([CASE, HARNESS], None),
        ([CASE, HARNESS, LIBRARY], None),
        ([LIBRARY], None),
    ],
)
def test_what_the_harness_raises_is_no_failure_of_the_subject(places: list[tuple[Path, str]], statement: str | None) -> None:
    found = reading([path for path, _ in places])
    assert (None if found is None else places[found][1]) == statement


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
    assert case["message"] == f"The subject sent no 'output', which the case reads in `{LINE}`"
