"""The scripted fake of 0.169.0 says what the real one was recorded to say (tests/real/differential/record_later.py)."""

from __future__ import annotations

import json
import os
import re
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
from codex_replay.shell.rpc.client import Client
from tests.real.differential.later import Both
from tests.real.differential.later_differing import allowances, differences
from tests.real.differential.test_later import FAKE

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
    raw = re.sub(rb'(?<=[" ])/root(?=/)', b"/home/user", frame.raw)
    return Frame(frame.n, frame.t, frame.seam, frame.sender, frame.kind, raw)


def test_there_are_recordings() -> None:
    assert len(NAMES) == 88


@pytest.mark.parametrize("name", NAMES)
def test_the_fake_says_what_was_recorded(name: str, imitated: dict[str, list[Frame]]) -> None:
    assert differences(recorded(name), imitated[name]) == []


def test_a_killed_command_may_have_another_exit_code() -> None:
    """The real server gives -1 or 1, as `ALLOWANCES` names; any other exit code is a difference."""
    frames = recorded("terminals-ended")

    def ended(code: bytes) -> list[Frame]:
        raws = [frame.raw.replace(b'"exitCode":-1', b'"exitCode":' + code) for frame in frames]
        return [Frame(f.n, f.t, f.seam, f.sender, f.kind, raw) for f, raw in zip(frames, raws, strict=True)]

    assert differences(ended(b"1"), frames) == []
    assert allowances(ended(b"1"), frames) == ["a command that is killed has the exit code 1 and not -1"]
    assert differences(ended(b"2"), frames) != []


@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("item/completed", "the end of an interrupted item is lost"),
        ("account/rateLimits/updated", "the usage of an interrupted turn is lost"),
    ],
)
def test_an_allowance_has_a_name_and_allows_no_more(method: str, name: str) -> None:
    """What the real server may lose in an interrupted turn is named; in the turn after it, the same is a difference."""
    frames = recorded("interrupted")
    assert allowances(frames, frames) == []
    cut = next(n for n, frame in enumerate(frames) if b'"status":"interrupted"' in frame.raw)
    places = [n for n, f in enumerate(frames) if f.sender == "server" and f.value.get("method") == method]
    early, late = max(n for n in places if n < cut), max(places)
    without = [[frame for n, frame in enumerate(frames) if n != place] for place in (early, late)]
    assert differences(frames, without[0]) == []
    assert allowances(frames, without[0]) == [name]
    assert differences(frames, without[1]) != []


#: Events that no recording shows: what they need is not among the recorded conversations.
UNSHOWN = {"image-view", "exec-output"}
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
    frames, _, status = said([HELLO, {"id": 1, "method": "fs/watch", "params": {"path": "/x"}}], tmp_path)
    message = frames[-1]["error"]["message"]
    missing = f"fake-codex does not have fs/watch of Codex {VERSION}"
    assert message.startswith(f"{missing}: add the method's answer to the script")
    assert status == 1


def test_what_is_experimental_needs_the_capability(tmp_path: Path) -> None:
    asked = {"id": 1, "method": "collaborationMode/list", "params": {}}
    frames, _, _ = said([HELLO, asked], tmp_path)
    assert frames[-1]["error"]["message"] == "collaborationMode/list requires experimentalApi capability"
    able = {**HELLO, "params": {**HELLO["params"], "capabilities": {"experimentalApi": True}}}  # type: ignore[dict-item]
    frames, _, _ = said([able, asked], tmp_path)
    assert [mode["mode"] for mode in frames[-1]["result"]["data"]] == ["plan", "default"]


def test_the_capabilities_are_checked_before_the_state_of_the_connection(tmp_path: Path) -> None:
    """A second `initialize` with wrong capabilities gets the error about the capabilities, and not "Already initialized"."""
    wrong: dict[str, Any] = {"experimentalApi": "yes"}
    second = {**HELLO, "id": 1, "params": {**HELLO["params"], "capabilities": wrong}}  # type: ignore[dict-item]
    frames, _, status = said([HELLO, second, {**HELLO, "id": 2}], tmp_path)
    refused = [frame["error"]["message"] for frame in frames if "error" in frame]
    assert refused == ['Invalid request: invalid type: string "yes", expected a boolean', "Already initialized"]
    assert status == 0


