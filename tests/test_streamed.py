"""A secret that is streamed in pieces: no frame shows it, and lint and redact find it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner, Result

from harness.cli.cassette import group
from harness.core.frames import Frame, Header
from harness.core.redact import Redactor
from harness.core.streamed import Streams, with_piece
from harness.shell.cassette import CassetteReader, CassetteWriter


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
    assert "in pieces in the frames 3 to 6" in line
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


def test_an_event_that_cannot_be_mended_is_said(tmp_path: Path) -> None:
    odd = {"text": "data: {\ndata: }\n\n", "view": {"type": "response.output_text.delta", "item_id": "m", "delta": GITHUB[0]}}
    rest = {**odd, "view": {**odd["view"], "delta": "".join(GITHUB[1:])}}  # type: ignore[dict-item]
    path = streaming(tmp_path / "c.ndjson", ("http", json.dumps(odd).encode()), ("http", json.dumps(rest).encode()))
    result = run("redact", path, "--out", tmp_path / "clean.ndjson")
    assert result.exit_code == 1
    assert "a part of a secret stays in frame 3" in result.output


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
        streams = Streams()
        for frame in frames:
            streams.add(frame, frame.n)
        mended = streams.mended(Redactor(literals=literals))
        after = [with_piece(frame, mended[frame.n]) if frame.n in mended else frame for frame in frames]
        joined = "".join(frame.value["params"]["delta"] for frame in after if frame is not None)
        assert joined == Redactor(literals=literals).text(text), pieces
