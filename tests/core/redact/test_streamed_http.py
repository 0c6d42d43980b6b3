"""Secrets that were streamed in chunks of HTTP answers, and in messages of clients: they are joined before they are redacted."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from codex_replay.cli.cassette.group import group
from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.core.cassette.http_frames import sse_blocks, sse_payload
from codex_replay.core.redact import chunks, streamed
from codex_replay.core.redact.redactor import Redactor
from codex_replay.core.wire.json_text import dumps
from codex_replay.shell.cassettes.file import CassetteReader, CassetteWriter
from codex_replay.shell.files import version_data

GITHUB = ["ghp_", "abcdefghijklmnop", "qrstuvwxyzABCDEF6789"]  # the pieces of a key: none has the form of one
PEM = ["-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq", "hkiG9w0BAQEF\n-----END"]  # the first looks like a whole one

Payload = tuple[str, dict[str, Any]]


def run(*args: str | Path) -> Result:
    result = CliRunner().invoke(group, [str(arg) for arg in args])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert not any(piece in result.output for piece in GITHUB[1:]), result.output
    return result


def cassette(path: Path, *said: Payload, headers: list[list[str]] | None = None) -> Path:
    """Write a cassette of one exchange, whose answer is in these frames."""
    with CassetteWriter(path, Header("0.92.0", "unknown", "c", {"http": "recorded"})) as writer:
        writer.write(Frame(0, 0.0, "http", "client", "request", b"", {"method": "POST", "path": "/", "headers": []}, 1))
        writer.write(Frame(0, 0.0, "http", "server", "response", b"", {"status": 200, "headers": headers or []}, 1))
        for kind, payload in said:
            writer.write(Frame(0, 0.1, "http", "server", kind, b"", payload, 1))
        writer.write(Frame(0, 0.2, "http", "server", "close", b"", "end", 1))
    return path


def payloads(path: Path) -> list[Any]:
    with CassetteReader(path) as reader:
        return [frame.payload for frame in reader][2:-1]


def secrets_of(path: Path) -> list[str]:
    return [line for line in run("lint", path).output.splitlines() if ": secret: " in line]


def cleaned(path: Path) -> list[Any]:
    """Return what `redact` makes of the answer; lint finds nothing more in it."""
    clean = path.with_suffix(".clean.ndjson")
    assert run("redact", path, "--out", clean, "--force").exit_code == 0
    assert run("lint", clean).exit_code == 0
    return payloads(clean)


def content(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def arguments(text: str, number: int = 0) -> dict[str, Any]:
    call = {"index": number, "id": "call_1", "type": "function", "function": {"name": "shell", "arguments": text}}
    return {"tool_calls": [call]}


def reasoning(text: str) -> dict[str, Any]:
    return {"reasoning_content": text}


def listed(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def event(*choices: dict[str, Any], spaces: bool = False, number: int = 0) -> Payload:
    """Return the event of some choices; the id of the whole changes, as with some servers it does."""
    data = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": list(choices)}
    raw = json.dumps(data, ensure_ascii=False, separators=None if spaces else (",", ":"))
    return "sse", sse_payload(sse_blocks(f"data: {raw}\n\n".encode())[0])


def choice(delta: dict[str, Any], index: int = 0) -> dict[str, Any]:
    return {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}


DELTAS = {"content": content, "arguments": arguments, "reasoning": reasoning, "list": listed}


def check_choices(kind: str, spaces: bool, tmp_path: Path) -> None:
    """Pieces of one choice are joined, whatever stands between them, and those of two are not."""
    make: Callable[[str], dict[str, Any]] = DELTAS[kind]

    def said(*texts: str) -> list[Payload]:
        first, second, third = (event(choice(make(text)), spaces=spaces, number=n) for n, text in enumerate(texts[:3]))
        other = event(choice(make(texts[3]), 1), spaces=spaces)
        empty = event(spaces=spaces)
        done = ("sse", sse_payload(sse_blocks(b"data: [DONE]\n\n")[0]))
        return [first, other, empty, second, third, done]

    dirty = cassette(tmp_path / "dirty.ndjson", *said("It is " + GITHUB[0], GITHUB[1], GITHUB[2] + ". é", GITHUB[1]))
    assert not any(map(Redactor().findings, dirty.read_bytes().splitlines()))
    (line,) = secrets_of(dirty)
    assert "split across the frames 3 to 7" in line
    assert cleaned(dirty) == [payload for _, payload in said("It is ghp_redacted-1", "", ". é", GITHUB[1])]


@pytest.mark.parametrize("spaces", [False, True], ids=["compact", "spaces"])
@pytest.mark.parametrize("kind", DELTAS)
def test_a_secret_in_the_deltas_of_a_choice_is_found_and_mended(kind: str, spaces: bool, tmp_path: Path) -> None:
    check_choices(kind, spaces, tmp_path)


def test_who_does_not_look_into_choices_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "_texts", lambda *args: iter(()))
    with pytest.raises(ValueError, match="not enough values"):
        check_choices("content", False, tmp_path)


def test_who_joins_the_pieces_of_two_choices_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = chunks._texts
    monkeypatch.setattr(chunks, "_texts", lambda value, names, at: texts(value, (*names[:3], "0", *names[4:]), at))
    with pytest.raises((AssertionError, ValueError)):
        check_choices("content", False, tmp_path)


def test_two_calls_of_one_choice_are_two_streams(tmp_path: Path) -> None:
    frames = [event(choice(arguments(text, number))) for text, number in ((GITHUB[0], 0), ("".join(GITHUB[1:]), 1))]
    assert secrets_of(cassette(tmp_path / "c.ndjson", *frames)) == []
    both = {"tool_calls": [arguments(GITHUB[0], 1)["tool_calls"][0], arguments("".join(GITHUB[1:]), 1)["tool_calls"][0]]}
    (line,) = secrets_of(cassette(tmp_path / "d.ndjson", event(choice(both))))  # and here one, in one event
    assert "in the payload of frame 3" in line


TOKENS = ["gh", "p_", "abcdef", "ghijkl", "mnopqr", "stuvwx", "yzABCD", "EF6789"]


def test_the_tokens_of_a_choice_are_joined_and_those_of_two_are_not(tmp_path: Path) -> None:
    def said(*tokens: str, index: int = 0) -> Payload:
        listed = [{"token": one, "bytes": list(one.encode()), "logprob": -0.1, "top_logprobs": []} for one in tokens]
        return event(choice({}, index) | {"logprobs": {"content": listed, "refusal": None}})

    dirty = cassette(tmp_path / "c.ndjson", said("a ", *TOKENS[:2]), said("b", index=1), said(*TOKENS[2:], "."))
    (line,) = secrets_of(dirty)
    assert "split across the frames 3 to 5" in line
    assert cleaned(dirty) == [
        one[1] for one in (said("a ", "ghp_redacted-1", ""), said("b", index=1), said(*[""] * len(TOKENS[2:]), "."))
    ]


def test_the_texts_of_choices_without_a_chat_are_joined(tmp_path: Path) -> None:
    def said(text: str, index: int = 0) -> Payload:
        return event({"text": text, "index": index, "logprobs": None, "finish_reason": None})

    dirty = cassette(tmp_path / "c.ndjson", said(GITHUB[0]), said("x", 1), said("".join(GITHUB[1:])))
    assert len(secrets_of(dirty)) == 1
    assert cleaned(dirty) == [said("ghp_redacted-1")[1], said("x", 1)[1], said("")[1]]


def test_an_objects_delta_of_another_protocol_is_joined_too(tmp_path: Path) -> None:
    def said(text: str, index: int = 0) -> Payload:
        data = {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}
        return "sse", {"event": "content_block_delta", "data": data}

    dirty = cassette(tmp_path / "c.ndjson", said(GITHUB[0]), said("x", 1), said("".join(GITHUB[1:])))
    assert cleaned(dirty) == [said("ghp_redacted-1")[1], said("x", 1)[1], said("")[1]]


def test_the_next_answer_on_a_connection_is_another_stream(tmp_path: Path) -> None:
    path = tmp_path / "c.ndjson"
    with CassetteWriter(path, Header("0.92.0", "unknown", "c", {"http": "recorded"})) as writer:
        for text in (GITHUB[0], "".join(GITHUB[1:])):
            writer.write(Frame(0, 0.0, "http", "client", "request", b"", {"method": "POST", "path": "/", "headers": []}, 1))
            writer.write(Frame(0, 0.0, "http", "server", "response", b"", {"status": 200, "headers": []}, 1))
            writer.write(Frame(0, 0.0, "http", "server", "sse", b"", event(choice(content(text)))[1], 1))
            writer.write(Frame(0, 0.0, "http", "server", "close", b"", "end", 1))
    assert secrets_of(path) == []


@pytest.mark.parametrize("sender", ["client", "server"])
def test_the_input_and_output_of_a_process_are_joined(sender: str, tmp_path: Path) -> None:
    """Codex 0.116 has command/exec/write, whose deltaBase64 a client may cut where it likes, and its output alike."""

    def frame(number: int, text: str) -> bytes:
        params = {"processId": "p", "deltaBase64": base64.b64encode(text.encode()).decode()}
        message = {"id": number, "method": "command/exec/write", "params": params}
        if sender == "server":
            message = {"method": "command/exec/outputDelta", "params": {**params, "stream": "stdout", "capReached": False}}
        return dumps(message) + b"\n"

    path = tmp_path / "c.ndjson"
    with CassetteWriter(path, Header("0.116.0", "unknown", "c", {"rpc": "authored"})) as writer:
        for number, text in enumerate(("export KEY=" + GITHUB[0], "".join(GITHUB[1:]) + "\n")):
            writer.write(Frame(0, 0.0, "rpc", sender, "msg", frame(number, text)))
    (line,) = secrets_of(path)
    assert "split across the frames 1 to 2" in line
    assert run("redact", path, "--out", tmp_path / "clean.ndjson").exit_code == 0
    with CassetteReader(tmp_path / "clean.ndjson") as reader:
        assert [one.raw for one in reader] == [frame(0, "export KEY=ghp_redacted-1"), frame(1, "\n")]


SAID_BY_CLIENTS = [
    "ClientRequest",
    "ClientNotification",
    "ApplyPatchApprovalResponse",
    "CommandExecutionRequestApprovalResponse",
    "DynamicToolCallResponse",
    "ExecCommandApprovalResponse",
    "FileChangeRequestApprovalResponse",
    "ToolRequestUserInputResponse",
]


def test_no_client_of_0_92_says_anything_in_pieces() -> None:
    """So FAKE_CODEX_CAPTURE has none to join; docs/redaction.md says so."""
    schemas = Path(version_data.schema_folder("0.92.0"))
    piece = re.compile("delta|chunk|append", re.IGNORECASE)
    assert [name for name in SAID_BY_CLIENTS if piece.search((schemas / f"{name}.json").read_text())] == []
    assert piece.search((schemas / "ServerNotification.json").read_text())
    assert {path.stem for path in schemas.glob("*Response.json")} - {"FuzzyFileSearchResponse", "JSONRPCResponse"} <= set(
        SAID_BY_CLIENTS
    )


@pytest.mark.parametrize("between", [{"pong": ""}, {"ping": ""}, None])
def test_a_secret_in_messages_of_a_websocket_is_gone_also_with_a_pong_between(between: dict[str, str] | None) -> None:
    def message(sender: str, payload: dict[str, Any], kind: str = "ws") -> Frame:
        return Frame(0, 0.0, "http", sender, kind, b"", payload, 1)

    def delta(text: str) -> Frame:
        said = {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": text}
        return message("server", {"json": said})

    frames = [delta("It is "), delta(GITHUB[0]), *([message("client", between)] if between else []), *map(delta, GITHUB[1:])]
    cleaned = streamed.clean(frames, Redactor())
    said = "".join(frame.payload["json"]["delta"] for frame in cleaned if "json" in frame.payload)
    assert said == "It is ghp_redacted-1"
    apart = [delta(GITHUB[0]), message("client", {"json": {"type": "response.create"}}), *map(delta, GITHUB[1:])]
    assert streamed.clean(apart, Redactor()) == apart, "chunks of two answers are not joined"
