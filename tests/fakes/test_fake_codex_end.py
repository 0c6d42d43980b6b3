"""What fake-codex tells on stderr at its end, be that of its input or by a signal: what never came, what came otherwise."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.core.wire.json_text import dumps
from codex_replay.shell.cassettes.file import CassetteReader, CassetteWriter
from codex_replay.shell.codex.origin import bundle_of
from codex_replay.shell.files import version_data

SOURCE_ROOTS = [str(Path(__file__).resolve().parents[2] / name) for name in ("harness", "fake_server")]
THREAD = "01a1fa03-daf3-7c40-a0be-c9e3464a450e"
SETTINGS = "FAKE_CODEX_"
#: What a broken fake-codex does before it begins.
BROKEN = {
    "tells no difference": "from codex_fakes.replaying.app_server import AppServer as A; A._content_notes = lambda self: []",
    "keeps no difference": "from codex_fakes.replaying.app_server import Noting as N; N.consume = N.__mro__[1].consume",
    "writes no ending": "import codex_fakes.replaying.ending as e; e.append = lambda *_: None",
    "tells what is masked": "import codex_replay.core.replay.match as m; m.Matcher._same_leaf = lambda *_: False",
    "tells the client's name": (
        "import codex_fakes.replaying.app_server as a, codex_fakes.replaying.content_notes as o; "
        "a._compared = lambda value: value.get('params')\n"
        "o._differences = lambda matcher, ours, theirs: matcher.differences(ours.value, theirs.value)"
    ),
    "tells all": "import codex_fakes.replaying.content_notes as o; o.TOLD = 1000",
    "tells it raw": (
        "import codex_fakes.replaying.content_notes as o; o.escape = str\n"
        "import codex_replay.core.redact.sentence as s; s.visible = str"
    ),
    "tells it whole": "import codex_fakes.replaying.content_notes as o; o.SHOWN = 10**9",
    "takes any home": ("import codex_fakes.stdio.capture as c; c.redactor = lambda home: c.Redactor(paths={home: '/home/user'})"),
    "tells secrets": (
        "from codex_fakes.replaying.app_server import AppServer as A; A._clean = lambda self, live: live\n"
        "import codex_replay.core.redact.sentence as s; s.sentence = s.visible"
    ),
    "heeds no word": "import codex_fakes.replaying.app_server as a; a.quiet = lambda environ: False",
    "heeds no signal": "from codex_fakes.stdio.loop import Stdio; Stdio.install_signal_handlers = lambda self: None",
    "hears nobody out": "from codex_fakes.stdio.loop import Stdio; Stdio._hear_out = lambda self: None",
    "ends with a status": "import os, codex_fakes.stdio.loop as s; s.die = lambda number: os._exit(1)",
    "takes a signal back": "import _signal; s = _signal; get = s.getsignal; s.getsignal = lambda n: s.SIG_DFL",
    "waits for its reader": "import codex_fakes.stdio.loop as s; s._can_be_told = lambda: True",
    "waits after a second signal": (
        "from codex_fakes.stdio.loop import Stdio; old = Stdio._on_signal\n"
        "Stdio._on_signal = lambda self, *what: None if self._signal else old(self, *what)"
    ),
    "dies of its reader": (
        "from codex_fakes.stdio.loop import Stdio; import posix\n"
        "Stdio._flush = lambda self: [posix.write(1, raw) for raw in self._out]"
    ),
    "waits at no place": "from codex_fakes.stdio.loop import Stdio; Stdio._wait = lambda self: None",
    "says nothing of an empty setting": "import codex_fakes.fake_codex as f; f._say_empty = lambda settings: None",
    "takes both": "import codex_fakes.fake_codex as f; f._refuse_both = lambda settings: None",
    "names no bundle": "import codex_replay.protocol.data_tables as s; s.identity = lambda version: ''",
}


def fake(broken: str = "") -> list[str]:
    """The command of fake-codex, or of a broken one."""
    code = f"import sys; sys.path[:0] = {SOURCE_ROOTS!r}\n{BROKEN[broken] if broken else ''}\n"
    return [sys.executable, "-I", "-S", "-c", code + "from codex_fakes.fake_codex import main; sys.exit(main(sys.argv[1:]))"]


def environ(**settings: Any) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": "/nowhere",
        **{f"{SETTINGS}{name.upper()}": str(value) for name, value in settings.items()},
    }


def run(sent: list[Any], broken: str = "", home: str = "/nowhere", **settings: Any) -> tuple[int, list[str], list[Any]]:
    """Say these messages; return the exit status, the lines on stderr and the messages that came."""
    data = b"".join(dumps(message) + b"\n" for message in sent)
    env = {**environ(**settings), "HOME": home}
    done = subprocess.run([*fake(broken), "app-server"], input=data, capture_output=True, env=env, timeout=60)
    return done.returncode, done.stderr.decode().splitlines(), [json.loads(line) for line in done.stdout.splitlines()]


def conversation(prompt: Any = "Hi", turns: int = 1, cwd: str = "/home/user/work") -> list[tuple[str, Any]]:
    """A client's frames and a server's: a handshake, a thread, and turns."""
    said: list[tuple[str, Any]] = [
        ("client", {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "c", "version": "1"}}}),
        ("server", {"id": 1, "result": {"userAgent": "c/0.92.0"}}),
        ("client", {"id": 2, "method": "thread/start", "params": {"cwd": cwd}}),
        ("server", {"id": 2, "result": {"thread": {"id": THREAD, "cwd": cwd}}}),
    ]
    for n in range(3, 3 + turns):
        said += [
            ("client", {"id": n, "method": "turn/start", "params": {"threadId": THREAD, "input": prompt}}),
            ("server", {"id": n, "result": {"turn": {"id": str(n)}}}),
            ("server", {"method": "turn/completed", "params": {"threadId": THREAD, "turn": {"id": str(n)}}}),
        ]
    return said


def write(path: Path, entries: list[tuple[str, Any]], codex: str = "0.92.0") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with CassetteWriter(path, Header(codex, "sha256:none", "test", {"rpc": "authored"})) as writer:
        for i, (sender, message) in enumerate(entries):
            writer.write(Frame(0, i / 1000, "rpc", sender, raw=dumps(message) + b"\n"))
    return path


def of_client(entries: list[tuple[str, Any]]) -> list[Any]:
    return [message for sender, message in entries if sender == "client"]


def red(check: Any, broken: str, *arguments: Any) -> None:
    """Hold that a check notices the broken one, and for no other reason than what it says."""
    with pytest.raises(AssertionError):
        check(*arguments, broken=broken)


# -- what differed and was answered ---------------------------------------------------------------------------------------


def check_told(tmp_path: Path, broken: str = "") -> None:
    sent = of_client(conversation())
    sent[2]["params"] = {"threadId": "bogus", "input": "not a list"}
    status, told, came = run(sent, broken, cassette=write(tmp_path / "a.ndjson", conversation()))
    assert status == 0
    assert came[-1]["method"] == "turn/completed"
    assert len(told) == 2, told
    assert told[0] == (
        f"fake-codex: note: turn/start was answered like frame 5 of {tmp_path}/a.ndjson, although it differs at params.threadId: "
        f'recorded "{THREAD}", got "bogus"; params.input: recorded "Hi", got "not a list"'
    )
    assert "1 request " in told[1]
    assert "FAKE_CODEX_MATCH=exact" in told[1]


def test_what_differs_and_is_answered_is_told_at_the_end(tmp_path: Path) -> None:
    check_told(tmp_path)


@pytest.mark.parametrize("broken", ["tells no difference", "keeps no difference"])
def test_one_that_does_not_tell_is_noticed(tmp_path: Path, broken: str) -> None:
    red(check_told, broken, tmp_path)


def check_nothing_to_tell(tmp_path: Path, broken: str = "") -> None:
    """Ids, names and directories are a client's own; a uuid is bound to the recorded one."""
    recorded = conversation([{"type": "text", "text": THREAD.replace("c9e3", "c9e4")}])
    sent = of_client(conversation([{"type": "text", "text": THREAD.replace("c9e3", "c9e5")}], cwd="/somewhere/else"))
    sent[0]["params"]["clientInfo"] = {"name": "another", "title": "x", "version": "9"}
    for n, message in enumerate(sent):
        message["id"] = f"mine-{n}"
    status, told, _ = run(sent, broken, cassette=write(tmp_path / "a.ndjson", recorded))
    assert (status, told) == (0, [])


