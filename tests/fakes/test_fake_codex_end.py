"""fake-codex with a cassette: what differed and was answered is reported at the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_replay.shell.cassettes.file import CassetteReader
from tests.fakes.replays import THREAD, conversation, of_client, red, run, write


def check_told(tmp_path: Path, broken: str = "") -> None:
    sent = of_client(conversation())
    sent[2]["params"] = {"threadId": "bogus", "input": "not a list"}
    status, told, came = run(sent, broken, cassette=write(tmp_path / "a.ndjson", conversation()))
    assert status == 0
    assert came[-1]["method"] == "turn/completed"
    assert len(told) == 2, told
    assert told[0] == (
        f"fake-codex: note: turn/start was answered like frame 5 of {tmp_path}/a.ndjson, although it differs at params.threadId: "
        f'recorded "{THREAD}", got "bogus"; params.input: recorded "Hi", got "not a list"'
    )
    assert "1 request " in told[1]
    assert "FAKE_CODEX_MATCH=exact" in told[1]


def test_what_differs_and_is_answered_is_told_at_the_end(tmp_path: Path) -> None:
    check_told(tmp_path)


@pytest.mark.parametrize("broken", ["tells no difference", "keeps no difference"])
def test_one_that_does_not_tell_is_noticed(tmp_path: Path, broken: str) -> None:
    red(check_told, broken, tmp_path)


def check_nothing_to_tell(tmp_path: Path, broken: str = "") -> None:
    """Ids, names and directories are a client's own; a uuid is bound to the recorded one."""
    recorded = conversation([{"type": "text", "text": THREAD.replace("c9e3", "c9e4")}])
    sent = of_client(conversation([{"type": "text", "text": THREAD.replace("c9e3", "c9e5")}], cwd="/somewhere/else"))
    sent[0]["params"]["clientInfo"] = {"name": "another", "title": "x", "version": "9"}
    for n, message in enumerate(sent):
        message["id"] = f"mine-{n}"
    status, told, _ = run(sent, broken, cassette=write(tmp_path / "a.ndjson", recorded))
    assert (status, told) == (0, [])


def test_what_is_a_clients_own_is_not_told(tmp_path: Path) -> None:
    check_nothing_to_tell(tmp_path)


@pytest.mark.parametrize("broken", ["tells what is masked", "tells the client's name"])
def test_one_that_tells_it_is_noticed(tmp_path: Path, broken: str) -> None:
    red(check_nothing_to_tell, broken, tmp_path)


def check_short(tmp_path: Path, broken: str = "") -> None:
    prompt = "same " * 100 + "Bearer abcdefghijklmnop0123456789abcdef \x1b[31m\x9b\u202e" + "x" * 5000
    sent = of_client(conversation(prompt, turns=8))
    status, told, _ = run(sent, broken, cassette=write(tmp_path / "a.ndjson", conversation("same " * 100 + "Hi", turns=8)))
    assert status == 0
    assert len(told) == 6, told
    assert all(line.isprintable() and len(line) < 500 for line in told)
    assert "8 requests " in told[5]
    assert "3 of them" in told[5]
    assert not any("abcdefghijklmnop" in line for line in told)
    assert all('Hi"' in line for line in told[:5]), "the place where they part is shown"


def test_five_are_told_and_the_rest_is_counted_cut_printable_and_without_secrets(tmp_path: Path) -> None:
    check_short(tmp_path)


@pytest.mark.parametrize("broken", ["tells all", "tells it raw", "tells it whole", "tells secrets"])
def test_one_that_tells_too_much_is_noticed(tmp_path: Path, broken: str) -> None:
    red(check_short, broken, tmp_path)


def check_quiet(tmp_path: Path, broken: str = "") -> None:
    sent = of_client(conversation("Something else"))
    status, told, _ = run(sent, broken, cassette=write(tmp_path / "a.ndjson", conversation()), match="method")
    assert (status, told) == (0, [])


def test_who_says_method_is_told_nothing(tmp_path: Path) -> None:
    check_quiet(tmp_path)


def test_one_that_heeds_no_word_is_noticed(tmp_path: Path) -> None:
    red(check_quiet, "heeds no word", tmp_path)


def test_of_a_deck_the_recording_that_is_replayed_is_compared(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / "deck" / f"{name}.ndjson", conversation(name))
    same = run(of_client(conversation("two")), cassette=tmp_path / "deck")
    assert same[:2] == (0, [])
    status, told, _ = run(of_client(conversation("three")), cassette=tmp_path / "deck")
    assert status == 0
    assert "params.input" in told[0]
    assert "one.ndjson" in told[0]


def test_what_a_recording_says_redacted_does_not_differ(tmp_path: Path) -> None:
    token = "Bearer abcdefghijklmnop0123456789abcdef"
    run(of_client(conversation(token)), capture=tmp_path / "captured.ndjson")
    with CassetteReader(tmp_path / "captured.ndjson") as reader:
        clean = list(reader)[2].value["params"]["input"]
    assert "abcdefghijklmnop" not in clean
    recorded = conversation(clean)
    assert run(of_client(conversation(token)), cassette=write(tmp_path / "a.ndjson", recorded))[:2] == (0, [])


def check_home(tmp_path: Path, home: str, broken: str = "") -> None:
    sent = of_client(conversation("Something else"))
    status, told, _ = run(sent, broken, home, cassette=write(tmp_path / "a.ndjson", conversation()))
    assert (status, len(told)) == (0, 2), told


@pytest.mark.parametrize("home", ["/", "", "/home", "relative"])
def test_whatever_the_home_a_note_changes_nothing(tmp_path: Path, home: str) -> None:
    check_home(tmp_path, home)


@pytest.mark.parametrize("home", ["/", "/home"])
def test_one_that_ends_for_a_home_is_noticed(tmp_path: Path, home: str) -> None:
    red(check_home, "takes any home", tmp_path, home)
