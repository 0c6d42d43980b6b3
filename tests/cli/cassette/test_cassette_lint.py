"""`codex-replay cassette lint`: each fault is found, and nothing in sound samples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codex_replay.core.cassette.frames import Footer, Frame, Header, encode_footer, encode_frame, encode_header
from codex_replay.shell.codex.origin import bundle_of
from tests.cli.cassette.files import CASSETTES, TOKEN, run, write


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
    "an invalid line": ("line", [HEADER, ASK, b"oops\n", ANSWER, END]),
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


@pytest.mark.parametrize("raw", [b"Hello.\n", b"\n", b"\xff\n"])
def test_lint_quotes_a_line_that_is_not_json(tmp_path: Path, raw: bytes) -> None:
    """The output of `codex exec`, for example."""
    path = tmp_path / "c.ndjson"
    path.write_bytes(OF_0_92 + encode_frame(Frame(1, 0.0, "rpc", "server", "msg", raw)) + encode_footer(Footer(1)))
    result = run("lint", path)
    assert result.exit_code == 1
    assert f"valid: a line of the server is not JSON: {raw!r}; an app-server writes only" in result.output
    assert result.output.count("valid") == 1


PAYLOADS = {"request": REQUEST, "response": UPGRADED.replace(b"101", b"200"), "close": CLOSE}
PAYLOADS["chunk"] = encode_frame(Frame(1, 0.0, "http", "server", "chunk", b"", {"text": "x"}, 1))


@pytest.mark.parametrize(
    ("kinds", "error"),
    [
        ("request request response close response close", ""),
        ("request response chunk request chunk close response close", ""),
        ("request response close response close", "connection 1: 'response' needs an open request"),
        ("request request response chunk response", "connection 1: 'response' cannot follow 'chunk'"),
        ("request chunk close", "connection 1: 'chunk' needs an open response"),
    ],
)
def test_requests_may_be_pipelined(tmp_path: Path, kinds: str, error: str) -> None:
    lines = [PAYLOADS[kind] for kind in kinds.split()]
    frames = [b'{"n":%d,' % n + line.partition(b",")[2] for n, line in enumerate(lines, 1)]
    path = tmp_path / "c.ndjson"
    path.write_bytes(HEADER + b"".join(frames) + encode_footer(Footer(len(frames))))
    result = run("lint", path)
    assert (result.exit_code, error in result.output) == (int(bool(error)), True), result.output


def test_lint_tells_a_missing_reply_only_as_a_note(tmp_path: Path) -> None:
    path = write(tmp_path / "c.ndjson", b'{"id":1,"method":"turn/interrupt"}\n')
    assert "no reply" not in run("lint", path).output
    result = run("lint", path, "--notes")
    assert result.exit_code == 0
    assert "turn/interrupt of the client has no reply" in result.output


def test_lint_names_the_place_of_a_broken_line_once(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ndjson", b'{"method":"a"}\n', b'{"method":"b"}\n')
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b'{"n":1,\n' + b"".join(lines[2:]))
    done = run("lint", path)
    assert done.exit_code == 1
    assert done.output.count(f"{path}, line 2") == 1
    assert "line 2 column" not in done.output


def test_lint_reports_half_a_surrogate_pair_in_a_name(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ndjson", b"{}\n")
    first, rest = path.read_bytes().split(b"\n", 1)
    path.write_bytes(first + b"\n" + rest.replace(b'"seam"', b'"\\ud800":1,"seam"', 1))
    result = run("lint", path)
    assert result.exit_code == 1
    assert "line 2: line: it has half a surrogate pair" in result.output
