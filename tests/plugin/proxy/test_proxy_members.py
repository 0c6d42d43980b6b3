"""Members that 0.92 does not know, and what becomes of a process that left an answer open."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from codex_replay.plugin.proxy.fields import unknown_members

pytest_plugins = ["pytester"]
PROXIES = Path(__file__).parents[2] / "miniatures" / "proxies"
OPTIONS = ["-p", "no:xdist", "-p", "no:cacheprovider"]
CLIENT = {"name": "a", "version": "1"}


@pytest.mark.parametrize(
    ("method", "params", "unknown"),
    [
        ("initialize", {"clientInfo": CLIENT}, []),
        ("initialize", {"clientInfo": {**CLIENT, "build": 1}}, ["initialize.params.clientInfo.build"]),
        ("thread/start", {"model": "m", "stream": True, "ephemeral": True}, ["thread/start.params.stream"]),
        ("no/such", {}, ["no/such"]),
    ],
)
def test_the_members_that_092_does_not_know(method: str, params: dict[str, Any], unknown: list[str]) -> None:
    assert unknown_members({"method": method, "params": params}) == unknown


def test_after_an_answer_without_an_end_the_next_case_has_a_new_process(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_it="""
        import pytest
        from codex_replay.shell.rpc.client import SubjectFailure

        processes = []

        @pytest.mark.parametrize("number", range(2))
        def test_it(proxy, number):
            with pytest.raises(SubjectFailure, match="no complete answer"):
                proxy.chat()
            processes.append(proxy.running.process)

        def test_then():
            assert processes[0] is not processes[1]
            assert all(process.exited.is_set() for process in processes)
        """
    )
    proxy = shlex.join([sys.executable, str(PROXIES / "bad_proxy.py"), "hangs"])
    pytester.runpytest_subprocess(*OPTIONS, "--proxy", proxy, "--wait", "1").assert_outcomes(passed=3)


BUSY = """
import json, os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

left = [int(sys.argv[1])]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.give(200, {})

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        left[0] -= 1
        if left[0] >= 0:
            self.give(429, {"error": {"message": "busy", "code": "busy"}}, sys.argv[2:])
        else:
            self.give(200, {"served": True})

    def give(self, status, value, after=()):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        for seconds in after:
            self.send_header("retry-after", seconds)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
"""


@pytest.mark.parametrize(
    ("times", "after", "ok", "statuses", "message"),
    [
        (2, ["0"], True, [429, 429, 200], ""),
        (1, [], True, [429], "must succeed, but was answered 429"),
        (1, ["0"], False, [429, 200], ""),  # it sent its app-server nothing: the fault is still to come
        (1, ["60"], True, [429], "still busy after 3 s of retries"),
        (1, ["soon"], True, [429], "must succeed"),
    ],
    ids=["served-later", "not-asked-to", "a-fault-case", "too-late", "a-date"],
)
def test_a_busy_proxy_is_asked_again_when_it_says_so(
    pytester: pytest.Pytester, times: int, after: list[str], ok: bool, statuses: list[int], message: str
) -> None:
    pytester.path.joinpath("busy.py").write_text(BUSY, encoding="utf-8")
    pytester.makepyfile(
        test_it=f"""
        import contextlib
        import pytest
        from codex_replay.shell.rpc.client import SubjectFailure

        def test_it(proxy):
            expected = pytest.raises(SubjectFailure, match={message!r}) if {message!r} else contextlib.nullcontext()
            with expected:
                proxy.chat(ok={ok})
            assert [done.status for done in proxy.exchanges] == {statuses}
        """
    )
    proxy = shlex.join([sys.executable, str(pytester.path / "busy.py"), str(times), *after])
    pytester.runpytest_subprocess(*OPTIONS, "--proxy", proxy, "--wait", "3").assert_outcomes(passed=1)
