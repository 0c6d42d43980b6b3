"""Snapshots of conversations, as an outside project makes them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import ClassVar

import pytest

from codex_replay.core.cassette.frames import Frame
from codex_replay.plugin.user_fixtures.fake_codex import by_connection
from codex_replay.protocol.recordings.conversation import Conversation, text
from codex_replay.snapshot import ConversationSnapshot
from tests.plugin.user_fixtures.projects import CLIENT

pytest_plugins = ["pytester"]
CASSETTES = Path(__file__).parents[3] / "cassettes" / "app_server"
SECRET = "sk-proj-0123456789abcdefghijklmnop"

TEST = f"""
from client import Client, ask_backend

def test_app_server(fake_codex, codex_snapshot):
    fake_codex.script(["Hello, {SECRET}."])
    client = Client(fake_codex.command)
    assert client.ask("My key is {SECRET}") == "Hello, {SECRET}."
    client.close()
    assert fake_codex.conversation == codex_snapshot

def test_backend(codex_backend, codex_snapshot):
    codex_backend.script(["Hello."])
    ask_backend(codex_backend.url + "/v1", "Hi {SECRET}")
    assert codex_backend.conversation == codex_snapshot

def test_cassette(codex_snapshot):
    assert {str(CASSETTES / "test_approvals" / "accept.ndjson")!r} == codex_snapshot
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    pytester.makepyfile(client=CLIENT, test_mine=TEST)
    pytester.makeini("[pytest]\nfilterwarnings = error\nasyncio_default_fixture_loop_scope = function\n")
    return pytester


def run(project: pytest.Pytester, *options: str) -> pytest.RunResult:
    return project.runpytest_subprocess("-q", *options)


def written(project: pytest.Pytester) -> dict[str, str]:
    files = (project.path / "__snapshots__").rglob("*.txt")
    return {path.name.partition(".")[0]: path.read_text() for path in files}


def test_snapshots_are_written_compared_and_updated(project: pytest.Pytester) -> None:
    assert run(project).ret == 1  # no snapshot yet
    assert not (project.path / "__snapshots__").exists()
    run(project, "--snapshot-update").assert_outcomes(passed=3)
    first = written(project)
    assert set(first) == {"test_app_server", "test_backend", "test_cassette"}
    # Another run has other ids, ports, folders and times.
    run(project).assert_outcomes(passed=3)

    (project.path / "test_mine.py").write_text(TEST.replace('"Hi ', '"Ho '))
    failed = run(project)
    failed.assert_outcomes(passed=2, failed=1)
    failed.stdout.re_match_lines([r'E +- .*"input": "Hi sk-redacted-1"', r'E +\+ .*"input": "Ho sk-redacted-1"'])
    run(project, "--snapshot-update").assert_outcomes(passed=3)
    changed = written(project)
    assert {name for name in first if first[name] != changed[name]} == {"test_backend"}


def test_a_secret_never_reaches_a_file_or_the_terminal(project: pytest.Pytester) -> None:
    """The model streams the key in pieces; neither the file, nor a failure with all its output, may show it."""
    run(project, "--snapshot-update").assert_outcomes(passed=3)
    texts = written(project)
    assert all(SECRET[8:] not in text for text in texts.values())
    assert "Bearer redacted-bearer-1" in texts["test_backend"]
    assert 'Hello, sk-redacted-1."' in texts["test_app_server"]
    (project.path / "test_mine.py").write_text(
        TEST.replace('"My ', '"A ').replace(SECRET, '" + KEY + "') + f"\nKEY = {SECRET!r}\n"
    )
    failed = run(project, "-vv", "--tb=short", "-k", "app_server")
    failed.assert_outcomes(failed=1, deselected=2)
    assert "key is sk-redacted-1" in failed.stdout.str()
    assert SECRET[8:] not in failed.stdout.str()


def test_ids_have_one_name_throughout(project: pytest.Pytester) -> None:
    run(project, "--snapshot-update").assert_outcomes(passed=3)
    lines = written(project)["test_app_server"].splitlines()
    thread = [line for line in lines if '"threadId"' in line or '"conversationId"' in line]
    assert len(thread) > 5
    assert all("<thread:1>" in line for line in thread)
    assert "rpc> turn/start <id:turn/start:1>" in lines
    assert "rpc< response to turn/start <id:turn/start:1>" in lines
    assert str(project.path) not in "\n".join(lines)