def test_a_compaction_cannot_be_steered(tmp_path: Path) -> None:
    """The errors are those of the real 0.169.0; the compaction can be interrupted, and replaces a running turn."""
    (tmp_path / "script.json").write_text('[{"items": [{"type": "wait", "ms": 5000}, "Late."], "times": "always"}]')
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "CODEX_HOME": str(tmp_path), "FAKE_CODEX_VERSION": VERSION}
    env |= {"FAKE_CODEX_SCRIPT": str(tmp_path / "script.json"), "FAKE_CODEX_PACE": "0.01x"}
    client = Client([FAKE, "app-server"], env=env, cwd=str(tmp_path), timeout=30)
    try:
        client.request("initialize", HELLO["params"])
        client.notify("initialized")
        thread = {"threadId": client.request("thread/start", {})["thread"]["id"]}
        given = {**thread, "input": [{"type": "text", "text": "Go."}]}
        client.request("turn/start", given)
        client.wait("turn/started", lambda m: m.get("method") == "turn/started")
        client.request("thread/compact/start", thread)
        ended = client.wait("turn/completed", lambda m: m.get("method") == "turn/completed")
        assert ended["params"]["turn"]["status"] == "interrupted"
        begun = client.wait("the compaction", lambda m: m.get("method") == "item/started" and b"contextComp" in dumps(m))
        turn = begun["params"]["turnId"]
        steered = client.call("turn/steer", {**given, "expectedTurnId": turn})["error"]
        info = {"activeTurnNotSteerable": {"turnKind": "compact"}}
        assert (steered["code"], steered["message"]) == (-32600, "cannot steer a compact turn")
        assert steered["data"] == {
            "message": steered["message"], "codexErrorInfo": info, "additionalDetails": None, "misalignment": None
        }  # fmt: skip
        message = "failed to submit turn input: ActiveTurnNotSteerable { turn_kind: Compact }"
        assert client.call("turn/start", given)["error"] == {"code": -32603, "message": message}
        client.request("turn/interrupt", {**thread, "turnId": turn})
        ended = client.wait("turn/completed", lambda m: m.get("method") == "turn/completed")
        assert (ended["params"]["turn"]["id"], ended["params"]["turn"]["status"]) == (turn, "interrupted")
    finally:
        client.stop()


@pytest.mark.parametrize("early", [True, False])
def test_a_turn_is_interrupted_only_after_it_has_begun(early: bool, tmp_path: Path) -> None:
    """A client that interrupts a turn before `turn/started` is refused, and the turn goes on."""
    (tmp_path / "script.json").write_text('[{"items": [{"type": "gate", "name": "g"}, "Hi."]}]')
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "CODEX_HOME": str(tmp_path), "FAKE_CODEX_VERSION": VERSION}
    env |= {"FAKE_CODEX_SCRIPT": str(tmp_path / "script.json"), "FAKE_CODEX_PACE": "0.01x"}
    client = Client([FAKE, "app-server"], env=env, cwd=str(tmp_path), timeout=30)
    try:
        client.request("initialize", HELLO["params"])
        thread = client.request("thread/start", {})["thread"]["id"]
        turn = client.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "Go."}]})["turn"]["id"]
        if not early:
            client.wait("turn/started", lambda m: m.get("method") == "turn/started")
        reply = client.call("turn/interrupt", {"threadId": thread, "turnId": turn})
        assert reply.get("error", {}).get("message") == ("no active turn to interrupt" if early else None)
        if early:
            client.wait("turn/started", lambda m: m.get("method") == "turn/started")
            client.request("turn/interrupt", {"threadId": thread, "turnId": turn})
        client.wait("turn/completed", lambda m: m.get("method") == "turn/completed")
    finally:
        client.stop()


def test_a_version_without_a_table_is_refused(tmp_path: Path) -> None:
    frames, stderr, status = said([HELLO], tmp_path, FAKE_CODEX_VERSION="0.116.0")
    assert (frames, status) == ([], 2)
    assert "FAKE_CODEX_VERSION: There is no turn table for Codex 0.116.0" in stderr
    assert "Traceback" not in stderr


def test_a_state_folder_has_threads_of_one_version(tmp_path: Path) -> None:
    state, other = str(tmp_path / "state"), {"FAKE_CODEX_VERSION": "0.92.0"}
    assert said([HELLO], tmp_path, FAKE_CODEX_STATE=state)[2] == 0
    frames, stderr, status = said([HELLO], tmp_path, FAKE_CODEX_STATE=state, **other)
    assert (frames, status) == ([], 2)
    assert f"the state folder {state} has threads of Codex {VERSION}, not 0.92.0; choose another folder" in stderr


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


# -- what the comparison forgives, and nothing beside it ----------------------------------------------------------------------

_USAGE = ("thread/tokenUsage/updated", "account/rateLimits/updated")


def numbers_of(method: str, frames: list[Frame]) -> list[int]:
    return [n for n, frame in enumerate(frames) if frame.value.get("method") == method]


def changed(frames: list[Frame], number: int, **values: Any) -> list[Frame]:
    frame = frames[number]
    raw = dumps({**frame.value, **values}) + b"\n"
    return [*frames[:number], Frame(frame.n, frame.t, frame.seam, frame.sender, frame.kind, raw), *frames[number + 1 :]]


def other_order(frames: list[Frame]) -> list[Frame]:
    """Begin the last two calls of a reply in the other order: their requests have each other's id, and so have the replies."""
    one, other = numbers_of("item/tool/call", frames)[-2:]
    ids = {frames[one].value["id"]: frames[other].value["id"], frames[other].value["id"]: frames[one].value["id"]}
    swapped = [*frames[: one - 1], *frames[other - 1 : other + 1], *frames[one - 1 : one + 1], *frames[other + 1 :]]
    for n, frame in enumerate(swapped):
        value = frame.value
        if value.get("method") == "item/tool/call" or (frame.sender == "client" and "result" in value):
            swapped = changed(swapped, n, id=ids.get(value["id"], value["id"]))
        elif value.get("method") == "serverRequest/resolved":
            request = value["params"]["requestId"]
            swapped = changed(swapped, n, params={**value["params"], "requestId": ids.get(request, request)})
    return swapped


