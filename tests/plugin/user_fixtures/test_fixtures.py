"""The fixtures for everyone else, as an outside project uses them: pytester makes a project with tests of its own."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.core.wire.json_text import dumps
from codex_replay.shell.cassettes.file import CassetteWriter

pytest_plugins = ["pytester"]

#: A client that an outside project may have: one prompt, one answer; it knows nothing of codex-replay.
CLIENT = '''
import json, subprocess, urllib.request

class Client:
    """Asks a codex app-server."""
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.call(1, "initialize", {"clientInfo": {"name": "outside", "version": "1"}})
        self.send({"method": "initialized"})
        self.thread = self.call(2, "thread/start", {})["thread"]["id"]
    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\\n")
        self.process.stdin.flush()
    def read(self):
        return json.loads(self.process.stdout.readline())
    def call(self, number, method, params):
        self.send({"id": number, "method": method, "params": params})
        while (message := self.read()).get("id") != number or "method" in message:
            pass
        return message["result"]
    def ask(self, prompt):
        text = ""
        params = {"threadId": self.thread, "input": [{"type": "text", "text": prompt}]}
        self.send({"id": 3, "method": "turn/start", "params": params})
        while (message := self.read()).get("method") != "turn/completed":
            if message.get("method") == "item/agentMessage/delta":
                text += message["params"]["delta"]
            if message.get("method", "").endswith("requestApproval"):
                self.send({"id": message["id"], "result": {"decision": "accept"}})
        return text
    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait()

def ask_backend(url, prompt):
    body = json.dumps({"model": "m", "input": prompt, "stream": True}).encode()
    request = urllib.request.Request(url + "/responses", body, {"content-type": "application/json", "authorization": "Bearer x"})
    with urllib.request.urlopen(request) as response:
        events = [json.loads(line[6:]) for line in response.read().decode().splitlines() if line.startswith("data: {")]
    return "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
'''


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project beside ours, in which codex-replay is installed and nothing else is known of it."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    pytester.makepyfile(client=CLIENT)
    pytester.makeini("[pytest]\nfilterwarnings = error\nasyncio_default_fixture_loop_scope = function\n")
    return pytester


def run(project: pytest.Pytester, test: str, *options: str) -> pytest.RunResult:
    project.makepyfile(test_outside="from client import Client, ask_backend\n" + textwrap.dedent(test))
    return project.runpytest_subprocess("-q", *options)


def test_a_client_of_the_app_server(project: pytest.Pytester) -> None:
    """Script in Python, command to the client, then what it sent and what the model was asked."""
    result = run(
        project,
        """
        def test_it(fake_codex):
            fake_codex.script(["Hello.", "And again."])
            client = Client(fake_codex.command)
            assert client.ask("Hi, Grüße\\u2028!") == "Hello."
            assert client.ask("More") == "And again."
            assert client.close() == 0
            assert fake_codex.methods == ["initialize", "initialized", "thread/start", "turn/start", "turn/start"]
            assert fake_codex.sent[0]["params"]["clientInfo"]["name"] == "outside"
            assert fake_codex.sent[3]["params"]["input"] == [{"type": "text", "text": "Hi, Grüße\\u2028!"}]
            assert [call.prompts[-1] for call in fake_codex.model_calls] == ["Hi, Grüße\\u2028!", "More"]
            assert [call.turn for call in fake_codex.model_calls] == [0, 1]
            assert fake_codex.starts == [["app-server"]]
            assert fake_codex.received[0]["id"] == 1
            assert fake_codex.problems == []
        """,
    )
    result.assert_outcomes(passed=1)


def test_of_a_recording_and_a_script_the_later_holds(project: pytest.Pytester) -> None:
    cassette = Path(__file__).parents[3] / "cassettes" / "app_server" / "test_v2" / "text_turn.ndjson"
    result = run(
        project,
        f"""
        def test_it(fake_codex):
            fake_codex.cassette({str(cassette)!r})
            fake_codex.script(["From the script."])
            client = Client(fake_codex.command)
            assert client.ask("Hi") == "From the script."
            assert client.close() == 0
        """,
    )
    result.assert_outcomes(passed=1)


def recorded(project: pytest.Pytester, name: str, *turns: str) -> str:
    """Write a cassette of the client of these tests, that asks these prompts; return its path."""
    thread = "01a1fa03-daf3-7c40-a0be-c9e3464a450e"
    said: list[tuple[str, object]] = [
        ("client", {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "outside", "version": "1"}}}),
        ("server", {"id": 1, "result": {"userAgent": "outside/0.92.0"}}),
        ("client", {"method": "initialized"}),
        ("client", {"id": 2, "method": "thread/start", "params": {}}),
        ("server", {"id": 2, "result": {"thread": {"id": thread}}}),
    ]
    for number, text in enumerate(turns):
        params = {"threadId": thread, "input": [{"type": "text", "text": text}]}
        turn = {"id": str(number)}
        said += [
            ("client", {"id": 3, "method": "turn/start", "params": params}),
            ("server", {"id": 3, "result": {"turn": turn}}),
            ("server", {"method": "turn/completed", "params": {"threadId": thread, "turn": turn}}),
        ]
    path = project.path / name
    with CassetteWriter(path, Header("0.92.0", "unknown", "a", {"rpc": "authored"})) as writer:
        for sender, message in said:
            writer.write(Frame(0, 0.0, "rpc", sender, raw=dumps(message) + b"\n"))
    return str(path)


def test_a_recording_must_be_played_to_its_end(project: pytest.Pytester) -> None:
    """Though the client throws away what fake-codex says, or leaves it no time to say it."""
    path = recorded(project, "a.ndjson", "Hi")
    result = run(
        project,
        f"""
        import pytest

        @pytest.mark.parametrize("end", ["close", "kill"])
        @pytest.mark.parametrize("partial", [False, True])
        @pytest.mark.parametrize("asked", [0, 1, 2])
        def test_it(fake_codex, asked, partial, end):
            fake_codex.cassette({path!r}, partial=partial)
            client = Client(fake_codex.command)
            if asked:
                client.ask("Hi")
            if asked > 1:
                client.send({{"id": 9, "method": "turn/start", "params": {{"threadId": client.thread, "input": []}}}})
                assert client.read()["error"]["code"] == -32001
            if end == "kill":
                client.process.kill()
            client.close()
        """,
    )
    result.assert_outcomes(passed=12, errors=6)
    said = [line.strip() for line in result.outlines]
    head = "The client differs from the recording (to allow missing messages, use cassette(path, partial=True)"
    assert sum(line.startswith(head) for line in said) == 6
    assert said.count(f"frame 6 of {path} never came from the client: turn/start") == 2
    assert said.count("no recorded frame is left for turn/start: the recording ends before it") == 4


def test_each_start_is_told_apart_and_judged_by_what_held_for_it(project: pytest.Pytester) -> None:
    one, two = recorded(project, "one.ndjson", "Hi"), recorded(project, "two.ndjson", "Hi", "More")
    result = run(
        project,
        f"""
        import subprocess

        def test_side_by_side(fake_codex):
            fake_codex.cassette({one!r})
            a = Client(fake_codex.command)
            fake_codex.cassette({two!r})
            b = Client(fake_codex.command)
            subprocess.run([fake_codex.path, "--version"], check=True)
            b.ask("Hi"), a.ask("Hi")
            assert len(fake_codex.unplayed) == 1 and "frame 9 of {two}" in fake_codex.unplayed[0]
            b.ask("More")
            a.close(), b.close()
            assert fake_codex.unplayed == []

        def test_nobody_starts_it(fake_codex):
            fake_codex.cassette({one!r})

        def test_lenient(fake_codex):
            fake_codex.cassette({one!r})
            fake_codex.lenient = True
            Client(fake_codex.command).close()

        def test_with_a_fault(fake_codex):
            fake_codex.cassette({one!r})
            fake_codex.fault("dies-in-turn")
            Client(fake_codex.command).close()

        def test_fails_itself(fake_codex):
            fake_codex.cassette({one!r})
            Client(fake_codex.command).close()
            assert not "this is told first"
        """,
    )
    result.assert_outcomes(passed=4, failed=1, errors=1)
    result.stdout.fnmatch_lines(["*no client started the app-server, so no recorded frame was sent"])


DIFFERENT = """
def test_tolerant(fake_codex):
    fake_codex.cassette({path!r})
    client = Client(fake_codex.command)
    client.ask("Ho")
    client.close()
    assert fake_codex.unplayed == []
    (note,) = fake_codex.notes
    assert note.startswith("turn/start was answered like frame 6 of") and 'recorded "Hi", got "Ho"' in note

