"""The mapping table, held to what the real binary said: each recording is said again, and each row is needed for that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codex_replay.core.cassette.frames import Frame
from codex_replay.protocol.turn.diff import AppliedDiff, TurnDiff, changes_of, shown_v2
from codex_replay.protocol.turn.frames import camel, failure, fill, frames, load_table
from codex_replay.protocol.turn.patch_text import BadPatch, parse_patch, summary_lines
from codex_replay.protocol.turn.stream import Sampling
from codex_replay.protocol.turn.tools import BadArguments, ShellCall, arguments_of, join, plain_commands
from codex_replay.shell.cassettes.file import CassetteReader
from codex_replay.shell.codex.home import HermeticHome
from tests.fakes.scripted.conversing import Conversation, initialize
from tests.fakes.scripted.differing import differences
from tests.fakes.scripted.in_process import InProcess
from tests.fakes.scripted.test_scripted_recordings import FRAMES_SHOWN, SHOWN

MEMBERS = [
    "id",
    "role",
    "content",
    "summary",
    "action",
    "name",
    "arguments",
    "input",
    "call_id",
    "text",
    "type",
    "query",
    "error",
]
FOLDER = Path(__file__).parents[2] / "data" / "scripted"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
TABLE = load_table()
#: The home of the recordings (tests/real/differential/record_scripted.py).
FEATURES = {"collaboration_modes": True}
QUIET = {"suppress_unstable_features_warning": True}


def recorded(name: str) -> list[Frame]:
    with CassetteReader(FOLDER / f"{name}.ndjson") as reader:
        return [frame for frame in reader if isinstance(frame, Frame)]


def play(name: str, root: Path, table: Any = None) -> InProcess:
    """Play a recording's conversation on the scripted fake, with its own table or another."""
    scenario = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    home = HermeticHome(root, f"http://127.0.0.1:39999/s/{name}", features=FEATURES, extra_config=QUIET)
    script = root / "script.json"
    script.write_text(json.dumps(scenario["script"]), encoding="utf-8")
    client = InProcess(script, home.home, str(home.work), table)
    initialize(client)
    Conversation(client, scenario["conversation"], str(home.work)).play()
    return client


@pytest.mark.parametrize("name", NAMES)
def test_the_fake_says_what_the_real_binary_said(name: str, tmp_path: Path) -> None:
    assert differences("recorded", recorded(name), play(name, tmp_path).timeline) == []


