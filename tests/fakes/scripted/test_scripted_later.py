"""The scripted fake of 0.169.0 says what the real one was recorded to say (tests/real/differential/record_later.py)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from codex_fakes.scripted.turns.citations import Citations
from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.json_text import dumps
from codex_replay.protocol.turn.frames import load_table
from codex_replay.shell.cassettes.file import CassetteReader
from tests.real.differential.later import Both
from tests.real.differential.test_later import FAKE, differences

VERSION = "0.169.0"
FOLDER = Path(__file__).parents[2] / "data" / "scripted-later"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))


def recorded(name: str) -> list[Frame]:
    with CassetteReader(FOLDER / f"{name}.ndjson") as reader:
        return [frame for frame in reader if isinstance(frame, Frame)]


@pytest.fixture(scope="module")
def imitated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Frame]]:
    """What the fake says to each recorded client."""
    root = tmp_path_factory.mktemp("later")
    both = Both(root, VERSION, None, FAKE)  # type: ignore[arg-type]  # no backend is asked
    found = {}
    for name in NAMES:
        scenario = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
        found[name] = [_as_kept(frame) for frame in both.imitate(root / name, scenario["url"], scenario)]
    return found


def _as_kept(frame: Frame) -> Frame:
    raw = frame.raw.replace(b'"/root', b'"/home/user')
    return Frame(frame.n, frame.t, frame.seam, frame.sender, frame.kind, raw)


def test_there_are_recordings() -> None:
    assert len(NAMES) == 37


@pytest.mark.parametrize("name", NAMES)
def test_the_fake_says_what_was_recorded(name: str, imitated: dict[str, list[Frame]]) -> None:
    assert differences(recorded(name), imitated[name]) == []


#: Events that no recording shows: what they need is not among the recorded conversations.
UNSHOWN = {"warning", "image-view", "exec-output", "steered-message"}
FRAMES = load_table(VERSION)["frames"]
ROWS = [(name, number) for name, rows in FRAMES.items() for number in range(len(rows)) if name not in UNSHOWN]


@pytest.mark.parametrize(("name", "number"), ROWS, ids=lambda value: str(value))
def test_a_row_that_is_lost_is_found(name: str, number: int, imitated: dict[str, list[Frame]]) -> None:
    """For each row of the table, a recording shows its frame: without the frames of that kind, the two differ."""
    assert _shown(name, number, imitated)


def _shown(name: str, number: int, imitated: dict[str, list[Frame]]) -> bool:
    row = FRAMES[name][number]
    method = row.get("method") or row.get("request")
    literal = _literal(row["params"])

    def is_of(frame: Frame) -> bool:
        value = frame.value
        return frame.sender == "server" and value.get("method") == method and _has(value["params"], literal)

    less = {each: [f for f in frames if not is_of(f)] for each, frames in imitated.items()}
    return any(differences(recorded(each), left) for each, left in less.items() if len(left) < len(imitated[each]))


def _literal(template: Any) -> Any:
    """Return the parts of a template that are no names: what all frames of the row have in common."""
    if isinstance(template, dict):
        return {key: inner for key, value in template.items() if (inner := _literal(value)) is not None and key[-1:] != "?"}
    return None if isinstance(template, list) or (isinstance(template, str) and template.startswith("$")) else template


def _has(value: Any, literal: Any) -> bool:
    if isinstance(literal, dict):
        return isinstance(value, dict) and all(_has(value.get(key), inner) for key, inner in literal.items())
    return bool(value == literal)


# -- what is not in a recording ---------------------------------------------------------------------------------------------


def said(lines: list[Any], tmp_path: Path, **env: str) -> tuple[list[dict[str, Any]], str, int]:
    """Run fake-codex with these lines; return its frames, its stderr and its exit status."""
    given = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "CODEX_HOME": str(tmp_path), "FAKE_CODEX_VERSION": VERSION, **env}
    text = b"".join(dumps(line) + b"\n" for line in lines)
    done = subprocess.run([FAKE, "app-server"], input=text, env=given, capture_output=True, timeout=30, check=False)
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr.decode(), done.returncode


HELLO = {"id": 0, "method": "initialize", "params": {"clientInfo": {"name": "mine", "version": "1"}}}


def test_the_handshake_names_the_version_and_the_home(tmp_path: Path) -> None:
    (answer, *more), _, status = said([HELLO], tmp_path)
    assert status == 0
    assert answer["result"]["userAgent"].startswith(f"mine/{VERSION} ")
    assert (answer["result"]["codexHome"], answer["result"]["platformFamily"]) == (str(tmp_path), "unix")
    assert more[-1]["method"] == "remoteControl/status/changed"
    assert all(isinstance(frame["emittedAtMs"], int) for frame in more)


def test_a_method_that_the_fake_does_not_have_is_refused_by_name(tmp_path: Path) -> None:
    frames, _, status = said([HELLO, {"id": 1, "method": "thread/compact/start", "params": {"threadId": "x"}}], tmp_path)
    message = frames[-1]["error"]["message"]
    missing = f"fake-codex does not have thread/compact/start of Codex {VERSION}"
    assert message.startswith(f"{missing}: add the method's answer to the script")
    assert status == 1


def test_what_is_experimental_needs_the_capability(tmp_path: Path) -> None:
    asked = {"id": 1, "method": "collaborationMode/list", "params": {}}
    frames, _, _ = said([HELLO, asked], tmp_path)
    assert frames[-1]["error"]["message"] == "collaborationMode/list requires experimentalApi capability"
    able = {**HELLO, "params": {**HELLO["params"], "capabilities": {"experimentalApi": True}}}  # type: ignore[dict-item]
    frames, _, _ = said([able, asked], tmp_path)
    assert [mode["mode"] for mode in frames[-1]["result"]["data"]] == ["plan", "default"]


def test_a_version_without_a_table_is_refused(tmp_path: Path) -> None:
    frames, stderr, status = said([HELLO], tmp_path, FAKE_CODEX_VERSION="0.116.0")
    assert (frames, status) == ([], 2)
    assert "FAKE_CODEX_VERSION: There is no turn table for Codex 0.116.0" in stderr
    assert "Traceback" not in stderr


def test_threads_are_not_kept_between_processes(tmp_path: Path) -> None:
    frames, stderr, status = said([HELLO], tmp_path, FAKE_CODEX_STATE=str(tmp_path / "state"))
    assert (frames, status) == ([], 2)
    assert "FAKE_CODEX_STATE keeps threads of Codex 0.92.0 only; set it or FAKE_CODEX_VERSION, not both." in stderr


def test_the_program_names_the_version(tmp_path: Path) -> None:
    given = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "FAKE_CODEX_VERSION": VERSION}
    done = subprocess.run([FAKE, "--version"], env=given, capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == f"codex-cli {VERSION}\n"


# -- citations --------------------------------------------------------------------------------------------------------------


def through(*pieces: str) -> tuple[list[str], str]:
    """Send a message in these pieces; return the deltas that pass, and the text of the message."""
    citations = Citations("<c>", "</c>")
    made = [("agent-message-delta", {"item": "m", "delta": piece}) for piece in pieces]
    done = [*made, ("agent-message-completed", {"item": "m", "text": "".join(pieces)})]
    passed = [one for each in done for one in citations.pass_on([each])]
    return [values["delta"] for name, values in passed if name == "agent-message-delta"], passed[-1][1]["text"]


@pytest.mark.parametrize(
    ("pieces", "deltas", "text"),
    [
        (["a < b"], ["a < b"], "a < b"),
        (["a <", "b"], ["a ", "<b"], "a <b"),
        (["a <"], ["a ", "<"], "a <"),
        (["a <c>zz</c> b"], ["a  b"], "a  b"),
        (["a <", "c>z", "z</", "c> b"], ["a ", " b"], "a  b"),
        (["a <c>zz"], ["a "], "a "),
        (["<c>1</c><c>2</c>x"], ["x"], "x"),
    ],
)
def test_a_citation_is_taken_out_of_the_text(pieces: list[str], deltas: list[str], text: str) -> None:
    assert through(*pieces) == (deltas, text)


def test_a_message_is_not_changed_by_where_it_is_cut() -> None:
    whole = "a <c>one</c> < <d <c>two</c>, c>"
    for at in range(len(whole)):
        deltas, text = through(whole[:at], whole[at:])
        assert "".join(deltas) == text == "a  < <d , c>"


@pytest.mark.parametrize(
    ("version", "number", "status"),
    [
        ("0.92.0", signal.SIGTERM, -signal.SIGTERM),
        ("0.169.0", signal.SIGTERM, 0),
        ("0.169.0", signal.SIGINT, -signal.SIGINT),
        ("0.169.0", signal.SIGHUP, -signal.SIGHUP),
    ],
)
def test_only_a_later_version_exits_on_sigterm(version: str, number: signal.Signals, status: int) -> None:
    """0.169.0 exits with status 0 on SIGTERM; any other signal ends it, and each ends 0.92.0."""
    env = {**os.environ, "FAKE_CODEX_VERSION": version}
    with subprocess.Popen([FAKE, "app-server"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(
            dumps({"id": 0, "method": "initialize", "params": {"clientInfo": {"name": "me", "version": "1"}}}) + b"\n"
        )
        process.stdin.flush()
        assert b"userAgent" in process.stdout.readline()
        process.send_signal(number)
        assert process.wait(10) == status
