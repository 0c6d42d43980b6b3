"""fake-codex as a client meets it: a program, its pipes, its environment, its exit status."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.core.wire.json_text import dumps
from codex_replay.shell.cassettes.file import CassetteReader, CassetteWriter

FAKE = str(Path(sys.executable).with_name("fake-codex"))
THREAD = "01a1fa03-daf3-7c40-a0be-c9e3464a450e"
INITIALIZE = {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "c", "version": "1"}}}
HELLO = {"id": 1, "result": {"userAgent": "c/0.92.0"}}


def line(message: Any) -> bytes:
    return message if isinstance(message, bytes) else dumps(message) + b"\n"


def write(path: Path, *entries: tuple[str, Any], times: list[float] | None = None) -> Path:
    """Write an authored cassette."""
    with CassetteWriter(path, Header("0.92.0", "sha256:none", "test", {"rpc": "authored"})) as writer:
        for i, (sender, message) in enumerate(entries):
            writer.write(Frame(0, times[i] if times else i / 1000, "rpc", sender, raw=line(message)))
    return path


def conversation(decision: str = "accept", thread: str = THREAD) -> list[tuple[str, Any]]:
    return [
        ("client", INITIALIZE),
        ("server", HELLO),
        ("client", {"id": 2, "method": "thread/start", "params": {"cwd": "/home/user/work"}}),
        ("server", {"id": 2, "result": {"thread": {"id": thread, "cwd": "/home/user/work"}}}),
        ("client", {"id": 3, "method": "turn/start", "params": {"threadId": thread, "input": []}}),
        ("server", {"id": 3, "result": {"turn": {"id": "0"}}}),
        ("server", {"id": 0, "method": "item/x/requestApproval", "params": {"threadId": thread, "turnId": "0"}}),
        ("client", {"id": 0, "result": {"decision": decision}}),
        ("server", {"method": "item/completed", "params": {"threadId": thread, "turnId": "0", "status": decision}}),
        ("server", {"method": "turn/completed", "params": {"threadId": thread, "turn": {"id": "0"}}}),
    ]


def said_by(sender: str, entries: list[tuple[str, Any]]) -> list[bytes]:
    return [line(message) for who, message in entries if who == sender]


def run(sent: bytes | list[bytes], *arguments: str, timeout: float = 20, **env: str | Path) -> subprocess.CompletedProcess[bytes]:
    """Run fake-codex with these lines on stdin and these FAKE_CODEX_ settings, given in lower case without the prefix."""
    environment = {"PATH": os.environ["PATH"], "HOME": "/nowhere"}
    environment |= {f"FAKE_CODEX_{name.upper()}" if name.islower() else name: str(value) for name, value in env.items()}
    data = sent if isinstance(sent, bytes) else b"".join(sent)
    return subprocess.run(
        [FAKE, *(arguments or ("app-server",))], input=data, capture_output=True, env=environment, timeout=timeout
    )


# -- replay -------------------------------------------------------------------------------------------------------------


def test_the_recorded_client_gets_the_recorded_bytes_in_one_write(tmp_path: Path) -> None:
    entries = conversation()
    done = run(said_by("client", entries), cassette=write(tmp_path / "a.ndjson", *entries), match="exact")
    assert done.stdout == b"".join(said_by("server", entries))
    assert (done.returncode, done.stderr) == (0, b"")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_however_stdin_is_cut_into_pieces_the_answers_are_the_same(tmp_path: Path, data: st.DataObject) -> None:
    entries = conversation()
    cassette = write(tmp_path / "a.ndjson", *entries)
    sent = b"".join(said_by("client", entries))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(sent) - 1), max_size=6)))
    env = {"PATH": os.environ["PATH"], "FAKE_CODEX_CASSETTE": str(cassette)}
    with subprocess.Popen([FAKE, "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True):
            process.stdin.write(sent[start:end])
        process.stdin.close()
        assert process.stdout.read() == b"".join(said_by("server", entries))
    assert process.returncode == 0


ODD = [
    ("pretty", b'{\t"id": 1,  "result": {"a" : [ ] } }\n'),
    ("crlf", b'{"id":1,"result":{}}\r\n'),
    ("numbers", b'{"id":1,"result":[1.0e5,1E+2,-0,0.10,123456789012345678901234567890]}\n'),
    ("escapes", b'{"id":1,"result":"\\u0041\\/\\ud83d\\ude00 \\ud800"}\n'),
    ("unicode", '{"id":1,"result":"\u2028 é \U0001f600"}\n'.encode()),
    ("id-last", b'{"error":{"code":-32600,"message":"id\\":1"},"id":1}\n'),
]


@pytest.mark.parametrize("raw", [raw for _, raw in ODD], ids=[name for name, _ in ODD])
def test_unusual_bytes_come_back_as_they_were_and_with_another_id_only_the_id_differs(tmp_path: Path, raw: bytes) -> None:
    cassette = write(tmp_path / "a.ndjson", ("client", INITIALIZE), ("server", raw))
    assert run(line(INITIALIZE), cassette=cassette).stdout == raw
    other = run(line({**INITIALIZE, "id": "other"}), cassette=cassette).stdout
    assert other == raw.replace(b'"id": 1', b'"id": "other"').replace(b'"id":1', b'"id":"other"')


def test_server_lines_that_are_no_json_or_no_utf8_come_back_too(tmp_path: Path) -> None:
    garbage = [b"\xff\xfe\n", b"not json\n", b"\n", b"unterminated"]
    cassette = write(tmp_path / "a.ndjson", ("client", INITIALIZE), ("server", HELLO), *(("server", raw) for raw in garbage))
    assert run(line(INITIALIZE), cassette=cassette).stdout == line(HELLO) + b"".join(garbage)


def test_a_client_that_never_reads_while_it_writes_does_not_stall_the_server(tmp_path: Path) -> None:
    """Both pipes full would be a deadlock: 4 MB go in before anything is read, and as much comes out."""
    big = "x" * 40_000
    entries: list[tuple[str, Any]] = [("client", INITIALIZE), ("server", HELLO)]
    for n in range(2, 102):
        entries += [
            ("client", {"id": n, "method": "thread/list", "params": {"cursor": big}}),
            ("server", {"id": n, "result": big}),
        ]
    done = run(said_by("client", entries), cassette=write(tmp_path / "a.ndjson", *entries))
    assert done.stdout == b"".join(said_by("server", entries))


def test_a_ten_megabyte_line_goes_both_ways(tmp_path: Path) -> None:
    big = {"id": 2, "method": "turn/start", "params": {"text": "y" * 10_000_000}}
    entries = [("client", INITIALIZE), ("server", HELLO), ("client", big), ("server", {"id": 2, "result": "z" * 10_000_000})]
    done = run(said_by("client", entries), cassette=write(tmp_path / "a.ndjson", *entries), match="exact")
    assert done.stdout == b"".join(said_by("server", entries))
    assert done.returncode == 0


def test_the_clients_reply_chooses_among_the_recordings_of_a_directory(tmp_path: Path) -> None:
    (tmp_path / "deck").mkdir()
    for n, decision in enumerate(("accept", "decline")):
        write(tmp_path / "deck" / f"{decision}.ndjson", *conversation(decision, f"01a1fa03-daf3-7c40-a0be-00000000000{n}"))
    for decision in ("accept", "decline"):
        entries = conversation(decision, "01a1fa03-daf3-7c40-a0be-000000000000")
        done = run(said_by("client", entries), cassette=tmp_path / "deck")
        assert done.stdout == b"".join(said_by("server", entries))
        assert done.returncode == 0


def test_live_directories_stand_in_the_answers_where_the_recording_has_its_own(tmp_path: Path) -> None:
    entries = conversation()
    sent = b"".join(said_by("client", entries)).replace(b"/home/user/work", b"/live/place")
    done = run(sent, cassette=write(tmp_path / "a.ndjson", *entries), match="exact", HOME="/live")
    assert done.returncode == 0
    assert b'"cwd":"/live/place"' in done.stdout


def test_with_a_pace_the_recorded_distance_is_kept(tmp_path: Path) -> None:
    delta = ("server", {"method": "item/x", "params": {"threadId": THREAD, "turnId": "0"}})
    entries = [*conversation()[:6], delta, delta]
    cassette = write(tmp_path / "a.ndjson", *entries, times=[0, 0, 0, 0, 0, 0, 0, 60.0])
    env = {"PATH": os.environ["PATH"], "FAKE_CODEX_CASSETTE": str(cassette), "FAKE_CODEX_PACE": "recorded"}
    with subprocess.Popen([FAKE, "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"".join(said_by("client", entries)))
        got = b""
        while got.count(b"\n") < 4:
            got += os.read(process.stdout.fileno(), 65536)
        # The last frame is due in a minute: nothing more comes now. At 10,000 times the speed it comes at once.
        assert not select.select([process.stdout], [], [], 0.2)[0]
        process.kill()
    assert got.count(b"item/x") == 1
    assert run(said_by("client", entries), cassette=cassette, pace="10000x").stdout == b"".join(said_by("server", entries))


# -- a miss is loud -----------------------------------------------------------------------------------------------------


def test_a_mismatch_is_answered_told_and_fails(tmp_path: Path) -> None:
    entries = conversation()
    wrong = {"id": "t", "method": "turn/start", "params": {"threadId": THREAD, "input": [1]}}
    sent = [*said_by("client", entries)[:2], line(wrong)]
    done = run(sent, cassette=write(tmp_path / "a.ndjson", *entries), match="exact")
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["id"] == "t"
    assert answer["error"]["code"] == -32001
    assert "the nearest is frame 5" in answer["error"]["message"]
    assert "params.input" in answer["error"]["message"]
    assert answer["error"]["data"]["nearest"]["frame"] == 5
    assert b"the nearest is frame 5" in done.stderr
    assert b"frame 5 of" in done.stderr
    assert b"came from the client, but did not match (see above): turn/start" in done.stderr
    assert done.returncode == 1


def test_frames_that_never_came_are_listed_and_fail(tmp_path: Path) -> None:
    entries = conversation()
    done = run(said_by("client", entries)[:1], cassette=write(tmp_path / "a.ndjson", *entries))
    assert done.stderr.count(b"never came from the client") == 3
    assert done.returncode == 1


def test_a_reply_that_was_not_recorded_ends_the_server(tmp_path: Path) -> None:
    sent = [*said_by("client", conversation())[:3], line({"id": 0, "result": {"decision": "maybe"}})]
    done = run(sent, cassette=write(tmp_path / "a.ndjson", *conversation()))
    assert b"result.decision" in done.stderr
    assert done.returncode == 1
    assert b"turn/completed" not in done.stdout


def test_the_level_of_methods_lets_other_content_pass(tmp_path: Path) -> None:
    entries = conversation()
    sent = b"".join(said_by("client", entries)).replace(b'"input":[]', b'"input":[{"type":"text","text":"something else"}]')
    cassette = write(tmp_path / "a.ndjson", *entries)
    assert run(sent, cassette=cassette).returncode == 0
    assert run(sent, cassette=cassette, match="exact").returncode == 1


def test_a_recording_that_was_cut_short_is_replayed_to_its_end_and_said_so(tmp_path: Path) -> None:
    entries = conversation()
    whole = write(tmp_path / "a.ndjson", *entries).read_bytes()
    cut = tmp_path / "cut.ndjson"
    cut.write_bytes(whole[: whole.rindex(b'{"n":10')] + b'{"n":10,"t":0.0')
    done = run(said_by("client", entries), cassette=cut)
    assert done.stdout == b"".join(said_by("server", entries)[:-1])
    assert b"cut short" in done.stderr


# -- bad input (REAL-81 to REAL-95): tests/real compares these with the binary itself -------------------------


def reply_to(sent: list[bytes], cassette: Path) -> list[Any]:
    return [json.loads(answer) for answer in run(sent, cassette=cassette).stdout.splitlines()]


SILENT = [
    b"not json\n", b'{"id":5,"method":"x"\n', b"\n", b"5\n", b"{}\n", b"[]\n", b'[{"id":5,"method":"getUserAgent"}]\n',
    b'\xef\xbb\xbf{"id":5,"method":"getUserAgent"}\n', b'{"id":5,"method":"getUserAgent"}{"id":6,"method":"getUserAgent"}\n',
    b'{"id":5,"method":5}\n', b'{"id":null,"method":"x"}\n', b'{"id":1.0,"method":"x"}\n', b'{"id":true,"method":"x"}\n',
    b'{"id":{},"method":"x"}\n', b'{"method":"no/such/notification"}\n', b'{"id":77,"result":{}}\n',
    b'{"id":9223372036854775808,"method":"x"}\n',
]  # fmt: skip


@pytest.mark.parametrize("raw", SILENT)
def test_the_fake_is_as_silent_as_the_real_server(tmp_path: Path, raw: bytes) -> None:
    cassette = write(tmp_path / "a.ndjson", ("client", INITIALIZE), ("server", HELLO))
    assert reply_to([line(INITIALIZE), raw], cassette) == [HELLO]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (
            {"id": 9, "method": "bogus/method"},
            "Invalid request: unknown variant `bogus/method`, expected one of `initialize`, `thread/start`",
        ),
        ({"id": 9, "method": "thread/start"}, "Invalid request: missing field `params`"),
        ({"id": 9, "method": "thread/start", "params": None}, "Invalid request: missing field `params`"),
        (
            {"id": 9, "method": "thread/start", "params": 5},
            "Invalid request: invalid type: integer `5`, expected struct ThreadStartParams",
        ),
        (
            {"id": 9, "method": "thread/start", "params": "x"},
            'Invalid request: invalid type: string "x", expected struct ThreadStartParams',
        ),
        (INITIALIZE | {"id": 9}, "Already initialized"),
    ],
)
def test_what_the_real_server_refuses_is_refused_in_its_words(tmp_path: Path, message: Any, text: str) -> None:
    cassette = write(tmp_path / "a.ndjson", ("client", INITIALIZE), ("server", HELLO))
    _, answer = reply_to([line(INITIALIZE), line(message)], cassette)
    assert answer["id"] == 9
    assert answer["error"]["code"] == -32600
    assert answer["error"]["message"].startswith(text)


def test_before_initialize_nothing_else_is_taken(tmp_path: Path) -> None:
    cassette = write(tmp_path / "a.ndjson", ("client", INITIALIZE), ("server", HELLO))
    early, hello = reply_to([line({"id": 8, "method": "thread/start", "params": {}}), line(INITIALIZE)], cassette)
    assert early == {"error": {"code": -32600, "message": "Not initialized"}, "id": 8}
    assert hello == HELLO


@pytest.mark.parametrize("raw", [b"not json\n", b"\n", b"[1,2]\n", b'["a","initialize"]\n', b'"s"\n', b"{}\n", b"5\n", b"null\n"])
def test_a_recorded_line_that_is_not_a_message_matches_the_same_line(tmp_path: Path, raw: bytes) -> None:
    cassette = write(tmp_path / "a.ndjson", ("client", raw), ("client", INITIALIZE), ("server", HELLO))
    done = run(raw + line(INITIALIZE), cassette=cassette, FAKE_CODEX_MATCH="exact")
    assert (done.returncode, done.stderr, done.stdout) == (0, b"", line(HELLO))


def test_invalid_utf8_ends_the_server_with_status_zero_and_the_last_line_needs_no_newline(tmp_path: Path) -> None:
    cassette = write(tmp_path / "a.ndjson", ("client", INITIALIZE), ("server", HELLO))
    assert run([line(INITIALIZE), b"\xff\xfe\n", line(INITIALIZE)], cassette=cassette).stdout == line(HELLO)
    assert run(line(INITIALIZE)[:-1], cassette=cassette).stdout == line(HELLO)


# -- capture ------------------------------------------------------------------------------------------------------------


def test_what_the_client_sent_is_captured_redacted_and_by_process(tmp_path: Path) -> None:
    entries = conversation()
    sent = b"".join(said_by("client", entries)).replace(b'"input":[]', b'"input":["Bearer abcdefghijklmnop0123456789abcdef"]')
    done = run(sent + b"{ odd }\r\n", cassette=write(tmp_path / "a.ndjson", *entries), capture=tmp_path / "got-{pid}.ndjson")
    assert done.returncode == 0
    (captured,) = tmp_path.glob("got-*.ndjson")
    assert captured.stem.removeprefix("got-").isdigit()
    with CassetteReader(captured) as reader:
        frames = list(reader)
    assert reader.footer is not None
    assert [frame.raw for frame in frames][:2] == said_by("client", entries)[:2]
    assert frames[-1].raw == b"{ odd }\r\n"
    assert b"abcdefghijklmnop0123456789abcdef" not in captured.read_bytes()


# -- arguments and settings ---------------------------------------------------------------------------------------------


def test_the_real_arguments_are_taken(tmp_path: Path) -> None:
    cassette = write(tmp_path / "a.ndjson", ("client", INITIALIZE), ("server", HELLO))
    arguments = [
        "-c",
        "model=x",
        "--enable",
        "a",
        "app-server",
        "-c",
        "a.b=c=d",
        "--config=x=y",
        "--disable",
        "b",
        "--listen",
        "stdio://",
    ]
    assert run(line(INITIALIZE), *arguments, "--analytics-default-enabled", cassette=cassette).stdout == line(HELLO)
    assert run(b"", "--version").stdout == b"codex-cli 0.92.0\n"


@pytest.mark.parametrize(
    "arguments", [("--bogus",), ("app-server", "--bogus"), ("app-server", "--listen", "ws://127.0.0.1:1"), (), ("tui",), ("-c",)]
)
def test_a_wrong_argument_is_a_sentence_and_status_two(arguments: tuple[str, ...]) -> None:
    environment = {"PATH": os.environ["PATH"]}
    done = subprocess.run([FAKE, *arguments], input=b"", capture_output=True, env=environment, timeout=120)
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.startswith(b"error: ")
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("option", "status", "words"),
    [
        (("--listen", "stdio://"), 2, b"error: unexpected argument '--listen' found"),
        (("--enable", "nonesuch"), 1, b"Error: Unknown feature flag: nonesuch"),
        (("--enable", "collab"), 0, b""),
    ],
)
def test_a_script_refuses_what_the_real_server_refuses(option: tuple[str, ...], status: int, words: bytes) -> None:
    for lenient in ("", "1"):
        environment = {"PATH": os.environ["PATH"], "FAKE_CODEX_LENIENT": lenient}
        done = subprocess.run([FAKE, "app-server", *option], input=b"", capture_output=True, env=environment, timeout=120)
        assert done.returncode == (0 if lenient else status)
        assert words in done.stderr


def _truncate_header(path: Path) -> None:
    path.write_bytes(b'{"cassette":1,"cod')


def _other_version(path: Path) -> None:
    path.write_bytes(b'{"cassette":99,"codex":"x","bundle":"","case":"","origin":{}}\n')


BROKEN: dict[str, Callable[[Path], object]] = {
    "absent": lambda path: None,
    "empty": lambda path: path.write_bytes(b""),
    "not json": lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\n"),
    "header cut": _truncate_header,
    "other version": _other_version,
    "no header": lambda path: path.write_bytes(b'{"n":1,"t":0,"seam":"rpc","from":"client","msg":{}}\n'),
    "empty directory": lambda path: path.mkdir(),
    "broken line": lambda path: path.write_bytes(write(path, *conversation()).read_bytes().replace(b'{"n":4,', b'{"n":four,')),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_cassette_is_a_sentence_with_its_place_and_status_two(tmp_path: Path, how: str) -> None:
    path = tmp_path / "broken.ndjson"
    BROKEN[how](path)
    done = run(said_by("client", conversation()), cassette=path)
    assert done.returncode == 2
    assert done.stderr.startswith(b"fake-codex: ")
    assert str(path).encode() in done.stderr
    assert b"Traceback" not in done.stderr
    if how == "broken line":
        assert b"line 5" in done.stderr


STREAM = [
    ("server", {"method": "item/x/delta", "params": {"threadId": THREAD, "turnId": "0", "part": {"delta": f"{{{n}"}}})
    for n in range(5)
]


@pytest.mark.parametrize("number", range(1, 16))
def test_a_line_that_lost_its_last_brace_is_no_frame_wherever_it_stands(tmp_path: Path, number: int) -> None:
    """In a stream as well, whose frames end in the braces of a value of their own (`test_replay` has them undecoded)."""
    entries = conversation()[:6] + STREAM + conversation()[6:]
    lines = write(tmp_path / "a.ndjson", *entries).read_bytes().splitlines(keepends=True)
    assert lines[number].endswith(b"}\n")
    lines[number] = lines[number][:-2] + b"\n"
    path = tmp_path / "broken.ndjson"
    path.write_bytes(b"".join(lines))
    done = run(said_by("client", entries), cassette=path)
    assert done.returncode == 2
    sentence = f"{path}, line {number + 1}: it is not JSON: a '}}' is missing at its end; record the cassette again"
    assert done.stderr.startswith(f"fake-codex: {sentence}".encode())
    assert all(json.loads(said) for said in done.stdout.splitlines())


def test_a_recording_does_not_race(tmp_path: Path) -> None:
    """A known setting in the wrong place is said to be that, and not a word that nobody knows."""
    done = run(b"", cassette=write(tmp_path / "a.ndjson", *conversation()), pace="race:1")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"FAKE_CODEX_PACE is 'race:1', which reorders the frames of a script" in done.stderr


@pytest.mark.parametrize(("name", "value"), [("pace", "quick"), ("pace", "0x"), ("pace", "-1x"), ("match", "roughly")])
def test_a_wrong_setting_is_a_sentence(tmp_path: Path, name: str, value: str) -> None:
    done = run(b"", cassette=write(tmp_path / "a.ndjson", *conversation()), **{name: value})
    assert done.returncode == 2
    assert f"FAKE_CODEX_{name.upper()} is '{value}'".encode() in done.stderr


def test_an_unwritable_capture_is_a_sentence(tmp_path: Path) -> None:
    done = run(b"", cassette=write(tmp_path / "a.ndjson", *conversation()), capture=tmp_path / "no" / "such" / "folder.ndjson")
    assert done.returncode == 2
    assert b"cannot be written" in done.stderr


def test_without_a_recording_it_improvises() -> None:
    done = run([line(INITIALIZE), line({"id": 2, "method": "thread/start", "params": {}})])
    hello, started, *_ = (json.loads(answer) for answer in done.stdout.splitlines())
    assert "userAgent" in hello["result"]
    assert started["result"]["thread"]["id"]
    assert done.returncode == 0


def test_a_client_that_goes_away_leaves_nothing_behind(tmp_path: Path) -> None:
    entries = [*conversation()[:4], *[("server", {"method": "x", "params": {"threadId": THREAD, "pad": "p" * 5000}})] * 2000]
    env = {"PATH": os.environ["PATH"], "FAKE_CODEX_CASSETTE": str(write(tmp_path / "a.ndjson", *entries))}
    with subprocess.Popen(
        [FAKE, "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, bufsize=0
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"".join(said_by("client", entries)))
        os.read(process.stdout.fileno(), 4096)
        process.stdout.close()
        process.stdin.close()
        assert b"Traceback" not in process.stderr.read()
        assert process.wait(10) in (0, 1)
