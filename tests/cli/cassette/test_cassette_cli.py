"""The cassette verbs as a user meets them: what they print, how they exit, and that bad input is answered in a sentence."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from codex_replay.cli.cassette.group import group
from codex_replay.cli.io.console import TOO_DEEP, sentences
from codex_replay.core.cassette.frames import Footer, Frame, Header, encode_footer, encode_frame, encode_header
from codex_replay.core.wire.json_text import dumps
from codex_replay.protocol import data_tables
from codex_replay.report.cassette_trace import cassette_trace
from codex_replay.shell.cassettes.file import CassetteReader, CassetteWriter
from codex_replay.shell.codex.origin import bundle_of

DATA = Path(__file__).parents[2] / "data"
CASSETTES = DATA / "cassettes"
SHELL = str(CASSETTES / "shell-a.ndjson")
TOKEN = "sk-" + "proj-" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0"


def run(*args: str | Path) -> Result:
    result = CliRunner().invoke(group, [str(arg) for arg in args])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def write(path: Path, *lines: bytes, origin: str = "authored", footer: bool = True, sender: str = "client") -> Path:
    with_header = Header("0.92.0", "unknown", "a/case", {"rpc": origin})
    writer = CassetteWriter(path, with_header)
    for number, line in enumerate(lines):
        writer.write(Frame(0, number / 10, "rpc", sender, "msg", line))
    if footer:
        writer.close()
    else:
        writer.abandon()
    return path


# ------------------------------------------------------------------------------------------------------------ bad input


@pytest.fixture
def bad_files(tmp_path: Path) -> dict[str, Path]:
    whole = (CASSETTES / "v1-a.ndjson").read_bytes()
    files = {
        "missing": tmp_path / "missing.ndjson",
        "empty": tmp_path / "empty.ndjson",
        "not JSON": tmp_path / "text.ndjson",
        "foreign version": tmp_path / "foreign.ndjson",
        "broken in the middle": tmp_path / "broken.ndjson",
    }
    files["empty"].write_bytes(b"")
    files["not JSON"].write_bytes(b"hello\nworld\n")
    files["foreign version"].write_bytes(whole.replace(b'{"cassette":1', b'{"cassette":9', 1))
    lines = whole.splitlines(keepends=True)
    files["broken in the middle"].write_bytes(b"".join([*lines[:5], b"oops\n", *lines[5:]]))
    return files


@pytest.mark.parametrize("kind", ["missing", "empty", "not JSON", "foreign version", "broken in the middle", "folder"])
@pytest.mark.parametrize("verb", ["lint", "show", "diff", "stats", "redact"])
def test_a_bad_file_is_answered_in_a_sentence(verb: str, kind: str, bad_files: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    path = bad_files.get(kind, tmp_path / "folder")
    rest: list[str | Path] = {"diff": [SHELL], "redact": ["--out", tmp_path / "out.ndjson"]}.get(verb, [])  # type: ignore[assignment]
    result = run(verb, path, *rest)
    assert result.exit_code == (1 if (verb, kind) == ("lint", "broken in the middle") else 2)
    said = result.stderr or result.stdout
    assert str(path) in said
    assert "Traceback" not in result.output
    assert not list(tmp_path.glob("out*")), "nothing half-written stays behind"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_answered_in_a_sentence(tmp_path: Path) -> None:
    path = write(tmp_path / "c.ndjson")
    path.chmod(0)
    assert run("show", path).exit_code == 2


@pytest.mark.parametrize("verb", ["show", "diff", "stats", "redact", "lint"])
def test_a_truncated_cassette_is_read_to_its_end_and_said_so(verb: str, tmp_path: Path) -> None:
    path = tmp_path / "cut.ndjson"
    path.write_bytes(Path(SHELL).read_bytes()[:-200])
    rest = {"diff": [str(path)], "redact": ["--out", str(tmp_path / "out.ndjson")]}.get(verb, [])
    result = run(verb, path, *rest)
    assert result.exit_code == (1 if verb == "lint" else 0)
    assert "cut short" in result.output + result.stderr


# ----------------------------------------------------------------------------------------------------------------- lint


def test_the_samples_are_sound() -> None:
    result = run("lint", CASSETTES)
    assert result.exit_code == 0, result.output
    assert "all sound" in result.output


HEADER = encode_header(Header("0.92.0", "unknown", "c", {"rpc": "authored", "http": "authored"}))
ASK = encode_frame(Frame(1, 0.0, "rpc", "client", "msg", b'{"id":1,"method":"x"}\n'))
ANSWER = encode_frame(Frame(2, 0.1, "rpc", "server", "msg", b'{"id":1,"result":{}}\n'))
REQUEST = encode_frame(Frame(1, 0.0, "http", "client", "request", b"", {"method": "GET", "path": "/", "headers": []}, 1))
END = encode_footer(Footer(2))
AS_TEXT = ASK.replace(b'"msg":{"id":1,"method":"x"}', b'"text":"{\\"id\\":1,\\"method\\":\\"x\\"}\\n"')
IN_BASE64 = encode_frame(Frame(1, 0.0, "rpc", "client", "msg", b"\xff token=" + TOKEN.encode() + b"\n"))
NOTICE = encode_frame(Frame(2, 0.1, "rpc", "server", "msg", b'{"method":"y"}\n'))
TOLD = encode_frame(Frame(2, 0.1, "rpc", "client", "msg", b'{"method":"initialized"}\n'))
CLOSE = encode_frame(Frame(1, 0.0, "http", "server", "close", b"", "end", 1))
UPGRADED = encode_frame(Frame(2, 0.0, "http", "server", "response", b"", {"status": 101, "headers": []}, 1))
CLOSED = encode_frame(Frame(3, 0.0, "http", "server", "close", b"", "end", 1))
SLOWLY = encode_frame(Frame(2, 0.0, "http", "server", "close", b"", "slowly", 1))
OF_0_92 = encode_header(Header("0.92.0", bundle_of("0.92.0"), "c", {"rpc": "authored"}))
OF_NONE = encode_header(Header("0.92.0", "sha256:" + "0" * 64, "c", {"rpc": "authored"}))
UNSOUND: dict[str, tuple[str, list[bytes]]] = {
    "a gap in the numbers": ("numbering", [HEADER, ASK, ANSWER.replace(b'"n":2', b'"n":3'), END]),
    "time runs backwards": ("time", [HEADER, ASK.replace(b'"t":0.0', b'"t":0.5'), ANSWER, END]),
    "a footer that counts wrong": ("footer", [HEADER, ASK, ANSWER, encode_footer(Footer(3))]),
    "lines after the footer": ("footer", [HEADER, ASK, ANSWER, END, ASK]),
    "no footer": ("truncated", [HEADER, ASK, ANSWER]),
    "a message in another form": ("form", [HEADER, ASK.replace(b'{"id":1,', b'{"id": 1,'), ANSWER, END]),
    "text where msg would do": ("form", [HEADER, AS_TEXT, ANSWER, END]),
    "keys in another order": ("form", [HEADER, ASK.replace(b'"n":1,"t":0.0,', b'"t":0.0,"n":1,'), ANSWER, END]),
    "a header with spaces": ("form", [HEADER.replace(b":", b": "), ASK, ANSWER, END]),
    "no origin": ("origin", [HEADER.replace(b'"rpc":"authored",', b""), ASK, ANSWER, END]),
    "an unknown origin": ("schema", [HEADER.replace(b'"rpc":"authored"', b'"rpc":"guessed"'), ASK, ANSWER, END]),
    "a negative time": ("schema", [HEADER, ASK.replace(b'"t":0.0', b'"t":-1.0'), ANSWER, END]),
    "a reply to nothing": ("pairing", [HEADER, ASK, ANSWER.replace(b'"id":1', b'"id":9'), END]),
    "a reply of another type of id": ("pairing", [HEADER, ASK, ANSWER.replace(b'"id":1', b'"id":"1"'), END]),
    "two replies": ("pairing", [HEADER, ASK, ANSWER, ANSWER.replace(b'"n":2', b'"n":3'), encode_footer(Footer(3))]),
    "a secret": ("secret", [HEADER, ASK.replace(b'"x"', b'"x","params":{"token":"%s"}' % TOKEN.encode()), ANSWER, END]),
    "a secret in the header": ("secret", [HEADER.replace(b'"case":"c"', b'"case":"%s"' % TOKEN.encode()), ASK, ANSWER, END]),
    "a secret in base64": ("secret", [HEADER, IN_BASE64, NOTICE, END]),
    "a line that is none": ("line", [HEADER, ASK, b"oops\n", ANSWER, END]),
    "a connection that begins with an answer": ("connection", [HEADER, CLOSE, encode_footer(Footer(1))]),
    "a version that is not its bundle's": ("version", [OF_0_92.replace(b'"0.92.0"', b'"0.116.0"'), ASK, ANSWER, END]),
    "a bundle that is not its version's": ("version", [OF_NONE, ASK, ANSWER, END]),
    "an upgrade without its messages": ("unrecorded", [HEADER, REQUEST, UPGRADED, CLOSED, encode_footer(Footer(3))]),
    "an unknown way to close": ("schema", [HEADER, REQUEST, SLOWLY, END]),
}  # fmt: skip


@pytest.mark.parametrize("name", UNSOUND)
def test_lint_finds_each_fault(name: str, tmp_path: Path) -> None:
    check, lines = UNSOUND[name]
    path = tmp_path / "c.ndjson"
    path.write_bytes(b"".join(lines))
    result = run("lint", path)
    assert result.exit_code == 1, result.output
    assert f": {check}: " in result.output
    assert TOKEN not in result.output
    found = json.loads(run("lint", "--json", path).stdout)
    assert not found["ok"]
    assert check in {finding["check"] for finding in found["files"][0]["findings"]}


def test_a_line_that_was_taken_out_is_told_once(tmp_path: Path) -> None:
    """And not of each frame that follows, of which there may be thousands."""
    path = tmp_path / "c.ndjson"
    frames = [TOLD.replace(b'"n":2', b'"n":%d' % n) for n in range(3, 40)]
    path.write_bytes(b"".join([HEADER, ASK, ANSWER, *frames[1:], encode_footer(Footer(38))]))
    assert run("lint", path).output.splitlines() == [
        f"{path}, line 4 (frame 4): numbering: the frame has the number 4, but frame 2 precedes it",
        "1 cassette, 38 frames: 1 with errors.",
    ]
    path.write_bytes(b"".join([HEADER, TOLD, encode_footer(Footer(1))]))
    assert "line 2 (frame 2): numbering: the frame has the number 2, but it is the first" in run("lint", path).output


def test_of_a_line_that_is_no_json_nothing_else_is_told(tmp_path: Path) -> None:
    """Nothing holds for it: neither a form, nor a schema."""
    path = tmp_path / "c.ndjson"
    path.write_bytes(OF_0_92 + NOTICE.replace(b'"n":2', b'"n":1').replace(b"}}\n", b"}\n") + TOLD + END)
    result = run("lint", path)
    first, *rest = result.output.splitlines()
    assert first.startswith(f"{path}, line 2 (frame 1): schema: the line is not JSON (")
    assert rest == ["1 cassette, 2 frames: 1 with errors."]


def test_the_lint_samples_are_sound_without_their_fault(tmp_path: Path) -> None:
    path = tmp_path / "c.ndjson"
    path.write_bytes(HEADER + ASK + ANSWER + END)
    assert run("lint", path).exit_code == 0


def test_lint_tells_a_missing_reply_only_as_a_note(tmp_path: Path) -> None:
    path = write(tmp_path / "c.ndjson", b'{"id":1,"method":"turn/interrupt"}\n')
    assert "no reply" not in run("lint", path).output
    result = run("lint", path, "--notes")
    assert result.exit_code == 0
    assert "turn/interrupt of the client has no reply" in result.output


# ----------------------------------------------------------------------------------------------------------------- show


def test_show_is_a_plain_timeline_in_a_pipe() -> None:
    result = run("show", SHELL)
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0] == "tests/shell: codex 0.92.0; rpc authored, http authored"
    assert lines[1].split()[:6] == ["1", "0.0032", "rpc", "->", "initialize", "#1"]
    assert any("<- result #2 of thread/start" in line for line in lines)
    assert any("-> POST /v1/responses" in line for line in lines)
    assert any("<- event response.completed" in line for line in lines)
    assert "\x1b" not in result.output
    assert all(len(line) <= 160 for line in lines)


def test_show_one_frame_and_only_some() -> None:
    result = run("show", SHELL, "--frame", "2")
    assert '"userAgent": "lab/0.92.0' in result.output
    assert result.output.count("rpc") == 1
    result = run("show", SHELL, "--grep", "turn/(start|completed)")
    assert len(result.output.splitlines()) >= 2
    assert run("show", SHELL, "--frame", "9999").exit_code == 2
    assert run("show", SHELL, "--grep", "(").exit_code == 2
    assert "no frame matches" in run("show", SHELL, "--grep", "nowhere to be seen").stderr


def test_show_never_lets_a_recording_speak_to_the_terminal(tmp_path: Path) -> None:
    evil = write(
        tmp_path / "c.ndjson",
        b"\x1b[2J\x07 garbage\n",
        '{"method":"a\\u001b[31m\u009b31m","params":{"x":"\\u001b]0;t\\u0007"}}\n'.encode(),
    )
    for mode in ([], ["--full"]):
        output = run("show", evil, *mode).output
        assert not {"\x1b", "\x07", "\x9b"} & set(output)
        assert "garbage" in output


def _program(*args: str) -> list[str]:
    return [sys.executable, "-c", "from codex_replay.cli.main import main; main()", "cassette", *args]


def test_a_closed_pipe_ends_show_in_silence(tmp_path: Path) -> None:
    path = write(tmp_path / "long.ndjson", *[b'{"method":"m","params":{"n":%d}}\n' % n for n in range(20_000)])
    with subprocess.Popen(_program("show", str(path)), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 0


@pytest.mark.parametrize(("verb", "status"), [("show", 0), ("stats", 0), ("lint", 0)])
def test_a_stdout_that_is_closed_from_the_start_leaves_the_status(tmp_path: Path, verb: str, status: int) -> None:
    path = write(tmp_path / "a.ndjson", b'{"method":"m"}\n')
    command = shlex.join(_program(verb, str(path))) + " >&-"
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (status, "")


# ----------------------------------------------------------------------------------------------------------- diff, stats


@pytest.mark.parametrize("scenario", ["shell", "patch", "v1", "v2"])
def test_diff_of_two_runs_is_equal(scenario: str) -> None:
    result = run("diff", CASSETTES / f"{scenario}-a.ndjson", CASSETTES / f"{scenario}-b.ndjson")
    assert (result.exit_code, result.output[:25]) == (0, "Equal after normalisation")


def test_diff_prints_the_smallest_difference_first(tmp_path: Path) -> None:
    changed = tmp_path / "changed.ndjson"
    data = Path(SHELL).read_bytes().replace(b'"status":"completed","error":null', b'"status":"failed","error":null')
    changed.write_bytes(data)
    result = run("diff", SHELL, changed)
    assert result.exit_code == 1
    assert result.output.splitlines()[1].strip() == (
        "rpc< turn/completed: frame 74 of the first and frame 74 of the second differ at "
        '$.msg.params.turn.status: "completed" and "failed"'
    )
    found = json.loads(run("diff", "--json", SHELL, changed).output)
    assert (found["equal"], found["differences"][0]["path"]) == (False, "$.msg.params.turn.status")


def test_of_an_id_that_is_another_throughout_the_first_place_is_told(tmp_path: Path) -> None:
    """What else differs is not drowned in it; two ids are two causes, and a value that is no id is told each time."""
    frames = [
        {"method": "a", "params": {"turnId": turn, "turn": {"id": turn}, "item": item, "n": [n, str(n)]}}
        for n, (turn, item) in enumerate([("2", "x"), ("2", "x"), ("4", "x")])
    ]
    paths = []
    for name, changes in (("a", {}), ("b", {'"2"': '"3"', '"4"': '"5"', '"x"': '"y"'})):
        lines = [dumps(frame) + b"\n" for frame in frames]
        for old, new in changes.items():
            lines = [line.replace(f":{old}".encode(), f":{new}".encode()) for line in lines]
        paths.append(write(tmp_path / f"{name}.ndjson", *lines, sender="server"))
    head, *told = run("diff", *paths).output.splitlines()
    assert head == "Different: 9 difference(s) between 3 and 3 events, the smallest first."
    of_ids = [line for line in told if "Id" in line or ".id" in line]
    assert [line.partition("frame ")[2][:1] + line.partition(": ")[2].rpartition(": ")[2] for line in of_ids] == [
        '1"2" and "3" (and in 3 more places with this id)',
        '3"4" and "5" (and in 1 more place with this id)',
    ]
    assert len(told) == 5
    assert run("diff", "--max", "1", *paths).output.splitlines()[-1] == "  ... and 5 more (--max)."
    assert len(json.loads(run("diff", "--json", *paths).output)["differences"]) == 9


def test_what_follows_a_footer_is_said_by_every_verb(tmp_path: Path) -> None:
    twice = tmp_path / "twice.ndjson"
    twice.write_bytes(Path(SHELL).read_bytes() * 2)
    for verb in (["show"], ["stats"], ["diff", SHELL], ["redact", "--out", tmp_path / "out.ndjson"]):
        result = run(*verb, twice)
        assert result.exit_code == 2, verb
        assert "line 77: more lines follow the footer" in result.output, verb


def test_nothing_is_not_equal_to_nothing(tmp_path: Path) -> None:
    empty = write(tmp_path / "a.ndjson")
    result = run("diff", empty, empty)
    assert result.exit_code == 2
    assert "so there is nothing to compare" in result.output


def test_redacting_keeps_the_file_that_is_there(tmp_path: Path) -> None:
    there = tmp_path / "there.ndjson"
    there.write_bytes(b"another recording")
    assert run("redact", SHELL, "--out", there).exit_code == 2
    assert there.read_bytes() == b"another recording"
    assert run("redact", SHELL, "--out", there, "--force").exit_code == 0
    assert there.read_bytes() != b"another recording"


def test_stats_count_everything() -> None:
    result = run("stats", SHELL)
    assert "74 frames" in result.output
    assert "whole" in result.output
    (counted,) = json.loads(run("stats", "--json", SHELL).output)
    with CassetteReader(SHELL) as reader:
        frames = list(reader)
    assert counted["frames"] == len(frames) == sum(row["frames"] for row in counted["counts"])
    assert counted["duration"] == frames[-1].t
    assert {
        key: value
        for key, value in next(row for row in counted["counts"] if row["what"] == "turn/start").items()
        if key != "bytes"
    } == {"seam": "rpc", "from": "client", "what": "turn/start", "frames": 1}


# --------------------------------------------------------------------------------------------------------------- redact


def test_redact_takes_secrets_out_and_leaves_the_rest(tmp_path: Path) -> None:
    dirty = write(
        tmp_path / "dirty.ndjson", b'{"id":1,"method":"x","params":{"token":"%s"}}\n' % TOKEN.encode(), b"odd  line of acme\r\n"
    )
    clean = tmp_path / "clean.ndjson"
    assert run("redact", dirty, "--out", clean, "--literal", "acme").exit_code == 0
    data = clean.read_bytes()
    assert TOKEN.encode() not in data
    assert b"acme" not in data
    with CassetteReader(clean) as reader:
        assert [frame.raw for frame in reader][1] == b"odd  line of redacted-1\r\n"
    assert dirty.read_bytes().count(TOKEN.encode()) == 1
    assert run("lint", clean).exit_code == 0


def test_redact_changes_nothing_where_there_is_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out.ndjson"
    assert run("redact", SHELL, "--out", out).exit_code == 0
    assert out.read_bytes() == Path(SHELL).read_bytes()


def test_redact_in_place_is_for_authored_cassettes_only(tmp_path: Path) -> None:
    line = b'{"id":1,"method":"x","params":{"token":"%s"}}\n' % TOKEN.encode()
    authored = write(tmp_path / "authored.ndjson", line)
    recorded = write(tmp_path / "recorded.ndjson", line, origin="recorded")
    assert run("redact", authored, "--in-place").exit_code == 0
    assert TOKEN.encode() not in authored.read_bytes()
    before = recorded.read_bytes()
    assert run("redact", recorded, "--in-place").exit_code == 2
    assert run("redact", recorded, "--out", recorded).exit_code == 2
    assert recorded.read_bytes() == before
    assert run("redact", authored).exit_code == 2
    assert run("redact", authored, "--in-place", "--out", "x").exit_code == 2
    assert run("redact", authored, "--in-place", "--literal", "").exit_code == 2


# --------------------------------------------------------------------------------------------------------------- import


@pytest.mark.parametrize("form", ["tee", "proto-events"])
def test_import_writes_a_sound_cassette_without_secrets(form: str, tmp_path: Path) -> None:
    out = tmp_path / "c.ndjson"
    result = run("import", "--format", form, DATA / f"{form}.ndjson", "--out", out, "--authored")
    assert result.exit_code == 0, result.output
    assert "cut for size" in result.stderr
    with CassetteReader(out) as reader:
        assert (reader.header.codex, reader.header.origin, reader.header.extra) == (
            "0.92.0",
            {"rpc": "authored"},
            {"imported": form},
        )
        assert sum(not frame.whole for frame in reader) == (1 if form == "tee" else 2)
    assert b"sk-proj-" not in out.read_bytes()
    # The sample's server says what no server would: that is the bundle's affair, and of the form there is nothing to say.
    (file,) = json.loads(run("lint", "--json", out).stdout)["files"]
    assert [f for f in file["findings"] if f["level"] == "error" and f["check"] not in ("valid", "known")] == []
    assert "[cut]" in run("show", out).output


def test_import_calls_a_log_recorded_unless_told_otherwise(tmp_path: Path) -> None:
    out = tmp_path / "c.ndjson"
    assert (
        run("import", "--format", "tee", DATA / "tee.ndjson", "--out", out, "--codex", "0.1.0", "--case", "mine").exit_code == 0
    )
    with CassetteReader(out) as reader:
        assert (reader.header.codex, reader.header.case, reader.header.origin) == ("0.1.0", "mine", {"rpc": "recorded"})


@pytest.mark.parametrize(
    "arguments",
    [
        ["--format", "tee", DATA / "proto-events.ndjson"],
        ["--format", "proto-events", DATA / "tee.ndjson"],
        ["--format", "tee", DATA / "nowhere.ndjson"],
        ["--format", "tee", DATA],
        ["--format", "word", DATA / "tee.ndjson"],
    ],
)
def test_an_import_that_fails_leaves_nothing_and_replaces_nothing(arguments: list[str | Path], tmp_path: Path) -> None:
    out = tmp_path / "c.ndjson"
    out.write_text("mine")
    result = run("import", *arguments, "--out", out, "--force")
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["c.ndjson"]
    assert out.read_text() == "mine"


def test_an_output_that_cannot_be_written_is_answered_in_a_sentence(tmp_path: Path) -> None:
    for out in (tmp_path, tmp_path / "no" / "where.ndjson"):
        result = run("redact", SHELL, "--out", out)
        assert result.exit_code == 2
        assert result.stderr.startswith("codex-replay: ")
        assert str(out) in result.stderr


def test_import_never_writes_over_what_it_reads(tmp_path: Path) -> None:
    log = tmp_path / "tee.log"
    log.write_text('{"t":0,"dir":"c2s","msg":{"id":1,"method":"initialize"}}\n')
    link = tmp_path / "link"
    link.symlink_to(log)
    for out in (log, link):
        done = run("import", log, "--format", "tee", "--out", out)
        assert (done.exit_code, log.stat().st_size) == (2, 57)
        assert "this is the file to import" in done.output


def test_importing_keeps_the_file_that_is_there(tmp_path: Path) -> None:
    out = tmp_path / "out.ndjson"
    out.write_text("mine")
    result = run("import", DATA / "tee.ndjson", "--format", "tee", "--out", out)
    assert (result.exit_code, out.read_text()) == (2, "mine")
    assert "was not changed" in result.stderr
    assert run("import", DATA / "tee.ndjson", "--format", "tee", "--out", out, "--force").exit_code == 0
    assert out.read_text() != "mine"


def test_import_takes_out_what_was_streamed_in_pieces_and_literals_too(tmp_path: Path) -> None:
    log = tmp_path / "tee.log"
    with log.open("w") as lines:
        for piece in ("It is ghp_", "abcdefghijklmnop", "qrstuvwxyzABCDEF6789 of Blue", "bird."):
            params = {"threadId": "t", "turnId": "0", "itemId": "m", "delta": piece}
            said = {"t": 0, "dir": "s2c", "msg": {"method": "item/agentMessage/delta", "params": params}}
            lines.write(json.dumps(said) + "\n")
    out = tmp_path / "c.ndjson"
    assert run("import", log, "--format", "tee", "--out", out, "--literal", "Bluebird").exit_code == 0
    with CassetteReader(out) as reader:
        assert [frame.value["params"]["delta"] for frame in reader] == ["It is ghp_redacted-1", "", " of redacted-1", "."]
    assert ": secret: " not in run("lint", out, "--literal", "Bluebird").output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.ndjson", "tee.log"]


def test_lint_names_the_place_of_a_broken_line_once(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ndjson", b'{"method":"a"}\n', b'{"method":"b"}\n')
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b'{"n":1,\n' + b"".join(lines[2:]))
    done = run("lint", path)
    assert done.exit_code == 1
    assert done.output.count(f"{path}, line 2") == 1
    assert "line 2 column" not in done.output


OPTION = " `--codex V` uses the table of V."


def test_diff_reports_that_it_used_the_tables_of_another_version(tmp_path: Path) -> None:
    source = Path(__file__).resolve().parents[3] / "cassettes" / "app_server" / "test_v2" / "text_turn.ndjson"
    path = tmp_path / "other.ndjson"
    path.write_bytes(source.read_bytes().replace(b'"codex":"0.92.0"', b'"codex":"0.93.0"', 1))
    unknown = tmp_path / "unknown.ndjson"
    unknown.write_bytes(source.read_bytes().replace(b'"codex":"0.92.0"', b'"codex":"garbage"', 1))
    other = "codex-replay: There is no normalise table for Codex 0.93.0 (`codex-replay codex add 0.93.0` makes it): times, "
    both = (
        "codex-replay: The runs are of {} and {}; both are normalised with the table of 0.92.0. `--codex V` uses the table of V."
    )
    for a, b, told in (
        (source, source, ""),
        (path, source, both.format("Codex 0.93.0", "Codex 0.92.0")),
        (source, path, both.format("Codex 0.92.0", "Codex 0.93.0")),
        (source, unknown, both.format("Codex 0.92.0", "no known version")),
        (path, path, other),
        (unknown, unknown, "codex-replay: The header names no Codex version ('garbage'), so no version's tables apply: times,"),
    ):
        done = CliRunner().invoke(group, ["diff", str(a), str(b), "--json"])
        assert (done.exit_code, done.stderr[: len(told)], done.stderr.count("\n")) == (0, told, 1 if told else 0)
        in_json = [f"codex-replay: {each}{OPTION}\n" for each in json.loads(done.stdout)["missing"]]
        assert in_json == ([done.stderr] if told else [])


def test_diff_masks_nothing_of_a_version_without_a_table_unless_it_is_given_one(tmp_path: Path) -> None:
    """Two runs of one scenario differ in a time."""
    files = []
    for name, time in (("a", 1), ("b", 2)):
        message = b'{"method":"x","params":{"createdAt":%d}}\n' % time
        path = write(tmp_path / name, message)
        path.write_bytes(path.read_bytes().replace(b'"codex":"0.92.0"', b'"codex":"0.93.0"', 1))
        files.append(str(path))
    assert CliRunner().invoke(group, ["diff", *files]).exit_code == 1
    given = CliRunner().invoke(group, ["diff", *files, "--codex", "0.92.0"])
    assert (given.exit_code, given.stderr) == (0, "")


@pytest.mark.parametrize("codex", ["0.93.0", "garbage", ""])
def test_a_table_that_is_asked_for_and_missing_is_refused(codex: str, tmp_path: Path) -> None:
    path = str(write(tmp_path / "a", b'{"method":"a"}\n'))
    done = CliRunner().invoke(group, ["diff", path, path, "--codex", codex])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("codex-replay: --codex: ")
    assert done.stderr.endswith(f"Available for: {', '.join(data_tables.versions())}.\n")


def test_a_page_without_marks_says_why(tmp_path: Path) -> None:
    path = write(tmp_path / "a", b'{"method":"x","params":{"createdAt":1}}\n')
    assert "There is no" not in run("show", path, "--html", tmp_path / "a.html").output
    assert cassette_trace(path, "")["frames"][0]["masked"] == ["$.params.createdAt"]
    path.write_bytes(path.read_bytes().replace(b'"codex":"0.92.0"', b'"codex":"0.93.0"', 1))
    done = run("show", path, "--html", tmp_path / "b.html")
    assert (
        "There is no normalise table for Codex 0.93.0 (`codex-replay codex add 0.93.0` makes it): times, durations" in done.output
    )
    assert cassette_trace(path, "")["frames"][0]["masked"] == []


@pytest.mark.parametrize("verb", ["diff", "lint", "stats"])
def test_a_frame_that_is_nested_too_deeply_is_reported_in_a_sentence(verb: str, tmp_path: Path) -> None:
    """Each level is legal JSON, and more than one more can be walked."""
    deep = b'{"method":"x","params":' + b"[" * 900 + b"]" * 900 + b"}\n"
    other = deep.replace(b'"x"', b'"y"', 1)
    files = [str(write(tmp_path / name, line)) for name, line in (("a", deep), ("b", other))]
    done = run(verb, *files[: 2 if verb == "diff" else 1])
    assert done.exit_code in (0, 1, 2)
    assert "Traceback" not in done.output + done.stderr
    if done.exit_code == 2:
        assert done.stderr.endswith("read it with `codex-replay cassette show`.\n")


def test_no_command_ends_in_a_traceback_for_depth() -> None:
    @click.command()
    @sentences
    def walk() -> None:
        walk.callback()  # type: ignore[misc]

    done = CliRunner().invoke(walk)
    assert (done.exit_code, done.stderr) == (2, f"codex-replay: {TOO_DEEP}\n")


def test_lint_reports_half_a_surrogate_pair_in_a_name(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ndjson", b"{}\n")
    first, rest = path.read_bytes().split(b"\n", 1)
    path.write_bytes(first + b"\n" + rest.replace(b'"seam"', b'"\\ud800":1,"seam"', 1))
    result = run("lint", path)
    assert result.exit_code == 1
    assert "line 2: line: it has half a surrogate pair" in result.output