def test_exact(fake_codex):
    fake_codex.cassette({path!r}, match="exact")
    client = Client(fake_codex.command)
    client.send({{"id": 9, "method": "turn/start", "params": {{"threadId": client.thread, "input": []}}}})
    assert client.read()["error"]["code"] == -32001
    client.close()
    assert fake_codex.notes == []

def test_exact_and_equal(fake_codex):
    fake_codex.cassette({path!r}, match="exact")
    client = Client(fake_codex.command)
    client.ask("Hi")
    client.close()

def test_the_last_cassette_sets_the_match(fake_codex):
    fake_codex.cassette({path!r}, match="exact")
    fake_codex.cassette({path!r})
    client = Client(fake_codex.command)
    client.ask("Ho")
    client.close()

def test_fails_itself(fake_codex):
    fake_codex.cassette({path!r})
    client = Client(fake_codex.command)
    text = client.ask("Ho")
    client.close()
    assert text == "Hello."

def test_fails_itself_early(fake_codex):
    fake_codex.cassette({path!r})
    Client(fake_codex.command).close()
    assert "" == "Hello."

def test_fails_itself_without_a_turn(fake_codex):
    fake_codex.script(["Hello."])
    client = Client(fake_codex.command)
    client.ask("one"), client.ask("two")
    client.close()
    assert "" == "Hello."