def test_what_is_a_clients_own_is_not_told(tmp_path: Path) -> None:
    check_nothing_to_tell(tmp_path)


@pytest.mark.parametrize("broken", ["tells what is masked", "tells the client's name"])
def test_one_that_tells_it_is_noticed(tmp_path: Path, broken: str) -> None:
    red(check_nothing_to_tell, broken, tmp_path)


def check_short(tmp_path: Path, broken: str = "") -> None:
    prompt = "same " * 100 + "Bearer abcdefghijklmnop0123456789abcdef \x1b[31m\x9b\u202e" + "x" * 5000
    sent = of_client(conversation(prompt, turns=8))
    status, told, _ = run(sent, broken, cassette=write(tmp_path / "a.ndjson", conversation("same " * 100 + "Hi", turns=8)))
    assert status == 0
    assert len(told) == 6, told
    assert all(line.isprintable() and len(line) < 500 for line in told)
    assert "8 requests " in told[5]
    assert "3 of them" in told[5]
    assert not any("abcdefghijklmnop" in line for line in told)
    assert all('Hi"' in line for line in told[:5]), "the place where they part is shown"


def test_five_are_told_and_the_rest_is_counted_cut_printable_and_without_secrets(tmp_path: Path) -> None:
    check_short(tmp_path)


