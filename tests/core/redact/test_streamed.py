"""A secret that is streamed in chunks: no frame shows it, and lint and redact find it."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner, Result

from codex_replay.cli.cassette.group import group
from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.core.cassette.http_frames import body_fields, sse_blocks, sse_payload
from codex_replay.core.redact.redactor import Redactor
from codex_replay.core.redact.streamed import clean, findings_text
from codex_replay.core.wire.content_encoding import encode
from codex_replay.core.wire.json_text import dumps
from codex_replay.plugin.app_server.record import write_cassette
from codex_replay.shell.cassettes.file import CassetteReader, CassetteWriter


def run(*args: str | Path) -> Result:
    result = CliRunner().invoke(group, [str(arg) for arg in args])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


GITHUB = ["ghp_", "abcdefghijklmnop", "qrstuvwxyzABCDEF6789"]  # the pieces of a key: none has the form of one


AGENT = '{"method":"item/agentMessage/delta","params":{"threadId":"t","turnId":"0","itemId":ITEM,"delta":TEXT}}\n'
LEGACY = '{"method":"codex/event/agent_message_delta","params":{"id":"0","msg":MSG,"conversationId":"t"}}\n'
EVENT = '{"type":"response.output_text.delta","item_id":ITEM,"output_index":0,"delta":TEXT,"logprobs":[],"sequence_number":N}'
CALL = '{"type":"response.function_call_arguments.delta","item_id":ITEM,"output_index":0,"delta":TEXT,"sequence_number":N}'
OUTPUT = '{"type":"exec_command_output_delta","call_id":"c","stream":"stdout","chunk":CHUNK}'
FORMS = {  # how the real server writes a piece; what is no line of rpc is the payload of an event
    "v2": AGENT,
    "v1": LEGACY.replace("MSG", '{"type":"agent_message_delta","delta":TEXT}'),
    "odd": AGENT.replace(":", " : ").replace("\n", "\r\n"),
    "output": LEGACY.replace("agent_message", "exec_command_output").replace("MSG", OUTPUT),
    "text": '{"event":"response.output_text.delta","data":%s}' % EVENT,  # noqa: UP031 - braces stand in it
    "arguments": '{"event":"response.function_call_arguments.delta","data":%s}' % CALL,  # noqa: UP031
}


def delta(form: str, piece: str, number: int = 0, item: str = "msg_1") -> tuple[str, bytes]:
    """Return the seam and the bytes of a frame that streams a piece."""
    template = EVENT.replace(":", ": ") if form == "exact" else FORMS[form]
    text = template.replace("ITEM", json.dumps(item)).replace("TEXT", json.dumps(piece, ensure_ascii=form == "odd"))
    text = text.replace("CHUNK", '"%s"' % base64.b64encode(piece.encode()).decode()).replace(":N}", f":{number}}}")  # noqa: UP031
    if form == "exact":
        text = text.replace(": N}", f": {number}}}")
        text = json.dumps({"text": f"data: {text}\n\n", "view": json.loads(text)}, ensure_ascii=False)
    return "http" if form in ("text", "arguments", "exact") else "rpc", text.encode()


def streaming(path: Path, *frames: tuple[str, bytes]) -> Path:
    """Write a cassette of these frames, behind the head of a response."""
    with CassetteWriter(path, Header("0.92.0", "unknown", "c", {"rpc": "recorded", "http": "authored"})) as writer:
        writer.write(Frame(0, 0.0, "http", "client", "request", b"", {"method": "POST", "path": "/", "headers": []}, 1))
        writer.write(Frame(0, 0.0, "http", "server", "response", b"", {"status": 200, "headers": []}, 1))
        for seam, said in frames:
            if seam == "rpc":
                writer.write(Frame(0, 0.1, seam, "server", "msg", said))
            else:
                writer.write(Frame(0, 0.1, seam, "server", "sse", b"", json.loads(said), 1))
    return path


def secrets_of(path: Path) -> list[str]:
    """Return what lint says of secrets; nothing of them may be quoted."""
    result = run("lint", path)
    assert not any(piece in result.output for piece in GITHUB[1:]), result.output
    return [line for line in result.output.splitlines() if ": secret: " in line]


SEAMS = ["v2", "v1", "odd", "output", "text", "arguments", "exact"]


@pytest.mark.parametrize("seam", SEAMS)
def test_a_secret_in_pieces_is_found_and_mended(seam: str, tmp_path: Path) -> None:
    said = ["Your key is " + GITHUB[0], GITHUB[1], "é is of another", GITHUB[2] + ". Keep it."]
    frames = [delta(seam, piece, number, "msg_2" if number == 2 else "msg_1") for number, piece in enumerate(said)]
    if seam in ("v1", "output"):  # these have no item to tell them apart; the other stream is of another kind
        frames[2] = delta("v2", said[2])
    dirty = streaming(tmp_path / "dirty.ndjson", *frames)
    assert not any(map(Redactor().findings, dirty.read_bytes().splitlines()))  # who looks at frames only finds nothing
    (line,) = secrets_of(dirty)
    assert "split across the frames 3 to 6" in line
    assert "line 4 (frame 3)" in line
    assert run("lint", dirty).exit_code == 1

    clean = tmp_path / "clean.ndjson"
    assert run("redact", dirty, "--out", clean).exit_code == 0
    assert secrets_of(clean) == []
    with CassetteReader(clean) as reader:
        found = [frame.raw or frame.payload for frame in reader][2:]
    said = ["Your key is ghp_redacted-1", "", said[2], ". Keep it."]
    frames = [delta(seam, piece, number, "msg_2" if number == 2 else "msg_1") for number, piece in enumerate(said)]
    if seam in ("v1", "output"):
        frames[2] = delta("v2", said[2])
    expected = [one if kind == "rpc" else json.loads(one) for kind, one in frames]
    assert found == expected  # every other byte as it was
    again = tmp_path / "again.ndjson"
    assert run("redact", clean, "--out", again).exit_code == 0
    assert again.read_bytes() == clean.read_bytes()


@pytest.mark.parametrize("seam", SEAMS)
def test_a_literal_in_pieces_is_taken_out(seam: str, tmp_path: Path) -> None:
    dirty = streaming(
        tmp_path / "dirty.ndjson", *(delta(seam, piece) for piece in ("Of Blu", "ebird. And Bluebird, Bl", "ue", "bird"))
    )
    clean = tmp_path / "clean.ndjson"
    assert run("redact", dirty, "--out", clean, "--literal", "Bluebird").exit_code == 0
    with CassetteReader(clean) as reader:
        found = [frame.raw or frame.payload for frame in reader][2:]
    frames = [delta(seam, piece) for piece in ("Of redacted-1", ". And redacted-1, redacted-1", "", "")]
    assert found == [one if kind == "rpc" else json.loads(one) for kind, one in frames]


def test_the_pieces_of_two_streams_are_not_joined(tmp_path: Path) -> None:
    whole = (
        "rpc",
        b'{"method":"codex/event/agent_message","params":{"id":"0","msg":{"type":"agent_message"},"conversationId":"t"}}\n',
    )
    two = [delta("v2", GITHUB[0], item="msg_1"), delta("v2", "".join(GITHUB[1:]), item="msg_2")]
    ended = [delta("v1", GITHUB[0]), whole, delta("v1", "".join(GITHUB[1:]))]
    path = streaming(tmp_path / "c.ndjson", *two, *ended)
    assert not [line for line in run("lint", path).output.splitlines() if ": secret: " in line]


def test_a_secret_that_one_piece_shows_is_told_once(tmp_path: Path) -> None:
    path = streaming(tmp_path / "c.ndjson", delta("v2", "".join(GITHUB)), delta("v2", " yes"))
    assert len([line for line in run("lint", path).output.splitlines() if ": secret: " in line]) == 1


def exact(raw: bytes) -> tuple[str, bytes]:
    """Return a frame of an event in an unusual form."""
    return "http", dumps(sse_payload(*sse_blocks(raw)))


def payloads(path: Path) -> list[Any]:
    """Return what stands behind the head of the response."""
    with CassetteReader(path) as reader:
        return [frame.payload for frame in reader][2:]


def test_an_event_on_several_lines_is_mended_and_keeps_its_form(tmp_path: Path) -> None:
    form = b': odd\r\nevent: x\r\ndata: {"type":"response.output_text.delta",\r\ndata:  "item_id":"m",\r\n\
data:"delta":  "%s" }\r\nid: \xc3\xa9\r\n\r\n'
    for name, tail in (("text", b""), ("base64", b": \xff\r\n")):  # the second is no UTF-8
        said = [form.replace(b"id:", tail + b"id:") % piece.encode() for piece in ("é " + GITHUB[0], "".join(GITHUB[1:]) + " ok")]
        path = streaming(tmp_path / f"{name}.ndjson", *map(exact, said))
        assert len(secrets_of(path)) == 1
        assert run("redact", path, "--out", tmp_path / f"{name}.clean.ndjson").exit_code == 0
        said = [form.replace(b"id:", tail + b"id:") % piece.encode() for piece in ("é ghp_redacted-1", " ok")]
        assert payloads(tmp_path / f"{name}.clean.ndjson") == [json.loads(exact(raw)[1]) for raw in said]
        assert name in exact(said[0])[1].decode()


def test_of_an_event_whose_view_is_not_what_it_says_nothing_stays(tmp_path: Path) -> None:
    odd = {"text": "data: {\ndata: }\n\n", "view": {"type": "response.output_text.delta", "item_id": "m", "delta": GITHUB[0]}}
    rest = {**odd, "view": {**odd["view"], "delta": "".join(GITHUB[1:])}}  # type: ignore[dict-item]
    path = streaming(tmp_path / "c.ndjson", ("http", json.dumps(odd).encode()), ("http", json.dumps(rest).encode()))
    assert run("redact", path, "--out", tmp_path / "clean.ndjson").exit_code == 0
    assert [payload["data"]["delta"] for payload in payloads(tmp_path / "clean.ndjson")] == ["ghp_redacted-1", ""]


def test_of_a_secret_whose_beginning_looks_like_a_whole_one_nothing_stays(tmp_path: Path) -> None:
    key = "sk-proj-a1B2c3D4e5F6g7H8i9J0k1L2m3N4", "o5P6q7R8s9T0u1V2"
    path = streaming(tmp_path / "dirty.ndjson", delta("v2", key[0]), delta("v2", key[1] + " end"))
    assert run("redact", path, "--out", tmp_path / "clean.ndjson").exit_code == 0
    with CassetteReader(tmp_path / "clean.ndjson") as reader:
        found = [frame.raw for frame in reader][2:]
    assert found == [delta("v2", "sk-redacted-2")[1], delta("v2", " end")[1]]


TOKENS = ["gh", "p_", "abcdef", "ghijkl", "mnopqr", "stuvwx", "yzABCD", "EF6789"]


def logprobs(*tokens: str) -> list[dict[str, Any]]:
    return [
        {"token": one, "bytes": list(one.encode()), "logprob": -0.1, "top_logprobs": [{"token": one, "logprob": -0.1}] * 2}
        for one in tokens
    ]


def redacted_logprobs(*tokens: str) -> list[dict[str, Any]]:
    """Return the same where a secret was taken out: nothing of it stays in the alternatives."""
    return [{**logprobs(one)[0], "top_logprobs": []} if "redacted" in one or not one else logprobs(one)[0] for one in tokens]


def lists_alike(found: Any) -> str:
    """Return a value as a text in which lists of numbers are compact: where one was put in, the spaces are ours."""
    return re.sub(r", (?=[0-9])", ",", json.dumps(found))


@pytest.mark.parametrize("spaces", [False, True])
def test_the_tokens_of_logprobs_are_joined(spaces: bool, tmp_path: Path) -> None:
    def event(delta: str, *tokens: dict[str, Any]) -> tuple[str, bytes]:
        data = {"type": "response.output_text.delta", "item_id": "m", "delta": delta, "logprobs": tokens}
        return exact(b"data: %b\n\n" % json.dumps(data, separators=None if spaces else (",", ":")).encode())

    first, second = logprobs("key ", *TOKENS[:2]), logprobs(*TOKENS[2:], ". ")
    path = streaming(tmp_path / "c.ndjson", event("key ghp_", *first), event("".join(TOKENS[2:]) + ". ", *second))
    (line,) = secrets_of(path)  # once, though text and tokens have it
    assert "split across the frames 3 to 4" in line
    assert run("redact", path, "--out", tmp_path / "clean.ndjson").exit_code == 0
    first, second = redacted_logprobs("key ", "ghp_redacted-1", ""), redacted_logprobs(*[""] * len(TOKENS[2:]), ". ")
    expected = [event("key ghp_redacted-1", *first), event(". ", *second)]
    assert lists_alike(payloads(tmp_path / "clean.ndjson")) == lists_alike([json.loads(raw) for _, raw in expected])


@pytest.mark.parametrize("kind", ["sse", "chunk"])
def test_tokens_that_stand_in_one_frame_are_joined(kind: str, tmp_path: Path) -> None:
    def payload(*tokens: dict[str, Any]) -> Any:
        part = {"type": "output_text", "text": "(it has been seen)", "logprobs": list(tokens)}
        whole = {"type": "response.completed", "response": {"output": [{"id": "m", "content": [part]}]}}
        return {"event": "response.completed", "data": whole} if kind == "sse" else body_fields(json.dumps(whole).encode())

    head = Frame(0, 0.0, "http", "server", "response", b"", {"status": 200, "headers": []}, 1)
    path = tmp_path / "c.ndjson"
    with CassetteWriter(path, Header("0.92.0", "unknown", "c", {"http": "recorded"})) as writer:
        writer.write(Frame(0, 0.0, "http", "client", "request", b"", {"method": "POST", "path": "/", "headers": []}, 1))
        writer.write(head)
        writer.write(Frame(0, 0.0, "http", "server", kind, b"", payload(*logprobs("a ", *TOKENS, " b")), 1))
        writer.write(Frame(0, 0.0, "http", "server", kind, b"", payload(*logprobs("ghp_")), 1))  # of another text
    (line,) = secrets_of(path)
    assert "in the payload of frame 3" in line
    assert run("redact", path, "--out", tmp_path / "clean.ndjson").exit_code == 0
    expected = [payload(*redacted_logprobs("a ", "ghp_redacted-1", *[""] * len(TOKENS[1:]), " b")), payload(*logprobs("ghp_"))]
    assert lists_alike(payloads(tmp_path / "clean.ndjson")) == lists_alike(expected)


def chunked(path: Path, *bodies: dict[str, Any], conns: tuple[int, ...] = ()) -> Path:
    """Write a cassette of a response whose body is kept in these pieces."""
    with CassetteWriter(path, Header("0.92.0", "unknown", "c", {"http": "recorded"})) as writer:
        for conn in sorted({1, *conns}):
            writer.write(Frame(0, 0.0, "http", "client", "request", b"", {"method": "GET", "path": "/", "headers": []}, conn))
            writer.write(Frame(0, 0.0, "http", "server", "response", b"", {"status": 200, "headers": []}, conn))
        for conn, body in zip(conns or (1,) * len(bodies), bodies, strict=True):
            writer.write(Frame(0, 0.1, "http", "server", "chunk", b"", body, conn))
    return path


@pytest.mark.parametrize("tail", [b"", b"\xff"], ids=["text", "base64"])
def test_a_secret_that_is_torn_over_two_parts_of_a_body_is_found_and_mended(tail: bytes, tmp_path: Path) -> None:
    said = [b'{"is":"ghp_', "".join(GITHUB[1:]).encode() + tail + b'"}']
    assert not any(Redactor().findings(one) for one in said)
    path = chunked(tmp_path / "c.ndjson", *map(body_fields, said))
    (line,) = secrets_of(path)
    assert "split across the frames 3 to 4" in line
    assert run("redact", path, "--out", tmp_path / "clean.ndjson").exit_code == 0
    assert payloads(tmp_path / "clean.ndjson") == [body_fields(b'{"is":"ghp_redacted-1'), body_fields(tail + b'"}')]
    assert secrets_of(tmp_path / "clean.ndjson") == []
    apart = chunked(tmp_path / "d.ndjson", *map(body_fields, said), conns=(1, 2))
    assert secrets_of(apart) == []  # two connections


@pytest.mark.parametrize("encoding", ["gzip", "zstd", ""])
def test_what_only_the_user_knows_is_taken_out_of_a_compressed_body_too(encoding: str, tmp_path: Path) -> None:
    plain = b'{"of": "Bluebird"}' if encoding else b'"Bluebird \xff"'
    body = body_fields(encode(plain, encoding), encoding)
    assert "base64" in body
    path = chunked(tmp_path / "c.ndjson", body)
    (line,) = [line for line in run("lint", path, "--literal", "Bluebird").output.splitlines() if ": secret: " in line]
    assert "frame 3" in line
    assert run("redact", path, "--literal", "Bluebird", "--out", tmp_path / "clean.ndjson").exit_code == 0
    (found,) = payloads(tmp_path / "clean.ndjson")
    assert found == body_fields(plain.replace(b"Bluebird", b"redacted-1")) | ({"packed": encoding} if encoding else {})
    assert run("lint", tmp_path / "clean.ndjson", "--literal", "Bluebird").exit_code == 0


def test_lint_finds_a_literal_of_yours_whole_or_in_pieces_and_never_says_it(tmp_path: Path) -> None:
    path = streaming(tmp_path / "c.ndjson", delta("v2", "Blue"), delta("v2", "bird"), delta("v1", "a Bluebird"), delta("v1", "x"))
    assert secrets_of(path) == []
    result = run("lint", path, "--literal", "Bluebird", "--literal", "nowhere")
    assert result.exit_code == 1
    assert "Bluebird" not in result.output
    (line,) = [line for line in result.output.splitlines() if ": secret: " in line]
    assert line == (
        f"{path}, line 4 (frame 3): secret: 2 secrets (literal) in lines 4, 6; "
        f"remove them with `codex-replay cassette redact {path}`"
    )
    (file,) = json.loads(run("lint", "--json", path, "--literal", "Bluebird").output)["files"]
    found = [(each["kind"], re.sub(r"byte \d+", "byte N", each["message"]).partition(";")[0]) for each in file["findings"]]
    assert [message for kind, message in found if kind == "literal"] == [
        "a secret (literal) of 8 bytes is at byte N",
        "a secret (literal) of 8 bytes is split across the frames 3 to 4",
    ]
    assert json.loads(run("lint", "--json", path, "--literal", "Bluebird").output)["ok"] is False
    assert run("lint", path, "--literal", "").exit_code == 2
    assert run("redact", path, "--literal", "Bluebird", "--out", tmp_path / "clean.ndjson").exit_code == 0
    assert "secret" not in run("lint", tmp_path / "clean.ndjson", "--literal", "Bluebird").output


def test_wherever_it_is_cut_the_whole_is_what_the_redactor_makes_of_it() -> None:
    key = "sk-" + "proj-" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0"
    text = f'Keys: {"".join(GITHUB)}, é, ann@corp.example, /home/alice/x; {{"password":"hunter2hunter"}}'
    text += f" Bluebird Bluebird.\n{key} end"
    literals = {"Bluebird": "redacted-1"}
    random = Random(7)
    for _ in range(100):
        cuts = sorted(random.choices(range(len(text) + 1), k=random.randint(0, 30)))
        pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        form = random.choice(["v2", "odd"])
        frames = [Frame(n, 0.0, "rpc", "server", "msg", delta(form, piece)[1]) for n, piece in enumerate(pieces)]
        after = clean(frames, Redactor(literals=literals))
        joined = "".join(frame.value["params"]["delta"] for frame in after)
        assert joined == Redactor(literals=literals).text(text), pieces


def test_a_case_is_recorded_without_what_it_streams_in_pieces(tmp_path: Path) -> None:
    said = [
        Frame(0, 0.0, "rpc", "server", "msg", delta("v2", piece)[1]) for piece in ("It is " + GITHUB[0], "".join(GITHUB[1:]), ".")
    ]
    path = tmp_path / "c.ndjson"
    assert write_cassette(path, Header("0.92.0", "unknown", "a/b/c", {"rpc": "recorded"}), said, Redactor())
    with CassetteReader(path) as reader:
        assert [frame.value["params"]["delta"] for frame in reader] == ["It is ghp_redacted-1", "", "."]


def test_lint_prints_one_line_for_each_kind(tmp_path: Path) -> None:
    key = "".join(GITHUB)
    whole = [delta("v2", f"It is {key} ") for _ in range(7)]
    path = streaming(tmp_path / "c.ndjson", *whole, delta("v1", "ann@corp.example"))
    found = [line.partition(": secret: ")[2] for line in run("lint", path).output.splitlines() if ": secret: " in line]
    first, *rest = found
    assert re.match(
        r"7 secrets \(api-key\) in lines (\d+, ){4}\d+ and 2 more; remove them with `codex-replay cassette redact", first
    )
    assert [re.sub(r" of .*", "", line) for line in rest] == ["an e-mail address"]


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        (["api-key"], "a secret (api-key)"),
        (["path"], "a directory"),
        (["path", "path"], "2 directories"),
        (["home"], "a home directory"),
        (["email", "email"], "2 e-mail addresses"),
        (["api-key", "path", "jwt", "api-key"], "3 secrets (api-key, jwt) and a directory"),
    ],
)
def test_what_is_private_and_not_secret_is_not_called_a_secret(kinds: list[str], words: str) -> None:
    assert findings_text(kinds) == words
