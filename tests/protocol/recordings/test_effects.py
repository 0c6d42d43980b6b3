"""What a recording would have a live server do, and that nobody plays it unread."""

from __future__ import annotations

import base64
import gzip
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codex_replay.core.cassette.frames import Footer, Frame, Header, encode_footer, encode_frame, encode_header
from codex_replay.protocol.recordings.effects import effects

ROOT = Path(__file__).parents[3]
TEXT_TURN = ROOT / "cassettes/app_server/test_v2/text_turn.ndjson"
REPLAY = [str(Path(sys.executable).with_name("codex-replay")), "replay"]
CALL = {"type": "function_call", "name": "shell_command", "call_id": "c", "arguments": '{"command":"touch planted"}'}
DONE = {"type": "response.output_item.done", "item": CALL}
ESCAPED = json.dumps(DONE).replace("function_call", "\\u0066unction_call")


def asked(value: Any, n: int = 1) -> Frame:
    return Frame(n, 0.0, "rpc", "client", raw=json.dumps(value).encode() + b"\n")


def answer(kind: str, payload: Any, n: int = 1) -> Frame:
    return Frame(n, 0.0, "http", "server", kind, payload=payload, conn=1)


def zipped(text: str) -> dict[str, str]:
    return {"base64": base64.b64encode(gzip.compress(text.encode())).decode()}


@pytest.mark.parametrize(
    "frames",
    [
        [answer("sse", {"event": "response.output_item.done", "data": DONE})],
        [answer("sse", {"text": f"data: {ESCAPED}\n\n"})],
        [answer("sse", {"text": "data: " + json.dumps(DONE, indent=1).replace("\n", "\ndata: ") + "\n\n"})],
        [answer("chunk", {"body": {"output": [CALL]}})],
        [answer("chunk", {"text": f"data: {ESCAPED[:40]}"}), answer("chunk", {"text": f"{ESCAPED[40:]}\n\n"}, 2)],
        [answer("chunk", zipped(f"data: {ESCAPED}\n\n"))],
    ],
    ids=["event", "escaped", "lines", "body", "torn", "zipped"],
)
def test_a_command_that_the_model_asks_for_is_seen_in_every_form(frames: list[Frame]) -> None:
    (effect,) = effects(frames)
    assert (effect.where, effect.what) == ("frame 1 and after", 'shell_command {"command":"touch planted"}')


@pytest.mark.parametrize(
    ("item", "what"),
    [
        (
            {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin\x1b[2J Patch"},
            "apply_patch *** Begin\\x1b[2J Patch",
        ),
        ({"type": "local_shell_call", "action": {"command": ["ls"]}}, 'local_shell_call {"command":["ls"]}'),
        ({"type": "function_call", "name": "of_tomorrow", "arguments": "{}"}, "of_tomorrow {}"),
    ],
)
def test_tools_of_every_kind_are_shown_in_one_printable_line(item: Any, what: str) -> None:
    assert [effect.what for effect in effects([answer("sse", {"data": {"type": "x", "item": item}})])] == [what]
    assert [effect.what for effect in effects([], script={"turns": [{"items": [item]}]})] == [what]


@pytest.mark.parametrize(
    ("message", "what"),
    [
        ({"method": "command/exec", "params": {"command": ["ls"]}}, 'command/exec {"command":["ls"]}'),
        (
            {"method": "thread/start", "params": {"config": {"mcp_servers": {"a": {"command": "b"}}}}},
            'mcp_servers {"a":{"command":"b"}}',
        ),
        ({"method": "thread/start", "params": {"config": {"mcp_servers.a.command": "b"}}}, "mcp_servers.a.command b"),
        (
            {"method": "config/value/write", "params": {"keyPath": "notify", "value": ["a"]}},
            'notify {"keyPath":"notify","value":["a"]}',
        ),
    ],
)
def test_what_the_client_asks_for_itself_is_seen(message: Any, what: str) -> None:
    assert [(effect.where, effect.what) for effect in effects([asked(message, 7)])] == [("frame 7", what)]
    assert not effects([Frame(7, 0.0, "rpc", "server", raw=json.dumps(message).encode() + b"\n")])


def test_what_only_speaks_is_no_effect() -> None:
    plan = {"type": "function_call", "name": "update_plan", "arguments": "{}"}
    begun = {"type": "function_call", "name": "shell_command", "arguments": ""}
    said = {"type": "message", "content": [{"type": "output_text", "text": json.dumps(CALL)}]}
    assert not effects([answer("sse", {"data": {"type": "x", "item": item}}) for item in (plan, begun, said)])
    assert not effects([asked({"method": "turn/start", "params": {"input": [{"type": "text", "text": "notify"}]}})])


def hostile(folder: Path) -> Path:
    """The recorded turn, with a command in the answer of its model."""
    path = folder / "hostile.ndjson"
    lines = TEXT_TURN.read_text().splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if '"seam":"http"' in line and "output_item.done" in line)
    frame = json.loads(lines[at])
    frame["sse"]["data"]["item"] = CALL
    lines[at] = json.dumps(frame, separators=(",", ":")) + "\n"
    path.write_text("".join(lines))
    return path


def replay(cassette: Path, server: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*REPLAY, str(cassette), "--app-server", server, "--timeout", "1", *options], capture_output=True, text=True, timeout=60
    )


def test_a_recording_with_commands_is_played_to_a_live_server_only_with_leave(tmp_path: Path) -> None:
    started = tmp_path / "started"
    server = shlex.join([sys.executable, "-c", f"open({str(started)!r}, 'w')"])
    refused = replay(hostile(tmp_path), server)
    assert (refused.returncode, refused.stdout, started.exists()) == (2, "", False)
    assert 'shell_command {"command":"touch planted"}' in refused.stderr
    assert "--commands-ok" in refused.stderr
    assert replay(hostile(tmp_path), server, "--commands-ok").returncode == 1
    assert started.exists()


def test_a_recording_without_commands_and_the_fake_need_no_leave(tmp_path: Path) -> None:
    started = tmp_path / "started"
    server = shlex.join([sys.executable, "-c", f"open({str(started)!r}, 'w')"])
    assert replay(TEXT_TURN, server).returncode == 1
    assert started.exists()
    assert replay(hostile(tmp_path), "fake").returncode == 0


def test_a_script_of_the_users_own_stands_for_the_answers(tmp_path: Path) -> None:
    script = tmp_path / "mine.json"
    script.write_text(json.dumps({"turns": [{"items": [{"type": "text", "text": "Hello."}]}]}))
    server = shlex.join([sys.executable, "-c", "pass"]) + " {listen}"
    assert replay(hostile(tmp_path), server).returncode == 2
    assert replay(hostile(tmp_path), server, "--script", str(script)).returncode == 1


def test_a_script_and_a_configuration_in_the_header_count(tmp_path: Path) -> None:
    for behind in ({"script": {"turns": [{"items": [CALL]}]}}, {"config": {"mcp_servers": {"a": {"command": "b"}}}}):
        path = tmp_path / "header.ndjson"
        header = Header("0.92.0", "unknown", "a::b", {"rpc": "recorded"}, {"upstream": behind})
        frame = asked({"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "a", "version": "1"}}})
        path.write_bytes(encode_header(header) + encode_frame(frame) + encode_footer(Footer(1)))
        refused = replay(path, shlex.join([sys.executable, "-c", "pass"]))
        assert (refused.returncode, "the header" in refused.stderr) == (2, True), refused.stderr
