"""`cassette lint` holds each frame to a bundle: valid and known told apart, blamed on who wrote it, against any version."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from codex_replay.cli.cassette.group import group
from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.core.wire.json_text import dumps
from codex_replay.protocol import data_tables
from codex_replay.shell.cassettes import bundle_check
from codex_replay.shell.cassettes.file import CassetteWriter
from codex_replay.shell.files import version_data

ROOT = Path(__file__).resolve().parents[3]
ASK = {"id": 1, "method": "account/read", "params": {}}
ANSWER = {"id": 1, "result": {"account": None, "requiresOpenaiAuth": False}}


def cassette(path: Path, *frames: tuple[str, Any], codex: str = "0.92.0", cut: int = 0) -> Path:
    with CassetteWriter(path, Header(codex, "unknown", "a", {"rpc": "authored"})) as writer:
        for n, (sender, message) in enumerate(frames, 1):
            writer.write(Frame(0, n, "rpc", sender, raw=dumps(message) + b"\n", extra={"truncated": True} if n == cut else None))
    return path


def findings(path: Path, *options: str) -> tuple[int, list[tuple[str, str, int | None]]]:
    done = CliRunner().invoke(group, ["lint", "--json", str(path), *options])
    (file,) = json.loads(done.stdout)["files"]
    return done.exit_code, [(f["level"], f["check"], f["frame"]) for f in file["findings"]]


def test_a_sound_cassette_has_no_findings(tmp_path: Path) -> None:
    assert findings(cassette(tmp_path / "a", ("client", ASK), ("server", ANSWER))) == (0, [])


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"id": 1, "result": {"account": None, "requiresOpenaiAuth": "no"}}, ("error", "valid", 2)),
        ({"id": 1, "result": {"account": None}}, ("error", "valid", 2)),
        ({"id": 1, "result": {**ANSWER["result"], "more": 1}}, ("error", "known", 2)),  # type: ignore[dict-item]
    ],
)
def test_what_the_server_breaks_is_an_error_of_its_verdict(tmp_path: Path, answer: Any, expected: Any) -> None:
    assert findings(cassette(tmp_path / "a", ("client", ASK), ("server", answer))) == (1, [expected])


def test_the_side_that_is_not_judged_gets_notes(tmp_path: Path) -> None:
    path = cassette(tmp_path / "a", ("client", {**ASK, "params": {"choiceCount": 1}}), ("server", ANSWER))
    assert findings(path) == (0, [("note", "known", 1)])
    assert findings(path, "--judge", "client") == (1, [("error", "known", 1)])
    assert findings(path, "--judge", "both") == (1, [("error", "known", 1)])


def test_a_cut_frame_is_not_judged_but_its_answer_is(tmp_path: Path) -> None:
    path = cassette(tmp_path / "a", ("client", {**ASK, "params": {"bogus": 1}}), ("server", ANSWER), cut=1)
    assert findings(path, "--judge", "both") == (0, [("note", "cut-payload", 1)])


def test_a_version_without_a_bundle_is_said_and_another_bundle_can_be_named(tmp_path: Path) -> None:
    path = cassette(tmp_path / "a", ("client", ASK), ("server", {"id": 1, "result": {}}), codex="unknown")
    assert findings(path) == (0, [("note", "bundle", 1)])
    assert findings(path, "--codex", "0.92.0")[0] == 1
    assert findings(path, "--codex", version_data.schema_folder("0.92.0"))[0] == 1


@pytest.mark.parametrize(
    ("codex", "text"),
    [
        (
            "unknown",
            "The header names no Codex version ('unknown'), so no frame is validated. Name the version or your own bundle",
        ),
        ("0.92.0/../0.92.0", "The header names no Codex version ('0.92.0/../0.92.0'), so no frame is validated."),
        ("\x1b[2J", "The header names no Codex version ('\\x1b[2J'), so no frame is validated."),
        ("0.0.1", "The schema bundle of Codex 0.0.1 is missing, so no frame is validated. `codex-replay codex install 0.0.1`"),
    ],
)
def test_a_missing_bundle_is_one_line_on_stderr_and_a_member(tmp_path: Path, codex: str, text: str) -> None:
    for name in "ab":
        cassette(tmp_path / f"{name}.ndjson", ("client", ASK), ("server", {"id": 1, "result": {}}), codex=codex)
    done = CliRunner().invoke(group, ["lint", str(tmp_path), "--json"])
    (missing,) = json.loads(done.stdout)["missing"]
    assert missing.startswith(text)
    assert done.stderr == f"codex-replay: {missing}\n"
    plain = CliRunner().invoke(group, ["lint", str(tmp_path), "--notes"])
    assert (plain.exit_code, plain.stderr, plain.stdout.count("\n")) == (0, done.stderr, 1)


def test_a_bundle_that_is_there_is_no_line_on_stderr(tmp_path: Path) -> None:
    done = CliRunner().invoke(group, ["lint", "--json", str(cassette(tmp_path / "a", ("client", ASK), ("server", ANSWER)))])
    assert (done.stderr, json.loads(done.stdout)["missing"]) == ("", [])


def test_the_bundle_of_the_headers_version_is_found_as_with_codex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_REPLAY_CACHE", str(tmp_path / "cache"))
    shutil.copytree(version_data.schema_folder("0.92.0"), tmp_path / "cache" / "bundles" / "0.0.4")
    path = cassette(tmp_path / "a", ("client", ASK), ("server", {"id": 1, "result": {}}), codex="0.0.4")
    assert findings(path) == (1, [("error", "valid", 2)])


def test_a_bundle_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    done = CliRunner().invoke(group, ["lint", str(cassette(tmp_path / "a", ("client", ASK))), "--codex", "0.0.1"])
    assert done.exit_code == 2
    assert "codex install 0.0.1" in done.stderr


def test_a_bundle_that_drift_has_kept_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_REPLAY_CACHE", str(tmp_path / "cache"))
    shutil.copytree(version_data.schema_folder("0.92.0"), tmp_path / "cache" / "bundles" / "0.0.2")
    assert findings(cassette(tmp_path / "a", ("client", ASK), ("server", ANSWER)), "--codex", "0.0.2") == (0, [])


OPENING = {"clientInfo": {"name": "a", "version": "1"}}
ASKS = {**OPENING, "capabilities": {"experimentalApi": True}}
TOOL = {"name": "clock", "description": "", "inputSchema": {}}


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with the two bundles of a version that keeps dynamicTools and a method for clients that say the capability."""
    for kept in (bundle_check._validator, bundle_check._experimental):
        kept.cache_clear()
    monkeypatch.setenv("CODEX_REPLAY_CACHE", str(tmp_path / "cache"))
    document = json.loads(data_tables.schema("0.92.0")[data_tables.PRIMARY])
    definitions = document["definitions"]
    capable = {"type": "object", "properties": {"experimentalApi": {"type": "boolean"}}}
    definitions["InitializeParams"]["properties"]["capabilities"] = capable
    definitions["v2"]["GetAccountResponse"]["properties"]["daybreak"] = {"type": "boolean"}
    for name in ("bundles-experimental", "bundles"):
        folder = tmp_path / "cache" / name / "0.0.3"
        folder.mkdir(parents=True)
        (folder / data_tables.PRIMARY).write_text(json.dumps(document))
        definitions["v2"]["ThreadStartParams"]["properties"].pop("dynamicTools", None)
        definitions["v2"]["GetAccountResponse"]["properties"].pop("daybreak", None)
        members = definitions["ClientRequest"]["oneOf"]
        definitions["ClientRequest"]["oneOf"] = [
            each for each in members if each["properties"]["method"]["enum"] != ["collaborationMode/list"]
        ]
    return tmp_path / "cache"