@pytest.mark.parametrize("name", ["dynamic-at-once", "dynamic-interrupted"])
def test_calls_of_one_reply_may_begin_in_another_order(name: str) -> None:
    frames = recorded(name)
    swapped = other_order(frames)
    assert [frame.raw for frame in swapped] != [frame.raw for frame in frames]
    assert differences(frames, swapped) == []
    number = numbers_of("item/tool/call", swapped)[-1]
    wrong = {**swapped[number].value["params"], "arguments": {"n": 7}}
    assert differences(frames, changed(swapped, number, params=wrong)) != []
    assert differences(frames, swapped[:number] + swapped[number + 1 :]) != []


def without(methods: tuple[str, ...], frames: list[Frame], count: int) -> list[Frame]:
    """Leave out the first frames of these methods."""
    lost = [n for n, frame in enumerate(frames) if frame.value.get("method") in methods][:count]
    return [frame for n, frame in enumerate(frames) if n not in lost]


def test_an_interrupt_may_lose_the_usage_of_a_reply_with_open_calls() -> None:
    frames = recorded("dynamic-interrupted")
    assert differences(frames, without(_USAGE, frames, 1)) == []
    assert differences(frames, without(_USAGE, frames, 2)) == []
    assert differences(frames, without(_USAGE, frames, 3)) != []  # that of the next turn
    for name in ("interrupted-after-text", "dynamic", "rich"):
        frames = recorded(name)
        assert differences(frames, without(_USAGE, frames, 1)) != [], name


def test_the_warning_about_an_amendment_may_come_before_the_status_or_after_it() -> None:
    frames = recorded("amended-by-nothing")
    late = [n for n in numbers_of("warning", frames) if b"amendment" in frames[n].raw]
    assert len(late) == 2
    for n in late:
        first = n - (frames[n - 1].value.get("method") == "thread/status/changed")
        other = [*frames[:first], frames[first + 1], frames[first], *frames[first + 2 :]]
        assert differences(frames, other) == []
        assert differences(frames, frames[:n] + frames[n + 1 :]) != []


def test_the_end_of_a_declined_command_may_come_before_the_status_or_after_it() -> None:
    for name, allowed in (("declined", True), ("accepted", False)):
        frames = recorded(name)
        n = next(n for n in numbers_of("item/completed", frames) if b"commandExecution" in frames[n].raw)
        status = next(at for at in (n - 1, n + 1) if frames[at].value.get("method") == "thread/status/changed" or not allowed)
        first, second = sorted((n, status))
        other = [*frames[:first], frames[second], frames[first], *frames[second + 1 :]]
        assert (differences(frames, other) == []) == allowed, name
        assert differences(frames, frames[:n] + frames[n + 1 :]) != []


def test_output_of_its_own_may_be_there_or_not() -> None:
    frames = recorded("command")
    (end, *_) = [n for n in numbers_of("item/completed", frames) if b"commandExecution" in frames[n].raw]
    item = frames[end].value["params"]["item"]
    raw = dumps({"method": "item/commandExecution/outputDelta", "params": {"itemId": item["id"], "delta": "hi\n"}}) + b"\n"
    delta = Frame(0, 0.0, "rpc", "server", "msg", raw)
    assert differences(frames, [*frames[:end], delta, *frames[end:]]) == []
    wrong = {**frames[end].value["params"], "item": {**item, "aggregatedOutput": "ho\n"}}
    assert differences(frames, changed(frames, end, params=wrong)) != []


def test_a_cursor_into_the_file_of_a_thread_is_not_compared() -> None:
    frames = recorded("unsubscribed")
    (reply,) = [n for n, frame in enumerate(frames) if "turnsBackwardsCursor" in (frame.value.get("result") or {})]
    result = frames[reply].value["result"]
    assert isinstance(result["turnsBackwardsCursor"], str)
    assert differences(frames, changed(frames, reply, result={**result, "turnsBackwardsCursor": "another"})) == []
    assert differences(frames, changed(frames, reply, result={**result, "turnsBackwardsCursor": None})) != []
    assert differences(frames, changed(frames, reply, result={**result, "model": "another"})) != []


def test_the_reply_to_turn_start_may_be_late_in_an_ephemeral_thread() -> None:
    for name, forgiven in (("ephemeral", True), ("trimmed", False)):
        frames = recorded(name)
        started = numbers_of("turn/started", frames)[-1]
        (reply,) = [n for n in range(started - 2, started) if frames[n].value.get("result", {}).get("turn")]
        late = [*frames[:reply], *frames[reply + 1 : started + 1], frames[reply], *frames[started + 1 :]]
        assert (differences(frames, late) == []) == forgiven, name
        assert differences(frames, frames[:reply] + frames[reply + 1 :]) != [], name
