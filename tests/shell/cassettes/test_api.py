"""The functions that users import: open, lint, normalise, diff."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from codex_replay import (
    BundleError,
    CassetteError,
    Conversation,
    Redactor,
    diff,
    lint,
    normalise,
    open_cassette,
)
from codex_replay.protocol.recordings.conversation import text

FOLDER = Path(__file__).parents[3] / "cassettes" / "app_server" / "test_approvals"
ACCEPT, CANCEL = FOLDER / "accept.ndjson", FOLDER / "cancel.ndjson"


def test_a_cassette_is_opened_and_read() -> None:
    with open_cassette(ACCEPT) as cassette:
        frames = list(cassette)
        assert cassette.header.codex == "0.92.0"
        assert cassette.footer is not None
        assert cassette.footer.frames == len(frames)


def test_a_file_that_is_no_cassette(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("hello\n")
    for use in (open_cassette, normalise, lambda path: diff(path, ACCEPT), lambda path: diff(ACCEPT, path)):
        with pytest.raises(CassetteError, match="line 1"):
            use(tmp_path / "x")
    assert "line 1" in str(lint(tmp_path / "x").unreadable)
    assert not lint(tmp_path / "x").ok


def test_lint_finds_what_the_command_finds(tmp_path: Path) -> None:
    assert lint(ACCEPT).ok
    (tmp_path / "cut.ndjson").write_bytes(ACCEPT.read_bytes().rpartition(b'{"end"')[0])
    assert [finding.check for finding in lint(tmp_path / "cut.ndjson").findings if finding.level == "error"] == ["truncated"]
    assert not lint(ACCEPT, redactor=Redactor(literals={"commandExecution": "a thing"})).ok
    with pytest.raises(BundleError):
        lint(ACCEPT, codex="0.0.1")
    with pytest.raises(ValueError, match="server, client, both"):
        lint(ACCEPT, judge="nobody")


def test_a_recording_may_be_given_in_each_form() -> None:
    wanted = normalise(str(ACCEPT))
    with open_cassette(ACCEPT) as cassette:
        assert normalise(cassette) == wanted
    with open_cassette(ACCEPT) as cassette:
        conversation = Conversation(cassette, "0.92.0")
    assert normalise(conversation) == normalise(list(conversation)) == wanted
    assert diff(conversation, ACCEPT).equal


def test_two_recordings_that_differ() -> None:
    found = diff(ACCEPT, CANCEL)
    assert not found.equal
    assert {"missing", "extra", "changed"} >= {one.kind for one in found.differences}
    assert any('"accept" and "cancel"' in one.sentence() for one in found.differences)
    assert [event.label for event in normalise(ACCEPT)] != [event.label for event in normalise(CANCEL)]


def test_normalised_events_read_as_a_conversation() -> None:
    """Each request is followed by its answer and by what the server sent because of it; HTTP stands at the end."""
    labels = [event.label for event in normalise(ACCEPT)]
    turn = labels.index("rpc> turn/start")
    assert labels[turn + 1] == "rpc< response to turn/start"
    assert labels.index("rpc> initialized") < labels.index("rpc> thread/start") < labels.index("rpc< thread/started") < turn
    asked = labels.index("rpc< item/commandExecution/requestApproval")
    answered = labels.index("rpc> response to item/commandExecution/requestApproval")
    assert turn < asked < answered < labels.index("rpc< item/completed commandExecution") < labels.index("rpc< turn/completed")
    seams = [label[:4] for label in labels]
    assert seams.index("http") > max(n for n, seam in enumerate(seams) if seam.startswith("rpc"))


@pytest.mark.parametrize(
    ("codex", "why"), [("garbage", "'garbage' is not a Codex version"), ("0.93.0", "There is no normalise table")]
)
def test_tables_that_are_asked_for_and_missing_are_an_error(codex: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"codex: {why}"):
        normalise(ACCEPT, codex=codex)
    with pytest.raises(ValueError, match=f"codex: {why}"):
        diff(ACCEPT, ACCEPT, codex=codex)


def test_a_recording_whose_version_has_no_tables_is_a_warning(tmp_path: Path) -> None:
    other = tmp_path / "other.ndjson"
    other.write_bytes(Path(ACCEPT).read_bytes().replace(b'"codex":"0.92.0"', b'"codex":"0.93.0"', 1))
    with pytest.warns(UserWarning, match="There is no normalise table for Codex 0.93.0") as told:
        assert normalise(other)
    assert told[0].filename == __file__
    with pytest.warns(UserWarning, match="both are normalised with the table of 0.92.0"):
        assert diff(ACCEPT, other).equal
    with pytest.warns(UserWarning, match="There is no normalise table"), open_cassette(other) as reader:
        text(Conversation(list(reader), "0.93.0"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert diff(other, other, codex="0.92.0").equal
        normalise(ACCEPT)


@pytest.mark.parametrize(
    "use", [open_cassette, lint, normalise, lambda path: diff(path, ACCEPT), lambda path: diff(ACCEPT, path)]
)
@pytest.mark.parametrize("wrong", [None, b"a", 5, [1]])
def test_a_wrong_type_is_a_sentence_of_ours(use: Callable[[object], object], wrong: object) -> None:
    with pytest.raises(TypeError, match=r"^A (cassette is opened by its path|recording is the path).*; this is .+\.$"):
        use(wrong)


@pytest.mark.parametrize("use", [open_cassette, lint, normalise])
@pytest.mark.parametrize(
    ("path", "why"), [("", r"^The path of the cassette is empty"), ("a\0b", r"^a\\x00b: a path cannot contain a NUL character")]
)
def test_a_path_that_cannot_be_one_is_a_sentence(use: Callable[[str], object], path: str, why: str) -> None:
    with pytest.raises(CassetteError, match=why):
        use(path)