def said(tmp_path: Path, opening: Any, *frames: Any) -> list[str]:
    path = cassette(
        tmp_path / "a",
        ("client", {"id": 0, "method": "initialize", "params": opening}),
        ("server", {"id": 0, "result": {"userAgent": "a"}}),
        *(("client", {"id": n, **frame}) for n, frame in enumerate(frames, 1)),
    )
    done = CliRunner().invoke(group, ["lint", "--json", str(path), "--codex", "0.0.3", "--judge", "client"])
    (file,) = json.loads(done.stdout)["files"]
    return [each["message"] for each in file["findings"] if each["check"] in ("valid", "known", "bundle")]


def start(**params: Any) -> Any:
    return {"method": "thread/start", "params": params}


ONLY = " This part is only for clients that send capabilities.experimentalApi in initialize; this client does not"


def test_what_only_the_experimental_bundle_knows_is_said_to_be_refused(tmp_path: Path, two: Path) -> None:
    lists = {"method": "collaborationMode/list", "params": {}}
    tools, listed, other = said(tmp_path, OPENING, start(dynamicTools=[TOOL]), lists, start(bogus=1))
    for message in (tools, listed):
        assert message.endswith(f"{ONLY}: 0.0.3 refuses it.")
    assert ONLY not in other


@pytest.mark.parametrize("empty", [None, []])
def test_what_says_nothing_is_not_refused(tmp_path: Path, two: Path, empty: Any) -> None:
    (message,) = said(tmp_path, OPENING, start(dynamicTools=empty))
    assert message.endswith(f"{ONLY}.")