@pytest.mark.parametrize("broken", ["tells all", "tells it raw", "tells it whole", "tells secrets"])
def test_one_that_tells_too_much_is_noticed(tmp_path: Path, broken: str) -> None:
    red(check_short, broken, tmp_path)


def check_quiet(tmp_path: Path, broken: str = "") -> None:
    sent = of_client(conversation("Something else"))
    status, told, _ = run(sent, broken, cassette=write(tmp_path / "a.ndjson", conversation()), match="method")
    assert (status, told) == (0, [])


def test_who_says_method_is_told_nothing(tmp_path: Path) -> None:
    check_quiet(tmp_path)


def test_one_that_heeds_no_word_is_noticed(tmp_path: Path) -> None:
    red(check_quiet, "heeds no word", tmp_path)


def test_of_a_deck_the_recording_that_is_replayed_is_compared(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / "deck" / f"{name}.ndjson", conversation(name))
    same = run(of_client(conversation("two")), cassette=tmp_path / "deck")
    assert same[:2] == (0, [])
    status, told, _ = run(of_client(conversation("three")), cassette=tmp_path / "deck")
    assert status == 0
    assert "params.input" in told[0]
    assert "one.ndjson" in told[0]


def test_what_a_recording_says_redacted_does_not_differ(tmp_path: Path) -> None:
    token = "Bearer abcdefghijklmnop0123456789abcdef"
    run(of_client(conversation(token)), capture=tmp_path / "captured.ndjson")
    with CassetteReader(tmp_path / "captured.ndjson") as reader:
        clean = list(reader)[2].value["params"]["input"]
    assert "abcdefghijklmnop" not in clean
    recorded = conversation(clean)
    assert run(of_client(conversation(token)), cassette=write(tmp_path / "a.ndjson", recorded))[:2] == (0, [])


def check_home(tmp_path: Path, home: str, broken: str = "") -> None:
    sent = of_client(conversation("Something else"))
    status, told, _ = run(sent, broken, home, cassette=write(tmp_path / "a.ndjson", conversation()))
    assert (status, len(told)) == (0, 2), told


@pytest.mark.parametrize("home", ["/", "", "/home", "relative"])
def test_whatever_the_home_a_note_changes_nothing(tmp_path: Path, home: str) -> None:
    check_home(tmp_path, home)


@pytest.mark.parametrize("home", ["/", "/home"])
def test_one_that_ends_for_a_home_is_noticed(tmp_path: Path, home: str) -> None:
    red(check_home, "takes any home", tmp_path, home)


