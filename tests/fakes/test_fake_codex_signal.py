"""fake-codex with a cassette: its ending as a line of JSON, the signals that end it, and its settings."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codex_replay.core.wire.json_text import dumps
from codex_replay.shell.cassettes.file import CassetteReader
from codex_replay.shell.codex.origin import bundle_of
from tests.fakes.replays import THREAD, conversation, environ, fake, of_client, red, run, write

# -- the ending as JSON ---------------------------------------------------------------------------------------------------


def endings(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def check_ending(tmp_path: Path, broken: str = "") -> None:
    """It has every frame, each run appends a line, and stderr has the same facts."""
    cassette = write(tmp_path / "a.ndjson", conversation(turns=25))
    sent = of_client(conversation())
    sent[1]["params"] = {"cwd": "/home/user/work", "model": "another"}
    status, told, _ = run([*sent, {"id": 9, "method": "config/read"}], broken, cassette=cassette, ending=tmp_path / "ending")
    assert status == 1
    run(of_client(conversation(turns=25)), broken, cassette=cassette, ending=tmp_path / "ending")
    first, second = endings(tmp_path / "ending") or [{}, {}]
    assert list(first) == ["pid", "cassette", "left_out", "otherwise", "unmatched"]
    assert first["cassette"] == str(cassette)
    assert [entry["message"] for entry in first["left_out"]] == ["turn/start"] * 24
    n = first["left_out"][0]["n"]
    assert f"fake-codex: frame {n} of {cassette} never came from the client: turn/start" in told
    assert [entry["n"] for entry in first["otherwise"]] == [3]
    assert f"fake-codex: note: {first['otherwise'][0]['text']}" in told
    assert [f"fake-codex: {text}" for text in first["unmatched"]] == [line for line in told if "config/read" in line]
    assert (second["left_out"], second["otherwise"], second["unmatched"]) == ([], [], [])
    assert second["pid"] != first["pid"]


def test_the_ending_is_a_line_of_json(tmp_path: Path) -> None:
    check_ending(tmp_path)


@pytest.mark.parametrize("early", [False, True])
def test_a_frame_that_came_but_was_refused_is_not_called_missing(tmp_path: Path, early: bool) -> None:
    """Neither one with another content, nor one that comes before another recorded frame."""
    cassette = write(tmp_path / "a.ndjson", conversation())
    first, second, third = of_client(conversation())
    sent = [first, third] if early else [first, second, {**third, "params": {"threadId": THREAD, "input": "Ho"}}]
    status, told, _ = run(sent, cassette=cassette, match="exact", ending=tmp_path / "ending")
    assert status == 1
    assert told[-1] == f"fake-codex: frame 5 of {cassette} came from the client, but did not match (see above): turn/start"
    assert "no recorded frame matches turn/start: the nearest is frame 5" in told[0]
    assert len(told) == (3 if early else 2), told
    (ending,) = endings(tmp_path / "ending")
    assert [each["refused"] for each in ending["left_out"]] == ([False, True] if early else [True])


def test_one_without_an_ending_is_noticed(tmp_path: Path) -> None:
    red(check_ending, "writes no ending", tmp_path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_an_ending(tmp_path: Path, number: int) -> None:
    with Client(cassette=write(tmp_path / "a.ndjson", conversation()), ending=tmp_path / "ending") as client:
        client.write_out(*of_client(conversation())[:2])
        client.until("id", 2)
        assert client.end(number)[0] == -number
    (ending,) = endings(tmp_path / "ending")
    assert ending["left_out"] == [{"n": 5, "message": "turn/start", "refused": False}]


def test_an_ending_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    status, told, _ = run([], cassette=write(tmp_path / "a.ndjson", conversation()), ending=tmp_path / "none" / "ending")
    assert status == 2
    assert "No such file" in told[-1]


# -- a signal -------------------------------------------------------------------------------------------------------------

ENDS = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT]


class Client:
    """A client that ends its server by a signal."""

    def __init__(self, broken: str = "", before: str = "", stderr: int = subprocess.PIPE, **settings: Any) -> None:
        command = [*fake(broken), "app-server"]
        if before:
            command = ["sh", "-c", f'{before}\nexec "$@"', "sh", *command]
        self.server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, env=environ(**settings), bufsize=0
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.kill()
        with contextlib.suppress(BrokenPipeError):
            self.server.communicate()

    def write_out(self, *messages: Any) -> None:
        assert self.server.stdin is not None
        self.server.stdin.write(b"".join(dumps(message) + b"\n" for message in messages))

    def until(self, key: str, value: Any) -> None:
        """Read on to the message of this id or method."""
        assert self.server.stdout is not None
        while json.loads(self.server.stdout.readline() or b'{"the server": "ended"}').get(key) != value:
            assert self.server.poll() is None, "the server ended"

    def end(self, number: int) -> tuple[int, list[str]]:
        """Send the signal; return the exit status and the lines on stderr."""
        self.server.send_signal(number)
        self.server.wait(60)  # with stdin open all the while
        told = self.server.communicate()[1] or b""
        return self.server.returncode, told.decode().splitlines()


def check_signal(tmp_path: Path, number: int, broken: str = "") -> None:
    recorded = conversation(turns=2)
    with Client(broken, cassette=write(tmp_path / "a.ndjson", recorded), capture=tmp_path / "captured.ndjson") as client:
        client.write_out(*of_client(recorded)[:2], {**of_client(recorded)[2], "params": {"threadId": THREAD, "input": "Ho"}})
        client.until("method", "turn/completed")
        status, told = client.end(number)
        assert status == -number
        assert len(told) == 3, told
        assert 'recorded "Hi", got "Ho"' in told[0]
        assert told[2] == f"fake-codex: frame 8 of {tmp_path}/a.ndjson never came from the client: turn/start"
        with CassetteReader(tmp_path / "captured.ndjson") as reader:
            assert len(list(reader)) == 3
        assert reader.footer is not None


@pytest.mark.parametrize("number", ENDS)
def test_a_signal_ends_it_as_the_real_one_but_not_in_silence(tmp_path: Path, number: int) -> None:
    check_signal(tmp_path, number)


@pytest.mark.parametrize("broken", ["heeds no signal", "ends with a status"])
def test_one_that_ends_otherwise_is_noticed(tmp_path: Path, broken: str) -> None:
    red(check_signal, broken, tmp_path, signal.SIGTERM)


def check_heard_out(tmp_path: Path, broken: str = "") -> None:
    """fake-codex does not report messages as missing that came before the signal. A line without an end is not a message."""
    recorded = conversation(turns=2)
    with Client(broken, cassette=write(tmp_path / "a.ndjson", recorded)) as client:
        client.write_out(*of_client(recorded)[:3])
        client.until("method", "turn/completed")
        client.server.send_signal(signal.SIGSTOP)
        assert os.waitid(os.P_PID, client.server.pid, os.WSTOPPED | os.WNOWAIT) is not None
        client.write_out(of_client(recorded)[3])
        assert client.server.stdin is not None
        client.server.stdin.write(b'{"id":')
        client.server.send_signal(signal.SIGTERM)
        assert client.end(signal.SIGCONT) == (-signal.SIGTERM, [])


def test_what_was_said_before_the_signal_has_come(tmp_path: Path) -> None:
    check_heard_out(tmp_path)


def test_one_that_hears_nobody_out_is_noticed(tmp_path: Path) -> None:
    red(check_heard_out, "hears nobody out", tmp_path)


def check_ignored(tmp_path: Path, broken: str = "") -> None:
    recorded = conversation()
    with Client(broken, before="trap '' HUP", cassette=write(tmp_path / "a.ndjson", recorded)) as client:
        client.write_out(of_client(recorded)[0])
        client.until("id", 1)
        client.server.send_signal(signal.SIGHUP)
        client.write_out(*of_client(recorded)[1:])
        client.until("method", "turn/completed")
        assert client.end(signal.SIGTERM) == (-signal.SIGTERM, [])


@pytest.mark.parametrize("broken", ["", "dies of its reader"])
def test_the_end_is_reported_though_nobody_reads_the_answers(tmp_path: Path, broken: str) -> None:
    """The server ends of itself, at a reply that was not recorded, while what it has to write has no reader any more."""
    ask = {"id": 0, "method": "item/commandExecution/requestApproval", "params": {"threadId": THREAD}}
    recorded = [*conversation(), ("server", ask), ("client", {"id": 0, "result": {"decision": "accept"}})]
    settings = {"cassette": write(tmp_path / "a.ndjson", recorded), "capture": tmp_path / "sent", "ending": tmp_path / "ending"}
    with Client(broken, **settings) as client:
        assert client.server.stdout is not None
        client.write_out(*of_client(conversation())[:2])
        client.until("id", 2)
        client.server.stdout.close()
        # In one write: the answers to the first wait to be written when the second ends the server.
        client.write_out(of_client(conversation())[2], {"id": 0, "result": {"decision": "decline"}})
        client.server.wait(60)
        assert client.server.stderr is not None
        told = client.server.stderr.read().decode()
    with CassetteReader(tmp_path / "sent") as reader:
        sent = list(reader)
    found = (client.server.returncode, "so the server stops" in told, "Broken pipe" in told, reader.footer is None, len(sent))
    assert (found == (1, True, False, False, 4)) == (not broken), found
    if not broken:
        (ending,) = endings(tmp_path / "ending")
        assert ending["left_out"] == [{"n": 9, "message": "result of request 0", "refused": True}]


def test_a_signal_that_the_client_has_it_ignore_stays_ignored(tmp_path: Path) -> None:
    check_ignored(tmp_path)


def test_one_that_takes_it_back_is_noticed(tmp_path: Path) -> None:
    with pytest.raises((AssertionError, BrokenPipeError)):
        check_ignored(tmp_path, broken="takes a signal back")


def _fill(pipe: int) -> None:
    os.set_blocking(pipe, False)
    for size in (4096, 1):
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(pipe, b"x" * size)
    os.set_blocking(pipe, True)


def check_nobody_reads(tmp_path: Path, broken: str = "", patience: float = 60) -> None:
    """Stderr is a pipe that is full: who waited for its reader would not end."""
    reads, writes = os.pipe()
    with open(reads, "rb"), open(writes, "wb"):
        _fill(writes)
        recorded = conversation()
        with Client(broken, stderr=writes, cassette=write(tmp_path / "a.ndjson", recorded)) as client:
            client.write_out(of_client(recorded)[0])
            client.until("id", 1)
            client.server.terminate()
            assert client.server.wait(patience) == -signal.SIGTERM


def test_who_does_not_read_is_not_waited_for(tmp_path: Path) -> None:
    check_nobody_reads(tmp_path)


def check_second(tmp_path: Path, broken: str = "", patience: float = 60) -> None:
    """There is room on stderr for a line, and not for all: a second signal ends what the first one lets wait."""
    reads, writes = os.pipe()
    with open(reads, "rb"), open(writes, "wb"):
        _fill(writes)
        recorded = conversation(turns=30)
        cassette = write(tmp_path / ("x" * 200) / "a.ndjson", recorded)
        with Client(broken, stderr=writes, cassette=cassette) as client:
            client.write_out(of_client(recorded)[0])
            client.until("id", 1)
            os.read(reads, 4096)
            client.server.send_signal(signal.SIGTERM)
            client.server.send_signal(signal.SIGHUP)
            assert client.server.wait(patience) in (-signal.SIGTERM, -signal.SIGHUP)


def test_a_second_signal_is_not_told_away(tmp_path: Path) -> None:
    check_second(tmp_path)


def check_hanging(tmp_path: Path, broken: str = "", patience: float = 60) -> None:
    (tmp_path / "script.json").write_text('["Hello."]')
    with Client(broken, script=tmp_path / "script.json", fault="hangs-in-turn") as client:
        client.write_out(*of_client(conversation())[:2])
        client.until("id", 2)
        client.server.terminate()
        assert client.server.wait(patience) == -signal.SIGTERM


def test_one_that_hangs_on_purpose_ends_by_a_signal(tmp_path: Path) -> None:
    check_hanging(tmp_path)


@pytest.mark.parametrize(
    ("check", "broken"),
    [
        (check_nobody_reads, "waits for its reader"),
        (check_second, "waits after a second signal"),
        (check_hanging, "waits at no place"),
    ],
)
def test_one_that_does_not_end_is_noticed(tmp_path: Path, check: Any, broken: str) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        check(tmp_path, broken=broken, patience=2)


# -- settings -------------------------------------------------------------------------------------------------------------


def check_empty(tmp_path: Path, broken: str = "") -> None:
    hello = of_client(conversation())[:1]
    (tmp_path / "script.json").write_text('["Hello."]')
    status, told, came = run(hello, broken, cassette="")
    assert (status, len(came), len(told)) == (0, 1, 1)
    assert told[0].startswith("fake-codex: FAKE_CODEX_CASSETTE is empty, so no recording is replayed")
    assert run(hello, broken, cassette="", script=tmp_path / "script.json")[:2] == (0, [])
    assert run(hello, broken)[:2] == (0, [])


def test_an_empty_cassette_is_none_and_said(tmp_path: Path) -> None:
    check_empty(tmp_path)


def test_one_that_does_not_say_so_is_noticed(tmp_path: Path) -> None:
    red(check_empty, "says nothing of an empty setting", tmp_path)


def check_both(tmp_path: Path, broken: str = "") -> None:
    script, cassette = tmp_path / "script.json", write(tmp_path / "a.ndjson", conversation())
    script.write_text('["Hello."]')
    status, told, came = run(of_client(conversation())[:1], broken, cassette=cassette, script=script)
    assert (status, len(told), came) == (2, 1, [])
    assert "FAKE_CODEX_CASSETTE and FAKE_CODEX_SCRIPT are both set" in told[0]


def test_a_cassette_and_a_script_are_one_too_many(tmp_path: Path) -> None:
    check_both(tmp_path)


def test_one_that_takes_both_is_noticed(tmp_path: Path) -> None:
    red(check_both, "takes both", tmp_path)


def check_capture(tmp_path: Path, broken: str = "") -> None:
    capture = tmp_path / "captured.ndjson"
    sent = of_client(conversation([{"type": "text", "text": "Hi"}]))
    sent[2]["params"]["threadId"] = "01a1fa03-daf3-7c40-a0be-c9e3464a450e"
    run(sent, broken, capture=capture)
    with CassetteReader(capture) as reader:
        assert reader.header.bundle == bundle_of("0.92.0") != "unknown"
    lint = [str(Path(sys.executable).with_name("codex-replay")), "cassette", "lint", str(capture)]
    done = subprocess.run(lint, capture_output=True, text=True, timeout=60)
    assert done.stdout == "1 cassette, 3 frames: all sound.\n", done.stdout
    assert done.returncode == 0


def test_what_is_captured_with_a_script_is_a_sound_cassette(tmp_path: Path) -> None:
    check_capture(tmp_path)


def test_one_that_names_no_bundle_is_noticed(tmp_path: Path) -> None:
    red(check_capture, "names no bundle", tmp_path)