def test_who_says_the_capability_is_held_to_the_experimental_bundle(tmp_path: Path, two: Path) -> None:
    assert said(tmp_path, ASKS, start(dynamicTools=[TOOL])) == []
    (message,) = said(tmp_path, ASKS, start(bogus=1))
    assert ONLY not in message


def served(tmp_path: Path, result: Any) -> tuple[int, list[tuple[str, str, int | None]]]:
    """Lint a recording of a client without the capability, by its server."""
    answer = {"id": 1, "result": {**ANSWER["result"], **result}}  # type: ignore[dict-item]
    return findings(cassette(tmp_path / "a", ("client", ASK), ("server", answer)), "--codex", "0.0.3")


def test_a_server_writes_experimental_members_to_every_client(tmp_path: Path, two: Path) -> None:
    assert served(tmp_path, {"daybreak": True}) == (0, [])
    assert served(tmp_path, {"daybreak": 1}) == (1, [("error", "valid", 2)])
    assert served(tmp_path, {"bogus": True}) == (1, [("error", "known", 2)])


def test_without_the_experimental_bundle_its_names_are_notes_and_one_line(tmp_path: Path, two: Path) -> None:
    (two / "bundles-experimental" / "0.0.3" / data_tables.PRIMARY).unlink()
    bundle_check._experimental.cache_clear()
    assert served(tmp_path, {"daybreak": True}) == (0, [("note", "bundle", 1), ("note", "known", 2)])
    assert served(tmp_path, {"requiresOpenaiAuth": 1}) == (1, [("note", "bundle", 1), ("error", "valid", 2)])
    line, tools = said(tmp_path, ASKS, start(dynamicTools=[TOOL]))
    assert line.startswith("The experimental schema bundle of Codex 0.0.3 is missing: keys that only that bundle may list are")
    assert line.endswith("`codex-replay codex install 0.0.3` creates the bundle.")
    assert ONLY not in tools


def test_a_check_that_sees_no_second_bundle_turns_this_red(tmp_path: Path, two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle_check, "_experimental", lambda codex: None)
    _, message = said(tmp_path, OPENING, start(dynamicTools=[TOOL]))
    assert ONLY not in message


def test_every_recording_of_the_repository_is_sound() -> None:
    done = CliRunner().invoke(group, ["lint", str(ROOT / "cassettes")])
    assert (done.exit_code, done.stdout.rpartition(":")[2].strip()) == (0, "all sound."), done.stdout
