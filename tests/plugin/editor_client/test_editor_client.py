"""The editor client: its reference, its suite, the byte server; and the broken editors that show that the suite bites."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codex_replay.plugin.editor_client.fixture import editor_argv
from codex_replay.reference.editor_client.connection import Connection
from tests.miniatures.editor_clients import other_server
from tests.miniatures.editor_clients.matrix import TABLE, all_checks
from tests.miniatures.matrix import cover
from tests.support.suite_run import run_suite

ROOT = Path(__file__).resolve().parents[3]
CLIENTS = Path(__file__).parents[2] / "miniatures" / "editor_clients"
FAKE_CODEX = Path(sys.executable).with_name("fake-codex")


# -- the suite bites -----------------------------------------------------------------------------------------------------------


def test_every_check_is_turned_red_by_a_variant_and_every_variant_turns_one_red() -> None:
    TABLE.must_be_whole(all_checks())


def test_the_table_is_true(tmp_path: Path) -> None:
    """A pair for each check and each variant is tried anew. (That the reference passes every check is for the suite to show.)"""
    chosen = cover(TABLE.read())
    assert TABLE.run(chosen, tmp_path, "--wait", "1") == chosen


def test_every_fault_has_a_check() -> None:
    faults = {check.removeprefix("fault-") for check in all_checks() if check.startswith("fault-")}
    listed = subprocess.run(
        [str(FAKE_CODEX), "app-server"], env={"FAKE_CODEX_FAULT": "list"}, capture_output=True, text=True, timeout=60, check=True
    )
    assert faults == {line.split()[0] for line in listed.stdout.splitlines()}


def test_a_fault_is_made_in_the_version_of_the_app_server(tmp_path: Path) -> None:
    """A later Codex sends other messages in a turn, so a fault of 0.92.0 shows little about a client of 0.169.0."""
    editor = f"{sys.executable} {CLIENTS / 'broken.py'} everything-completes {{codex}}"
    for version in ("0.92.0", "0.169.0"):
        options = ["--editor-client", editor, "--app-server", f"fake@{version}", "suites/editor_client/test_faults.py"]
        done = run_suite(tmp_path, *options, "-k", "dies-in-turn.0")
        assert "1 failed" in done.stdout, done.stdout[-3000:]
        assert f"/{version} (" in done.stdout, done.stdout[-3000:]


def test_a_pair_that_is_not_red_is_noticed(tmp_path: Path) -> None:
    pairs = {"dismiss-declines": ["approval-reply", "approval-shown"]}
    assert TABLE.run(pairs, tmp_path, "--wait", "30") == {"dismiss-declines": ["approval-reply"]}


def test_every_check_has_an_id_of_its_own() -> None:
    found = []
    for path in (ROOT / "suites" / "editor_client").glob("test_*.py"):
        text = path.read_text()
        found += re.findall(r'mark\.spec\(\s*"([a-z-]+)"', text)
        if path.stem not in ("test_document", "test_faults"):
            assert text.count("mark.spec(") == len(re.findall(r"^def test_", text, re.M)), path.stem
    assert len(found) == len(set(found)) >= 60


def test_every_statement_of_the_document_can_fail() -> None:
    from suites.editor_client.test_document import STATEMENTS

    assert {name for _, names in other_server.WAYS.values() for name in names} == set(STATEMENTS)


def test_what_the_byte_server_sends_in_a_turn_is_of_that_turn() -> None:
    """An editor may drop what is of another turn, and must not fail for it."""
    from suites.editor_client.speech import completed, delta, turn

    steps = turn(delta("x"), completed(turn="turn_456"), name="turn_9")
    sent = [step["send"]["params"] for step in steps if "send" in step]
    assert [params["turnId"] for params in sent if "turnId" in params] == ["turn_9"]
    assert [params["turn"]["id"] for params in sent if "turn" in params] == ["turn_9", "turn_456", "turn_9"]


@pytest.mark.parametrize("way", other_server.WAYS)
def test_a_server_that_is_otherwise_turns_statements_red(way: str, tmp_path: Path) -> None:
    """A server that differs from the real one in one way; the statements about it fail, and say so."""
    statements = other_server.WAYS[way][1]
    server = f"fake:{sys.executable} {CLIENTS / 'other_server.py'} {way} {FAKE_CODEX} app-server"
    cases = [f"suites/editor_client/test_document.py::test_statement[{name}]" for name in statements]
    done = run_suite(tmp_path, "--app-server", server, "--wait", "3", *cases)
    assert f"{len(statements)} failed" in done.stdout, done.stdout[-3000:]


def test_the_run_shows_where_document_and_server_differ(tmp_path: Path) -> None:
    done = run_suite(tmp_path, "suites/editor_client/test_document.py")
    assert done.returncode == 0, done.stdout[-3000:]
    assert "where the document and the server differ" in done.stdout
    assert 'initialize-user-agent: EDIT-08: "result": { "user_agent": "codex/..." }' in done.stdout
    assert '    the server: it sends "userAgent"' in done.stdout
    assert "agree on 6 of 16 statements" in done.stdout


def test_a_failure_shows_both_ends_and_the_spec(tmp_path: Path) -> None:
    editor = f"{sys.executable} {CLIENTS / 'broken.py'} dismiss-declines {{codex}}"
    done = run_suite(tmp_path, "--editor-client", editor, "suites/editor_client/test_approvals.py", "-k", "the_reply")
    assert done.returncode == 1
    assert "2 failed, 4 passed" in done.stdout
    assert "Spec: approval-reply" in done.stdout
    assert "EDIT-25: To accept, the editor replies" in done.stdout
    assert "What the user saw:" in done.stdout
    assert "-> {" in done.stdout


def test_an_editor_that_never_wants_to_be_asked_is_said_so_at_once(tmp_path: Path) -> None:
    """Not only that no approval came: that the editor itself has switched them off, and in which message."""
    editor = f"{sys.executable} {CLIENTS / 'broken.py'} never-to-be-asked {{codex}}"
    cases = [f"suites/editor_client/test_{name}.py" for name in ("approvals", "interrupt", "shown")]
    done = run_suite(tmp_path, "--editor-client", editor, *cases, "-k", "app_server and (dismiss or interrupt or diff)")
    assert done.returncode == 1
    assert "4 failed" in done.stdout, done.stdout[-3000:]
    said = "The editor's thread/start disables approvals: it sends approvalPolicy 'never'"
    assert len([line for line in done.stdout.splitlines() if line.startswith("E ") and said in line]) == 4, done.stdout[-3000:]
    assert "did not come within" not in done.stdout


def test_an_editor_that_may_write_in_its_workspace_is_asked_before_other_changes(tmp_path: Path) -> None:
    editor = f"{sys.executable} {CLIENTS / 'broken.py'} may-write-in-the-workspace {{codex}}"
    done = run_suite(tmp_path, "--editor-client", editor, "suites/editor_client", "-k", "app_server or statement")
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no-such-program-anywhere {codex}", "there is no such program"),
        (f"{sys.executable} my-editor.py", "it must contain {codex}"),
        ("'", "this is not a command line"),
        ("", "the command line is empty"),
    ],
)
def test_a_wrong_option_is_a_sentence(text: str, why: str) -> None:
    with pytest.raises(pytest.UsageError, match=re.escape(why)):
        editor_argv(text, "/codex")


def test_a_wrong_option_is_said_before_anything_runs(tmp_path: Path) -> None:
    done = run_suite(tmp_path, "--editor-client", "no-such-program {codex}", "suites/editor_client/test_turns.py")
    assert done.returncode == 4
    assert "there is no such program" in done.stderr


def test_an_editor_that_says_nothing_is_ended_and_said_so(tmp_path: Path) -> None:
    command = f"{sys.executable} -c 'import time; time.sleep(600)' {{codex}}"
    done = run_suite(
        tmp_path, "--editor-client", command, "--wait", "0.5", "suites/editor_client/test_turns.py", "-k", "lazy or all_prompts"
    )
    assert done.returncode == 1
    cause = "The editor has sent nothing to its server: a report 'end' did not come within 0.5 s."
    assert f"{cause} The editor is still running." in done.stdout


def test_what_an_editor_writes_to_stderr_only_at_its_exit_is_shown(tmp_path: Path) -> None:
    """As asyncio does: it reports an exception that nobody has awaited when the program exits."""
    (tmp_path / "editor.py").write_text("import sys\nsys.stdin.read()\nsys.stderr.write('KeyError: turn\\n')\n")
    command = f"{sys.executable} {tmp_path / 'editor.py'} {{codex}}"
    done = run_suite(
        tmp_path, "--editor-client", command, "--wait", "0.5", "suites/editor_client/test_turns.py", "-k", "all_prompts"
    )
    assert done.returncode == 1
    _, head, after = done.stdout.partition("Editor 1: stderr at its exit, after the failure")
    assert head, done.stdout[-3000:]
    assert after.splitlines()[1] == "KeyError: turn"


def test_an_editor_that_dies_is_said_to_be_dead_and_why(tmp_path: Path) -> None:
    """Its stdout ends before it does, and what it died of stands above a trace of ten calls, as Node.js writes it."""
    trace = "TypeError: no id\\n" + "    at a call\\n" * 10 + "\\nNode.js v20\\n"
    (tmp_path / "editor.py").write_text(f"import os, sys\nos.close(1)\nsys.stderr.write('{trace}')\nos._exit(3)\n")
    command = f"{sys.executable} {tmp_path / 'editor.py'} {{codex}}"
    done = run_suite(tmp_path, "--editor-client", command, "suites/editor_client/test_turns.py", "-k", "all_prompts")
    assert done.returncode == 1
    assert "SubjectFailure: The editor ended with status 3 too early: TypeError: no id\n" in done.stdout


def test_an_editor_whose_words_are_no_reports(tmp_path: Path) -> None:
    command = f"""{sys.executable} -c 'print("Welcome!")' {{codex}}"""
    done = run_suite(tmp_path, "--editor-client", command, "suites/editor_client/test_turns.py", "-k", "all_prompts")
    assert done.returncode == 1
    assert "not a report: 'Welcome!'" in done.stdout


def test_an_editor_in_another_language(tmp_path: Path) -> None:
    """The example of docs/editor-client.md, in JavaScript, shares nothing with the reference and passes as well."""
    modules = [f"suites/editor_client/test_{name}.py" for name in ("framing", "interrupt", "spelling")]
    done = run_suite(tmp_path, "--editor-client", "node docs/examples/editor-client.mjs {codex}", *modules)
    assert done.returncode == 0, done.stdout[-3000:]


# -- the reference ---------------------------------------------------------------------------------------------------------------


def drive(*lines: str, codex: str = str(FAKE_CODEX)) -> tuple[int, list[Any], str]:
    """Run the reference on these lines to its end; return its status, reports and stderr."""
    argv = [sys.executable, "-m", "codex_replay.reference.editor_client", codex]
    done = subprocess.run(argv, input="".join(line + "\n" for line in lines), capture_output=True, text=True, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_an_unused_reference_ends_with_its_input() -> None:
    assert drive() == (0, [], "")


@pytest.mark.parametrize("line", ["hello", "[]", "{}", '{"do": "dance"}', '{"do": "decide", "id": 1, "decision": "perhaps"}'])
def test_a_line_that_is_no_command_is_a_sentence(line: str) -> None:
    status, reports, stderr = drive(line)
    assert (status, reports) == (2, [])
    assert stderr == f"The driver sent a command that docs/editor-client.md does not define: {line}\n"


def test_a_reference_without_a_codex_is_a_sentence() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "codex_replay.reference.editor_client"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Give the codex to start")


def test_deciding_what_was_never_asked_is_an_error_report() -> None:
    status, reports, _ = drive('{"do": "decide", "id": 7, "decision": "accept"}')
    assert status == 0
    assert reports == [{"report": "error", "message": "There is no approval 7 to decide."}]


def test_lines_are_cut_alike_whole_byte_by_byte_and_with_more_behind() -> None:
    data = '{"a":1}\n{"b":"\u2028é"}\r\n\n{"c":2}'.encode()
    wanted = [b'{"a":1}', '{"b":"\u2028é"}\r'.encode(), b""]
    for pieces in ([data], [data[i : i + 1] for i in range(len(data))], [data[:3], data[3:12], data[12:]]):
        connection = Connection.__new__(Connection)
        connection._pieces = []
        assert [line for piece in pieces for line in connection.lines(piece)] == wanted
        assert b"".join(connection._pieces) == b'{"c":2}'


# -- the byte server -------------------------------------------------------------------------------------------------------------


def play(folder: Path, steps: Any, said: bytes) -> tuple[int, bytes, list[dict[str, Any]]]:
    """Let the byte server play steps to this input; return its status, its stdout and its ledger."""
    (folder / "steps.json").write_text(json.dumps({"runs": [steps]}))
    argv = [sys.executable, "-m", "codex_fakes.stdio.byte_server", str(folder), "app-server"]
    done = subprocess.run(argv, input=said, capture_output=True, check=False, timeout=30)
    ledger = [json.loads(line) for line in (folder / "ledger.ndjson").read_bytes().splitlines()]
    return done.returncode, done.stdout, ledger


def test_the_byte_server_plays_its_steps(tmp_path: Path) -> None:
    steps = [
        {"expect": "a"},
        {"reply": {"n": 1}},
        {"write": {"eol": "\r\n", "ascii": True}},
        {"send": {"method": "é"}},
        {"write": {"split": 3}},
        {"together": [{"method": "x"}, {"method": "y"}]},
        {"raw": "no json\n"},
        {"expect_reply": 0},
        {"refuse": {"code": 1, "message": "no"}},
    ]
    said = b'{"id":"q","method":"a"}\n{"id":9,"method":"unknown"}\n{"id":0,"result":{}}\n'
    status, out, ledger = play(tmp_path, steps, said)
    assert status == 0
    lines = out.split(b"\n")
    assert b'{"id":"q","result":{"n":1}}' in lines
    assert b'{"method":"\\u00e9"}\r' in lines
    assert lines[-5:] == [b'{"method":"x"}', b'{"method":"y"}', b"no json", b'{"error":{"code":1,"message":"no"},"id":"q"}', b""]
    refused = [json.loads(line) for line in lines if b"unknown variant" in line]
    assert [(r["id"], r["error"]["code"]) for r in refused] == [(9, -32600)]
    assert [entry["got"].encode() for entry in ledger if "got" in entry] == said.splitlines()
    assert ledger[0]["argv"] == ["app-server"]
    assert ledger[-1] == {"eof": True}


def test_the_byte_server_waits_for_what_it_expects_in_any_order(tmp_path: Path) -> None:
    steps = [{"expect": "second"}, {"reply": 2}, {"expect": "first"}, {"reply": 1}]
    _, out, _ = play(tmp_path, steps, b'{"id":1,"method":"first"}\n{"id":2,"method":"second"}\n')
    assert out == b'{"id":2,"result":2}\n{"id":1,"result":1}\n'


@pytest.mark.parametrize("steps", [[{"dance": 1}], [{"send": {}, "exit": 1}], [{}]])
def test_a_step_that_is_none_is_a_sentence(tmp_path: Path, steps: Any) -> None:
    status, _, ledger = play(tmp_path, steps, b"")
    assert status == 2
    assert "is not a step" in ledger[-1]["lost"]


def test_the_byte_server_exits_as_told_and_counts_its_starts(tmp_path: Path) -> None:
    assert play(tmp_path, [{"exit": 7}], b"")[0] == 7
    status, _, ledger = play(tmp_path, [{"exit": 7}], b"")
    assert status == 2
    assert ledger[-1] == {"lost": "This is start 2, but the number of starts with steps is 1."}


@pytest.mark.parametrize("argv", [[], ["/nowhere/at/all"]])
def test_the_byte_server_without_steps_is_a_sentence(argv: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "codex_fakes.stdio.byte_server", *argv], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("byte_server: ")
    assert "Traceback" not in done.stderr


def test_fragments_reach_the_reader_one_by_one(tmp_path: Path) -> None:
    """What is split is read as it was split, without a pause: each piece is written once the one before has been read."""
    (tmp_path / "steps.json").write_text(json.dumps({"runs": [[{"write": {"split": 5}}, {"raw": "0123456789" * 10}]]}))
    argv = [sys.executable, "-m", "codex_fakes.stdio.byte_server", str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        pieces = [os.read(server.stdout.fileno(), 1 << 16) for _ in range(10)]
        server.stdin.close()
    assert len([piece for piece in pieces if len(piece) == 5]) >= 8  # a busy machine may let two pieces run together


# -- the tap --------------------------------------------------------------------------------------------------------------------


def test_the_tap_is_transparent_and_takes_down_both_sides(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.ndjson"
    script = "import sys\nfor line in sys.stdin.buffer: sys.stdout.buffer.write(line[::-1].strip() + b'\\n')\nsys.exit(3)"
    argv = [sys.executable, "-m", "codex_replay.shell.rpc.wire_tap", str(ledger), "--", sys.executable, "-c", script, "word"]
    done = subprocess.run(argv, input=b"abc\n\xff\xfe\n", capture_output=True, check=False, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (3, b"cba\n\xfe\xff\n", b"")
    entries = [json.loads(line) for line in ledger.read_bytes().splitlines()]
    assert [entry["got"].encode("utf-8", "surrogateescape") for entry in entries if "got" in entry] == [b"abc", b"\xff\xfe"]
    assert [entry["said"].encode("utf-8", "surrogateescape") for entry in entries if "said" in entry] == [b"cba", b"\xfe\xff"]
    assert (entries[0]["run"], entries[0]["argv"]) == (0, ["-c", script, "word"])


@pytest.mark.parametrize("argv", [[], ["x"], ["/tmp/x", "ls"]])
def test_a_tap_without_a_command_is_a_sentence(argv: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "codex_replay.shell.rpc.wire_tap", *argv], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("Give a file and a command")


def test_a_tap_on_a_command_that_is_not_there(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "codex_replay.shell.rpc.wire_tap", str(tmp_path / "l"), "--", "/nowhere/codex"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("/nowhere/codex cannot be started (No such file or directory)")
