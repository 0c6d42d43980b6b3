"""The fixture `codex_backend` in a project of its users."""

from __future__ import annotations

import pytest

from tests.plugin.user_fixtures.projects import run

pytest_plugins = ["pytester"]


def test_a_client_of_the_backend(project: pytest.Pytester) -> None:
    """The backend's URL to the client, then every request as it was received."""
    result = run(
        project,
        """
        import pytest

        @pytest.mark.parametrize("n", [1, 2])
        def test_it(codex_backend, n):
            codex_backend.script([f"Hello {n}."])
            assert ask_backend(codex_backend.url + "/v1", "Hi") == f"Hello {n}."
            (request,) = codex_backend.requests
            assert (request.method, request.path, request.status) == ("POST", "/v1/responses", 200)
            assert request.body["input"] == "Hi"
            assert request.header("Authorization") == "Bearer x"
            assert codex_backend.unused_turns == []
            assert codex_backend.wait(1) == [request]
        """,
    )
    result.assert_outcomes(passed=2)


def test_a_refused_request_fails_the_test(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
        import urllib.error

        def test_it(codex_backend):
            codex_backend.script([])
            try:
                ask_backend(codex_backend.url + "/v1", "Hi")
            except urllib.error.HTTPError as error:
                error.close()
        """,
    )
    result.assert_outcomes(passed=1, errors=1)
    head = "*The client differs from the script or the recording of codex_backend*"
    result.stdout.fnmatch_lines([head, "*POST /v1/responses: The script has no turns: add one."])


def test_a_refused_websocket_is_a_note_of_a_test_that_failed(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
        from websockets.sync.client import connect

        def test_it(codex_backend):
            codex_backend.script(["Hello."])
            connect(codex_backend.url.replace("http", "ws", 1) + "/v1/responses")
        """,
    )
    result.assert_outcomes(failed=1)
    note = 'note: the backend refused a WebSocket to /v1/responses with 426; a script accepts it with "websocket": "on"'
    result.stdout.fnmatch_lines(["*Captured codex_backend teardown*", note])


def test_an_unused_turn_fails_the_test(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
        import pytest

        @pytest.mark.parametrize("partial", [False, True])
        def test_it(codex_backend, partial):
            codex_backend.script(["a", "b", "c"], partial=partial)
            ask_backend(codex_backend.url + "/v1", "Hi")

        def test_lenient(codex_backend):
            codex_backend.script(["a"])
            codex_backend.lenient = True

        def test_a_turn_for_any_number_of_requests(codex_backend):
            codex_backend.script([{"items": ["a"], "times": "always"}])
            ask_backend(codex_backend.url + "/v1", "Hi")

        def test_without_a_script(codex_backend):
            pass

        @pytest.mark.xfail(strict=True)
        def test_that_is_expected_to_fail(codex_backend):
            codex_backend.script(["a"])
            assert False
        """,
    )
    result.assert_outcomes(passed=5, xfailed=1, errors=1)
    result.stdout.fnmatch_lines(["*partial=True*", "*No request used turns[[]1[]], turns[[]2[]] of the script."])


def test_a_failing_test_is_reported_once(project: pytest.Pytester) -> None:
    """Its own error has the sentence, or the sentence is added to it, as are the turns that no request used."""
    result = run(
        project,
        """
        import json, urllib.error

        def answer(backend):
            try:
                return ask_backend(backend.url + "/v1", "Hi")
            except urllib.error.HTTPError as error:
                return json.loads(error.read())["error"]["message"]

        def test_that_tells(codex_backend):
            codex_backend.script([{"match": "tells", "items": ["a"]}])
            raise RuntimeError(answer(codex_backend))

        def test_that_is_silent(codex_backend):
            codex_backend.script([{"match": "silent", "items": ["a"]}])
            for _ in range(3):
                answer(codex_backend)
            assert False

        def test_without_a_follow_up(codex_backend):
            codex_backend.script(["a", "b"])
            assert answer(codex_backend) == "b"

        def test_lenient(codex_backend):
            codex_backend.script(["a", "b"])
            codex_backend.lenient = True
            assert answer(codex_backend) == "b"
        """,
    )
    result.assert_outcomes(failed=4)
    text = result.stdout.str()
    assert 'contains "silent". (3 times)' in text
    assert text.count('contains "silent"') == 1
    assert "POST /v1/responses: No turn of the script matches this request. turns[0]: No text of the input contains" in text
    assert 'contains "tells". (' not in text
    assert "Captured codex_backend teardown" in text
    assert text.count("Captured codex_backend teardown") == 3
    assert text.count("No request used turns[0] of the script.") == 2
    assert text.count("No request used turns[1] of the script.") == 1


def test_each_worker_has_a_server_and_each_test_a_session(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
        import pytest
        from urllib.parse import urlsplit

        @pytest.mark.parametrize("n", range(12))
        def test_it(codex_backend, n, worker_id):
            codex_backend.script([f"Hello {n}."])
            assert ask_backend(codex_backend.url + "/v1", "Hi") == f"Hello {n}."
            assert len(codex_backend.requests) == 1
            with open("ports", "a") as file:
                file.write(f"{worker_id} {urlsplit(codex_backend.url).port}\\n")
        """,
        "-n",
        "2",
    )
    result.assert_outcomes(passed=12)
    lines = (project.path / "ports").read_text().splitlines()
    assert len(lines) == 12
    assert len({line.split()[1] for line in lines}) == len(set(lines)) <= 2


def test_an_asynchronous_test_with_a_function_as_the_model(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
        import asyncio
        import pytest

        @pytest.mark.asyncio
        async def test_it(codex_backend):
            async def model(request):
                await asyncio.sleep(0)
                yield f"{request.prompt}!"

            codex_backend.script(model)
            asked = [asyncio.to_thread(ask_backend, codex_backend.url + "/v1", text) for text in "abc"]
            assert await asyncio.gather(*asked) == ["a!", "b!", "c!"]
        """,
    )
    result.assert_outcomes(passed=1)


def test_a_session_has_a_readable_name(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
        import pytest

        @pytest.mark.parametrize("text", ["a b/c", "a b?c", "é" * 200])
        def test_it(codex_backend, text):
            assert "%" not in codex_backend.url
            assert "/s/" in codex_backend.url
            assert "-test_it-" in codex_backend.url
            codex_backend.script([text])
            assert ask_backend(codex_backend.url + "/v1", "Hi") == text
        """,
    )
    result.assert_outcomes(passed=3)


def test_the_reference_editor_on_the_fixture(project: pytest.Pytester) -> None:
    """Any client that is started with the path of a codex: here the reference editor client."""
    result = run(
        project,
        """
        import json, subprocess, sys

        def test_it(fake_codex):
            fake_codex.script(["Hello."])
            command = [sys.executable, "-m", "codex_replay.reference.editor_client", fake_codex.path]
            editor = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            editor.stdin.write(b'{"do": "prompt", "text": "Hi"}\\n')
            editor.stdin.flush()
            reports = [json.loads(editor.stdout.readline()) for _ in range(2)]
            editor.communicate(b'{"do": "shutdown"}\\n')
            assert reports == [{"report": "text", "text": "Hello."}, {"report": "end", "status": "completed"}]
            assert editor.returncode == 0
        """,
    )
    result.assert_outcomes(passed=1)
