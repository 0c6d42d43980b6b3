"""`codex-replay cassette redact` and `import`: what is taken out, what is kept, where it is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codex_replay.shell.cassettes.file import CassetteReader
from tests.cli.cassette.files import DATA, SHELL, TOKEN, run, write


def test_redacting_keeps_the_file_that_is_there(tmp_path: Path) -> None:
    there = tmp_path / "there.ndjson"
    there.write_bytes(b"another recording")
    assert run("redact", SHELL, "--out", there).exit_code == 2
    assert there.read_bytes() == b"another recording"
    assert run("redact", SHELL, "--out", there, "--force").exit_code == 0
    assert there.read_bytes() != b"another recording"


def test_redact_takes_secrets_out_and_leaves_the_rest(tmp_path: Path) -> None:
    dirty = write(
        tmp_path / "dirty.ndjson", b'{"id":1,"method":"x","params":{"token":"%s"}}\n' % TOKEN.encode(), b"odd  line of acme\r\n"
    )
    clean = tmp_path / "clean.ndjson"
    assert run("redact", dirty, "--out", clean, "--literal", "acme").exit_code == 0
    data = clean.read_bytes()
    assert TOKEN.encode() not in data
    assert b"acme" not in data
    with CassetteReader(clean) as reader:
        assert [frame.raw for frame in reader][1] == b"odd  line of redacted-1\r\n"
    assert dirty.read_bytes().count(TOKEN.encode()) == 1
    assert run("lint", clean).exit_code == 0


def test_redact_changes_nothing_where_there_is_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out.ndjson"
    assert run("redact", SHELL, "--out", out).exit_code == 0
    assert out.read_bytes() == Path(SHELL).read_bytes()


def test_redact_in_place_is_for_authored_cassettes_only(tmp_path: Path) -> None:
    line = b'{"id":1,"method":"x","params":{"token":"%s"}}\n' % TOKEN.encode()
    authored = write(tmp_path / "authored.ndjson", line)
    recorded = write(tmp_path / "recorded.ndjson", line, origin="recorded")
    assert run("redact", authored, "--in-place").exit_code == 0
    assert TOKEN.encode() not in authored.read_bytes()
    before = recorded.read_bytes()
    assert run("redact", recorded, "--in-place").exit_code == 2
    assert run("redact", recorded, "--out", recorded).exit_code == 2
    assert recorded.read_bytes() == before
    assert run("redact", authored).exit_code == 2
    assert run("redact", authored, "--in-place", "--out", "x").exit_code == 2
    assert run("redact", authored, "--in-place", "--literal", "").exit_code == 2


@pytest.mark.parametrize("form", ["tee", "proto-events"])
def test_import_writes_a_sound_cassette_without_secrets(form: str, tmp_path: Path) -> None:
    out = tmp_path / "c.ndjson"
    result = run("import", "--format", form, DATA / f"{form}.ndjson", "--out", out, "--authored")
    assert result.exit_code == 0, result.output
    assert "cut for size" in result.stderr
    with CassetteReader(out) as reader:
        assert (reader.header.codex, reader.header.origin, reader.header.extra) == (
            "0.92.0",
            {"rpc": "authored"},
            {"imported": form},
        )
        assert sum(not frame.whole for frame in reader) == (1 if form == "tee" else 2)
    assert b"sk-proj-" not in out.read_bytes()
    # The sample's server says what no server would: that is the bundle's affair, and of the form there is nothing to say.
    (file,) = json.loads(run("lint", "--json", out).stdout)["files"]
    assert [f for f in file["findings"] if f["level"] == "error" and f["check"] not in ("valid", "known")] == []
    assert "[cut]" in run("show", out).output


def test_import_calls_a_log_recorded_unless_told_otherwise(tmp_path: Path) -> None:
    out = tmp_path / "c.ndjson"
    assert (
        run("import", "--format", "tee", DATA / "tee.ndjson", "--out", out, "--codex", "0.1.0", "--case", "mine").exit_code == 0
    )
    with CassetteReader(out) as reader:
        assert (reader.header.codex, reader.header.case, reader.header.origin) == ("0.1.0", "mine", {"rpc": "recorded"})


@pytest.mark.parametrize(
    "arguments",
    [
        ["--format", "tee", DATA / "proto-events.ndjson"],
        ["--format", "proto-events", DATA / "tee.ndjson"],
        ["--format", "tee", DATA / "nowhere.ndjson"],
        ["--format", "tee", DATA],
        ["--format", "word", DATA / "tee.ndjson"],
    ],
)
def test_an_import_that_fails_leaves_nothing_and_replaces_nothing(arguments: list[str | Path], tmp_path: Path) -> None:
    out = tmp_path / "c.ndjson"
    out.write_text("mine")
    result = run("import", *arguments, "--out", out, "--force")
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["c.ndjson"]
    assert out.read_text() == "mine"


def test_an_output_that_cannot_be_written_is_answered_in_a_sentence(tmp_path: Path) -> None:
    for out in (tmp_path, tmp_path / "no" / "where.ndjson"):
        result = run("redact", SHELL, "--out", out)
        assert result.exit_code == 2
        assert result.stderr.startswith("codex-replay: ")
        assert str(out) in result.stderr


def test_import_never_writes_over_what_it_reads(tmp_path: Path) -> None:
    log = tmp_path / "tee.log"
    log.write_text('{"t":0,"dir":"c2s","msg":{"id":1,"method":"initialize"}}\n')
    link = tmp_path / "link"
    link.symlink_to(log)
    for out in (log, link):
        done = run("import", log, "--format", "tee", "--out", out)
        assert (done.exit_code, log.stat().st_size) == (2, 57)
        assert "this is the file to import" in done.output


def test_importing_keeps_the_file_that_is_there(tmp_path: Path) -> None:
    out = tmp_path / "out.ndjson"
    out.write_text("mine")
    result = run("import", DATA / "tee.ndjson", "--format", "tee", "--out", out)
    assert (result.exit_code, out.read_text()) == (2, "mine")
    assert "was not changed" in result.stderr
    assert run("import", DATA / "tee.ndjson", "--format", "tee", "--out", out, "--force").exit_code == 0
    assert out.read_text() != "mine"


def test_import_takes_out_what_was_streamed_in_pieces_and_literals_too(tmp_path: Path) -> None:
    log = tmp_path / "tee.log"
    with log.open("w") as lines:
        for piece in ("It is ghp_", "abcdefghijklmnop", "qrstuvwxyzABCDEF6789 of Blue", "bird."):
            params = {"threadId": "t", "turnId": "0", "itemId": "m", "delta": piece}
            said = {"t": 0, "dir": "s2c", "msg": {"method": "item/agentMessage/delta", "params": params}}
            lines.write(json.dumps(said) + "\n")
    out = tmp_path / "c.ndjson"
    assert run("import", log, "--format", "tee", "--out", out, "--literal", "Bluebird").exit_code == 0
    with CassetteReader(out) as reader:
        assert [frame.value["params"]["delta"] for frame in reader] == ["It is ghp_redacted-1", "", " of redacted-1", "."]
    assert ": secret: " not in run("lint", out, "--literal", "Bluebird").output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.ndjson", "tee.log"]
