"""fake-codex with a cassette: the header chooses the tables of a version, and without tables it says so."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from codex_replay.shell.files import version_data
from tests.fakes.replays import BROKEN, conversation, environ, fake, of_client, run, write


@pytest.mark.parametrize(
    ("codex", "start"),
    [
        ("0.92.0", ""),
        (
            "unknown",
            "fake-codex: The header names no Codex version ('unknown'), so no version's tables apply: each server frame ",
        ),
        ("", "fake-codex: The header names no Codex version (''), so no version's tables apply: each server frame "),
        (
            "0.116.0",
            "fake-codex: There is no causality, normalise or methods table for Codex 0.116.0 "
            "(`codex-replay codex add 0.116.0` makes it): ",
        ),
    ],
)
def test_a_version_without_tables_is_replayed_and_reported_once(tmp_path: Path, codex: str, start: str) -> None:
    sent = of_client(conversation("Ho"))
    for lines in (sent, sent[:1]):  # also where the client says no more than initialize
        status, told, came = run(lines, cassette=write(tmp_path / "a.ndjson", conversation(), codex))
        assert (status, "method" in came[-1]) == ((0, True) if lines is sent else (1, False))
        missing = [
            line for line in told if "note:" not in line and "never came" not in line and line.startswith("fake-codex: The")
        ]
        assert [line.startswith(start) for line in missing] == ([True] if start else [])


def test_a_version_without_causality_is_replayed_in_the_recorded_order(tmp_path: Path) -> None:
    """The 0.92.0 table lets the end of the turn go out before a client frame that merely stands before it."""
    frames = conversation()
    last = next(n for n in range(len(frames) - 1, -1, -1) if frames[n][0] == "server")
    frames.insert(last, ("client", {"method": "note"}))
    sent = [line for line in of_client(frames) if line.get("method") != "note"]
    for codex, method in (("0.92.0", frames[-1][1]["method"]), ("0.116.0", frames[last - 1][1].get("method"))):
        _, _, came = run(sent, cassette=write(tmp_path / "a.ndjson", frames, codex))
        assert came[-1].get("method") == method, codex


def fake_says(*words: str, cassette: Path) -> tuple[int, str, str]:
    done = subprocess.run([*fake(), *words], env=environ(cassette=cassette), capture_output=True, text=True, timeout=30)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("codex", "version", "told"),
    [
        ("0.116.0", "0.116.0", ""),
        ("unknown", "0.92.0", "fake-codex: The header names no Codex version ('unknown'); --version prints 0.92.0, which may"),
    ],
)
def test_the_version_is_that_of_the_recording(tmp_path: Path, codex: str, version: str, told: str) -> None:
    for cassette in (write(tmp_path / "a.ndjson", conversation(), codex), tmp_path):
        status, out, err = fake_says("--version", cassette=cassette)
        assert (status, out, err[: len(told)]) == (0, f"codex-cli {version}\n", told)
        assert bool(err) == bool(told)


@pytest.mark.parametrize(
    ("codex", "status", "told"),
    [
        ("0.92.0", 0, ""),
        (
            "0.116.0",
            2,
            "fake-codex: The schema bundle of Codex 0.116.0 is missing; `codex-replay codex install 0.116.0` and then",
        ),
        (
            "unknown",
            2,
            "fake-codex: The header names no Codex version ('unknown'), so no schemas are written. Name the version with",
        ),
    ],
)
def test_the_schemas_are_those_of_the_recorded_version_or_none(tmp_path: Path, codex: str, status: int, told: str) -> None:
    cassette = write(tmp_path / "a.ndjson", conversation(), codex)
    found, _, err = fake_says("app-server", "generate-json-schema", "--out", str(tmp_path / "out"), cassette=cassette)
    assert (found, err[: len(told)]) == (status, told)
    assert (tmp_path / "out").exists() == (status == 0)


@pytest.mark.parametrize(("codex", "status"), [("9.9.9", 2), ("0.92.0", 0)])
def test_the_header_chooses_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codex: str, status: int) -> None:
    """The table of version 9.9.9 is broken, which only a replay of that version notices."""
    data = tmp_path / "data"
    shutil.copytree(Path(version_data.path_of("0.92.0")), data / "0.92.0")
    (data / "9.9.9").mkdir()
    (data / "9.9.9" / "causality.json").write_text("no table")
    monkeypatch.setitem(BROKEN, "other data", f"import codex_replay.shell.files.version_data as s; s.DATA = {str(data)!r}")
    found = run(of_client(conversation()), "other data", cassette=write(tmp_path / "a.ndjson", conversation(), codex))
    assert found[0] == status, found
