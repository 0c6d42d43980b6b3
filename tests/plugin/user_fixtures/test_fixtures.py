"""The fixture `fake_codex` in a project of its users."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.core.wire.json_text import dumps
from codex_replay.shell.cassettes.file import CassetteWriter
from tests.plugin.user_fixtures.projects import run

pytest_plugins = ["pytester"]


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