def uses(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Return happening -> the recordings that it occurs in."""
    found: dict[str, list[str]] = {}
    for name in NAMES:

        class Watched(dict):  # type: ignore[type-arg]
            def __getitem__(self, key: str, name: str = name) -> Any:
                found.setdefault(key, []).append(name)
                return super().__getitem__(key)

        play(name, tmp_path_factory.mktemp("uses"), {**TABLE, "frames": Watched(TABLE["frames"])})
    return {key: sorted(set(names)) for key, names in found.items()}


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return uses(tmp_path_factory)


#: The others are shown by recordings of the suite, and held to them in the same way
#: (`tests.fakes.scripted.test_scripted_recordings`).
HERE = [name for name, rows in TABLE["frames"].items() if rows and name not in SHOWN]
TEMPLATES = [(name, i) for name in HERE for i in range(len(TABLE["frames"][name])) if (name, i) not in FRAMES_SHOWN]


def said_with(name: str, row: int, changed: Any, used: dict[str, list[str]], tmp_path: Path) -> bool:
    """Tell whether a table in which one frame is changed (None: left out) still says what the real binary said."""
    rows = [*TABLE["frames"][name]]
    rows[row : row + 1] = [] if changed is None else [changed]
    table = {**TABLE, "frames": {**TABLE["frames"], name: rows}}
    for number, recording in enumerate(used[name]):
        try:
            said = play(recording, tmp_path / str(number), table).timeline
        except (AssertionError, KeyError):
            return False  # the client waits for it, or the table has no such value
        if differences("recorded", recorded(recording), said):
            return False
    return True


@pytest.mark.parametrize(("name", "row"), TEMPLATES, ids=lambda value: str(value))
def test_every_frame_of_the_table_is_needed(name: str, row: int, used: dict[str, list[str]], tmp_path: Path) -> None:
    assert name in used, f"no recording shows what {name} becomes"
    assert not said_with(name, row, None, used, tmp_path)


@pytest.mark.parametrize("name", HERE)
def test_a_member_of_another_name_is_found(name: str, used: dict[str, list[str]], tmp_path: Path) -> None:
    rows = [(row, "msg" if "msg" in row else "params") for row in TABLE["frames"][name]]
    number, (template, where) = next((i, row) for i, row in enumerate(rows) if row[0][row[1]])
    *rest, (key, value) = template[where].items()
    other = {**template, where: {**dict(rest), "other" if key[-1] != "?" else "other?": value}}
    assert key[-1] == "?" or not said_with(name, number, other, used, tmp_path)


# -- the reader of the table --------------------------------------------------------------------------------------------


def test_names_are_filled_and_absent_ones_are_an_error() -> None:
    values = {"a": [1], "b": None, "n": 3}
    template = {"x": "$a", "y?": "$b", "z": "n is ${n}", "l": ["$n"], "plain": "as it stands"}
    assert fill(template, values) == {"x": [1], "z": "n is 3", "l": [3], "plain": "as it stands"}
    with pytest.raises(KeyError):
        fill("$c", values)


def test_a_frame_is_for_whom_it_is_meant() -> None:
    rows = [
        {"only": "v2", "method": "a", "params": {}},
        {"if": "x", "method": "b", "params": {}},
        {"each": "many", "as": "one", "event": "c", "msg": {"o": "$one"}},
        {"only": "v1", "request": "d", "params": {}},
    ]
    values = {"thread": "T", "turn": "0", "x": None, "many": [1, 2]}
    assert [frame["method"] for frame in frames(rows, "v2", values)] == ["a", "codex/event/c", "codex/event/c"]
    v1 = frames(rows, "v1", {**values, "x": 1})
    assert [frame["method"] for frame in v1] == ["b", "codex/event/c", "codex/event/c", "d"]
    assert v1[1]["params"] == {"id": "0", "msg": {"type": "c", "o": 1}, "conversationId": "T"}
    assert v1[-1] == {"method": "d", "id": None, "params": {}}


def test_names_in_camel_case() -> None:
    assert camel("usage_limit_exceeded") == "usageLimitExceeded"
    nested = {"response_stream_disconnected": {"http_status_code": 503}}
    assert camel(nested) == {"responseStreamDisconnected": {"httpStatusCode": 503}}


@pytest.mark.parametrize(
    ("cause", "message", "retry"),
    [
        ({"status": 400, "reason": "Bad Request", "body": "b", "url": "u"}, "b", []),
        (
            {"status": 404, "reason": "Not Found", "body": "b", "url": "u"},
            "unexpected status 404 Not Found: b, url: u",
            ["stream"],
        ),
        ({"code": "invalid_prompt", "text": "no"}, "no", []),
        ({"code": "anything", "text": "no"}, "stream disconnected before completion: no", ["stream"]),
        (
            {"break": "refused", "url": "u"},
            "stream disconnected before completion: error sending request for url (u)",
            ["request", "stream"],
        ),
    ],
)
def test_what_a_fault_upstream_becomes(cause: dict[str, Any], message: str, retry: list[str]) -> None:
    failed = failure(TABLE["errors"], cause)
    assert (failed["message"], failed["retry"]) == (message, retry)


# -- the stream ---------------------------------------------------------------------------------------------------------


def message(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": text}], **more}


def test_a_delta_without_an_open_item_is_lost_and_an_item_without_an_announcement_is_announced() -> None:
    sampling = Sampling(TABLE["model"])
    assert sampling.receive({"type": "response.output_text.delta", "delta": "lost"}) == []
    happened = sampling.receive({"type": "response.output_item.done", "item": message("x")})
    assert [name for name, _ in happened] == ["agent-message-started", "agent-message-completed"]
    assert sampling.last_message == "x"


@pytest.mark.parametrize("item", [message("x", role="user"), {"type": "nonesuch"}, {"type": "message", "id": "m"}, "item", None])
def test_an_item_of_another_shape_says_nothing(item: Any) -> None:
    sampling = Sampling(TABLE["model"])
    assert sampling.receive({"type": "response.output_item.done", "item": item}) == []
    assert sampling.receive({"type": "nonesuch"}) == []


def test_how_a_reply_ends() -> None:
    for event, end in (
        ({"type": "response.completed", "response": {"id": "r"}}, {"completed": True}),
        ({"type": "response.completed", "response": {}}, {"break": "completed_without_id"}),
        ({"type": "response.failed", "response": {"error": {"code": "c", "message": "t"}}}, {"code": "c", "text": "t"}),
        ({"type": "response.failed"}, {"code": "*", "text": ""}),
    ):
        sampling = Sampling(TABLE["model"])
        sampling.receive(event)
        sampling.close()
        assert sampling.end == end
    broken = Sampling(TABLE["model"])
    broken.close("cut")
    assert broken.end == {"break": "cut"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(MEMBERS) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=200)
@given(
    st.sampled_from([row["on"] for row in TABLE["model"]]),
    st.sampled_from([row["item"] for row in TABLE["model"] if "item" in row]),
    st.dictionaries(st.sampled_from(MEMBERS), json_values, max_size=6),
    json_values,
)
def test_no_event_is_an_error(on: str, kind: str, item: dict[str, Any], more: Any) -> None:
    sampling = Sampling(TABLE["model"])
    for event in ({"type": on, "item": {**item, "type": kind}, "response": more, "delta": more}, {"type": on, "item": more}):
        for name, values in sampling.receive(event):
            frames(TABLE["frames"][name], "v2", {"thread": "T", "turn": "0", "shown": [], **values})
    sampling.close()


# -- calls --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["ls"], "ls"),
        (["/bin/bash", "-lc", "printf marker"], "/bin/bash -lc 'printf marker'"),
        (["/bin/bash", "-lc", "printf 'a b'; exit 2"], "/bin/bash -lc \"printf 'a b'; exit 2\""),
        (["", "it's $x"], "'' \"it's \"'$x'"),
    ],
)
def test_an_argv_as_a_line(argv: list[str], line: str) -> None:
    assert join(argv) == line


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("ls -la", [["ls", "-la"]]),
        ("ls && pwd; echo 'a b' | wc", [["ls"], ["pwd"], ["echo", "a b"], ["wc"]]),
        ("printf $x", None),
        ("a > b", None),
        ("a &", None),
        ("X=1 a", None),
        ("", None),
        ('echo "$x"', None),
    ],
)
def test_plain_commands(line: str, commands: Any) -> None:
    assert plain_commands(line) == commands


@pytest.mark.parametrize(
    ("line", "policy", "sandbox", "asks"),
    [
        ("ls | wc -l", "untrusted", "dangerFullAccess", False),
        ("ls > f", "untrusted", "dangerFullAccess", True),
        ("git status", "untrusted", "readOnly", False),
        ("git push", "untrusted", "readOnly", True),
        ("printf x", "on-request", "readOnly", False),
        ("rm -rf x", "on-request", "dangerFullAccess", True),
        ("rm -rf x", "never", "dangerFullAccess", False),
        ("printf x", "never", "readOnly", False),
    ],
)
def test_which_command_needs_an_approval(line: str, policy: str, sandbox: str, asks: bool) -> None:
    call = {"call": "function", "name": "shell_command", "arguments": json.dumps({"command": line})}
    shell = ShellCall(call, "/w")
    assert shell.asks(policy, sandbox, TABLE["settings"]) is asks
    assert not shell.asks(policy, sandbox, TABLE["settings"], [line.split()[:1]]) or shell.commands is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{bad", "key must be a string at line 1 column 2"),
        ("{}", "missing field `command` at line 1 column 2"),
        ("", "EOF while parsing a value at line 1 column 0"),
        ("[]", "invalid type, expected an object at line 1 column 2"),
    ],
)
def test_bad_arguments_in_the_words_of_the_real_binary(text: str, why: str) -> None:
    with pytest.raises(BadArguments) as caught:
        arguments_of({"arguments": text}, ("command",))
    assert str(caught.value) == why


PATCH = (
    "*** Begin Patch\n*** Add File: n\n+one\n*** Update File: u\n*** Move to: v\n@@\n-a\n+b\n*** Delete File: d\n*** End Patch\n"
)


def test_what_a_patch_tells_of_itself() -> None:
    assert parse_patch(PATCH) == {
        "n": {"type": "add", "content": "one\n"},
        "u": {"type": "update", "unified_diff": "@@\n-a\n+b\n", "move_path": "v"},
        "d": {"type": "delete", "content": ""},
    }
    assert summary_lines(PATCH) == "A n\nM v\nD d\n"
    for bad in ("", "x", "*** Begin Patch", "*** Begin Patch\nx\n*** End Patch"):
        with pytest.raises(BadPatch):
            parse_patch(bad)


def test_the_diff_of_a_turn_adds_up() -> None:
    diff = TurnDiff()
    first = changes_of("*** Begin Patch\n*** End Patch", "/w", {"changes": {"a": {"type": "add", "content": "1\n"}}})
    for changes in (first, {"/w/a": {"type": "update", "unified_diff": "", "old": "1\n", "new": "2\n"}}):
        diff.begin(changes)
        diff.apply(changes)
    assert "+2\n" in diff.text()
    assert "+1\n" not in diff.text()
    gone = {"/w/a": {"type": "delete", "content": "2\n"}}
    diff.begin(gone)
    assert "+2\n" in diff.text()
    diff.apply(gone)
    assert diff.text() == ""
    assert [change["path"] for change in shown_v2({**first, "/w/A": first["/w/a"]})] == ["/w/A", "/w/a"]


def test_the_diff_of_a_later_turn_has_only_what_was_applied() -> None:
    diff = AppliedDiff("/w/")
    moved = {"type": "update", "old": "1\n", "new": "2\n", "move_path": "/w/b"}
    diff.begin({"/w/a": moved})
    assert diff.text() == ""
    diff.apply({"/w/c": {"type": "update", "unified_diff": "@@\n-a\n+b"}})
    assert diff.text().endswith("\n@@\n-a\n+b\n")
    diff.apply({"/w/a": moved})
    assert diff.text().startswith("diff --git a/a b/b\nindex ")
    diff.apply({"/w/b": {**moved, "old": "2\n", "new": "1\n", "move_path": "/w/a"}})
    assert diff.text().startswith("diff --git a/c b/c\n")
    diff.fail()
    assert diff.text() == ""


def test_a_patch_that_is_refused_shows_as_the_real_binary_shows_it() -> None:
    diff = TurnDiff()
    diff.begin({"/w/a": {"type": "update", "old": "1\n", "new": "2\n"}})
    assert diff.text() == ""
    changes = {"/w/b": {"type": "add", "content": "x\n"}}
    diff.begin(changes)
    diff.apply(changes)
    assert diff.text().startswith("\ndiff --git a//w/b b//w/b\n")
    diff.begin({"/w/c": {"type": "update", "old": "1\n", "new": "2\n", "move_path": "/w/d"}})
    assert "deleted file mode" in diff.text()
