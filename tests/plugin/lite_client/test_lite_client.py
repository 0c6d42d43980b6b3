"""The lite client: its reference, its examples, its suite; and the broken clients that show that the suite bites."""

from __future__ import annotations

import contextlib
import importlib
import json
import re
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_replay.plugin.lite_client.fixture import parse_lite_client
from codex_replay.reference.lite_client import auth, client, refresh, reply, settings, sse, tools, transport
from codex_replay.reference.lite_client.errors import Problem
from codex_replay.shell.http.backend_process import BackendProcess
from suites.lite_client import expected
from tests.miniatures.lite_clients.matrix import TABLE
from tests.miniatures.matrix import FINE, cover, sample
from tests.support.suite_run import checks_of, run_suite, spec_marks

ROOT = Path(__file__).resolve().parents[3]

EXAMPLES = ("test_request", "edge_cases", "test_web_search")


# -- the suite bites -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def checks() -> set[str]:
    """The names of all checks of the suite."""
    return checks_of("lite_client")


def test_every_check_is_turned_red_by_a_variant_and_every_variant_turns_one_red(checks: set[str]) -> None:
    TABLE.must_be_whole(checks)


def test_the_reference_passes_where_the_variants_fail(checks: set[str], tmp_path: Path) -> None:
    """With a check of each module. (That the reference passes every check is for the suite to show: `make conformance`.)"""
    assert TABLE.run({FINE: sample(checks)}, tmp_path, "--wait", "60") == {}


def test_the_table_is_true(tmp_path: Path) -> None:
    """A pair for each check and each variant is tried anew."""
    chosen = cover(TABLE.read())
    assert TABLE.run(chosen, tmp_path) == chosen


def test_a_pair_that_is_not_red_is_noticed(tmp_path: Path) -> None:
    pairs = {"no-account": ["test_headers::test_session_id", "test_auth::test_api_key_bearer"]}
    assert TABLE.run(pairs, tmp_path) == {"no-account": ["test_headers::test_session_id"]}


def test_a_failure_shows_the_spec_and_the_traffic(tmp_path: Path) -> None:
    """With a process per run, as users have it; paths in the command are relative to where pytest is started."""
    command = f"{sys.executable} tests/miniatures/lite_clients/broken.py refresh-with-more"
    done = run_suite(
        tmp_path, "--lite-client", command, "suites/lite_client/test_refresh.py", "-k", "body_of_the_refresh or new_token_is_used"
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 1 passed" in done.stdout
    assert "Spec: refresh-body" in done.stdout
    assert "LITE-13: The body of the refresh request has" in done.stdout
    assert "POST /oauth/token -> 200" in done.stdout


def test_a_client_that_hangs_is_ended_and_said_so(tmp_path: Path) -> None:
    command = f"{sys.executable} -c 'import time; time.sleep(600)'"
    done = run_suite(tmp_path, "--lite-client", command, "suites/lite_client/test_endpoint.py", "-k", "stdout", "--wait", "0.5")
    assert done.returncode == 1
    assert "the client did not exit within 0.5 s" in done.stdout


@pytest.mark.parametrize("text", ["", "no-such-program-anywhere", "'"])
def test_a_subject_that_is_none_is_a_sentence(text: str) -> None:
    with pytest.raises(pytest.UsageError, match="--lite-client"):
        parse_lite_client(text)


def test_a_wrong_option_is_said_before_anything_runs(tmp_path: Path) -> None:
    done = run_suite(tmp_path, "--lite-client", "no-such-program-anywhere", "suites/lite_client/test_endpoint.py")
    assert done.returncode == 4
    assert "there is no such program" in done.stderr


# -- the suite is in order -------------------------------------------------------------------------------------------------------


def test_every_check_has_a_name_a_source_and_a_docstring() -> None:
    names = []
    for check, mark in spec_marks("lite_client"):
        name, *identifiers = mark.args
        source = mark.kwargs.get("source", "")
        names.append(name)
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", name), f"{check}: {name} is no stable name"
        assert identifiers or (source.startswith("docs/lite-client.md") and mark.kwargs["says"]), check
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize(("token", "account"), [(expected.JWT, "account-jwt"), (expected.NEW_JWT, "account-2")])
def test_the_tokens_of_the_suite_say_what_they_are_meant_to(token: str, account: str) -> None:
    assert auth.jwt_claims(token)["https://api.openai.com/auth"]["chatgpt_account_id"] == account
    assert "_" in token or "-" in token


# -- the reference ---------------------------------------------------------------------------------------------------------------


def events(*chunks: bytes) -> list[tuple[str, str]]:
    return list(sse.events(chunks))


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1), max_size=4), st.data())
def test_events_do_not_depend_on_the_chunks(texts: list[str], data: st.DataObject) -> None:
    """Whatever the pieces and the ends of lines, the same events come out; what has no blank line behind it does not."""
    newline = data.draw(st.sampled_from(["\n", "\r\n"]))
    stream = "".join(f"event: e{newline}: note{newline}data: {text}{newline}{newline}" for text in texts).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert events(*pieces) == [("e", text) for text in texts]
    assert events(*pieces, b"data: unfinished\n") == [("e", text) for text in texts]


