"""Every recording of the real app-server, played to the scripted fake: its client's half, with its model's and machine's.

What comes back must be what was recorded, after normalisation. Each recording that it differs in stands in `DIFFERENT`, with the
reason; one that has become equal fails here until it is taken out, so that the list can only shrink.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.core.redact.redactor import Redactor
from codex_replay.core.wire.json_text import loads
from codex_replay.protocol.recordings.compare import compare
from codex_replay.protocol.turn.frames import load_table
from codex_replay.shell.cassettes.file import CassetteReader
from codex_replay.shell.codex.home import HermeticHome
from codex_replay.shell.rpc.client import Client, SubjectFailure
from codex_replay.shell.rpc.player import Player
from tests.fakes.scripted.in_process import InProcess
from tests.fakes.scripted.machine_half import as_json, machine_script

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "cassettes" / "app_server"
RECORDINGS = sorted(str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.rglob("*.ndjson"))
FAKE = str(Path(sys.executable).with_name("fake-codex"))
#: Not seen by the home's address: the fake connects to nobody.
UPSTREAM = "http://127.0.0.1:39999"
#: Who was logged in when a recording began; the fake reads no auth.json, so the script says it.
ACCOUNTS: dict[str, Any] = {
    "test_account/api_key": "api_key",
    "test_account/chatgpt": "chatgpt",
    "test_account/logout": "api_key",
    "test_account/no_last_refresh": {"type": "chatgpt", "last_refresh": None},
    "test_account/rate_limits": "chatgpt",
    "test_login/a_401_that_remains-api_key": "api_key",
    "test_login/a_401_that_remains-chatgpt": "chatgpt",
    **{f"test_login/a_key_wins_over_tokens-{mode}": "api_key" for mode in ("no-mode", "chatgpt", "apikey")},
    "test_login/an_old_login_is_refreshed_at_the_start-7": "chatgpt",
    "test_login/an_old_login_is_refreshed_at_the_start-9": {"type": "chatgpt", "planType": "plus"},
    **{f"test_account/refresh_refused-{why}": "chatgpt" for why in ("expired", "reused", "revoked", "unknown")},
}
MCP = "the fake starts no MCP server and connects to none"
AGENTS = "agents that are started by the model are not modelled"
TERMINALS = "commands that outlive their call (the feature unified_exec) are not modelled"
CHANCE = "the real server decided by chance, and otherwise than the fake does: "
OUTSIDE = "the model waits for something that the test did outside of both seams: "
#: Recording (or the beginning of its name) -> why the fake does not say the same.
DIFFERENT = {
    "test_approvals/cancel": "the recording has no model's half",
    "test_bad_input/ten_megabytes": "the recording has but the beginning of the line",
    "test_collab/": AGENTS,
    "test_config/project_layer": "the fake looks at no file of a project, so there is no layer of one",
    "test_config/write": "the version that is expected is a hash over a port of the recording",
    "test_dynamic_tools/parallel": CHANCE + "the second call was made first",
    "test_faults/context_window": "compaction, by which the real server makes room when the context is full, is not modelled",
    "test_interrupt/v1_a_pending_approval": CHANCE + "the end of the command was told before the abort",
    "test_mcp/": MCP,
    "test_methods/skill_as_input": "the fake reads no file, so the model is not told a skill's words",
    "test_terminals/": TERMINALS,
    "test_threads/rollback": "the real server estimates the tokens that are left out of texts that the fake does not have",
    "test_threads/rollback_in_a_turn": OUTSIDE + "a gate was opened",
    "test_threads/rollback_of_more_than_there_is": "the same estimate",
}
#: Of those that a beginning names, the ones that are equal after all.
EQUAL = ("test_mcp/status", "test_mcp/status_of_none", "test_mcp/reload", "test_mcp/oauth_login_refused")
#: The recording in which a message reached the server before the first call of the model of the turn before it.
JOINED = "test_steering/v1_turn_and_message_at_once"
#: Seconds; where a difference is expected there is nothing to wait for.
WAIT, SHORT = 30.0, 2.0


def reason(name: str) -> str | None:
    """Return why a recording is expected to differ; None when it is expected to be equal."""
    if name in EQUAL:
        return None
    folders = (why for beginning, why in DIFFERENT.items() if beginning.endswith("/") and name.startswith(beginning))
    return DIFFERENT.get(name) or next(folders, None)


class Recording:
    """One recording: `frames` of its rpc seam, the script made of it, and a home to play it in."""

    def __init__(self, name: str, root: Path) -> None:
        with CassetteReader(FOLDER / f"{name}.ndjson") as reader:
            self.header: Header = reader.header
            frames = [frame for frame in reader if isinstance(frame, Frame)]
        upstream = self.header.extra.get("upstream") or {}
        self.home = HermeticHome(root, UPSTREAM, extra_config=upstream.get("config"))
        self.frames = [frame for frame in frames if frame.seam == "rpc"]
        self.places = {"/home/user/work": str(self.home.work), "/home/user": str(self.home.home)}
        account = {"account": ACCOUNTS[name]} if name in ACCOUNTS else {}
        text = as_json({**machine_script(upstream, frames), **account})
        for recorded, live in self.places.items():
            text = text.replace(recorded, live)
        self.script = root / "script.json"
        self.script.write_text(text, encoding="utf-8")

    def until_the_end(self) -> list[Frame]:
        """Return the frames up to a last line without an end: that is answered when the input ends, and not before."""
        cut = [n for n, frame in enumerate(self.frames) if frame.sender == "client" and not frame.raw.endswith(b"\n")]
        return self.frames[: cut[-1] + 1] if cut else self.frames

    def differences(self, timeline: list[Frame]) -> list[str]:
        """Return a sentence for each difference between the recording and a live run."""
        redactor = Redactor(paths={live: recorded for recorded, live in self.places.items()})
        live = [Frame(f.n, f.t, f.seam, f.sender, raw=redactor.redact(f.raw)) for f in timeline]
        return [found.sentence("the recording", "the fake") for found in compare(self.frames, live).differences]


class Together(Client):
    """Sends a v1 turn and the message behind it in one write: the fake then has read both before the first call of the model."""

    _turn = b""

    def send(self, message: Any) -> None:
        if b'"method":"sendUserTurn"' in message:
            self._turn = message
        else:
            super().send(self._turn + message)
            self._turn = b""


def play(recording: Recording, timeout: float, kind: type[Client] = Client) -> list[str]:
    """Play a recording to the fake as a program; return what differs."""
    env = {**recording.home.env, "FAKE_CODEX_SCRIPT": str(recording.script)}
    client = kind([FAKE, "app-server"], env=env, cwd=str(recording.home.work), timeout=timeout)
    try:
        failure = Player(client, recording.places).play(recording.until_the_end())
        status = client.close(WAIT)  # `timeout` is for what never comes, which a slow start is not
    finally:
        client.stop()
    found = recording.differences(client.timeline)
    if failure is not None:
        found.append(failure)
    if status != 0:
        found.append(f"exit status {status}: {client.process.stderr_tail(3)}")
    return found


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_fake_says_what_was_recorded(name: str, tmp_path: Path) -> None:
    why = reason(name)
    found = play(Recording(name, tmp_path), WAIT if why is None else SHORT, Together if name == JOINED else Client)
    if why is None:
        assert found == []
    else:
        assert found != [], f"{name} is equal now: take it out of DIFFERENT ({why})"


def test_the_list_of_differences_is_short_and_names_recordings() -> None:
    """Nine in ten recordings are equal; what is not stands in the list, and nothing else does."""
    for beginning in DIFFERENT:
        assert any(name == beginning or (beginning[-1] == "/" and name.startswith(beginning)) for name in RECORDINGS), beginning
    assert len([name for name in RECORDINGS if reason(name) is not None]) <= len(RECORDINGS) // 10


# -- the rows of the table that only these recordings show ----------------------------------------------------------------


class InHand(InProcess):
    """The fake without its process, as a `Player` drives it."""

    timeout = 1.0

    class process:  # noqa: N801 - stands where the client's attribute stands
        status = None

    def send(self, message: Any) -> None:
        super().send(loads(message) if isinstance(message, bytes) else message)

    def wait(self, what: str, matches: Callable[[Any], bool], timeout: float | None = None) -> Any:
        try:
            return super().wait(what, matches)
        except AssertionError as error:
            raise SubjectFailure(str(error)) from None


def played(name: str, root: Path, table: Any) -> list[str]:
    """Play a recording within this process, with this table; return what differs."""
    recording = Recording(name, root)
    client: Any = InHand(recording.script, recording.home.home, str(recording.home.work), table)
    failure = Player(client, recording.places).play(recording.frames)
    return recording.differences(client.timeline) + ([failure] if failure is not None else [])


#: Happening of the table -> a recording that shows it.
SHOWN = {
    "shutdown-complete": "test_threads/archive",
    "thread-rolled-back": "test_threads/rollback",
    "rollback-failed": "test_threads/rollback_in_a_turn",
    "review-started": "test_methods/review-custom",
    "review-entered": "test_methods/review-custom",
    "review-exited": "test_methods/review-custom",
    "review-said": "test_methods/review-custom",
    "user-message-again": "test_methods/review-custom",
    "turn-replaced": "test_interrupt/replaced_by_a_review",
    "raw-item": "test_items/raw_items",
    "deprecated": "test_config/deprecated",
    "warning": "test_user_input/warning",
}


#: Single frames of happenings whose others the recordings of `tests.protocol.turn.test_turn` show.
FRAMES_SHOWN = {("reasoning-completed", 3): "test_items/reasoning-raw"}


@pytest.mark.parametrize(("happening", "number"), FRAMES_SHOWN)
def test_a_missing_frame_is_found(happening: str, number: int, tmp_path: Path) -> None:
    table, name = load_table(), FRAMES_SHOWN[happening, number]
    assert played(name, tmp_path / "right", table) == []
    del table["frames"][happening][number]
    assert played(name, tmp_path / "wrong", table) != []


@pytest.mark.parametrize("happening", SHOWN)
def test_a_mutated_row_is_found(happening: str, tmp_path: Path) -> None:
    """Each frame of the row is needed, and so is the name of each of its members."""
    table = load_table()
    right = played(SHOWN[happening], tmp_path / "right", table)
    assert reason(SHOWN[happening]) is not None or right == []
    for number, row in enumerate(table["frames"][happening]):
        where = "msg" if "msg" in row else "params"
        renamed = {**row, where: {f"{key}X": value for key, value in row[where].items()}}
        others = [[], [{**row, "event": "other"}] if "event" in row else [{**row, "method": "other"}]]
        for i, other in enumerate([*others, *([[renamed]] if row[where] else [])]):
            rows = [*table["frames"][happening]]
            rows[number : number + 1] = other
            wrong = {**table, "frames": {**table["frames"], happening: rows}}
            assert played(SHOWN[happening], tmp_path / f"{number}-{i}", wrong) != right, (happening, number, i)