def test_without_syrupy_the_error_names_the_extra(project: pytest.Pytester) -> None:
    (project.path / "syrupy.py").write_text("raise ModuleNotFoundError(\"No module named 'syrupy'\", name='syrupy')")
    # Not in a fork, which has loaded syrupy.
    result = project.run(sys.executable, "-m", "pytest", "-q", "-p", "no:syrupy", "-k", "backend")
    result.assert_outcomes(errors=1, deselected=2)
    result.stdout.fnmatch_lines(["*codex_replay.snapshot needs syrupy*pip install 'codex-replay[[]snapshot[]]'*"])


def rpc(*lines: tuple[str, bytes]) -> Conversation:
    return Conversation(Frame(n, 0.0, "rpc", sender, "msg", raw) for n, (sender, raw) in enumerate(lines, 1))


def test_what_is_no_conversation_is_refused() -> None:
    for value in (3, None, ["a"], {"a": 1}):
        with pytest.raises(TypeError, match="is not a conversation"):
            ConversationSnapshot().serialize(value)


def test_secrets_and_folders_of_ones_own() -> None:
    class Mine(ConversationSnapshot):
        literals: ClassVar = {"Bluebird": "a-project"}
        paths: ClassVar = {"/srv/checkout": "/work"}

    line = b'{"method":"x","params":{"text":"Bluebird at /srv/checkout/a and /srv/checkouts"}}\n'
    assert Mine().serialize(rpc(("client", line))) == 'rpc> x\n   {"text": "a-project at /work/a and /srv/checkouts"}\n'


def test_a_recording_that_was_cut_short_says_so(tmp_path: Path) -> None:
    whole = (CASSETTES / "test_v2" / "text_turn.ndjson").read_bytes()
    (tmp_path / "cut.ndjson").write_bytes(whole.rpartition(b'{"end"')[0])
    assert ConversationSnapshot().serialize(tmp_path / "cut.ndjson").endswith("(the recording was cut short)\n")


def test_the_text_of_unusual_messages() -> None:
    assert text([]) == "(no frames)\n"
    odd = rpc(
        ("client", b"no json\n"),
        ("client", b'{"id":1,"method":"m","params":null}\n'),
        ("server", b'{"id":1,"error":{"code":-1,"message":"\\u001b[31m"},"jsonrpc":"2.0"}\n'),
        ("server", b'{"method":"\\u001b[2J","params":[]}\n'),
    )
    shown = text(odd)
    assert "no json" in shown
    assert "rpc> m <id:m:1>\n   null\n" in shown
    assert '"jsonrpc": "2.0"' in shown
    assert "\x1b" not in shown


def test_a_conversation_is_not_printed_with_its_contents() -> None:
    assert repr(rpc(("client", b'{"method":"secret"}\n'))) == "<conversation of 1 frames>"


def test_a_cassette_that_is_not_there_is_one_sentence(project: pytest.Pytester) -> None:
    project.makepyfile(test_mine="def test_cassette(codex_snapshot):\n    assert 'not/there.ndjson' == codex_snapshot\n")
    printed = run(project).stdout.str()
    assert "not/there.ndjson: the cassette cannot be opened" in printed
    assert "syrupy" not in printed
    assert "Traceback" not in printed


@pytest.mark.parametrize("first", ["1", "2"])
def test_clients_at_once_have_one_order(first: str) -> None:
    """Whichever begins first, and however their lines are mixed; a client that begins later stays behind them."""
    second = "2" if first == "1" else "1"
    wire: list[dict[str, object]] = [
        {"run": 0, "pid": int(first), "argv": []},
        {"run": 1, "pid": int(second), "argv": []},
        {"got": f"asks {first}", "of": int(first)},
        {"got": f"asks {second}", "of": int(second)},
        {"said": f"answers {first}", "of": int(first)},
        {"said": f"answers {second}", "of": int(second)},
        {"run": 2, "pid": 1, "argv": []},
        {"got": "another", "of": 1},
    ]
    lines = [entry.get("got", entry.get("said")) for entry in by_connection(wire) if "run" not in entry]
    assert lines == ["asks 1", "answers 1", "asks 2", "answers 2", "another"]