def test_data_of_several_lines_is_joined() -> None:
    assert events(b"data: a\ndata:b\nid: 7\n\n\n\ndata\n\n") == [("", "a\nb"), ("", "")]


def test_a_stream_that_contradicts_itself_is_damaged() -> None:
    item = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "whole"}]}
    half = {"type": "response.output_text.delta", "item_id": "m", "delta": "who"}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    with pytest.raises(Problem, match="differ from its complete value"):
        reply.read([("", json.dumps(event)) for event in (half, done)])


def test_a_refusal_is_the_answer() -> None:
    item = {"type": "message", "content": [{"type": "refusal", "refusal": "I will not."}]}
    done = [{"type": "response.output_item.done", "output_index": 0, "item": item}, {"type": "response.completed"}]
    assert reply.read([("", json.dumps(event)) for event in done]).text == "I will not."


def test_new_tokens_are_written_at_once_and_kept_private(tmp_path: Path) -> None:
    path = tmp_path / "auth.json"
    path.write_text(json.dumps(expected.CHATGPT))
    login = auth.Auth(str(path))
    login.store({"access_token": "new", "refresh_token": "newer", "id_token": expected.NEW_JWT})
    assert json.loads(path.read_text())["tokens"] == {
        "access_token": "new",
        "refresh_token": "newer",
        "account_id": "account-1",
        "id_token": {"raw_jwt": expected.NEW_JWT, "chatgpt_account_id": "account-2"},
    }
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["auth.json"]


def test_tokens_that_cannot_be_written_are_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "auth.json"
    path.write_text(json.dumps(expected.CHATGPT))
    login = auth.Auth(str(path))
    path.unlink()
    tmp_path.rmdir()
    with pytest.raises(Problem, match="cannot be written"):
        login.store({"access_token": "new"})


@pytest.mark.parametrize("token", ["", "a.b", "a.b.c", "a.W10.c", "a.!!!.c", "é.é.é"])
def test_what_is_no_jwt_has_no_claims(token: str) -> None:
    assert auth.jwt_claims(token) == {}


@pytest.mark.parametrize(
    ("fields", "code"),
    [({"error": {"code": "a"}}, "a"), ({"error": "b"}, "b"), ({"code": "c"}, "c"), ({"error": None}, ""), ({"error": {}}, "")],
)
def test_the_code_of_a_refused_refresh(fields: dict[str, Any], code: str) -> None:
    assert refresh.code_of(fields) == code


@pytest.mark.parametrize("text", ["0", "-1", "soon", "nan"])
def test_a_timeout_that_is_none_is_a_problem(text: str) -> None:
    with pytest.raises(Problem, match="LITE_TIMEOUT"):
        settings.from_env({"LITE_TIMEOUT": text})


def test_the_environment_has_defaults() -> None:
    found = settings.from_env({"LITE_BASE_URL": "", "HOME": "/somewhere"})
    assert (found.base_url, found.token_url) == ("https://chatgpt.com/backend-api/codex", "https://auth.openai.com/oauth/token")
    assert (found.model, found.tools_file, found.schema) == ("gpt-5.2-codex", None, None)


@pytest.mark.parametrize("content", ["", "[]", '{"tools": 1}', '{"results": {}}'])
def test_a_tools_file_that_is_none_is_a_problem(tmp_path: Path, content: str) -> None:
    (tmp_path / "tools.json").write_text(content)
    with pytest.raises(Problem, match="tools file"):
        tools.Tools(str(tmp_path / "tools.json"))