def test_fails_itself_and_is_lenient(fake_codex):
    fake_codex.script([])
    fake_codex.lenient = True
    client = Client(fake_codex.command)
    client.ask("one")
    client.close()
    assert "" == "Hello."
"""


def test_contents_are_compared_as_the_test_wants(project: pytest.Pytester) -> None:
    """Tolerant with notes, or exact; and a test that fails itself shows below its error how the client differed."""
    path = recorded(project, "a.ndjson", "Hi")
    result = run(project, DIFFERENT.format(path=path))
    result.assert_outcomes(passed=4, failed=4, errors=1)
    text = result.stdout.str()
    assert f"frame 6 of {path} came from the client, but did not match (see above): turn/start" in text
    assert "no recorded frame matches turn/start: the nearest is frame 6 of" in text
    assert text.count("Captured fake_codex teardown") == 3
    assert text.count("\nnote: turn/start was answered like frame 6 of") == 1
    assert text.count('(to refuse it, use cassette(path, match="exact"))') == 1
    assert text.count(f"\nframe 6 of {path} never came from the client: turn/start") == 1
    assert len(re.findall(r"Captured fake_codex teardown -+\nThe only turn of the script is used", text)) == 1


def test_approvals_and_outputs(project: pytest.Pytester) -> None:
    """config.toml, a tool call whose result the script tells, an approval, and the output that the model gets."""
    result = run(
        project,
        """
        def test_it(fake_codex):
            fake_codex.config(approval_policy="untrusted", sandbox_mode="danger-full-access")
            call = {"type": "function_call", "name": "shell_command", "call_id": "c1", "arguments": {"command": "make test"}}
            fake_codex.script([{"items": [{**call, "result": {"stdout": "3 passed"}}]}, "All pass."])
            client = Client(fake_codex.command)
            assert client.ask("Run the tests.") == "All pass."
            client.close()
            assert fake_codex.sent[-1]["result"] == {"decision": "accept"}
            assert "3 passed" in fake_codex.model_calls[1].outputs["c1"]
        """,
    )
    result.assert_outcomes(passed=1)


def test_each_test_has_its_own(project: pytest.Pytester) -> None:
    """Two tests, two fakes; two starts in one test each begin the script anew, and both are seen."""
    result = run(
        project,
        """
        import pytest

        @pytest.mark.parametrize("n", [1, 2])
        def test_it(fake_codex, n):
            fake_codex.script([f"answer {n}"])
            one, two = Client(fake_codex.command), Client(fake_codex.command)
            assert (one.ask("a"), two.ask("b")) == (f"answer {n}", f"answer {n}")
            one.close(), two.close()
            assert sorted(call.prompts[-1] for call in fake_codex.model_calls) == ["a", "b"]
            assert len(fake_codex.starts) == 2
            assert len(fake_codex.wait("turn/start", 2)) == 2
        """,
    )
    result.assert_outcomes(passed=2)


def test_without_a_script(project: pytest.Pytester) -> None:
    """It says something short that is always the same."""
    result = run(
        project,
        """
        def test_it(fake_codex):
            client = Client(fake_codex.command)
            assert client.ask("Hi") == client.ask("Hi") != ""
            client.close()
        """,
    )
    result.assert_outcomes(passed=1)


def test_what_the_script_does_not_have_fails_the_test(project: pytest.Pytester) -> None:
    """A request too many is loud, though the client takes the failed turn in silence; unless the test means it."""
    result = run(
        project,
        """
        import pytest

        @pytest.mark.parametrize("lenient", [False, True])
        def test_it(fake_codex, lenient):
            fake_codex.lenient = lenient
            fake_codex.script(["Hello."])
            client = Client(fake_codex.command)
            client.ask("one"), client.ask("two")
            client.close()
        """,
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*The script of fake_codex has no turn for a request*", "*The only turn of the script is used*"])


def test_a_wrong_script_is_a_sentence(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
        def test_it(fake_codex):
            fake_codex.script([{"itmes": ["Hello."]}])
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*BadScript*itmes*items*"])


def test_what_cannot_be_is_refused_where_it_is_said(project: pytest.Pytester) -> None:
    """And not when the client has started, in a sentence on a stderr that it may throw away."""
    result = run(
        project,
        """
        import pytest

        SAID = [
            (lambda fake: fake.fault("dies"), "'dies' is not a fault of fake-codex. .* dies-in-turn, "),
            (lambda fake: fake.fault("dies-in-turn:x"), "'dies-in-turn:x' is not a fault"),
            (lambda fake: fake.cassette("nope.ndjson"), "nope.ndjson: the cassette cannot be opened"),
            (lambda fake: fake.cassette(__file__), "not a cassette header"),
            (lambda fake: fake.cassette("empty"), "no cassette"),
            (lambda fake: fake.cassette("a.ndjson", match="exactly"), "match is 'exactly'; it must be 'method' or 'exact'"),
            (lambda fake: fake.cassette("b.ndjson"), "b.ndjson, line 2: it is not JSON: a '}' is missing at its end"),
            (lambda fake: fake.config(aproval_policy="untrusted"), "not a key of .* did you mean 'approval_policy'"),
            (lambda fake: fake.config(approvalPolicy="untrusted"), "did you mean 'approval_policy'"),
            (lambda fake: fake.config(colour="red"), "'colour' is not a key of the config.toml of Codex .*, which ignores it"),
            (lambda fake: [fake.cassette("a.ndjson"), fake.race(1)], "use either race"),
            (lambda fake: [fake.race(1), fake.cassette("a.ndjson")], "use either race"),
        ]
        HEADER = '{"cassette":1,"codex":"0.92.0","bundle":"unknown","case":"a","origin":{"rpc":"authored"}}'

        @pytest.mark.parametrize(("say", "sentence"), SAID)
        def test_it(fake_codex, tmp_path, monkeypatch, say, sentence):
            monkeypatch.chdir(tmp_path)
            (tmp_path / "empty").mkdir()
            (tmp_path / "a.ndjson").write_text(HEADER + '\\n{"end":true,"frames":0}\\n')
            broken = '{"n":1,"t":0.0,"seam":"rpc","from":"client","msg":{"method":"initialized"}'
            (tmp_path / "b.ndjson").write_text(HEADER + "\\n" + broken + '\\n{"end":true,"frames":1}\\n')
            with pytest.raises(Exception, match=sentence):
                say(fake_codex)

        def test_what_can_be(fake_codex):
            for name in ("dies-in-turn", "dies-in-turn:3"):
                fake_codex.fault(name)
            fake_codex.config(model="m", features={"apps": True}, mcp_servers={"one": {"command": "x"}})
        """,
    )
    result.assert_outcomes(passed=13)


def test_a_client_that_does_not_send(project: pytest.Pytester) -> None:
    """`wait` says what came instead."""
    result = run(
        project,
        """
        def test_it(fake_codex):
            client = Client(fake_codex.command)
            try:
                fake_codex.wait("turn/interrupt", seconds=0.05)
            finally:
                client.close()
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*did not send turn/interrupt 1 time within 0.05 s; it sent *'thread/start'*"])


def test_races(project: pytest.Pytester) -> None:
    """The order of what is racy is permuted; a good client does not mind."""
    result = run(
        project,
        """
        import pytest

        @pytest.mark.parametrize("seed", range(3))
        def test_it(fake_codex, seed):
            fake_codex.script(["Hello."])
            fake_codex.race(seed)
            client = Client(fake_codex.command)
            assert client.ask("Hi") == "Hello."
            client.close()
        """,
    )
    result.assert_outcomes(passed=3)


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
