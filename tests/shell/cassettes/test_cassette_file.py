"""Cassette files: what is written is read back, as far as it goes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codex_replay.core.cassette.frames import (
    Frame,
    encode_header,
)
from codex_replay.shell.cassettes.file import CassetteError, CassetteReader, CassetteWriter
from tests.core.cassette.test_frames import BAD_LINES, HEADER, LINES


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LINES, max_size=6))
def test_a_written_cassette_is_read_back(tmp_path: Path, lines: list[bytes]) -> None:
    path = tmp_path / "c.ndjson"
    with CassetteWriter(path, HEADER) as writer:
        for line in lines:
            writer.write(Frame(0, 0.0, "rpc", "client", "msg", line))
    with CassetteReader(path) as reader:
        assert [frame.raw for frame in reader] == lines
        assert reader.footer is not None
        assert (reader.footer.frames, reader.truncated) == (len(lines), None)
        assert reader.read() is None


def _write(path: Path, frames: int = 3) -> bytes:
    with CassetteWriter(path, HEADER) as writer:
        for number in range(frames):
            writer.write(Frame(0, number / 10, "rpc", "client", "msg", b'{"id":%d}\n' % number))
    return path.read_bytes()


def test_a_cassette_cut_anywhere_is_read_to_its_last_whole_frame(tmp_path: Path) -> None:
    path = tmp_path / "c.ndjson"
    data = _write(path)
    header = data.index(b"\n") + 1
    for cut in range(header, len(data)):
        path.write_bytes(data[:cut])
        with CassetteReader(path) as reader:
            read = [frame.n for frame in reader]
            whole = data[:cut].count(b"\n") - 1
            # A last line may be whole but for its newline.
            assert read in (list(range(1, whole + 1)), list(range(1, whole + 2)))
            if cut < len(data) - 1:
                assert reader.truncated is not None
                assert str(path) in reader.truncated


def test_an_abandoned_cassette_counts_as_truncated(tmp_path: Path) -> None:
    path = tmp_path / "c.ndjson"
    writer = CassetteWriter(path, HEADER)
    writer.write(Frame(0, 0.0, "rpc", "client", "msg", b"{}\n"))
    writer.abandon()
    with CassetteReader(path) as reader:
        assert len(list(reader)) == 1
        assert reader.truncated


BAD_FILES = {
    "empty": b"",
    "not JSON": b"hello\nworld\n",
    "another format": BAD_LINES["another format"],
    "no header": b'{"n":1,"t":0.0,"seam":"rpc","from":"client","msg":{}}\n',
    "binary": bytes(range(256)),
    "cut in the header": b'{"cassette":1,"codex":"0.9',
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_file_that_is_no_cassette_is_refused_in_a_sentence(tmp_path: Path, name: str) -> None:
    path = tmp_path / "c.ndjson"
    path.write_bytes(BAD_FILES[name])
    with pytest.raises(CassetteError) as caught:
        CassetteReader(path)
    assert str(path) in str(caught.value)
    assert str(caught.value).endswith(".")


def test_a_missing_file_and_a_folder_are_refused_in_a_sentence(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.ndjson", tmp_path):
        with pytest.raises(CassetteError, match=r"cannot be opened|is a folder"):
            CassetteReader(path)
    with pytest.raises(CassetteError, match="cannot be written"):
        CassetteWriter(tmp_path / "no" / "where", HEADER)


BAD_MESSAGES = [b'{"n":3,"t":0.2,"seam":"rpc","from":"server","msg":%s}\n' % said for said in (b"nonsense", b"null", b'{"a":1')]


@pytest.mark.parametrize("bad", [b"garbage\n", b"{}\n", encode_header(HEADER), *BAD_MESSAGES])
def test_a_broken_line_in_the_middle_is_told_with_its_number(tmp_path: Path, bad: bytes) -> None:
    path = tmp_path / "c.ndjson"
    lines = _write(path).splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], bad, *lines[2:]]))
    with CassetteReader(path) as reader, pytest.raises(CassetteError, match="line 3"):
        list(reader)


@pytest.mark.parametrize("raw", [b"nonsense\n", b'{"a":1\n', b"null\n", b"\xff\n", b"\n"])
def test_what_a_server_said_that_is_no_message_is_no_broken_line(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "c.ndjson"
    with CassetteWriter(path, HEADER) as writer:
        writer.write(Frame(0, 0.0, "rpc", "server", "msg", raw))
    with CassetteReader(path) as reader:
        assert [frame.raw for frame in reader] == [raw]