def served(answer: bytes, timeout: float = 5.0) -> tuple[int, bytes]:
    """Post to a server that gives these bytes, whatever it is asked, and closes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                while b"\r\n\r\n{}" not in connection.recv(65536):
                    pass
                with contextlib.suppress(ConnectionError):  # who has read the whole body need not take what follows
                    for i in range(0, len(answer), 5):
                        connection.sendall(answer[i : i + 5])

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            found = transport.post(f"http://127.0.0.1:{server.getsockname()[1]}/x?y=1", {"A": "b"}, b"{}", timeout)
            try:
                return found.status, found.read()
            finally:
                found.close()
        finally:
            thread.join()


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", b"hi"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi and more", b"hi"),
        (b"HTTP/1.0 200\n\nto the end", b"to the end"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", b""),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nhi\r\nA\r\n0123456789\r\n0\r\nT: 1\r\n\r\n",
            b"hi0123456789",
        ),
    ],
)
def test_a_body_is_read_to_where_it_ends(answer: bytes, body: bytes) -> None:
    assert served(answer) == (200, body)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 two hundred\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhi",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhi\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n",
    ],
)
def test_an_answer_that_breaks_off_or_is_none_is_a_problem(answer: bytes) -> None:
    with pytest.raises(Problem, match=r"cannot be read|failed"):
        served(answer)


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("ftp://x/", {}),
        ("http://", {}),
        ("http://x:y/", {}),
        ("x", {}),
        ("http://[/", {}),
        ("http://x/", {"a": "b\nc"}),
        ("http://x/a\nb", {}),
        ("http://x:0x1f/", {}),
        ("http://x:65536/", {}),
    ],
)
def test_what_cannot_be_sent_is_a_problem(url: str, headers: dict[str, str]) -> None:
    with pytest.raises(Problem, match="is not an HTTP URL"):
        transport.post(url, headers, b"", 1)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:4096/v1/responses",
        "https://chatgpt.com/backend-api/codex/responses",
        "http://x",
        "http://x?a=/b",
        "http://x/a?b=c#d",
        "http://user:pass@x:81/a//b",
        "http://[::1]/a",
        "https://[::1]:8443/a?b",
    ],
)
def test_an_address_is_read_as_the_standard_library_reads_it(url: str) -> None:
    found, parts = transport.Address(url), urlsplit(url)
    assert (found.scheme, found.name) == (parts.scheme, parts.hostname)
    assert found.port == (parts.port or {"http": 80, "https": 443}[parts.scheme])
    assert found.host == parts.netloc.rpartition("@")[2]
    assert found.target == (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def test_a_conversation_is_named_by_a_random_uuid_of_its_own() -> None:
    found = {client.new_id() for _ in range(64)}
    assert len(found) == 64
    assert {(uuid.UUID(each).version, uuid.UUID(each).variant) for each in found} == {(4, uuid.RFC_4122)}
    assert all(each == str(uuid.UUID(each)) for each in found)
    assert {each[19] for each in found} == set("89ab")


# -- the examples ----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def backend() -> Iterator[BackendProcess]:
    with BackendProcess() as process:
        yield process


def example(backend: BackendProcess, name: str, tmp_path: Path, script: object = None) -> subprocess.CompletedProcess[str]:
    session = backend.session(f"{name}-{tmp_path.name}", script)
    (tmp_path / "auth.json").write_text(json.dumps(expected.CHATGPT))
    env = {
        "LITE_BASE_URL": session.url + "/backend-api/codex",
        "LITE_TOKEN_URL": session.url + "/oauth/token",
        "LITE_AUTH_FILE": str(tmp_path / "auth.json"),
        "LITE_TIMEOUT": "20",
    }
    argv = [sys.executable, "-m", f"codex_replay.reference.lite_client.examples.{name}"]
    return subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_against_the_fake_as_it_is(backend: BackendProcess, name: str, tmp_path: Path) -> None:
    """An example runs against the fake as it is. (LITE-69)"""
    done = example(backend, name, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_notices_another_backend(backend: BackendProcess, name: str, tmp_path: Path) -> None:
    """A backend that only ever talks, and refuses nothing."""
    script = {"turns": [{"items": ["Hello"], "times": "always"}], "rules_off": ["output-without-call"]}
    assert example(backend, name, tmp_path, script).returncode == 1


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_fails_in_a_sentence(backend: BackendProcess, name: str, tmp_path: Path) -> None:
    done = example(backend, name, tmp_path, [{"status": 503, "times": "always"}])
    assert done.returncode == 1
    assert "503" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_pytest_does_not_take_the_examples_for_tests() -> None:
    for name in EXAMPLES:
        module = importlib.import_module(f"codex_replay.reference.lite_client.examples.{name}")
        assert [key for key in vars(module) if key.startswith(("test", "Test"))] == []