# -- the version of the cassette ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codex", "start"),
    [
        ("0.92.0", ""),
        (
            "unknown",
            "fake-codex: The header names no Codex version ('unknown'), so no version's tables apply: each server frame ",
        ),
        ("", "fake-codex: The header names no Codex version (''), so no version's tables apply: each server frame "),
        (
            "0.116.0",
            "fake-codex: There is no causality, normalise or methods table for Codex 0.116.0 "
            "(`codex-replay codex add 0.116.0` makes it): ",
        ),
    ],
)
def test_a_version_without_tables_is_replayed_and_reported_once(tmp_path: Path, codex: str, start: str) -> None:
    sent = of_client(conversation("Ho"))
    for lines in (sent, sent[:1]):  # also where the client says no more than initialize
        status, told, came = run(lines, cassette=write(tmp_path / "a.ndjson", conversation(), codex))
        assert (status, "method" in came[-1]) == ((0, True) if lines is sent else (1, False))
        missing = [
            line for line in told if "note:" not in line and "never came" not in line and line.startswith("fake-codex: The")
        ]
        assert [line.startswith(start) for line in missing] == ([True] if start else [])


def test_a_version_without_causality_is_replayed_in_the_recorded_order(tmp_path: Path) -> None:
    """The 0.92.0 table lets the end of the turn go out before a client frame that merely stands before it."""
    frames = conversation()
    last = next(n for n in range(len(frames) - 1, -1, -1) if frames[n][0] == "server")
    frames.insert(last, ("client", {"method": "note"}))
    sent = [line for line in of_client(frames) if line.get("method") != "note"]
    for codex, method in (("0.92.0", frames[-1][1]["method"]), ("0.116.0", frames[last - 1][1].get("method"))):
        _, _, came = run(sent, cassette=write(tmp_path / "a.ndjson", frames, codex))
        assert came[-1].get("method") == method, codex


def fake_says(*words: str, cassette: Path) -> tuple[int, str, str]:
    done = subprocess.run([*fake(), *words], env=environ(cassette=cassette), capture_output=True, text=True, timeout=30)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("codex", "version", "told"),
    [
        ("0.116.0", "0.116.0", ""),
        ("unknown", "0.92.0", "fake-codex: The header names no Codex version ('unknown'); --version prints 0.92.0, which may"),
    ],
)
def test_the_version_is_that_of_the_recording(tmp_path: Path, codex: str, version: str, told: str) -> None:
    for cassette in (write(tmp_path / "a.ndjson", conversation(), codex), tmp_path):
        status, out, err = fake_says("--version", cassette=cassette)
        assert (status, out, err[: len(told)]) == (0, f"codex-cli {version}\n", told)
        assert bool(err) == bool(told)


@pytest.mark.parametrize(
    ("codex", "status", "told"),
    [
        ("0.92.0", 0, ""),
        (
            "0.116.0",
            2,
            "fake-codex: The schema bundle of Codex 0.116.0 is missing; `codex-replay codex install 0.116.0` and then",
        ),
        (
            "unknown",
            2,
            "fake-codex: The header names no Codex version ('unknown'), so no schemas are written. Name the version with",
        ),
    ],
)
def test_the_schemas_are_those_of_the_recorded_version_or_none(tmp_path: Path, codex: str, status: int, told: str) -> None:
    cassette = write(tmp_path / "a.ndjson", conversation(), codex)
    found, _, err = fake_says("app-server", "generate-json-schema", "--out", str(tmp_path / "out"), cassette=cassette)
    assert (found, err[: len(told)]) == (status, told)
    assert (tmp_path / "out").exists() == (status == 0)


@pytest.mark.parametrize(("codex", "status"), [("9.9.9", 2), ("0.92.0", 0)])
def test_the_header_chooses_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codex: str, status: int) -> None:
    """The table of version 9.9.9 is broken, which only a replay of that version notices."""
    data = tmp_path / "data"
    shutil.copytree(Path(version_data.path_of("0.92.0")), data / "0.92.0")
    (data / "9.9.9").mkdir()
    (data / "9.9.9" / "causality.json").write_text("no table")
    monkeypatch.setitem(BROKEN, "other data", f"import codex_replay.shell.files.version_data as s; s.DATA = {str(data)!r}")
    found = run(of_client(conversation()), "other data", cassette=write(tmp_path / "a.ndjson", conversation(), codex))
    assert found[0] == status, found


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
    """What the client had said before has come, and is not told as missing; a line it had not ended is none."""
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
